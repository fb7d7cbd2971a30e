//! Announces what the plan says, through whatever backend there is, and says when that changes.
//!
//! Knows no file and no allocator. The standalone loop calls it after every change of the index
//! or of the assignments.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_sessions::backend::{Backend, Desired, DrainState};
use tracing::{debug, error, info, warn};

use crate::allocator::Outcomes;
use crate::model::{ClusterIndex, Node, ObjectName};
use crate::plan::{self, NodePlan};

/// What this node announces.
pub struct Speaker {
    backend: Arc<dyn Backend>,
    plan: Arc<NodePlan>,
    generation: u64,
    drain: DrainState,
    awaits_sources: bool,
}

impl Speaker {
    /// Announces through `backend`, nothing yet, from a node that is as `drain` says.
    pub fn new(backend: Arc<dyn Backend>, drain: DrainState) -> Self {
        Self { backend, plan: Arc::default(), generation: 0, drain, awaits_sources: true }
    }

    /// Makes a new plan for `node` and hands it to the backend if it is another one; the first one
    /// always, since it may be to announce nothing. `awaits_sources`: there may be more than that.
    pub fn update(
        &mut self,
        index: &ClusterIndex,
        outcomes: &Outcomes,
        node: &Node,
        awaits_sources: bool,
    ) {
        let plan = plan::for_node(index, outcomes, node);
        let is_first = self.generation == 0;
        let is_complete_now = self.awaits_sources && !awaits_sources;
        if plan == *self.plan && !is_first && !is_complete_now {
            return;
        }
        self.awaits_sources = awaits_sources;
        self.generation = self.generation.saturating_add(1);
        let is_other = plan.peers != self.plan.peers || plan.routes != self.plan.routes;
        if is_first || is_complete_now || is_other {
            // First the wire, then the log: nobody waits for a line of text.
            self.apply(&plan);
        }
        log(&self.plan, &plan, self.drain);
        self.plan = Arc::new(plan);
    }

    /// The node is drained, or comes back.
    pub fn set_drain(&mut self, drain: DrainState) {
        self.drain = drain;
        // Before the first plan there is nobody to tell.
        if self.generation > 0 {
            self.generation = self.generation.saturating_add(1);
            self.apply(&self.plan);
        }
    }

    fn apply(&self, plan: &NodePlan) {
        self.backend.apply(Desired {
            generation: self.generation,
            peers: plan.peers.clone(),
            routes: plan.routes.clone(),
            drain: self.drain,
            awaits_sources: self.awaits_sources,
        });
    }

    /// Whether the backend was told anything.
    pub fn has_spoken(&self) -> bool {
        self.generation > 0
    }

    /// The plan in force.
    pub fn plan(&self) -> Arc<NodePlan> {
        Arc::clone(&self.plan)
    }

    /// The backend it announces through.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }
}

/// One line for each Service that begins or ceases to be announced, and for each fault.
fn log(before: &NodePlan, now: &NodePlan, drain: DrainState) {
    let announced = |plan: &NodePlan| -> BTreeSet<ObjectName> {
        let services = plan.services.iter().filter(|(_, it)| it.is_announced());
        services.map(|(name, _)| name.clone()).collect()
    };
    let (was, is) = (announced(before), announced(now));
    for service in is.difference(&was) {
        match drain {
            DrainState::InService | DrainState::Draining => info!(%service, "service announced"),
            DrainState::Drained => info!(%service, "service kept back: the node is drained"),
        }
    }
    for service in was.difference(&is) {
        let reasons = now.services.get(service).map(|it| {
            // Once each: both families often fail for the same reason.
            let reasons: BTreeSet<String> = it.reasons().map(ToString::to_string).collect();
            reasons.into_iter().collect::<Vec<_>>().join("; ")
        });
        let reason = reasons.unwrap_or_else(|| "it is gone".to_owned());
        warn!(%service, reason, "service withdrawn");
    }
    for fault in now.faults.iter().filter(|fault| !before.faults.contains(fault)) {
        error!(%fault, "left out");
    }
    let diff = plan::diff(before, now);
    for route in &diff.routes.announced {
        debug!(prefix = %route.prefix, peer = %route.peer, "route to announce");
    }
    for route in &diff.routes.withdrawn {
        debug!(prefix = %route.prefix, peer = %route.peer, "route to withdraw");
    }
}
