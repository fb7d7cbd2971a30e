//! `fairway proxy plan`: what the proxy would have in the kernel, without a daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use fairway_ground::printable;
use fairway_model::{Node, Object};
use fairway_proxy::{Place, Planner, report};
use fairway_resources::{BackendKind, Finding};

use crate::cli::offline::{Reader, is_this_machine};
use crate::cli::output;
use crate::host::addresses;
use crate::source::STANDARD_INPUT;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway proxy plan --config cluster.yaml --node node-1
  fairway proxy plan --config new/ --against old/ --node node-1
  kubectl get -A -o yaml nodes,services,endpointslices |
    fairway proxy plan --config - --node node-1 --json

Services of all types, EndpointSlices, Nodes and a KubeProxyConfiguration are read; other kinds are
ignored. The addresses of the node are the InternalIPs of its Node object; without one, and if it is
this machine, those of this machine.
Exit code 0: done. 1: done, with faults: they are on stderr, and faulty objects are left out.")]
pub(super) struct ProxyPlanArguments {
    /// A file, or a folder of *.yaml, *.yml and *.json, or - for standard input; may be given more than once,
    /// or as a list separated by commas
    #[arg(
        long,
        required = true,
        value_name = "PATH",
        env = "FAIRWAY_CONFIG",
        value_delimiter = ','
    )]
    config: Vec<PathBuf>,

    /// The files in force now, in the same form: show only the differences
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    against: Vec<PathBuf>,

    /// The node
    #[arg(long, required = true, env = "FAIRWAY_NODE")]
    node: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &ProxyPlanArguments) -> Result<ExitCode> {
    let ProxyPlanArguments { config, against, node, json } = arguments;
    let inputs = config.iter().chain(against).filter(|it| *it == Path::new(STANDARD_INPUT));
    if inputs.count() > 1 {
        eprintln!("error: standard input (-) can be read only once");
        return Ok(ExitCode::from(2));
    }
    let mut reader = Reader::new(BackendKind::Proxy);
    let before = match against.is_empty() {
        true => None,
        false => Some(planned(reader.read_objects(against)?, node)),
    };
    let after = planned(reader.read_objects(config)?, node);
    for finding in reader.findings() {
        output::say(&finding.to_string());
    }
    for conflict in after.conflicts() {
        output::say(&printable(&format!(
            "Service/{}: warning: does not have {}, which Service {} has",
            conflict.waiting.name, conflict.virtual_address, conflict.holder
        )));
    }
    let edit = before.as_ref().map(|it| report::Edit::new(it.wanted(), after.wanted()));
    let print = if *json { output::print_json } else { output::print };
    print(&match (&edit, json) {
        (None, false) => report::text(after.wanted()),
        (None, true) => format!("{:#}\n", report::json(after.wanted())),
        (Some(edit), false) => edit.text(),
        (Some(edit), true) => format!("{:#}\n", edit.json()),
    })?;
    let has_faults = reader.findings().iter().any(Finding::is_fault);
    Ok(if has_faults { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What these objects lead to on this node.
fn planned(objects: Vec<Object>, node: &str) -> Planner {
    let described = objects.iter().find_map(|object| match object {
        Object::Node(it) if it.name == node => Some(Place::of(it)),
        _ => None,
    });
    let place = described.unwrap_or_else(|| {
        let addresses = if is_this_machine(node) { addresses() } else { Vec::new() };
        Place::of(&Node::assumed(node, addresses))
    });
    let mut planner = Planner::new(place);
    let objects = objects.into_iter();
    planner.follow(objects.map(|object| (Arc::new(object.key()), Some(Arc::new(object)))));
    planner
}
