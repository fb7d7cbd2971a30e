//! `fairway plan`: what resource files lead to, without a daemon; with `--against`, what changes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use fairway_sessions::time::Instant;

use super::host::node_name;
use super::output;
use crate::allocator::Allocator;
use crate::model::{Changes, ClusterIndex, Node, NodeName};
use crate::plan::{ClusterPlan, report};
use crate::resources::{Catalog, Finding, Resolution};
use crate::source::{FileChange, STANDARD_INPUT, read_all};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway plan --config /etc/fairway
  fairway plan --config new/ --against /etc/fairway
  fairway plan --config node-1.yaml --config pools.yaml --node node-1 --json
  kubectl get -A -o yaml nodes,services,endpointslices,ipaddresspools,bgppeers,bgpadvertisements |
    fairway plan --config -

What objects name (Secrets, BFDProfiles, Communities) has to be among what is read.
With Node objects among the resources, all those nodes are shown; each is taken to have a speaker,
unless its conditions or labels rule it out. `--against` names what is in force now: addresses that
were given out stay where they can, as they would in a running daemon.
Exit code 0: done. 1: done, with faults, which are on stderr and count for nothing.")]
pub(super) struct PlanArguments {
    /// A file, or a folder of *.yaml, *.yml and *.json, or - for standard input; may be given more
    /// than once, or several with commas between
    #[arg(
        long,
        required = true,
        value_name = "PATH",
        env = "FAIRWAY_CONFIG",
        value_delimiter = ','
    )]
    config: Vec<PathBuf>,

    /// What is in force now, in the same way: only what is different is shown
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    against: Vec<PathBuf>,

    /// Only this node [default: all Nodes among the resources; without any, the host name]
    #[arg(long, env = "FAIRWAY_NODE")]
    node: Option<String>,

    /// Services of this loadBalancerClass instead of those without one
    #[arg(long, value_name = "CLASS", env = "FAIRWAY_LB_CLASS")]
    lb_class: Option<String>,

    /// JSON for programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &PlanArguments) -> Result<ExitCode> {
    let PlanArguments { config, against, node, lb_class, json } = arguments;
    let inputs = config.iter().chain(against).filter(|path| path.as_os_str() == STANDARD_INPUT);
    if inputs.count() > 1 {
        eprintln!("error: standard input (-) can be read only once");
        return Ok(ExitCode::from(2));
    }
    let node = node.clone().filter(|node| !node.is_empty());
    let mut reader = Reader::default();
    let before = if against.is_empty() { None } else { Some(reader.read(against)?) };
    let after = reader.read(config)?;
    let nodes = Nodes::among(before.iter().chain([&after]).map(|state| &state.index), node)?;
    let class = lb_class.clone().filter(|class| !class.is_empty());
    let mut allocator = Allocator::new(class);
    let mut plan = |State { index, changes }: &State| {
        settle(&mut allocator, index, changes);
        ClusterPlan::new(index, allocator.outcomes().clone(), &nodes.of(index))
    };
    let before = before.as_ref().map(&mut plan);
    let after = plan(&after);
    let plans = before.iter().chain([&after]);
    let has_faults = say_faults(&reader.findings, plans);
    output::print(&match (before, json) {
        (None, false) => report::text(&after),
        (None, true) => format!("{:#}\n", report::json(&after)),
        (Some(before), false) => report::edit_text(&before, &after),
        (Some(before), true) => format!("{:#}\n", report::edit_json(&before, &after)),
    })?;
    Ok(if has_faults { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Gives out all there is to give, and what is withdrawn for it, too: a plan shows what things come
/// to, once every router has heard.
fn settle(allocator: &mut Allocator, index: &ClusterIndex, changes: &Changes) {
    let mut other = allocator.converge(Instant::ZERO, index, changes);
    // Each round has fewer addresses to release.
    while !other.is_empty() && allocator.withdrawn(allocator.last_release()) {
        other = allocator.converge(Instant::ZERO, index, &Changes::default());
    }
}

/// What the files say at one time, and what is other than before.
struct State {
    index: ClusterIndex,
    changes: Changes,
}

/// Reads one state of the resources after the other, as a daemon would that sees the one become
/// the other: an object that has a fault now stays as it was.
#[derive(Default)]
struct Reader {
    catalog: Catalog,
    files: BTreeSet<String>,
    index: ClusterIndex,
    findings: Vec<Finding>,
}

impl Reader {
    fn read(&mut self, paths: &[PathBuf]) -> Result<State> {
        let changes = read_all(paths)?;
        let file = |change: &FileChange| match change {
            FileChange::Read { path, .. } | FileChange::Ignored { path, .. } => Some(path.clone()),
            _ => None,
        };
        let files: BTreeSet<String> = changes.iter().filter_map(file).collect();
        for gone in self.files.difference(&files) {
            self.catalog.file_gone(gone);
        }
        for change in &changes {
            change.apply_to(&mut self.catalog);
        }
        self.files = files;
        let Resolution { objects, findings, .. } = self.catalog.resolve();
        let news = findings.into_iter().filter(|finding| !self.findings.contains(finding));
        let news: Vec<_> = news.collect();
        self.findings.extend(news);
        let changes = self.index.reset(objects);
        Ok(State { index: self.index.clone(), changes })
    }
}

/// Which nodes are planned for.
enum Nodes {
    /// One that is there, whether or not an object describes it.
    One(NodeName),
    /// All that are described.
    Described,
}

impl Nodes {
    fn among<'a>(
        mut indexes: impl Iterator<Item = &'a ClusterIndex>,
        chosen: Option<NodeName>,
    ) -> Result<Self> {
        match chosen {
            Some(name) => Ok(Self::One(name)),
            None if indexes.any(|index| !index.nodes.is_empty()) => Ok(Self::Described),
            None => node_name(None).map(Self::One),
        }
    }

    fn of(&self, index: &ClusterIndex) -> Vec<Node> {
        match self {
            Self::Described => index.nodes.values().cloned().collect(),
            Self::One(name) => {
                let described = index.nodes.get(name).cloned();
                vec![described.unwrap_or_else(|| Node::assumed(name, Vec::new()))]
            }
        }
    }
}

/// Prints all that is wrong, or odd, and what could not be planned for it; says whether anything
/// is wrong.
fn say_faults<'a>(findings: &[Finding], plans: impl Iterator<Item = &'a ClusterPlan>) -> bool {
    for finding in findings {
        eprintln!("{finding}");
    }
    let of_nodes = plans.flat_map(|plan| &plan.nodes);
    let of_nodes = of_nodes.flat_map(|(name, node)| {
        node.faults.iter().map(move |fault| format!("Node/{name}: {fault}"))
    });
    let of_nodes: BTreeSet<String> = of_nodes.collect();
    for fault in &of_nodes {
        eprintln!("{fault}");
    }
    !of_nodes.is_empty() || findings.iter().any(Finding::is_fault)
}
