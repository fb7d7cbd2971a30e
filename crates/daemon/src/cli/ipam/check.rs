//! `fairway ipam check`: what does not fit together in Calico's objects.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_ground::printable;
use fairway_ipam::check;
use serde_json::json;

use super::read::ObjectArguments;
use crate::cli::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam check                         of the cluster
  kubectl get -A -o yaml ippools.crd.projectcalico.org,ipamblocks.crd.projectcalico.org,\\
blockaffinities.crd.projectcalico.org,ipamhandles.crd.projectcalico.org,nodes,pods |
    fairway ipam check -
  fairway ipam check ipam/ pods.yaml

Without Pods among the objects, addresses are not held against Pods; without Nodes, owners not against nodes. What
changes while kubectl lists one kind after the other may be reported by mistake: look again before you act.
Each line: KIND NAME: what is wrong. Nothing is changed.
Exit code 0: no faults (warnings do not count). 1: faults, or files that cannot be read.")]
pub(super) struct CheckArguments {
    #[command(flatten)]
    objects: ObjectArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<ExitCode> {
    let (cluster, unreadable) = arguments.objects.read()?;
    let defects = check(&cluster);
    let faults = defects.iter().filter(|it| it.is_fault).count();
    if arguments.json {
        let item = |it: &fairway_ipam::Defect| {
            let severity = if it.is_fault { "fault" } else { "warning" };
            json!({"subject": it.subject, "severity": severity, "message": it.message})
        };
        let items: Vec<_> = defects.iter().map(item).collect();
        output::print_json(&format!("{:#}\n", json!({"items": items, "objects": cluster.read})))?;
    } else {
        // A name of foreign making may have line breaks.
        let lines = defects.iter().map(|it| printable(&it.to_string()).into_owned() + "\n");
        output::print(&lines.collect::<String>())?;
        let warnings = defects.len().saturating_sub(faults);
        eprintln!("objects: {}, faults: {faults}, warnings: {warnings}", cluster.read);
    }
    let is_good = faults == 0 && unreadable == 0;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
