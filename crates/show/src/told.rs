//! What the backend has told whom: `show services` and `explain` hold it against the plan.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{PeerKey, Prefix};
use fairway_seam::{Ineligible, PeerRoute, PeerView};

use super::Snapshot;
use super::neighbor::is_established;

/// What the backend has told whom.
pub(super) struct Told<'a> {
    snapshot: &'a Snapshot<'a>,
    /// By what routes for them name: whoever came from a range is behind the range.
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

    /// The route as the first neighbour behind `key` that has it was told it.
    pub(super) fn sent(&self, key: PeerKey, prefix: Prefix) -> Option<&'a PeerRoute> {
        let peers = self.peers.get(&key).into_iter().flatten();
        let mut routes = peers.flat_map(|(peer, _)| &peer.advertised);
        routes.find(|route| route.prefix == prefix)
    }

    /// Why the last session of a neighbour without one ended, or the last attempt failed, where it
    /// would be told of `prefix` with one.
    pub(super) fn last_failure(&self, key: PeerKey, prefix: Prefix) -> Option<&'a str> {
        let mut peers = self.peers.get(&key)?.iter().map(|(peer, _)| *peer);
        let carries = |peer: &PeerView| peer.config.families.contains(prefix.family());
        let down = peers.find(|peer| !is_established(peer) && carries(peer))?;
        let reset = down.last_reset.as_ref().map(|reset| reset.text.as_str());
        down.set_aside.as_deref().or(reset)
    }

    /// What a peer is called.
    pub(super) fn name(&self, key: PeerKey) -> String {
        let known = self.peers.get(&key).and_then(|peers| Some(&peers.first()?.0.config));
        let planned = || self.snapshot.plan.peers.iter().find(|config| config.key == key);
        match known.or_else(planned) {
            Some(config) if !config.name.is_empty() => config.name.clone(),
            _ => key.to_string(),
        }
    }

    /// Whether somebody behind `key` was told of `prefix`.
    pub(super) fn is_told(&self, key: PeerKey, prefix: Prefix) -> bool {
        let mut peers = self.peers.get(&key).into_iter().flatten();
        peers.any(|(_, prefixes)| prefixes.contains(&prefix))
    }

    /// Why a peer that should have been told has not been; for a range, each neighbour from it.
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
                Some((_, reason)) => format!("peer {name} is not told: {reason}"),
                // A session that comes up will not change it.
                None if !peer.config.families.contains(family) => {
                    format!("peer {name} is not told: {}", Ineligible::Family(family))
                }
                None if is_established(peer) => format!("peer {name} has not been told yet"),
                None => format!("peer {name} is {}", peer.state.name()),
            }
        });
        reasons.collect()
    }
}
