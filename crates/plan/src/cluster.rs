//! The plans of all nodes at once.
//!
//! Collects the plan of each node; decides nothing. Called by
//! `fairway plan`; a daemon knows its own node only.

use std::collections::BTreeMap;

use fairway_allocator::Outcomes;
use fairway_model::{ClusterIndex, Node, NodeName, ObjectName};

use super::{Announcement, NodePlan, PlanOptions, StatusChange, for_node};

/// The addresses of all Services, and what each node does with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterPlan {
    /// Which Service has which addresses.
    pub outcomes: Outcomes,
    /// Which Services get other addresses than those in their status.
    pub status_changes: BTreeMap<ObjectName, StatusChange>,
    /// What each node announces.
    pub nodes: BTreeMap<NodeName, NodePlan>,
}

impl ClusterPlan {
    /// The plans for `nodes`, which need not be in the index.
    pub fn new<'a>(
        index: &ClusterIndex,
        outcomes: Outcomes,
        nodes: impl IntoIterator<Item = &'a Node>,
        options: PlanOptions,
    ) -> Self {
        let plan = |node: &Node| (node.name.clone(), for_node(index, &outcomes, node, options));
        let nodes = nodes.into_iter().map(plan).collect();
        let status_changes = outcomes.iter().filter_map(|(name, outcome)| {
            Some((name.clone(), StatusChange::of(index.services.get(name)?, outcome)?))
        });
        Self { status_changes: status_changes.collect(), outcomes, nodes }
    }

    /// The announcements of a Service, node by node.
    pub(super) fn announcements(
        &self,
        service: &ObjectName,
    ) -> impl Iterator<Item = &Announcement> {
        self.nodes.values().filter_map(|plan| Some(&**plan.services.get(service)?))
    }
}
