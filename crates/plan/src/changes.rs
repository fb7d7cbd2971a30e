//! What a plan must be recomputed for, and what changed in it.
//!
//! Holds results only. The caller of the planner passes the changed facts; the speaker logs the
//! changes of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{Changes, Kind, ObjectName};

use super::{Announcement, Fault, RouteDiff, SessionDiff};

/// What changed since the last plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanChanges {
    /// A fact that every Service depends on.
    pub all: bool,
    /// Services that were added, changed or deleted, or of which endpoints or addresses changed.
    pub services: BTreeSet<ObjectName>,
}

impl PlanChanges {
    /// Anything may have changed.
    pub fn everything() -> Self {
        Self { all: true, services: BTreeSet::new() }
    }

    /// The consequence of changed facts, and of changed outcomes of the Services that the allocator
    /// returned. `Changes` does not know which node a plan is for; [`super::NodePlanner::set_node`]
    /// does.
    pub fn of(changes: &Changes, outcomes: impl IntoIterator<Item = ObjectName>) -> Self {
        let mut services: BTreeSet<ObjectName> = outcomes.into_iter().collect();
        services.extend(changes.services.iter().chain(&changes.endpoints).cloned());
        Self { all: changes.kinds.iter().any(|kind| touches_all(*kind)), services }
    }

    /// Both this and `later`.
    pub fn absorb(&mut self, later: Self) {
        self.all |= later.all;
        self.services.extend(later.services);
    }

    /// There is nothing to plan.
    pub fn is_empty(&self) -> bool {
        !self.all && self.services.is_empty()
    }
}

/// Whether a plan depends on objects of this kind, beside the named Services.
fn touches_all(kind: Kind) -> bool {
    match kind {
        Kind::BgpPeer
        | Kind::Secret
        | Kind::BfdProfile
        | Kind::IpAddressPool
        | Kind::BgpAdvertisement
        | Kind::Layer2Advertisement
        | Kind::Community
        | Kind::BgpConfiguration
        | Kind::ConfigMap
        // Every node may be the one that answers on layer 2.
        | Kind::Node => true,
        // By name.
        Kind::Service | Kind::EndpointSlice => false,
        // Only the allocator uses them.
        Kind::Namespace => false,
    }
}

/// What an update changed in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanUpdate {
    /// Services with a changed announcement, with the earlier one; `None` for new ones.
    pub services: BTreeMap<ObjectName, Option<Arc<Announcement>>>,
    /// Routes, for each peer.
    pub routes: RouteDiff,
    /// Sessions.
    pub sessions: SessionDiff,
    /// The layer 2 announcements changed.
    pub layer2: bool,
    /// The operator's lines for FRR changed.
    pub extras: bool,
    /// What a BGPConfiguration sets changed, or which packets are dropped.
    pub speaker: bool,
    /// Objects that are left out now and were not before.
    pub faults: Vec<Fault>,
}

impl PlanUpdate {
    /// Whether routers or FRR must be updated.
    pub fn is_for_routers(&self) -> bool {
        !self.sessions.is_empty() || !self.routes.is_empty() || self.extras || self.speaker
    }
}
