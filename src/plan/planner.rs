//! Keeps the plan of one node up to date, at the cost of what changed.
//!
//! Remembers what it derived from the facts, never the facts: it is handed those with each call.
//! What it holds is always what [`super::for_node`] would say. Called by the speaker.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::allocator::Outcomes;
use crate::model::{ClusterIndex, Node, ObjectName};

use super::{
    Announcement, Fault, NodePlan, PlanChanges, PlanDiff, PlanOptions, PlanUpdate, diff, for_node,
};

/// The plan of one node, and what is needed to change it.
#[derive(Debug)]
pub struct NodePlanner {
    node: Node,
    options: PlanOptions,
    plan: NodePlan,
    is_other_node: bool,
}

impl NodePlanner {
    /// For a node that has nothing to do yet.
    pub fn new(node: Node, options: PlanOptions) -> Self {
        Self { node, options, plan: NodePlan::default(), is_other_node: true }
    }

    /// The node is as described here. If that is news, the next update makes everything anew.
    pub fn set_node(&mut self, node: Node) {
        if self.node != node {
            self.node = node;
            self.is_other_node = true;
        }
    }

    /// Makes the plan anew as far as `changes` asks for it, and says what is other.
    pub fn update(
        &mut self,
        index: &ClusterIndex,
        outcomes: &Outcomes,
        changes: &PlanChanges,
    ) -> PlanUpdate {
        if changes.is_empty() && !std::mem::take(&mut self.is_other_node) {
            return PlanUpdate::default();
        }
        let next = for_node(index, outcomes, &self.node, self.options);
        let PlanDiff { routes, sessions } = diff(&self.plan, &next);
        let was = std::mem::replace(&mut self.plan, next);
        let is_new = |fault: &&Fault| !was.faults.contains(fault);
        PlanUpdate {
            services: differences(&was.services, &self.plan.services),
            routes,
            sessions,
            layer2: was.layer2 != self.plan.layer2,
            faults: self.plan.faults.iter().filter(is_new).cloned().collect(),
        }
    }

    /// The plan in force.
    pub fn plan(&self) -> &NodePlan {
        &self.plan
    }
}

fn differences(
    before: &BTreeMap<ObjectName, Arc<Announcement>>,
    now: &BTreeMap<ObjectName, Arc<Announcement>>,
) -> BTreeMap<ObjectName, Option<Arc<Announcement>>> {
    let gone = before.iter().filter(|(name, _)| !now.contains_key(name));
    let gone = gone.map(|(name, before)| (name.clone(), Some(Arc::clone(before))));
    let other = now.iter().filter(|(name, it)| before.get(*name) != Some(*it));
    let other = other.map(|(name, _)| (name.clone(), before.get(name).cloned()));
    gone.chain(other).collect()
}
