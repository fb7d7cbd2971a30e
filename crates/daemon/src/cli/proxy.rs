//! `fairway proxy`: the service proxy of this node; and `plan`, what it would have in the kernel, without a daemon.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use fairway_ground::printable;
use fairway_model::{Node, Object};
use fairway_proxy::{Place, Planner, report};
use fairway_resources::{BackendKind, Finding};

use super::host::{node_name, run_daemon};
use super::offline::{Reader, is_this_machine};
use super::{duration, output};
use crate::host::addresses;
use crate::proxy::{self, ProxyOptions};
use crate::source::STANDARD_INPUT;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  fairway proxy --config /etc/fairway/services
  fairway proxy --config services.yaml,slices/ --node node-1 --drain-limit 5m
  fairway proxy plan --config services.yaml --node node-1

It serves the Services of these files on this node, as kube-proxy's IPVS mode does, and follows the
files as they change. When it ends, the kernel keeps what it has. Stop kube-proxy first."
)]
pub(super) struct ProxyArguments {
    #[command(subcommand)]
    command: Option<ProxyCommand>,

    /// A file or folder with Services, EndpointSlices, Nodes and a KubeProxyConfiguration; may be given more than
    /// once, or as a list separated by commas
    #[arg(
        long,
        required = true,
        value_name = "PATH",
        env = "FAIRWAY_CONFIG",
        value_delimiter = ','
    )]
    config: Vec<PathBuf>,

    /// The name of this node, which endpoints have as their nodeName [default: the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// The folder of the record of virtual servers that are Fairway's; a reboot must empty it
    #[arg(long, value_name = "PATH", default_value = "/run/fairway", env = "FAIRWAY_RUN_DIR")]
    run_dir: PathBuf,

    /// The bit of a packet's mark by which its source address is replaced; no other program may use it
    #[arg(
        long,
        value_name = "BIT",
        default_value_t = 14,
        value_parser = clap::value_parser!(u8).range(0..=31),
        env = "FAIRWAY_MASQUERADE_BIT"
    )]
    masquerade_bit: u8,

    /// How long TCP connections to an endpoint that has left may go on; 0s to 24h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15m",
        value_parser = duration::parse,
        env = "FAIRWAY_DRAIN_LIMIT"
    )]
    drain_limit: Duration,

    /// Answer ARP on the interface that has an address alone, not on all: else every node answers for the address of
    /// a load balancer
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = clap::ArgAction::Set,
        env = "FAIRWAY_IPVS_STRICT_ARP"
    )]
    ipvs_strict_arp: bool,
}

#[derive(Debug, Subcommand)]
enum ProxyCommand {
    /// Show the virtual servers, filter rules and addresses that resource files lead to, or what an edit changes
    Plan(ProxyPlanArguments),
}

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
struct ProxyPlanArguments {
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

pub(super) fn run(arguments: ProxyArguments) -> Result<ExitCode> {
    let ProxyArguments { command, config, node, run_dir, .. } = arguments;
    if let Some(ProxyCommand::Plan(arguments)) = &command {
        return plan(arguments);
    }
    run_daemon(proxy::run(ProxyOptions {
        config,
        node: node_name(node.as_deref())?,
        run_dir,
        masquerade_bit: arguments.masquerade_bit,
        drain_limit: arguments.drain_limit,
        strict_arp: arguments.ipvs_strict_arp,
    }))
}

fn plan(arguments: &ProxyPlanArguments) -> Result<ExitCode> {
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
