//! The routes that this node uses: those it originates, and the best of those it received (RFC 4271 §3.2,
//! Loc-RIB).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decision::{best, best_first, decide};
use super::originated::Originated;
use super::path_ids::PathKey;
use fairway_ground::{Nlri, PathId, PeerKey, PerFamily, Prefix};
use fairway_seam::{DecisionStep, DesiredRoute, LearnedRoute, Path, PathSource, RouteChange};

/// All routes. A prefix may have several originated ones, each for other peers; an originated route is
/// preferred to received ones.
#[derive(Debug, Default)]
pub struct LocRib {
    originated: Originated,
    learned: BTreeMap<Prefix, Candidates>,
    /// The number of prefixes in `learned`, which are too many to count each time.
    learned_counts: PerFamily<usize>,
}

/// The paths to one prefix, at least one.
#[derive(Debug)]
struct Candidates {
    paths: Vec<Path>,
    best: usize,
}

impl Candidates {
    fn best(&self) -> Option<&Path> {
        self.paths.get(self.best)
    }

    /// Replaces the path of `peer`, or removes it.
    fn replace(&mut self, peer: PeerKey, path_id: PathId, change: Option<Path>) {
        let is_it = |path: &Path| path.source.key == peer && path.path_id == path_id;
        let position = self.paths.iter().position(is_it);
        match (position, change) {
            (Some(position), Some(path)) => {
                if let Some(present) = self.paths.get_mut(position) {
                    *present = path;
                }
            }
            (Some(position), None) => drop(self.paths.remove(position)),
            (None, Some(path)) => self.paths.push(path),
            (None, None) => {}
        }
        self.best = best(&self.paths).unwrap_or(0);
    }
}

/// A route that a peer may be sent for a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'a> {
    /// Originated here, for this peer.
    Originated(&'a DesiredRoute),
    /// The best received path.
    Learned(&'a Path),
}

impl Route<'_> {
    /// Identifies the path.
    pub fn key(self) -> PathKey {
        match self {
            Self::Originated(_) => PathKey::Originated,
            Self::Learned(path) => PathKey::Learned(Arc::clone(&path.source), path.path_id),
        }
    }
}

/// The prefixes with a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    /// Prefixes with another best path.
    pub best: BTreeSet<Prefix>,
    /// Prefixes with a change of another path, which concerns only peers that are sent several.
    pub others: BTreeSet<Prefix>,
}

impl Touched {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.best.is_empty() && self.others.is_empty()
    }

    /// What changed besides.
    pub fn absorb(&mut self, mut other: Self) {
        self.best.append(&mut other.best);
        self.others.append(&mut other.others);
    }
}

impl LocRib {
    /// Replaces all originated routes. Returns the prefixes that changed.
    pub fn set(&mut self, routes: impl Into<Arc<[DesiredRoute]>>) -> BTreeSet<Prefix> {
        self.originated.replace(routes.into())
    }

    /// Applies the announcements and withdrawals of the peer `source`.
    pub fn learn(&mut self, source: &Arc<PathSource>, changes: Vec<RouteChange>) -> Touched {
        let mut touched = Touched::default();
        self.learn_into(source, changes, &mut touched);
        touched
    }

    /// The same, beside what changed before.
    pub fn learn_into(
        &mut self,
        source: &Arc<PathSource>,
        changes: Vec<RouteChange>,
        touched: &mut Touched,
    ) {
        for RouteChange { nlri, attributes } in changes {
            let Nlri { prefix, path_id } = nlri;
            let source_of = || Arc::clone(source);
            let path =
                attributes.map(|attributes| Path { source: source_of(), path_id, attributes });
            let is_best = self.replace(nlri, source.key, path);
            if is_best && !self.originated.contains(prefix) {
                touched.best.insert(prefix);
            } else {
                touched.others.insert(prefix);
            }
        }
    }

    /// Returns whether the best path to the prefix changed.
    fn replace(&mut self, nlri: Nlri, peer: PeerKey, path: Option<Path>) -> bool {
        let Nlri { prefix, path_id } = nlri;
        let Some(candidates) = self.learned.get_mut(&prefix) else {
            let Some(path) = path else { return false };
            self.learned.insert(prefix, Candidates { paths: vec![path], best: 0 });
            let count = self.learned_counts.of_mut(prefix.family());
            *count = count.saturating_add(1);
            return true;
        };
        let before = candidates.best().cloned();
        candidates.replace(peer, path_id, path);
        let differs = candidates.best() != before.as_ref();
        if candidates.paths.is_empty() {
            self.learned.remove(&prefix);
            let count = self.learned_counts.of_mut(prefix.family());
            *count = count.saturating_sub(1);
        }
        differs
    }

    /// Removes all paths of `peer` when its announcements are not known any more.
    pub fn forget(&mut self, peer: PeerKey) -> Touched {
        let mut source = None;
        let mut gone = Vec::new();
        for (prefix, candidates) in &self.learned {
            for path in candidates.paths.iter().filter(|path| path.source.key == peer) {
                source = Some(Arc::clone(&path.source));
                let nlri = Nlri { prefix: *prefix, path_id: path.path_id };
                gone.push(RouteChange { nlri, attributes: None });
            }
        }
        source.map_or_else(Touched::default, |source| self.learn(&source, gone))
    }

    /// The route that `peer` may be sent for `prefix`, if it is sent one.
    pub fn route_for(&self, prefix: Prefix, peer: PeerKey) -> Option<Route<'_>> {
        if let Some(routes) = self.originated.get(prefix) {
            let route = routes.iter().find(|route| route.peers.contains(&peer));
            return route.map(Route::Originated);
        }
        self.learned.get(&prefix)?.best().map(Route::Learned)
    }

    /// The routes that `peer` may be sent for `prefix`, if it is sent several: at most `limit`, best first. A
    /// route originated for it precedes the received ones that `may_be_told` permits; one that is originated
    /// only for others hides them, as with a single route.
    pub fn routes_for(
        &self,
        prefix: Prefix,
        peer: PeerKey,
        limit: usize,
        may_be_told: impl Fn(&Path) -> bool,
    ) -> Vec<Route<'_>> {
        let mut routes = Vec::new();
        if let Some(originated) = self.originated.get(prefix) {
            match originated.iter().find(|route| route.peers.contains(&peer)) {
                Some(route) => routes.push(Route::Originated(route)),
                None => return routes,
            }
        }
        let paths = self.learned.get(&prefix).map(|it| it.paths.as_slice()).unwrap_or_default();
        let paths = paths.iter().filter(|path| may_be_told(path)).collect();
        let heard = best_first(paths, limit.saturating_sub(routes.len()));
        routes.extend(heard.into_iter().map(Route::Learned));
        routes
    }

    /// All originated routes in the order of their prefixes.
    pub fn originated(&self) -> impl Iterator<Item = &DesiredRoute> {
        self.originated.iter()
    }

    /// All learned paths in the order of their prefixes, each with the result of route selection.
    pub fn learned(&self) -> impl Iterator<Item = LearnedRoute> + '_ {
        self.learned.iter().flat_map(|(prefix, candidates)| {
            let mut steps = decide(&candidates.paths);
            if self.originated.contains(*prefix) {
                steps.fill(Some(DecisionStep::Originated));
            }
            let paths = candidates.paths.iter().zip(steps);
            paths.map(|(path, lost_at)| LearnedRoute {
                prefix: *prefix,
                path: path.clone(),
                lost_at,
                stale: false,
            })
        })
    }

    /// The number of prefixes of each family.
    pub fn counts(&self) -> PerFamily<usize> {
        let mut counts = self.learned_counts;
        for prefix in self.originated.prefixes().filter(|it| !self.learned.contains_key(it)) {
            let count = counts.of_mut(prefix.family());
            *count = count.saturating_add(1);
        }
        counts
    }

    /// All prefixes that peers may be sent.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix> + '_ {
        self.originated.prefixes().chain(self.learned.keys().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairway_ground::{AsPath, Asn, NextHop, PeerKind, RouterId};
    use fairway_seam::{PathAttributes, RouteAttributes};

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
        match rib.route_for(
            prefix.parse().unwrap(),
            PeerKey::from(std::net::IpAddr::from([192, 0, 2, 99])),
        )? {
            Route::Learned(path) => Some(path.source.router_id.get()),
            Route::Originated(_) => Some(0),
        }
    }

    #[test]
    fn only_prefixes_that_changed_are_touched() {
        let mut rib = LocRib::default();
        let first = vec![route("10.0.0.1/32", &["192.0.2.1"], 1), route("10.0.0.2/32", &[], 1)];
        assert_eq!(rib.set(first.clone()).len(), 2);
        assert_eq!(rib.set(first).len(), 0);
        let second = vec![route("10.0.0.1/32", &["192.0.2.1"], 2), route("10.0.0.3/32", &[], 1)];
        assert_eq!(rib.set(second).len(), 3);
    }

    //= RFC 8212 §3 MUST NOT: routes are told to a peer for which no export policy asks for them.
    #[test]
    fn each_peer_sees_its_own_route_for_a_prefix() {
        let mut rib = LocRib::default();
        rib.set(vec![
            route("10.0.0.1/32", &["192.0.2.1"], 1),
            route("10.0.0.1/32", &["192.0.2.2"], 2),
        ]);
        let local_pref = |peer: &str| {
            let route = rib.route_for(
                "10.0.0.1/32".parse().unwrap(),
                PeerKey::from(peer.parse::<std::net::IpAddr>().unwrap()),
            );
            match route {
                Some(Route::Originated(route)) => route.attributes.local_pref,
                _ => None,
            }
        };
        assert_eq!(local_pref("192.0.2.1"), Some(1));
        assert_eq!(local_pref("192.0.2.2"), Some(2));
        assert_eq!(local_pref("192.0.2.3"), None);
    }

    //= RFC 4271 §9 MUST: a changed Adj-RIB-In is followed by the decision process.
    //= RFC 4271 §9.1.2 MUST: the route that is chosen takes the place of the earlier one in the Loc-RIB.
    #[test]
    fn the_best_path_wins_and_the_next_best_takes_over() {
        let mut rib = LocRib::default();
        let (one, two) = (source(1), source(2));
        assert_eq!(rib.learn(&one, vec![announced("10.0.0.0/8", 3)]).best.len(), 1);
        assert_eq!(rib.learn(&two, vec![announced("10.0.0.0/8", 2)]).best.len(), 1);
        assert_eq!(best_from(&rib, "10.0.0.0/8"), Some(2));
        // A worse path does not change the best one.
        assert!(rib.learn(&one, vec![announced("10.0.0.0/8", 4)]).best.is_empty());
        assert_eq!(rib.learn(&two, vec![withdrawn("10.0.0.0/8")]).best.len(), 1);
        assert_eq!(best_from(&rib, "10.0.0.0/8"), Some(1));
        assert_eq!(rib.learn(&one, vec![withdrawn("10.0.0.0/8")]).best.len(), 1);
        assert_eq!(best_from(&rib, "10.0.0.0/8"), None);
        assert!(rib.learn(&one, vec![withdrawn("10.0.0.0/8")]).best.is_empty());
    }

    #[test]
    fn what_is_originated_hides_what_was_heard_until_it_goes() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![announced("10.0.0.1/32", 1)]);
        assert_eq!(rib.set(vec![route("10.0.0.1/32", &["192.0.2.99"], 1)]).len(), 1);
        assert_eq!(best_from(&rib, "10.0.0.1/32"), Some(0));
        assert!(rib.learn(&source(2), vec![announced("10.0.0.1/32", 1)]).best.is_empty());
        assert_eq!(rib.counts(), PerFamily { ipv4: 1, ipv6: 0 });
        assert!(rib.learned().all(|it| it.lost_at == Some(DecisionStep::Originated)));
        assert_eq!(rib.set(Vec::new()).len(), 1);
        assert_eq!(best_from(&rib, "10.0.0.1/32"), Some(1));
    }

    /// Path `path_id` to 10.0.0.0/8, `hops` long.
    fn path(path_id: u32, hops: usize) -> RouteChange {
        let RouteChange { nlri, attributes } = announced("10.0.0.0/8", hops);
        RouteChange { nlri: Nlri { path_id: PathId::new(path_id), ..nlri }, attributes }
    }

    /// Neighbour and path identifier of the routes for peer 99 to 10.0.0.0/8, best first.
    fn told(rib: &LocRib, limit: usize) -> Vec<(u32, u32)> {
        let peer = source(99).key;
        let not_from_one = |path: &Path| path.source.key != source(1).key;
        let routes = rib.routes_for("10.0.0.0/8".parse().unwrap(), peer, limit, not_from_one);
        let name = |route| match route {
            Route::Originated(_) => (0, 0),
            Route::Learned(path) => (path.source.router_id.get(), path.path_id.get()),
        };
        routes.into_iter().map(name).collect()
    }

    #[test]
    fn several_paths_of_one_neighbour_stand_beside_each_other() {
        let mut rib = LocRib::default();
        assert_eq!(rib.learn(&source(2), vec![path(4, 2), path(5, 3)]).best.len(), 1);
        let touched = rib.learn(&source(2), vec![path(6, 4)]);
        assert!(touched.best.is_empty() && touched.others.len() == 1, "the best one stays");
        assert_eq!((rib.learned().count(), rib.counts().ipv4), (3, 1));
        let gone = RouteChange { attributes: None, ..path(4, 2) };
        assert_eq!(rib.learn(&source(2), vec![gone]).best.len(), 1);
        assert_eq!(told(&rib, 9), [(2, 5), (2, 6)]);
        rib.forget(source(2).key);
        assert_eq!((rib.learned().count(), rib.counts().ipv4), (0, 0));
    }

    //= RFC 7911 §5 SHOULD: the best route is among the paths that are sent, unless it came from that neighbour.
    #[test]
    fn several_paths_are_told_best_first_and_only_what_may_be_told() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![path(0, 1)]);
        rib.learn(&source(2), vec![path(9, 3), path(8, 3)]);
        rib.learn(&source(3), vec![path(0, 2)]);
        assert_eq!(told(&rib, 9), [(3, 0), (2, 8), (2, 9)]);
        assert_eq!(told(&rib, 2), [(3, 0), (2, 8)]);
        rib.set(vec![route("10.0.0.0/8", &["192.0.2.99"], 1)]);
        assert_eq!(told(&rib, 2), [(0, 0), (3, 0)]);
        // A route originated for others only hides the received ones: its peers were chosen explicitly.
        rib.set(vec![route("10.0.0.0/8", &["192.0.2.98"], 1)]);
        assert_eq!(told(&rib, 2), []);
    }

    #[test]
    fn a_peer_can_be_forgotten_as_a_whole() {
        let mut rib = LocRib::default();
        rib.learn(&source(1), vec![announced("10.0.0.0/8", 1), announced("11.0.0.0/8", 1)]);
        rib.learn(&source(2), vec![announced("10.0.0.0/8", 1)]);
        assert_eq!(rib.forget(source(1).key).best.len(), 2);
        assert_eq!(best_from(&rib, "10.0.0.0/8"), Some(2));
        assert_eq!(best_from(&rib, "11.0.0.0/8"), None);
        assert_eq!(rib.learned().count(), 1);
        assert_eq!(rib.counts(), PerFamily { ipv4: 1, ipv6: 0 });
    }
}
