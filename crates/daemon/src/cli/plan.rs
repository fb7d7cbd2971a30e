//! `fairway plan`: what resource files lead to, without a daemon; with `--against`, what changes.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_allocator::Allocator;
use fairway_frr::io::preview::{Preview, PreviewError, preview};
use fairway_frr::owner::Owner;
use fairway_ground::printable;
use fairway_plan::report::{DisruptionBudget, Disruptions, Edit};
use fairway_plan::{ClusterPlan, report};
use fairway_resources::BackendKind;
use fairway_seam::Desired;

use super::attributes::AttributeArguments;
use super::host::{FrrSockets, run_daemon};
use super::offline::{Nodes, Reader, State, say_faults};
use super::output;
use crate::source::STANDARD_INPUT;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway plan --config /etc/fairway
  fairway plan --config new/ --against /etc/fairway
  fairway plan --config new/ --against /etc/fairway --fail-on withdraw,reset,move
  fairway plan --config node-1.yaml --config pools.yaml --node node-1 --json
  fairway plan --config /etc/fairway --against-frr
  kubectl get -A -o yaml nodes,services,endpointslices,ipaddresspools,bgppeers,bgpadvertisements |
    fairway plan --config -

Objects that others refer to (Secrets, BFDProfiles, Communities) have to be in the files as well.
With Node objects among the resources, all those nodes are shown; each counts as having a speaker,
unless its conditions or labels rule it out. `--against` names the files in force now: addresses
that are assigned stay where possible, as in a running daemon.
Exit code 0: done. 1: done, with faults: they are on stderr, and faulty objects are left out. 3: the
edit disrupts more than --fail-on permits, with or without faults.")]
pub(super) struct PlanArguments {
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

    /// Exit with code 3 if the edit disrupts more than is permitted. A list of what counts, separated by commas:
    /// withdraw (routes, for each node and peer, and addresses that no node answers for on layer 2 any more), reset
    /// (sessions, for each node) and move (addresses that Services lose or exchange for others, and addresses that
    /// another node answers for on layer 2); behind them how many of all these are permitted [default: 0]
    #[arg(long, value_name = "WHAT[,N]", requires = "against")]
    fail_on: Option<DisruptionBudget>,

    /// Show the lines that FRR on this machine would be sent by `--bgp frr`, in place of the plan. Reads its
    /// configuration and changes nothing
    #[arg(long, conflicts_with_all = ["against", "json"])]
    against_frr: bool,

    #[command(flatten)]
    frr: FrrSockets,

    /// Only this node [default: all Nodes among the resources; without any, the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// Services of this loadBalancerClass instead of those without one
    #[arg(long, value_name = "CLASS", env = "FAIRWAY_LB_CLASS")]
    lb_class: Option<String>,

    #[command(flatten)]
    attributes: AttributeArguments,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The exit code of an edit that does what `--fail-on` rules out.
const DISRUPTS: u8 = 3;

pub(super) fn run(arguments: &PlanArguments) -> Result<ExitCode> {
    let PlanArguments { config, against, against_frr, node, lb_class, attributes, .. } = arguments;
    let inputs = config.iter().chain(against).filter(|path| path.as_os_str() == STANDARD_INPUT);
    if inputs.count() > 1 {
        eprintln!("error: standard input (-) can be read only once");
        return Ok(ExitCode::from(2));
    }
    let backend = match against_frr {
        true => BackendKind::Frr { version: None },
        false => BackendKind::Native,
    };
    let mut reader = Reader::new(backend);
    let before = if against.is_empty() { None } else { Some(reader.read(against)?) };
    let after = reader.read(config)?;
    let indexes = before.iter().chain([&after]).map(|state| &state.index);
    let nodes = match against_frr {
        true => Nodes::here(node.as_deref())?,
        false => Nodes::among(indexes, node.as_deref())?,
    };
    let class = lb_class.clone().filter(|class| !class.is_empty());
    let mut allocator = Allocator::new(class);
    let mut plan = |State { index, changes }: &State| {
        allocator.settle(index, changes);
        let outcomes = allocator.outcomes().clone();
        ClusterPlan::new(index, outcomes, &nodes.of(index), attributes.plan_options())
    };
    let before = before.as_ref().map(&mut plan);
    let after = plan(&after);
    let plans = before.iter().chain([&after]);
    let has_faults = say_faults(reader.findings(), plans);
    if *against_frr {
        return against_frr_of(&arguments.frr, &after, has_faults);
    }
    let edit = before.as_ref().map(|before| Edit::new(before, &after));
    let print = if arguments.json { output::print_json } else { output::print };
    print(&match (&edit, arguments.json) {
        (None, false) => report::text(&after),
        (None, true) => format!("{:#}\n", report::json(&after)),
        (Some(edit), false) => report::edit_text(edit),
        (Some(edit), true) => format!("{:#}\n", report::edit_json(edit)),
    })?;
    let mut disruptions = Disruptions::default();
    edit.iter().for_each(|edit| disruptions.add(edit));
    let excess = arguments.fail_on.as_ref().and_then(|it| it.excess(&disruptions));
    if let Some(excess) = excess {
        eprintln!("error: the edit disrupts more than --fail-on permits: {excess}");
        return Ok(ExitCode::from(DISRUPTS));
    }
    Ok(if has_faults { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints what FRR lacks of the plan of this node.
fn against_frr_of(frr: &FrrSockets, plan: &ClusterPlan, has_faults: bool) -> Result<ExitCode> {
    let Some((name, node)) = plan.nodes.iter().next() else { return Ok(ExitCode::FAILURE) };
    let desired = Desired {
        peers: node.peers.clone(),
        routes: node.routes.clone(),
        extras: node.extras.clone(),
        ..Desired::default()
    };
    let mut lines = Preview::default();
    run_daemon(async {
        lines = preview(&frr.frr_socket_dir, &desired, Owner::of_node(name)).await?;
        Ok::<(), PreviewError>(())
    })?;
    for fault in &lines.faults {
        output::say(&printable(&format!("Node/{name}: {fault}")));
    }
    let place = frr.frr_socket_dir.display();
    eprintln!(
        "{} lines for FRR in {place}, of owner {}; nothing was changed",
        lines.lines,
        Owner::of_node(name)
    );
    output::print_for_programs(&lines.text)?;
    let has_faults = has_faults || !lines.faults.is_empty();
    Ok(if has_faults { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
