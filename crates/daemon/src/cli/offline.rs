//! Resource files without a daemon: their objects, the nodes to plan for, and the findings.
//!
//! Plans nothing and prints nothing but faults. Called by `fairway plan` and `fairway render`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Result;
use fairway_ground::printable;
use fairway_model::{Changes, ClusterIndex, Node, NodeName, Object};
use fairway_plan::ClusterPlan;
use fairway_resources::{BackendKind, Catalog, Finding, Resolution};

use super::host::node_name;
use super::output::say;
use crate::host::{addresses, host_name};
use crate::source::{FileChange, read_all};

/// What the files contain, and what changed since the previous state.
pub(super) struct State {
    pub(super) index: ClusterIndex,
    pub(super) changes: Changes,
}

/// Reads one state of the resources after another, as a daemon would that sees the first change into the
/// second: an object that is faulty now keeps its last good version.
pub(super) struct Reader {
    catalog: Catalog,
    files: BTreeSet<String>,
    index: ClusterIndex,
    findings: Vec<Finding>,
}

impl Reader {
    /// What this backend does not support is a fault.
    pub(super) fn new(backend: BackendKind) -> Self {
        let (files, index, findings) = Default::default();
        Self { catalog: Catalog::for_backend(backend), files, index, findings }
    }

    /// All faults and warnings so far.
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The files as they are now.
    pub(super) fn read(&mut self, paths: &[PathBuf]) -> Result<State> {
        let objects = self.read_objects(paths)?;
        let changes = self.index.reset(objects);
        Ok(State { index: self.index.clone(), changes })
    }

    /// The objects in the files as they are now.
    pub(super) fn read_objects(&mut self, paths: &[PathBuf]) -> Result<Vec<Object>> {
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
        Ok(objects)
    }
}

/// Which nodes to plan for.
pub(super) enum Nodes {
    /// A single node, whether or not a Node object describes it.
    One(NodeName),
    /// The node of this machine.
    Here(NodeName),
    /// All nodes with a Node object.
    Described,
}

impl Nodes {
    /// The chosen node; an empty name counts as unset.
    pub(super) fn among<'a>(
        mut indexes: impl Iterator<Item = &'a ClusterIndex>,
        chosen: Option<&str>,
    ) -> Result<Self> {
        match chosen.filter(|name| !name.is_empty()) {
            Some(name) => Ok(Self::One(name.to_owned())),
            None if indexes.any(|index| !index.nodes.is_empty()) => Ok(Self::Described),
            None => node_name(None).map(Self::One),
        }
    }

    /// The node of this machine; an empty name counts as unset.
    pub(super) fn here(named: Option<&str>) -> Result<Self> {
        node_name(named).map(Self::Here)
    }

    /// The nodes as the index describes them.
    pub(super) fn of(&self, index: &ClusterIndex) -> Vec<Node> {
        match self {
            Self::Described => index.nodes.values().cloned().collect(),
            // The daemon on a machine takes its addresses. Those of another machine are not known here.
            Self::One(name) if !is_this_machine(name) => vec![described(index, name, Vec::new)],
            Self::One(name) | Self::Here(name) => vec![described(index, name, addresses)],
        }
    }
}

fn described(index: &ClusterIndex, name: &NodeName, addresses: fn() -> Vec<IpAddr>) -> Node {
    let described = index.nodes.get(name).cloned();
    described.unwrap_or_else(|| Node::assumed(name, addresses()))
}

/// Whether a node without an object is this machine: only then are its addresses known.
pub(super) fn is_this_machine(name: &str) -> bool {
    host_name().as_deref() == Some(name)
}

/// Prints all faults and warnings, and what could not be planned; returns whether there is a fault.
pub(super) fn say_faults<'a>(
    findings: &[Finding],
    plans: impl Iterator<Item = &'a ClusterPlan>,
) -> bool {
    for finding in findings {
        say(&finding.to_string());
    }
    let of_nodes = plans.flat_map(|plan| &plan.nodes);
    let of_nodes = of_nodes.flat_map(|(name, node)| {
        node.faults.iter().map(move |fault| format!("Node/{name}: {fault}"))
    });
    let of_nodes: BTreeSet<String> = of_nodes.collect();
    for fault in &of_nodes {
        say(&printable(fault));
    }
    !of_nodes.is_empty() || findings.iter().any(Finding::is_fault)
}
