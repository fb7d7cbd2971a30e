//! What a plan has to be made anew for, and what was other afterwards.
//!
//! Holds answers. The caller of the planner says what changed in the facts; the speaker logs what
//! changed in the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{Changes, Kind, ObjectName};

use super::{Announcement, Fault, RouteDiff, SessionDiff};

/// What became other since the last plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanChanges {
    /// Something that every Service depends on.
    pub all: bool,
    /// Services that are new, other or gone, or have other endpoints or addresses.
    pub services: BTreeSet<ObjectName>,
}

impl PlanChanges {
    /// Nothing is known to be as it was.
    pub fn everything() -> Self {
        Self { all: true, services: BTreeSet::new() }
    }

    /// What follows from other facts, and from other outcomes of the Services that the allocator
    /// named. `Changes` does not know which node a plan is for; [`super::NodePlanner::set_node`]
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

/// Whether a plan depends on objects of this kind, beside the Services that are named.
fn touches_all(kind: Kind) -> bool {
    match kind {
        Kind::BgpPeer
        | Kind::Secret
        | Kind::BfdProfile
        | Kind::IpAddressPool
        | Kind::BgpAdvertisement
        | Kind::Layer2Advertisement
        | Kind::Community
        | Kind::ConfigMap
        // Every node may be the one that answers on layer 2.
        | Kind::Node => true,
        // By name.
        Kind::Service | Kind::EndpointSlice => false,
        // The allocator alone asks for them.
        Kind::Namespace => false,
    }
}

/// What an update made other in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanUpdate {
    /// Services that are announced otherwise, with how they were before; `None` for new ones.
    pub services: BTreeMap<ObjectName, Option<Arc<Announcement>>>,
    /// Routes, for each peer.
    pub routes: RouteDiff,
    /// Sessions.
    pub sessions: SessionDiff,
    /// What is answered for on layer 2 is other.
    pub layer2: bool,
    /// What FRR is told in the operator's words is other.
    pub extras: bool,
    /// Objects that are left out and were not before.
    pub faults: Vec<Fault>,
}

impl PlanUpdate {
    /// Whether routers have to be told, or FRR.
    pub fn is_for_routers(&self) -> bool {
        !self.sessions.is_empty() || !self.routes.is_empty() || self.extras
    }
}
