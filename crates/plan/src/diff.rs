//! What changes on the wire when one plan replaces another.
//!
//! Compares two plans of the same node without judging them. The speaker logs the result, and
//! `fairway plan --against` prints it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{PeerKey, Prefix};
use fairway_seam::{DesiredRoute, PeerConfig, RouteAttributes};

use super::NodePlan;

/// The difference between two plans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanDiff {
    /// Routes, for each peer.
    pub routes: RouteDiff,
    /// Sessions.
    pub sessions: SessionDiff,
}

impl PlanDiff {
    /// Whether both plans have the same effect.
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
    /// Whether the routes of all peers are unchanged.
    pub fn is_empty(&self) -> bool {
        self.announced.is_empty() && self.withdrawn.is_empty() && self.changed.is_empty()
    }

    /// Adds the changes of one prefix.
    pub(super) fn add(&mut self, prefix: Prefix, old: &[DesiredRoute], new: &[DesiredRoute]) {
        // A fast path for the many unchanged ones.
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

/// A route to one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// The peer that receives it.
    pub peer: PeerKey,
    /// Its attributes.
    pub attributes: Arc<RouteAttributes>,
}

/// A route to one peer with changed attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRoute {
    /// The prefix.
    pub prefix: Prefix,
    /// The peer that receives it.
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
    /// Changed settings that require a new session; these are the new ones.
    pub reset: Vec<PeerConfig>,
    /// Changed settings that keep the session; these are the new ones.
    pub changed: Vec<PeerConfig>,
}

impl SessionDiff {
    /// Whether all sessions are unaffected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The effect of replacing `old` by `new`.
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

/// Both values of every key in either map.
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

/// The routes of each prefix, which are adjacent in a plan.
fn by_prefix(routes: &[DesiredRoute]) -> BTreeMap<Prefix, &[DesiredRoute]> {
    let groups = routes.chunk_by(|one, next| one.prefix == next.prefix);
    groups.filter_map(|group| Some((group.first()?.prefix, group))).collect()
}

/// The attributes for each peer.
fn by_peer(routes: &[DesiredRoute]) -> BTreeMap<PeerKey, &Arc<RouteAttributes>> {
    let told = routes
        .iter()
        .flat_map(|route| route.peers.iter().map(move |peer| (*peer, &route.attributes)));
    told.collect()
}
