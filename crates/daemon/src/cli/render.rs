//! `fairway render`: the FRR configuration for resource files, without a daemon and without FRR.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_allocator::Allocator;
use fairway_frr::owner::Owner;
use fairway_frr::render::{Rendered, Settings, needs_nht, render};
use fairway_ground::printable;
use fairway_plan::ClusterPlan;
use fairway_resources::BackendKind;
use fairway_seam::Desired;

use super::attributes::AttributeArguments;
use super::backend::FrrVersion;
use super::offline::{Nodes, Reader, is_this_machine, say_faults};
use super::output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway render --config /etc/fairway
  fairway render --config /etc/fairway --frr-version 8.4 --show-secrets | vtysh -C -f /dev/stdin
  kubectl get -A -o yaml nodes,services,endpointslices,ipaddresspools,bgppeers,bgpadvertisements |
    fairway render --config - --node node-1

With `--bgp frr` the daemon applies the same configuration to FRR by itself; no copying is needed.
Exit code 0: done. 1: done, with faults: they are on stderr, and faulty objects are left out.")]
pub(super) struct RenderArguments {
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

    /// Only this node [default: all Nodes among the resources; without any, the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// The version of FRR: what it does not support is a fault [default: any; everything is rendered]
    #[arg(long, value_name = "X.Y", env = "FAIRWAY_FRR_VERSION")]
    frr_version: Option<FrrVersion>,

    /// Services of this loadBalancerClass instead of those without one
    #[arg(long, value_name = "CLASS", env = "FAIRWAY_LB_CLASS")]
    lb_class: Option<String>,

    #[command(flatten)]
    attributes: AttributeArguments,

    /// Show passwords, which FRR needs to load the configuration
    #[arg(long)]
    show_secrets: bool,
}

pub(super) fn run(arguments: &RenderArguments) -> Result<ExitCode> {
    let RenderArguments { config, node, frr_version, lb_class, attributes, show_secrets } =
        arguments;
    let version = frr_version.map(FrrVersion::numbers);
    let mut reader = Reader::new(BackendKind::Frr { version });
    let state = reader.read(config)?;
    let nodes = Nodes::among([&state.index].into_iter(), node.as_deref())?;
    let mut allocator = Allocator::new(lb_class.clone().filter(|class| !class.is_empty()));
    allocator.settle(&state.index, &state.changes);
    let outcomes = allocator.outcomes().clone();
    let plan = ClusterPlan::new(
        &state.index,
        outcomes,
        &nodes.of(&state.index),
        attributes.plan_options(),
    );
    let mut has_faults = say_faults(reader.findings(), [&plan].into_iter());
    let mut text = String::new();
    for (name, node) in &plan.nodes {
        if !state.index.nodes.contains_key(name) && !is_this_machine(name) {
            eprintln!(
                "Node/{name}: there is no such Node object, and this is another machine: where BGPPeers have no \
                 routerID, the router ID below is a hash of the name; the daemon takes the first address of \
                 its machine"
            );
        }
        let settings = Settings {
            version,
            hide_secrets: !show_secrets,
            owner: Owner::of_node(name),
            needs_nht: version.is_some_and(needs_nht),
            ..Settings::default()
        };
        let desired = Desired {
            peers: node.peers.clone(),
            routes: node.routes.clone(),
            extras: node.extras.clone(),
            ..Desired::default()
        };
        let Rendered { text: of_node, faults } = render(&desired, &settings)?;
        for fault in &faults {
            output::say(&printable(&format!("Node/{name}: {fault}")));
        }
        has_faults |= !faults.is_empty();
        if plan.nodes.len() > 1 {
            writeln!(text, "! Node {name}\n!")?;
        }
        text.push_str(&of_node);
    }
    output::print_for_programs(&text)?;
    Ok(if has_faults { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
