//! `fairway ipam check`: what does not fit together in Calico's objects.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use fairway_ground::printable;
use fairway_ipam::calico::Cluster;
use fairway_ipam::{Collected, Defect, check};
use serde_json::json;

use super::read::{ObjectArguments, running};
use crate::cli::{duration, output};

/// The clock of blocks counts seconds.
const GRACE_MIN: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway ipam check                         of the cluster
  kubectl get -A -o yaml ippools.crd.projectcalico.org,ipamblocks.crd.projectcalico.org,\\
blockaffinities.crd.projectcalico.org,ipamhandles.crd.projectcalico.org,nodes,pods |
    fairway ipam check -
  fairway ipam check ipam/ pods.yaml
  fairway ipam check --fix                   put right what the collector puts right

Without Pods among the objects, addresses are not held against Pods; without Nodes, owners not against nodes. What
changes while kubectl lists one kind after the other may be reported by mistake: look again before you act.
Each line: KIND NAME: what is wrong. Without --fix, nothing is changed.

With --fix, what is found is printed first. What deleted nodes left behind is put right at once. Put right after --grace,
if it is still wrong: addresses of Pods that are gone, empty blocks that their node does not need, claims that were not
completed, handles that count wrongly. While a node cannot be reached whose Pods you have deleted by force, its containers may still use their addresses:
choose a longer --grace. A fault about addresses that Pods use, or about pools, is for you: delete that Pod, or correct
that pool.
Exit code 0: no faults, or none is left (warnings do not count). 1: faults, or files that cannot be read.")]
pub(super) struct CheckArguments {
    #[command(flatten)]
    objects: ObjectArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Put right in the cluster what is still wrong after --grace
    #[arg(long, conflicts_with_all = ["paths", "json"])]
    fix: bool,

    /// For how long something has to be wrong before it is put right, at least 1s
    #[arg(long, requires = "fix", value_name = "TIME", default_value = "1m", value_parser = duration::parse)]
    grace: Duration,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<ExitCode> {
    let (cluster, unreadable) = arguments.objects.read()?;
    let defects = check(&cluster);
    let faults = defects.iter().filter(|it| it.is_fault).count();
    if arguments.json {
        let item = |it: &Defect| {
            let severity = if it.is_fault { "fault" } else { "warning" };
            json!({"subject": it.subject, "severity": severity, "message": it.message})
        };
        let items: Vec<_> = defects.iter().map(item).collect();
        output::print_json(&format!("{:#}\n", json!({"items": items, "objects": cluster.read})))?;
    } else {
        // A name of foreign making may have line breaks.
        report(&defects, &cluster)?;
    }
    if arguments.fix && !defects.is_empty() {
        return running(fix(arguments));
    }
    let is_good = faults == 0 && unreadable == 0;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(defects: &[Defect], cluster: &Cluster) -> Result<()> {
    // A name of foreign making may have line breaks.
    let lines = defects.iter().map(|it| printable(&it.to_string()).into_owned() + "\n");
    output::print(&lines.collect::<String>())?;
    let faults = defects.iter().filter(|it| it.is_fault).count();
    let warnings = defects.len().saturating_sub(faults);
    eprintln!("objects: {}, faults: {faults}, warnings: {warnings}", cluster.read);
    Ok(())
}

async fn fix(arguments: &CheckArguments) -> Result<ExitCode> {
    let grace = arguments.grace.max(GRACE_MIN);
    let live = arguments.objects.cluster().connect().await?;
    eprintln!(
        "what deleted nodes left behind is put right now, everything else in {} s if it is still wrong then",
        grace.as_secs()
    );
    let Collected { released, blocks, hosts, errors, .. } = live.put_right(grace).await?;
    let lines = [
        released.iter().map(|it| format!("{it}: released\n")).collect::<String>(),
        blocks.iter().map(|it| format!("IPAMBlock {it}: has no owner any more\n")).collect(),
        hosts.iter().map(|it| format!("Node/{}: cleared\n", printable(it))).collect(),
    ];
    output::print(&lines.concat())?;
    for error in &errors {
        output::say(&printable(&error.to_string()));
    }
    let cluster = live.read().await?;
    let defects = check(&cluster);
    eprintln!("what is left:");
    report(&defects, &cluster)?;
    let is_good = errors.is_empty() && defects.iter().all(|it| !it.is_fault);
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
