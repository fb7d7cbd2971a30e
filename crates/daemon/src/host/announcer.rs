//! Announces the plan through any backend, and logs changes.
//!
//! Knows no file and no allocator. The standalone loop calls it after every change of the index
//! or of the assignments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use fairway_allocator::Outcomes;
use fairway_model::{ClusterIndex, Node};
use fairway_plan::{Announcement, NodePlan, NodePlanner, PlanChanges, PlanOptions, PlanUpdate};
use fairway_seam::{Backend, Desired, DrainState};
use tracing::{debug, error, info, warn};

/// The announcements of this node.
pub(crate) struct Announcer {
    backend: Arc<dyn Backend>,
    planner: NodePlanner,
    generation: u64,
    drain: DrainState,
    awaits_sources: bool,
}

impl Announcer {
    /// Announces through `backend`, nothing yet, from a node in the state `drain`.
    pub(crate) fn new(backend: Arc<dyn Backend>, node: Node, drain: DrainState) -> Self {
        let planner = NodePlanner::new(node, PlanOptions::default());
        Self { backend, planner, generation: 0, drain, awaits_sources: true }
    }

    /// Replaces the description of the node, from the next update on.
    pub(crate) fn set_node(&mut self, node: Node) {
        self.planner.set_node(node);
    }

    /// Brings the plan up to date and hands it to the backend if routes changed; the first one always, since
    /// it may be empty. `awaits_sources`: more objects may follow. `changed_at`: when an object changed, if
    /// one did.
    pub(crate) fn update(
        &mut self,
        index: &ClusterIndex,
        outcomes: &Outcomes,
        changes: &PlanChanges,
        awaits_sources: bool,
        changed_at: Option<Instant>,
    ) {
        let update = self.planner.update(index, outcomes, changes);
        let is_first = self.generation == 0;
        let is_complete_now = self.awaits_sources && !awaits_sources;
        self.awaits_sources = awaits_sources;
        if is_first || is_complete_now || update.is_for_routers() {
            // First the wire, then the log: routes do not wait for a line of text.
            self.generation = self.generation.saturating_add(1);
            self.apply(changed_at);
        }
        log_update(&update, self.planner.plan(), self.drain);
    }

    /// The drain state changes.
    pub(crate) fn set_drain(&mut self, drain: DrainState) {
        self.drain = drain;
        // Before the first plan nothing is announced.
        if self.generation > 0 {
            self.generation = self.generation.saturating_add(1);
            self.apply(None);
        }
    }

    fn apply(&self, changed_at: Option<Instant>) {
        let plan = self.planner.plan();
        self.backend.apply(Desired {
            generation: self.generation,
            peers: plan.peers.clone(),
            routes: Arc::clone(&plan.routes),
            drain: self.drain,
            awaits_sources: self.awaits_sources,
            change_age: changed_at.map(|at| at.elapsed()),
            extras: plan.extras.clone(),
        });
    }

    /// The generation of the last plan that the backend got.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the backend has got a plan.
    pub(crate) fn has_spoken(&self) -> bool {
        self.generation > 0
    }

    /// The plan in force.
    pub(crate) fn plan(&self) -> &NodePlan {
        self.planner.plan()
    }

    /// The backend it announces through.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }
}

/// One line for each Service that is announced or withdrawn, and for each fault.
pub(crate) fn log_update(update: &PlanUpdate, plan: &NodePlan, drain: DrainState) {
    for (service, before) in &update.services {
        let now = plan.services.get(service);
        let was_announced = before.as_ref().is_some_and(|it| it.is_announced());
        match (was_announced, now.is_some_and(|it| it.is_announced())) {
            (false, true) => match drain {
                DrainState::InService | DrainState::Draining => {
                    info!(%service, "service announced")
                }
                DrainState::Drained => {
                    info!(%service, "service not announced: the node is drained")
                }
            },
            (true, false) => {
                let reason = now.map_or_else(|| "the Service is gone".to_owned(), |it| reasons(it));
                warn!(%service, reason, "service withdrawn");
            }
            _ => {}
        }
    }
    for fault in &update.faults {
        error!(%fault, "left out on this node");
    }
    for route in &update.routes.announced {
        debug!(prefix = %route.prefix, peer = %route.peer, "route to announce");
    }
    for route in &update.routes.withdrawn {
        debug!(prefix = %route.prefix, peer = %route.peer, "route to withdraw");
    }
}

/// Why a Service is not announced; each reason once, since both families often fail for the same.
fn reasons(announcement: &Announcement) -> String {
    let reasons: BTreeSet<String> = announcement.reasons().map(ToString::to_string).collect();
    reasons.into_iter().collect::<Vec<_>>().join("; ")
}
