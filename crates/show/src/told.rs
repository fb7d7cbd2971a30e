//! The routes that the backend has sent to each peer: `show services` and `explain` compare them with the
//! plan.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{PeerKey, Prefix};
use fairway_seam::{Ineligible, PeerRoute, PeerView};

use super::Snapshot;
use super::neighbor::is_established;

/// The routes that the backend has sent to each peer.
pub(super) struct Told<'a> {
    snapshot: &'a Snapshot<'a>,
    /// Keyed as routes name them: the neighbours of a range are behind the range.
    peers: BTreeMap<PeerKey, Vec<(&'a PeerView, BTreeSet<Prefix>)>>,
}

impl<'a> Told<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>) -> Self {
        let mut peers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for peer in &snapshot.bgp.peers {
            let prefixes = peer.advertised.iter().map(|route| route.prefix).collect();
            peers.entry(peer.config.route_key()).or_default().push((peer, prefixes));
        }
        Self { snapshot, peers }
    }

    pub(super) fn snapshot(&self) -> &'a Snapshot<'a> {
        self.snapshot
    }

    /// The route as sent to the first neighbour behind `key` that has it.
    pub(super) fn sent(&self, key: PeerKey, prefix: Prefix) -> Option<&'a PeerRoute> {
        let peers = self.peers.get(&key).into_iter().flatten();
        let mut routes = peers.flat_map(|(peer, _)| &peer.advertised);
        routes.find(|route| route.prefix == prefix)
    }

    /// Why the last session of a neighbour without one ended, or the last attempt failed, if it would be sent
    /// `prefix` with one.
    pub(super) fn last_failure(&self, key: PeerKey, prefix: Prefix) -> Option<&'a str> {
        let mut peers = self.peers.get(&key)?.iter().map(|(peer, _)| *peer);
        let carries = |peer: &PeerView| peer.config.families.contains(prefix.family());
        let down = peers.find(|peer| !is_established(peer) && carries(peer))?;
        let reset = down.last_reset.as_ref().map(|reset| reset.text.as_str());
        down.set_aside.as_deref().or(reset)
    }

    /// The name of a peer.
    pub(super) fn name(&self, key: PeerKey) -> String {
        let known = self.peers.get(&key).and_then(|peers| Some(&peers.first()?.0.config));
        let planned = || self.snapshot.plan.peers.iter().find(|config| config.key == key);
        match known.or_else(planned) {
            Some(config) if !config.name.is_empty() => config.name.clone(),
            _ => key.to_string(),
        }
    }

    /// Whether any neighbour behind `key` was sent `prefix`.
    pub(super) fn is_told(&self, key: PeerKey, prefix: Prefix) -> bool {
        let mut peers = self.peers.get(&key).into_iter().flatten();
        peers.any(|(_, prefixes)| prefixes.contains(&prefix))
    }

    /// Why a planned peer does not have the route; for a range, the reason for each of its neighbours.
    pub(super) fn silence(&self, key: PeerKey, prefix: Prefix) -> Vec<String> {
        let name = self.name(key);
        let Some(peers) = self.peers.get(&key) else {
            return vec![if key.is_range() {
                format!("peer {name} has no neighbor from {key} yet")
            } else {
                format!("peer {name} has no session yet")
            }];
        };
        let silent = peers.iter().filter(|(_, prefixes)| !prefixes.contains(&prefix));
        let reasons = silent.map(|(peer, _)| {
            let name =
                if key.is_range() { format!("{name} ({})", peer.config.key) } else { name.clone() };
            let unannounced = peer.unannounced.iter().find(|(it, _)| *it == prefix);
            let family = prefix.family();
            match unannounced {
                Some((_, reason)) => format!("peer {name} is not sent the route: {reason}"),
                // A new session does not change it.
                None if !peer.config.families.contains(family) => {
                    format!("peer {name} is not sent the route: {}", Ineligible::Family(family))
                }
                None if is_established(peer) => {
                    format!("peer {name} has not been sent the route yet")
                }
                None => format!("peer {name} is {}", peer.state.name()),
            }
        });
        reasons.collect()
    }
}
