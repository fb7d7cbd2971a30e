//! The view for a client of the backend: a snapshot of all sessions and of the RIB.
//!
//! Another part of [`Speaker`]; changes nothing.

use super::guard::Guard;
use super::speaker::Speaker;
use fairway_ground::{Instant, Nlri, PeerKey, Prefix};
use fairway_rpki::origin;
use fairway_seam::{BgpView, LearnedRoute, ViewScope};

impl<G: Guard> Speaker<G> {
    /// The peer that announced it knows whether it is stale; what RPKI says is known here.
    fn marked(&self, route: LearnedRoute) -> LearnedRoute {
        let nlri = Nlri { prefix: route.prefix, path_id: route.path.path_id };
        let Some(peer) = self.peer(route.path.source.key) else { return route };
        let origin_validation = (!self.origins.is_empty()).then(|| {
            let own_asn = peer.config().local_asn.get();
            self.origins.state(route.prefix, origin(&route.path.attributes.as_path, own_asn))
        });
        LearnedRoute { stale: peer.is_stale(nlri), origin_validation, ..route }
    }

    /// The view for `scope`, without what only the edge knows: connections that are not accepted, and BFD.
    /// The second value lists peers that could not be shown.
    pub fn view(&self, now: Instant, scope: ViewScope) -> (BgpView, Vec<PeerKey>) {
        let asked = scope.passage.map(around).unwrap_or_default();
        let mut peers = Vec::with_capacity(self.neighbours.len());
        let mut unshown = Vec::new();
        for (key, neighbour) in &self.neighbours {
            let shown = self.guard.run(|| {
                let mut view = neighbour.peer.view(now, scope);
                view.advertised = neighbour.peer.advertised(&self.rib, scope.advertised);
                view.passages = neighbour.peer.passages(&self.rib, &asked);
                view
            });
            match shown {
                Some(mut view) => {
                    view.is_being_told = neighbour.is_being_told();
                    peers.push(view);
                }
                None => unshown.push(*key),
            }
        }
        let rib = &self.rib;
        let originated = scope.originated.then(|| rib.originated().cloned().collect());
        let learned = scope.learned.then(|| {
            let mark = |route| self.marked(route);
            let mut learned: Vec<LearnedRoute> = rib.learned().map(mark).collect();
            // A dump has one entry for each prefix, with the paths that are not used.
            learned.sort_by_key(|it| it.prefix);
            learned
        });
        let payloads = scope.payloads.then(|| self.origins.iter().collect());
        let view = BgpView {
            generation: self.desired.generation,
            drain: self.desired.drain,
            peers,
            listen_ranges: self.ranges.view(),
            routes: originated.unwrap_or_default(),
            learned: learned.unwrap_or_default(),
            prefixes: rib.counts(),
            changes_told: self.changes_told.clone(),
            bfd: None,
            rpki_servers: Vec::new(),
            bmp_stations: Vec::new(),
            roa_payloads: payloads.unwrap_or_default(),
            rejected_segments: Default::default(),
            left_alone: Vec::new(),
            faults: Vec::new(),
        };
        (view, unshown)
    }
}

/// The prefix, and all around it if it is one address.
fn around(prefix: Prefix) -> Vec<Prefix> {
    let length = prefix.length();
    let first = if length == prefix.family().address_bits() { 0 } else { length };
    (first..=length).filter_map(|it| Prefix::new(prefix.address(), it).ok()).collect()
}
