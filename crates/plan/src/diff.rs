//! What changes on the wire when one plan follows another.
//!
//! Compares two plans of the same node and judges neither. The speaker logs it, and
//! `fairway plan --against` prints it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{PeerKey, Prefix};
use fairway_seam::{DesiredRoute, PeerConfig, RouteAttributes};

use super::NodePlan;

/// What one plan says and the other does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanDiff {
    /// Routes, for each peer.
    pub routes: RouteDiff,
    /// Sessions.
    pub sessions: SessionDiff,
}

impl PlanDiff {
    /// Whether both plans lead to the same.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Routes that differ, by prefix and then by peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteDiff {
    /// New.
    pub announced: Vec<PeerRoute>,
    /// Gone.
    pub withdrawn: Vec<PeerRoute>,
    /// There before and after, with other attributes.
    pub changed: Vec<ChangedRoute>,
}

impl RouteDiff {
    /// Whether no peer is told anything else.
    pub fn is_empty(&self) -> bool {
        self.announced.is_empty() && self.withdrawn.is_empty() && self.changed.is_empty()
    }

    /// Adds what is other about one prefix.
    pub(super) fn add(&mut self, prefix: Prefix, old: &[DesiredRoute], new: &[DesiredRoute]) {
        // So that the many that are alike are never taken apart.
        if old == new {
            return;
        }
        for (peer, change) in pairs(by_peer(old), by_peer(new)) {
            let route = |attributes: &Arc<_>| PeerRoute {
                prefix,
                peer,
                attributes: Arc::clone(attributes),
            };
            match change {
                (None, Some(new)) => self.announced.push(route(new)),
                (Some(old), None) => self.withdrawn.push(route(old)),
                (Some(old), Some(new)) if old != new => self.changed.push(ChangedRoute {
                    prefix,
                    peer,
                    before: Arc::clone(old),
                    after: Arc::clone(new),
                }),
                _ => {}
            }
        }
    }
}

/// A route as one peer is told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// Who is told.
    pub peer: PeerKey,
    /// With which attributes.
    pub attributes: Arc<RouteAttributes>,
}

/// A route whose attributes change for one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// Who is told.
    pub peer: PeerKey,
    /// The attributes before.
    pub before: Arc<RouteAttributes>,
    /// The attributes after.
    pub after: Arc<RouteAttributes>,
}

/// Sessions that differ, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionDiff {
    /// New.
    pub added: Vec<PeerConfig>,
    /// Gone.
    pub removed: Vec<PeerConfig>,
    /// Settings changed so that the session must begin anew; these are the new ones.
    pub reset: Vec<PeerConfig>,
    /// Settings changed, and the session lives on; these are the new ones.
    pub changed: Vec<PeerConfig>,
}

impl SessionDiff {
    /// Whether no session notices.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What going from `old` to `new` does.
pub fn diff(old: &NodePlan, new: &NodePlan) -> PlanDiff {
    PlanDiff {
        routes: routes(&old.routes, &new.routes),
        sessions: sessions(&old.peers, &new.peers),
    }
}

fn routes(old: &[DesiredRoute], new: &[DesiredRoute]) -> RouteDiff {
    let mut diff = RouteDiff::default();
    for (prefix, (old, new)) in pairs(by_prefix(old), by_prefix(new)) {
        diff.add(prefix, old.unwrap_or(&[]), new.unwrap_or(&[]));
    }
    diff
}

fn sessions(old: &[PeerConfig], new: &[PeerConfig]) -> SessionDiff {
    let by_key = |peers: &'_ [PeerConfig]| -> BTreeMap<PeerKey, PeerConfig> {
        peers.iter().map(|peer| (peer.key, peer.clone())).collect()
    };
    let mut diff = SessionDiff::default();
    for change in pairs(by_key(old), by_key(new)).into_values() {
        match change {
            (None, Some(new)) => diff.added.push(new),
            (Some(old), None) => diff.removed.push(old),
            (Some(old), Some(new)) if old.needs_reset(&new) => diff.reset.push(new),
            (Some(old), Some(new)) if old != new => diff.changed.push(new),
            _ => {}
        }
    }
    diff
}

/// Both values of every key that either map has.
fn pairs<K: Ord, V>(
    old: BTreeMap<K, V>,
    new: BTreeMap<K, V>,
) -> BTreeMap<K, (Option<V>, Option<V>)> {
    let mut pairs: BTreeMap<K, (Option<V>, Option<V>)> =
        old.into_iter().map(|(key, value)| (key, (Some(value), None))).collect();
    for (key, value) in new {
        pairs.entry(key).or_default().1 = Some(value);
    }
    pairs
}

/// The routes of each prefix, which stand together in a plan.
fn by_prefix(routes: &[DesiredRoute]) -> BTreeMap<Prefix, &[DesiredRoute]> {
    let groups = routes.chunk_by(|one, next| one.prefix == next.prefix);
    groups.filter_map(|group| Some((group.first()?.prefix, group))).collect()
}

/// What each peer is told.
fn by_peer(routes: &[DesiredRoute]) -> BTreeMap<PeerKey, &Arc<RouteAttributes>> {
    let told = routes
        .iter()
        .flat_map(|route| route.peers.iter().map(move |peer| (*peer, &route.attributes)));
    told.collect()
}
