//! The routes that this node uses: those it originates, and the best of those it received (RFC 4271 §3.2,
//! Loc-RIB).
//!
//! A change is kept together with what was there before, until peers are told: what a peer has been told follows from
//! that, and needs no table for each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decision::MedScope;
use super::forwarding::tracked;
use super::originated::Originated;
use super::prefix_set::PrefixSet;
use super::prefix_table::{PrefixId, PrefixTable};
use super::routes::{Routes, Selection};
use super::unreachable::Unreachable;
use fairway_ground::{Nlri, PeerKey, PerFamily, Prefix};
use fairway_seam::{DesiredRoute, LearnedRoute, Path, PathSource, RouteChange, TrackedNextHop};

/// All routes. A prefix may have several originated ones, each for other peers; an originated route is
/// preferred to received ones.
#[derive(Debug, Default)]
pub struct LocRib {
    originated: Originated,
    nets: PrefixTable<Routes>,
    /// Prefixes with a route.
    counts: PerFamily<usize>,
    changed: Vec<Changed>,
    /// By the number of a prefix, its place there, from 1; 0, or none, without a change.
    places: Vec<u32>,
    /// Prefixes without a route, whose number a peer may still wait to be told of.
    vacant: Vec<PrefixId>,
    /// The same.
    are_vacant: PrefixSet,
    /// How many vacant ones are worth a look whether peers wait for them.
    vacant_max: usize,
    selection: Selection,
    unreachable: Unreachable,
    /// How many times changes were taken.
    version: u64,
}

/// As many places for changes are added at once.
const PLACES: usize = 1024;

/// Fewer vacant prefixes than this are kept.
const VACANT_MIN: usize = 1024;

/// Changes of routes of one session.
pub type OfSource = (Arc<PathSource>, Vec<RouteChange>);

/// A prefix with a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Changed {
    id: PrefixId,
    before: Routes,
}

/// A prefix whose routes have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the prefix.
    pub id: PrefixId,
    /// Its routes at the last call of [`LocRib::take_changes`].
    pub before: Routes,
    /// Peers that are sent one route are sent another one.
    pub concerns_all: bool,
}

/// What has changed since peers were told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Each prefix once.
    pub list: Vec<Change>,
    /// Some of them concern routes that are originated here.
    pub of_originated: bool,
}

impl LocRib {
    /// Keeps the identifiers of paths, or not: needed if a peer is sent several paths to a prefix.
    pub fn keep_path_ids(&mut self, keeps: bool) {
        self.selection.keeps_path_ids = keeps;
    }

    /// Which paths are compared by their MED: routes are chosen again.
    pub fn compare_meds(&mut self, meds: MedScope) {
        if std::mem::replace(&mut self.selection.meds, meds) == meds {
            return;
        }
        let others = self.nets.iter_mut();
        let others =
            others.filter_map(|(it, routes)| routes.compare_meds(meds, true).then_some(it));
        let others: Vec<Prefix> = others.collect();
        for prefix in others {
            if let Some(id) = self.nets.id(prefix) {
                self.change(id, |routes| {
                    routes.compare_meds(meds, false);
                });
            }
        }
    }

    /// Replaces all originated routes.
    pub fn set(&mut self, routes: impl Into<Arc<[DesiredRoute]>>) {
        let mut originated = std::mem::take(&mut self.originated);
        originated.replace(routes.into(), |prefix, own| {
            let selection = self.selection;
            if let Some(id) = self.nets.id_or_insert(prefix) {
                self.change(id, |routes| routes.originate(own, selection));
            }
        });
        self.originated = originated;
    }

    /// Applies the announcements and withdrawals of the peer `source`.
    pub fn learn(
        &mut self,
        source: &Arc<PathSource>,
        changes: impl IntoIterator<Item = RouteChange>,
    ) {
        let selection = self.selection;
        for change in changes {
            let change = match self.unreachable.is_empty() {
                true => change,
                false => self.unreachable.sort_out(source, change),
            };
            let RouteChange { nlri: Nlri { prefix, path_id }, attributes } = change;
            let id = match attributes {
                Some(_) => self.nets.id_or_insert(prefix),
                None => self.nets.id(prefix),
            };
            let Some(id) = id else { continue };
            let source_of = || Arc::clone(source);
            let path =
                attributes.map(|attributes| Path { source: source_of(), path_id, attributes });
            self.change(id, |routes| routes.learn(source.key, path_id, path, selection));
        }
    }

    fn change(&mut self, id: PrefixId, change: impl FnOnce(&mut Routes)) {
        let Some((family, routes)) = self.nets.get_mut(id) else { return };
        if self.places.len() <= id.place() {
            self.places.resize(id.place().saturating_add(PLACES), 0);
        }
        if let Some(place @ 0) = self.places.get_mut(id.place()) {
            self.changed.push(Changed { id, before: routes.clone() });
            *place = u32::try_from(self.changed.len()).unwrap_or(0);
        }
        let was_none = routes.is_none();
        change(routes);
        let count = self.counts.of_mut(family);
        match (was_none, routes.is_none()) {
            (true, false) => *count = count.saturating_add(1),
            (false, true) => *count = count.saturating_sub(1),
            _ => {}
        }
    }

    /// Notes whether these next hops can be reached. Returns the changes to [`LocRib::learn`] for each peer: the same paths
    /// once more, so that those that may not be used any more are left out, and those that may be used again are there. All
    /// changes of before have been learned.
    pub fn follow_next_hops(
        &mut self,
        next_hops: impl IntoIterator<Item = (TrackedNextHop, bool)>,
    ) -> Vec<OfSource> {
        let (mut lost, mut are_back) = (BTreeSet::new(), false);
        for (next_hop, is_reachable) in next_hops {
            self.unreachable.note(next_hop, is_reachable);
            are_back |= is_reachable;
            if !is_reachable {
                lost.insert(next_hop);
            }
        }
        let mut lists: BTreeMap<PeerKey, Vec<OfSource>> = BTreeMap::new();
        let mut add = |nlri: Nlri, path: &Path| {
            let change = RouteChange { nlri, attributes: Some(Arc::clone(&path.attributes)) };
            let of_peer = lists.entry(path.source.key).or_default();
            match of_peer.last_mut().filter(|(source, _)| Arc::ptr_eq(source, &path.source)) {
                Some((_, changes)) => changes.push(change),
                None => of_peer.push((Arc::clone(&path.source), vec![change])),
            }
        };
        if are_back {
            self.unreachable.released().for_each(|(nlri, path)| add(nlri, path));
        }
        if !lost.is_empty() {
            // Of others that cannot be reached no path is here: a neighbor may have announced a hundred thousand.
            for (_, prefix, routes) in self.nets.iter() {
                for path in routes.paths().iter().filter(|path| lost.contains(&tracked(path))) {
                    add(Nlri { prefix, path_id: path.path_id }, path);
                }
            }
        }
        lists.into_values().flatten().collect()
    }

    /// The next hops that cannot be reached.
    pub fn unreachable_next_hops(&self) -> impl Iterator<Item = TrackedNextHop> + '_ {
        self.unreachable.next_hops()
    }

    /// Whether a path of one of them has gone, or it is new.
    pub fn may_have_unused_next_hops(&self) -> bool {
        self.unreachable.may_have_unused()
    }

    /// Forgets those of them that no path has any more, and returns them.
    pub fn take_unused_next_hops(&mut self) -> Vec<TrackedNextHop> {
        self.unreachable.take_unused()
    }

    /// Removes all paths of `peer` when its announcements are not known any more.
    pub fn forget(&mut self, peer: PeerKey) {
        self.unreachable.forget(peer);
        let mut source = None;
        let mut gone = Vec::new();
        for (_, prefix, routes) in self.nets.iter() {
            for path in routes.paths().iter().filter(|path| path.source.key == peer) {
                source = Some(Arc::clone(&path.source));
                let nlri = Nlri { prefix, path_id: path.path_id };
                gone.push(RouteChange { nlri, attributes: None });
            }
        }
        if let Some(source) = source {
            self.learn(&source, gone);
        }
    }

    /// Whether something has changed since peers were told.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// How many prefixes have changed since then.
    pub fn change_count(&self) -> usize {
        self.changed.len()
    }

    /// What has changed since the last call, for all peers to be told that it concerns: [`LocRib::known_routes`] is what
    /// each of them is told then, by its policy.
    pub fn take_changes(&mut self) -> Changes {
        self.version = self.version.wrapping_add(1);
        let mut changes = Changes::default();
        let changed = std::mem::take(&mut self.changed);
        changes.list.reserve(changed.len());
        for Changed { id, before } in changed {
            if let Some(place) = self.places.get_mut(id.place()) {
                *place = 0;
            }
            let Some(routes) = self.nets.get(id) else { continue };
            if routes.is_none() && !self.are_vacant.contains(id) {
                self.are_vacant.insert(id);
                self.vacant.push(id);
            }
            let concerns_all = !routes.is_used_like(&before);
            if concerns_all || *routes != before {
                changes.of_originated |=
                    concerns_all && !(routes.offers().is_empty() && before.offers().is_empty());
                changes.list.push(Change { id, before, concerns_all });
            }
        }
        changes
    }

    /// Whether there are many prefixes without a route, of which more than half were not looked at yet: see
    /// [`LocRib::reclaim`].
    pub fn has_new_vacant(&self) -> bool {
        self.vacant.len() > self.vacant_max.max(VACANT_MIN)
    }

    /// Whether there are many prefixes without a route.
    pub fn has_vacant(&self) -> bool {
        self.vacant.len() > VACANT_MIN
    }

    /// Forgets the prefixes without a route that no peer awaits. As long as peers wait for many of them, that is done
    /// only when there are twice as many.
    pub fn reclaim(&mut self, is_awaited: impl Fn(PrefixId) -> bool) {
        let mut vacant = std::mem::take(&mut self.vacant);
        vacant.retain(|id| {
            let is_vacant = self.nets.get(*id).is_some_and(Routes::is_none);
            if is_vacant && (self.changed(*id).is_some() || is_awaited(*id)) {
                return true;
            }
            self.are_vacant.remove(*id);
            if is_vacant {
                self.nets.remove(*id);
            }
            false
        });
        self.vacant_max = vacant.len().saturating_mul(2);
        vacant.shrink_to(self.vacant_max);
        self.vacant = vacant;
        if self.nets.end() == PrefixId::FIRST {
            (self.places, self.are_vacant) = (Vec::new(), PrefixSet::default());
        }
    }

    /// The number of a prefix, which has one from now on.
    #[cfg(test)]
    pub(super) fn number(&mut self, prefix: Prefix) -> Option<PrefixId> {
        self.nets.id_or_insert(prefix)
    }

    /// The prefix with this number.
    pub fn prefix(&self, id: PrefixId) -> Option<Prefix> {
        self.nets.prefix(id)
    }

    /// The routes to `prefix` now.
    pub fn routes_to(&self, prefix: Prefix) -> Option<&Routes> {
        self.nets.id(prefix).and_then(|id| self.nets.get(id))
    }

    /// The number of `prefix`, if there are routes to it, or were lately.
    pub fn id_of(&self, prefix: Prefix) -> Option<PrefixId> {
        self.nets.id(prefix)
    }

    /// A prefix, with its routes at the last call of [`LocRib::take_changes`].
    pub fn known_routes(&self, id: PrefixId) -> Option<(Prefix, &Routes)> {
        Some((self.nets.prefix(id)?, self.known_of(id, self.nets.get(id)?)))
    }

    fn known_of<'a>(&'a self, id: PrefixId, routes: &'a Routes) -> &'a Routes {
        self.changed(id).map_or(routes, |it| &it.before)
    }

    fn changed(&self, id: PrefixId) -> Option<&Changed> {
        let place = usize::try_from(*self.places.get(id.place())?).ok()?.checked_sub(1)?;
        self.changed.get(place)
    }

    /// The prefixes that routes are originated for; one with several routes several times.
    pub fn originated_ids(&self) -> impl Iterator<Item = PrefixId> + '_ {
        self.originated.iter().filter_map(|route| self.nets.id(route.prefix))
    }

    /// Whether there are routes of our own.
    pub fn has_originated(&self) -> bool {
        self.originated.iter().next().is_some()
    }

    /// Another number after each [`LocRib::take_changes`]: routes that are known stay the same between two of them.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Above the numbers of all prefixes.
    pub fn end(&self) -> PrefixId {
        self.nets.end()
    }

    /// The numbers of prefixes for which this holds.
    pub fn ids_where(&self, holds: impl Fn(Prefix) -> bool) -> impl Iterator<Item = PrefixId> {
        self.nets.iter().filter(move |(_, prefix, _)| holds(*prefix)).map(|(id, ..)| id)
    }

    /// All prefixes, with their routes at the last call of [`LocRib::take_changes`].
    #[cfg(test)]
    pub fn known(&self) -> impl Iterator<Item = (PrefixId, Prefix, &Routes)> {
        self.known_between(PrefixId::FIRST, self.end())
    }

    /// The same, of the prefixes whose number is not below `first`, and is below `end`.
    pub fn known_between(
        &self,
        first: PrefixId,
        end: PrefixId,
    ) -> impl Iterator<Item = (PrefixId, Prefix, &Routes)> {
        let nets = self.nets.iter_from(first).take_while(move |(id, ..)| *id < end);
        nets.map(|(id, prefix, routes)| (id, prefix, self.known_of(id, routes)))
    }

    /// All originated routes in the order of their prefixes.
    pub fn originated(&self) -> impl Iterator<Item = &DesiredRoute> {
        self.originated.iter()
    }

    /// All learned paths in the order of their prefixes, each with the result of route selection; those whose next hop cannot
    /// be reached are the last ones of all.
    pub fn learned(&self) -> impl Iterator<Item = LearnedRoute> + '_ {
        let used = self.nets.sorted().into_iter().flat_map(|(prefix, routes)| {
            let paths = routes.paths().iter().zip(routes.steps());
            paths.map(move |(path, lost_at)| LearnedRoute {
                prefix,
                path: path.clone(),
                lost_at,
                stale: false,
                origin_validation: None,
            })
        });
        used.chain(self.unreachable.learned())
    }

    /// The number of prefixes of each family.
    pub fn counts(&self) -> PerFamily<usize> {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rib::Route;
    use fairway_ground::{AsPath, Asn, NextHop, PeerKind, RouterId};
    use fairway_seam::{DecisionStep, PathAttributes, RouteAttributes};

    fn route(prefix: &str, peers: &[&str], local_pref: u32) -> DesiredRoute {
        DesiredRoute {
            prefix: prefix.parse().unwrap(),
            peers: Arc::new(
                peers
                    .iter()
                    .map(|it| PeerKey::from(it.parse::<std::net::IpAddr>().unwrap()))
                    .collect(),
            ),
            attributes: Arc::new(RouteAttributes {
                local_pref: Some(local_pref),
                ..RouteAttributes::default()
            }),
        }
    }

    fn source(number: u8) -> Arc<PathSource> {
        Arc::new(PathSource {
            key: PeerKey::from(std::net::IpAddr::from([192, 0, 2, number])),
            address: [192, 0, 2, number].into(),
            kind: PeerKind::External,
            remote_asn: Asn::new(65_000 + u32::from(number)).unwrap(),
            router_id: RouterId::new(u32::from(number)).unwrap(),
            is_client: false,
        })
    }

    fn announced(prefix: &str, hops: usize) -> RouteChange {
        let next_hop = NextHop::Ipv4([192, 0, 2, 9].into());
        let as_path = AsPath::sequence(vec![7; hops]);
        let attributes = Some(Arc::new(PathAttributes::originated(as_path, next_hop)));
        RouteChange { nlri: prefix.parse().unwrap(), attributes }
    }

    fn withdrawn(prefix: &str) -> RouteChange {
        RouteChange { nlri: prefix.parse().unwrap(), attributes: None }
    }

    /// The number of the peer with the best path.
    fn best_from(rib: &LocRib, prefix: &str) -> Option<u32> {
        let routes = rib.routes_to(prefix.parse().unwrap())?;
        match routes.route_for(PeerKey::from(std::net::IpAddr::from([192, 0, 2, 99])))? {
            Route::Learned(path) => Some(path.source.router_id.get()),
            Route::Originated(_) => Some(0),
        }
    }

    /// How many prefixes have another route for peers that are sent one, and how many have only others.
    fn changed(rib: &mut LocRib) -> (usize, usize) {
        let changes = rib.take_changes().list;
        let all = changes.iter().filter(|it| it.concerns_all).count();
        (all, changes.len() - all)
    }

    #[test]
    fn only_prefixes_that_changed_are_named() {
        let mut rib = LocRib::default();
        let first = vec![route("10.0.0.1/32", &["192.0.2.1"], 1), route("10.0.0.2/32", &[], 1)];
        rib.set(first.clone());
        assert_eq!(changed(&mut rib), (2, 0));
        rib.set(first);
        assert_eq!(changed(&mut rib), (0, 0));
        rib.set(vec![route("10.0.0.1/32", &["192.0.2.1"], 2), route("10.0.0.3/32", &[], 1)]);
        assert_eq!(changed(&mut rib), (3, 0));
    }

    //= RFC 8212 §3 MUST NOT: routes are told to a peer for which no export policy asks for them.
    #[test]
    fn each_peer_sees_its_own_route_for_a_prefix() {
        let mut rib = LocRib::default();
        rib.set(vec![
            route("10.0.0.1/32", &["192.0.2.1"], 1),
            route("10.0.0.1/32", &["192.0.2.2"], 2),
        ]);
        let routes = rib.routes_to("10.0.0.1/32".parse().unwrap()).unwrap();
        let local_pref = |peer: &str| match routes
            .route_for(PeerKey::from(peer.parse::<std::net::IpAddr>().unwrap()))
        {
            Some(Route::Originated(chosen)) => chosen.local_pref,
            _ => None,
        };
        assert_eq!(local_pref("192.0.2.1"), Some(1));
        assert_eq!(local_pref("192.0.2.2"), Some(2));
        assert_eq!(local_pref("192.0.2.3"), None);
    }

    #[test]
    fn a_prefix_is_known_as_it_was_when_changes_were_taken() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![announced("10.0.0.0/8", 1)]);
        rib.take_changes();
        let (id, ..) = rib.known().next().unwrap();
        rib.learn(&source(1), vec![withdrawn("10.0.0.0/8")]);
        assert!(rib.known_routes(id).is_some_and(|(_, routes)| !routes.is_none()));
        rib.take_changes();
        assert!(rib.known_routes(id).is_some_and(|(_, routes)| routes.is_none()));
    }

    //= RFC 4271 §9 MUST: a changed Adj-RIB-In is followed by the decision process.
    //= RFC 4271 §9.1.2 MUST: the route that is chosen takes the place of the earlier one in the Loc-RIB.
    #[test]
    fn the_best_path_wins_and_the_next_best_takes_over() {
        let mut rib = LocRib::default();
        let (one, two) = (source(1), source(2));
        let mut learn = |source: &Arc<PathSource>, change: RouteChange| {
            rib.learn(source, vec![change]);
            (changed(&mut rib), best_from(&rib, "10.0.0.0/8"))
        };
        assert_eq!(learn(&one, announced("10.0.0.0/8", 3)), ((1, 0), Some(1)));
        assert_eq!(learn(&two, announced("10.0.0.0/8", 2)), ((1, 0), Some(2)));
        // A worse path does not change the best one.
        assert_eq!(learn(&one, announced("10.0.0.0/8", 4)), ((0, 1), Some(2)));
        assert_eq!(learn(&two, withdrawn("10.0.0.0/8")), ((1, 0), Some(1)));
        assert_eq!(learn(&one, withdrawn("10.0.0.0/8")), ((1, 0), None));
        assert_eq!(learn(&one, withdrawn("10.0.0.0/8")), ((0, 0), None));
    }

    #[test]
    fn what_is_originated_hides_what_was_heard_until_it_goes() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![announced("10.0.0.1/32", 1)]);
        changed(&mut rib);
        rib.set(vec![route("10.0.0.1/32", &["192.0.2.99"], 1)]);
        assert_eq!((changed(&mut rib), best_from(&rib, "10.0.0.1/32")), ((1, 0), Some(0)));
        rib.learn(&source(2), vec![announced("10.0.0.1/32", 1)]);
        assert_eq!(changed(&mut rib), (0, 1));
        assert_eq!(rib.counts(), PerFamily { ipv4: 1, ipv6: 0 });
        assert!(rib.learned().all(|it| it.lost_at == Some(DecisionStep::Originated)));
        rib.set(Vec::new());
        assert_eq!((changed(&mut rib), best_from(&rib, "10.0.0.1/32")), ((1, 0), Some(1)));
    }

    #[test]
    fn a_change_that_is_taken_back_before_peers_are_told_is_none() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![announced("10.0.0.0/8", 1)]);
        changed(&mut rib);
        rib.learn(&source(1), vec![withdrawn("10.0.0.0/8")]);
        let known: Vec<bool> = rib.known().map(|(_, _, routes)| routes.is_none()).collect();
        assert_eq!(known, [false], "peers know the route still");
        rib.learn(&source(1), vec![announced("10.0.0.0/8", 1)]);
        assert_eq!(changed(&mut rib), (0, 0));
    }

    #[test]
    fn the_number_of_a_prefix_is_kept_as_long_as_a_peer_awaits_it() {
        let mut rib = LocRib::default();
        let texts: Vec<String> =
            (0..3000).map(|it| format!("10.{}.{}.0/24", it / 250, it % 250)).collect();
        rib.learn(&source(1), texts.iter().map(|text| announced(text, 1)));
        rib.take_changes();
        let kept = rib.number("10.0.7.0/24".parse().unwrap()).unwrap();
        rib.learn(&source(1), texts.iter().map(|text| withdrawn(text)));
        assert!(!rib.has_vacant());
        rib.take_changes();
        // One comes back meanwhile.
        rib.learn(&source(1), vec![announced("10.0.9.0/24", 1)]);
        rib.take_changes();
        assert!(rib.has_vacant());
        rib.reclaim(|id| id == kept);
        let left: Vec<Prefix> = rib.known().map(|(_, prefix, _)| prefix).collect();
        assert_eq!(left, ["10.0.7.0/24", "10.0.9.0/24"].map(|it| it.parse().unwrap()));
        rib.reclaim(|_| false);
        assert_eq!(rib.known().count(), 1);
        assert_eq!(rib.counts().ipv4, 1);
    }

    #[test]
    fn a_peer_can_be_forgotten_as_a_whole() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![announced("10.0.0.0/8", 1), announced("11.0.0.0/8", 1)]);
        rib.learn(&source(2), vec![announced("10.0.0.0/8", 1)]);
        changed(&mut rib);
        rib.forget(source(1).key);
        assert_eq!(changed(&mut rib), (2, 0));
        assert_eq!(best_from(&rib, "10.0.0.0/8"), Some(2));
        assert_eq!(best_from(&rib, "11.0.0.0/8"), None);
        assert_eq!(rib.learned().count(), 1);
        assert_eq!(rib.counts(), PerFamily { ipv4: 1, ipv6: 0 });
    }

    fn next_hop() -> TrackedNextHop {
        TrackedNextHop { vrf: None, address: [192, 0, 2, 9].into(), on_link_of: None }
    }

    fn follow(rib: &mut LocRib, is_reachable: bool) -> usize {
        let lists = rib.follow_next_hops([(next_hop(), is_reachable)]);
        lists.into_iter().fold(0, |sum, (source, changes)| {
            let count = changes.len();
            rib.learn(&source, changes);
            sum + count
        })
    }

    fn held(rib: &LocRib) -> usize {
        rib.learned().filter(|it| it.lost_at == Some(DecisionStep::NextHop)).count()
    }

    #[test]
    fn a_path_is_used_only_while_its_next_hop_can_be_reached() {
        let mut rib = LocRib::default();
        let elsewhere = RouteChange {
            attributes: Some(Arc::new(PathAttributes::originated(
                AsPath::sequence(vec![7; 3]),
                NextHop::Ipv4([192, 0, 2, 8].into()),
            ))),
            ..withdrawn("10.0.0.0/8")
        };
        rib.learn(&source(1), [announced("10.0.0.0/8", 1), announced("11.0.0.0/8", 1)]);
        rib.learn(&source(2), [elsewhere]);
        rib.take_changes();
        assert_eq!(follow(&mut rib, false), 2);
        assert_eq!(changed(&mut rib), (2, 0));
        assert_eq!(best_from(&rib, "10.0.0.0/8"), Some(2), "the next best one");
        assert_eq!((best_from(&rib, "11.0.0.0/8"), held(&rib), rib.counts().ipv4), (None, 2, 1));
        // What is announced meanwhile waits as well, and what is withdrawn is not there afterwards.
        rib.learn(&source(1), [announced("12.0.0.0/8", 1), withdrawn("10.0.0.0/8")]);
        assert_eq!((best_from(&rib, "12.0.0.0/8"), held(&rib)), (None, 2));
        assert_eq!(rib.take_unused_next_hops(), []);
        assert_eq!(follow(&mut rib, true), 2);
        assert_eq!(
            (best_from(&rib, "11.0.0.0/8"), best_from(&rib, "12.0.0.0/8")),
            (Some(1), Some(1))
        );
        assert_eq!((best_from(&rib, "10.0.0.0/8"), held(&rib)), (Some(2), 0));
        assert!(rib.unreachable.is_empty());
    }

    #[test]
    fn a_next_hop_that_no_path_has_any_more_is_let_go() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), [announced("10.0.0.0/8", 1)]);
        rib.learn(&source(2), [announced("10.0.0.0/8", 1)]);
        follow(&mut rib, false);
        rib.forget(source(1).key);
        assert_eq!(rib.take_unused_next_hops(), []);
        rib.learn(&source(2), [withdrawn("10.0.0.0/8")]);
        assert_eq!(rib.take_unused_next_hops(), [next_hop()]);
        assert!(rib.unreachable.is_empty());
        // Nothing is known of it then.
        rib.learn(&source(2), [announced("10.0.0.0/8", 1)]);
        assert_eq!(best_from(&rib, "10.0.0.0/8"), Some(2));
    }
}
