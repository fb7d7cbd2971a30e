//! BGPPeers while they are collected.
//!
//! Answers the name of each, and that no node gets one neighbour twice: peers that differ in their nodes alone become one.
//! Knows no project.

use serde_json::{Value, json};

use super::selector::{Selector, any_of};
use crate::object::{Fields, Names, Translated};

/// The BGPPeers of a text.
#[derive(Default)]
pub(super) struct Peers {
    names: Names,
    peers: Vec<Peer>,
}

struct Peer {
    name: String,
    spec: Fields,
    /// Any of them selects the node; none: all nodes.
    nodes: Vec<Selector>,
}

/// The fields that say which neighbour it is.
const NEIGHBOUR: [&str; 4] = ["peerAddress", "interface", "autoDiscovery", "vrf"];

impl Peers {
    /// Adds a peer that the source calls `name`, and answers its name here, or that of another one to the same neighbour
    /// with other settings.
    pub(super) fn add(
        &mut self,
        name: &str,
        spec: Fields,
        nodes: &[Selector],
    ) -> Result<String, String> {
        let same_neighbour =
            |it: &Peer| NEIGHBOUR.iter().all(|field| it.spec.0.get(*field) == spec.0.get(*field));
        let Some(other) = self.peers.iter_mut().find(|it| same_neighbour(it)) else {
            let name = self.names.give(name);
            self.peers.push(Peer { name: name.clone(), spec, nodes: nodes.to_vec() });
            return Ok(name);
        };
        if other.spec != spec {
            return Err(other.name.clone());
        }
        if nodes.is_empty() || other.nodes.is_empty() {
            other.nodes.clear();
        } else {
            for selector in nodes {
                if !other.nodes.contains(selector) {
                    other.nodes.push(selector.clone());
                }
            }
        }
        Ok(other.name.clone())
    }

    /// The objects.
    pub(super) fn objects(self) -> impl Iterator<Item = Translated> {
        self.peers.into_iter().map(|Peer { name, mut spec, nodes }| {
            spec.set("nodeSelectors", any_of(&nodes));
            Translated::new("metallb.io/v1beta2", "BGPPeer", &name, spec)
        })
    }
}

/// What to do about a second peer to a neighbour.
pub(super) fn rival(other: &str) -> String {
    format!(
        "has the neighbour of BGPPeer {other} with other settings, and one node may have both: write a BGPPeer for it by \
         hand, with nodeSelectors that exclude those of the other"
    )
}

/// Seconds as Fairway writes them.
pub(super) fn seconds(number: u64) -> Value {
    json!(format!("{number}s"))
}
