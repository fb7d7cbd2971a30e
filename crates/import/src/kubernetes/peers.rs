//! BGPPeers while they are collected.
//!
//! Answers the name of each, and that no node gets one neighbour twice: peers that differ in their nodes alone become one,
//! and what only some of its nodes tell it has `nodeSelectors`. Knows no project.

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
    /// What the source tells it, each with the nodes that do.
    members: Vec<(Value, Vec<Selector>)>,
}

/// A peer that is told something by some nodes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToldRoutes {
    pub(super) peer: String,
    /// Any of them selects the node; none: all nodes that have the peer.
    pub(super) nodes: Vec<Selector>,
}

/// The fields that say which neighbour it is.
const NEIGHBOUR: [&str; 4] = ["peerAddress", "interface", "autoDiscovery", "vrf"];

impl Peers {
    /// Adds a peer that the source calls `name`, and answers its name here, or that of another one to the same neighbour
    /// with other settings. `told` stands for what it is told: where this differs, no node may have both.
    pub(super) fn add(
        &mut self,
        name: &str,
        spec: Fields,
        nodes: &[Selector],
        told: Value,
    ) -> Result<ToldRoutes, String> {
        let same_neighbour =
            |it: &Peer| NEIGHBOUR.iter().all(|field| it.spec.0.get(*field) == spec.0.get(*field));
        let Some(other) = self.peers.iter_mut().find(|it| same_neighbour(it)) else {
            let name = self.names.give(name);
            let nodes = nodes.to_vec();
            let members = vec![(told, nodes.clone())];
            self.peers.push(Peer { name: name.clone(), spec, nodes: nodes.clone(), members });
            return Ok(ToldRoutes { peer: name, nodes });
        };
        let may_share_nodes = |(other_told, other_nodes): &(Value, Vec<Selector>)| {
            *other_told != told && !are_apart(other_nodes, nodes)
        };
        if other.spec != spec || other.members.iter().any(may_share_nodes) {
            return Err(other.name.clone());
        }
        join(&mut other.nodes, nodes);
        match other.members.iter_mut().find(|(it, _)| *it == told) {
            Some((_, known)) => join(known, nodes),
            None => other.members.push((told, nodes.to_vec())),
        }
        Ok(ToldRoutes { peer: other.name.clone(), nodes: nodes.to_vec() })
    }

    /// The `nodeSelectors` of an advertisement with its `peers`. Nothing is selected where all nodes of a peer tell it.
    pub(super) fn by_nodes(&self, told: &[ToldRoutes]) -> Vec<(Option<Value>, Vec<String>)> {
        let mut each: Vec<ToldRoutes> = Vec::new();
        for it in told {
            match each.iter_mut().find(|known| known.peer == it.peer) {
                Some(known) => join(&mut known.nodes, &it.nodes),
                None => each.push(it.clone()),
            }
        }
        let mut groups: Vec<(Option<Value>, Vec<String>)> = Vec::new();
        for it in each {
            let nodes = self.peers.iter().find(|peer| peer.name == it.peer).map(|peer| &peer.nodes);
            let has_all = |nodes: &Vec<Selector>| {
                !nodes.is_empty() && nodes.iter().all(|selector| it.nodes.contains(selector))
            };
            let selected = if nodes.is_some_and(has_all) { None } else { any_of(&it.nodes) };
            match groups.iter_mut().find(|(other, _)| *other == selected) {
                Some((_, peers)) => peers.push(it.peer),
                None => groups.push((selected, vec![it.peer])),
            }
        }
        groups
    }

    /// The objects.
    pub(super) fn objects(self) -> impl Iterator<Item = Translated> {
        self.peers.into_iter().map(|Peer { name, mut spec, nodes, .. }| {
            spec.set("nodeSelectors", any_of(&nodes));
            Translated::new("metallb.io/v1beta2", "BGPPeer", &name, spec)
        })
    }
}

/// Adds nodes to nodes; none stands for all.
fn join(nodes: &mut Vec<Selector>, others: &[Selector]) {
    if nodes.is_empty() || others.is_empty() {
        return nodes.clear();
    }
    for selector in others {
        if !nodes.contains(selector) {
            nodes.push(selector.clone());
        }
    }
}

/// Whether no node can be among both; none stands for all.
fn are_apart(nodes: &[Selector], others: &[Selector]) -> bool {
    let is_apart = |it: &Selector| others.iter().all(|other| it.excludes(other));
    !nodes.is_empty() && !others.is_empty() && nodes.iter().all(is_apart)
}

/// What to do about a second peer to a neighbour.
pub(super) fn rival(other: &str) -> String {
    format!(
        "has the neighbor of BGPPeer {other} with other settings or announcements, and one node may have both: write a BGPPeer for it by \
         hand, with nodeSelectors that exclude those of the other"
    )
}

/// Seconds as Fairway writes them.
pub(super) fn seconds(number: u64) -> Value {
    json!(format!("{number}s"))
}
