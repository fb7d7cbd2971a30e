//! The routes that this node originates (RFC 4271 §3.2, Loc-RIB).

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::DesiredRoute;
use crate::types::{PeerKey, Prefix};

/// All originated routes. A prefix may have several, each for other peers.
#[derive(Debug, Default)]
pub struct LocRib {
    routes: BTreeMap<Prefix, Vec<DesiredRoute>>,
}

impl LocRib {
    /// Replaces the whole set. Returns the prefixes for which something changed.
    pub fn set(&mut self, routes: Vec<DesiredRoute>) -> BTreeSet<Prefix> {
        let mut fresh: BTreeMap<Prefix, Vec<DesiredRoute>> = BTreeMap::new();
        for route in routes {
            fresh.entry(route.prefix).or_default().push(route);
        }
        let gone = self.routes.keys().filter(|prefix| !fresh.contains_key(prefix));
        let changed = fresh.iter().filter(|(prefix, wanted)| {
            self.routes.get(prefix).is_none_or(|present| present != *wanted)
        });
        let touched = gone.chain(changed.map(|(prefix, _)| prefix)).copied().collect();
        self.routes = fresh;
        touched
    }

    /// The route that `peer` should be told for `prefix`.
    pub fn route_for(&self, prefix: Prefix, peer: PeerKey) -> Option<&DesiredRoute> {
        self.routes.get(&prefix)?.iter().find(|route| route.peers.contains(&peer))
    }

    /// All routes in the order of their prefixes.
    pub fn iter(&self) -> impl Iterator<Item = &DesiredRoute> {
        self.routes.values().flatten()
    }

    /// All prefixes in order.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix> + '_ {
        self.routes.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::RouteAttributes;

    fn route(prefix: &str, peers: &[&str], local_pref: u32) -> DesiredRoute {
        DesiredRoute {
            prefix: prefix.parse().unwrap(),
            peers: Arc::new(peers.iter().map(|it| PeerKey(it.parse().unwrap())).collect()),
            attributes: Arc::new(RouteAttributes {
                local_pref: Some(local_pref),
                ..RouteAttributes::default()
            }),
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

    #[test]
    fn each_peer_sees_its_own_route_for_a_prefix() {
        let mut rib = LocRib::default();
        rib.set(vec![
            route("10.0.0.1/32", &["192.0.2.1"], 1),
            route("10.0.0.1/32", &["192.0.2.2"], 2),
        ]);
        let local_pref = |peer: &str| {
            rib.route_for("10.0.0.1/32".parse().unwrap(), PeerKey(peer.parse().unwrap()))
                .map(|route| route.attributes.local_pref.unwrap())
        };
        assert_eq!(local_pref("192.0.2.1"), Some(1));
        assert_eq!(local_pref("192.0.2.2"), Some(2));
        assert_eq!(local_pref("192.0.2.3"), None);
    }
}
