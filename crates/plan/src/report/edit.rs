//! The effect of replacing one plan by another: which addresses move, which routes are announced,
//! withdrawn and changed, which sessions.
//!
//! Compares only; `edit_text` and `edit_json` print it, `budget` counts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::Outcome;
use fairway_ground::{PeerKey, Prefix};
use fairway_model::ObjectName;
use fairway_seam::RouteAttributes;

use super::super::{ClusterPlan, Layer2Announcement, NodePlan, diff};
use super::routes::Peers;
use super::sessions::{self, SessionEdit};

/// A Service with a changed outcome.
pub(super) struct ServiceEdit<'a> {
    pub(super) name: &'a ObjectName,
    pub(super) before: Option<&'a Outcome>,
    pub(super) after: Option<&'a Outcome>,
}

impl ServiceEdit<'_> {
    /// How many addresses it has lost, if it existed before and exists now.
    pub(super) fn lost_count(&self) -> usize {
        self.both().map_or(0, |(before, after)| only_in(before, after))
    }

    /// How many it got, likewise.
    pub(super) fn got_count(&self) -> usize {
        self.both().map_or(0, |(before, after)| only_in(after, before))
    }

    fn both(&self) -> Option<(&Outcome, &Outcome)> {
        self.before.zip(self.after)
    }
}

/// How many addresses `some` has and `other` has not.
fn only_in(some: &Outcome, other: &Outcome) -> usize {
    some.addresses.iter().filter(|address| !other.addresses.contains(address)).count()
}

/// A route of one node to one peer: new without `before`, gone without `after`.
pub(super) struct RouteEdit<'a> {
    pub(super) node: &'a str,
    pub(super) peer: String,
    pub(super) prefix: Prefix,
    pub(super) before: Option<&'a RouteAttributes>,
    pub(super) after: Option<&'a RouteAttributes>,
    /// The Services behind it, before or after.
    pub(super) services: BTreeSet<String>,
}

/// An address that a node answers for on layer 2, before or after.
pub(super) struct Layer2Edit<'a> {
    pub(super) node: &'a str,
    pub(super) before: Option<&'a Layer2Announcement>,
    pub(super) after: Option<&'a Layer2Announcement>,
}

/// What replacing one plan by another changes.
#[derive(Default)]
pub struct Edit<'a> {
    pub(super) services: Vec<ServiceEdit<'a>>,
    pub(super) routes: Vec<RouteEdit<'a>>,
    pub(super) layer2: Vec<Layer2Edit<'a>>,
    pub(super) sessions: Vec<SessionEdit<'a>>,
}

/// Both values of every key in either map.
fn pairs<'a, K: Ord, V>(
    before: &'a BTreeMap<K, V>,
    after: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a V>)> {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    keys.into_iter().map(|key| (key, before.get(key), after.get(key)))
}

impl<'a> Edit<'a> {
    /// The effect of replacing `before` by `after`.
    pub fn new(before: &'a ClusterPlan, after: &'a ClusterPlan) -> Self {
        let mut edit = Self::default();
        let services = pairs(&before.outcomes, &after.outcomes);
        let different = services.filter(|(_, before, after)| before != after);
        edit.services =
            different.map(|(name, before, after)| ServiceEdit { name, before, after }).collect();
        static NOTHING: std::sync::LazyLock<NodePlan> = std::sync::LazyLock::new(NodePlan::default);
        for (node, before, after) in pairs(&before.nodes, &after.nodes) {
            let (old, new) = (before.unwrap_or(&NOTHING), after.unwrap_or(&NOTHING));
            edit.sessions.extend(sessions::of_node(node, &diff(old, new).sessions, old));
            edit.add_routes(node, old, new);
            let answers = |plan: Option<&'a NodePlan>| -> BTreeMap<IpAddr, &'a Layer2Announcement> {
                plan.into_iter().flat_map(|it| &it.layer2).map(|it| (it.address, it)).collect()
            };
            let (before, after) = (answers(before), answers(after));
            let different = pairs(&before, &after).filter(|(_, before, after)| before != after);
            edit.layer2.extend(different.map(|(_, before, after)| {
                let (before, after) = (before.copied(), after.copied());
                Layer2Edit { node, before, after }
            }));
        }
        edit
    }

    /// Whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        self.services.is_empty()
            && self.routes.is_empty()
            && self.layer2.is_empty()
            && self.sessions.is_empty()
    }

    /// The routes that a session carries: a session with other families is another one, with other
    /// routes.
    fn add_routes(&mut self, node: &'a str, old: &'a NodePlan, new: &'a NodePlan) {
        let (old_services, new_services) = (old.services_by_route(), new.services_by_route());
        let (old_peers, new_peers) = (Peers::of(old), Peers::of(new));
        let (before, after) = (carried(old, &old_peers), carried(new, &new_peers));
        let different = pairs(&before, &after).filter(|(_, before, after)| before != after);
        self.routes.extend(different.map(|(route @ (prefix, key), before, after)| {
            let sides = [&old_services, &new_services].into_iter();
            let services = sides.filter_map(|it| it.get(route)).flatten();
            let peers = if after.is_some() { &new_peers } else { &old_peers };
            RouteEdit {
                node,
                peer: peers.name(*key),
                prefix: *prefix,
                before: before.copied(),
                after: after.copied(),
                services: services.map(ToString::to_string).collect(),
            }
        }));
    }
}

/// The routes to each peer.
fn carried<'a>(
    plan: &'a NodePlan,
    peers: &Peers<'_>,
) -> BTreeMap<(Prefix, PeerKey), &'a RouteAttributes> {
    let routes = plan.routes.iter();
    let told = routes.flat_map(|route| route.peers.iter().map(move |key| (route, *key)));
    let told = told.filter(|(route, key)| peers.carry(*key, route.prefix));
    told.map(|(route, key)| ((route.prefix, key), &*route.attributes)).collect()
}
