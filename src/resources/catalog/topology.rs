//! Rules between pools, and between peers, their Secrets and nodes.
//!
//! Pools share no address; no node has two sessions to one router; a peer's Secret exists. Knows no
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::Version;
use super::resolve::{Problem, Rule};
use crate::model::{
    AddressRange, Kind, LabelSelector, Node, Object, ObjectName, Peer, PeerPassword, any_matches,
};
use crate::resources::field_path::FieldPath;

/// No address is in two pools.
#[derive(Default)]
pub(super) struct Pools {
    /// The ranges of all pools by their first address, with the name of the pool. They are
    /// disjoint, so the one that begins last before an address is the only one that may hold it.
    ranges: BTreeMap<IpAddr, (AddressRange, String)>,
}

impl Rule for Pools {
    fn admit(&mut self, version: &Arc<Version>) -> Result<(), Problem> {
        let Object::Pool(pool) = &version.object else { return Ok(()) };
        for (position, range) in pool.ranges.iter().enumerate() {
            let nearest = self.ranges.range(..=range.last()).next_back();
            if let Some((_, (other, name))) = nearest
                && other.overlaps(*range)
            {
                return Err(Problem {
                    path: FieldPath::of("spec.addresses").index(position),
                    message: format!(
                        "{range} overlaps {other} of IPAddressPool/{name}; an address may be in \
                         one pool only"
                    ),
                });
            }
        }
        for range in &pool.ranges {
            self.ranges.insert(range.first(), (*range, pool.name.name.clone()));
        }
        Ok(())
    }
}

/// No node has two peers with one address, and what peers refer to exists.
pub(super) struct Peers {
    by_address: BTreeMap<IpAddr, Vec<Arc<Version>>>,
    secrets: BTreeSet<ObjectName>,
    /// Secrets that nobody defines any more, but whose last good version is known.
    lost_secrets: BTreeSet<ObjectName>,
    nodes: Vec<Node>,
}

impl Peers {
    /// Among the objects that are in force already.
    pub(super) fn new<'a>(
        in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
        lost_secrets: BTreeSet<ObjectName>,
    ) -> Self {
        let secrets = in_force.clone().filter(|version| version.key.kind == Kind::Secret);
        Self {
            by_address: BTreeMap::new(),
            secrets: secrets.map(|version| version.key.name.clone()).collect(),
            lost_secrets,
            nodes: nodes(in_force).cloned().collect(),
        }
    }

    /// Whether no node has another peer with its address.
    fn check_address(&self, it: &Peer) -> Result<(), Problem> {
        let others = self.by_address.get(&it.address).map_or(&[][..], Vec::as_slice);
        let rival = others
            .iter()
            .filter_map(|version| peer(version))
            .find(|other| may_share_a_node(&self.nodes, &it.node_selectors, &other.node_selectors));
        let Some(other) = rival else { return Ok(()) };
        Err(Problem {
            path: FieldPath::of("spec.peerAddress"),
            message: format!(
                "{} is the address of BGPPeer/{} too, and one node may have both; expected \
                 another address, or nodeSelectors that exclude each other",
                it.address, other.name.name
            ),
        })
    }

    fn remember(&mut self, it: &Peer, version: &Arc<Version>) {
        self.by_address.entry(it.address).or_default().push(Arc::clone(version));
    }
}

/// Without known nodes any two selectors may meet on one.
pub(super) fn may_share_a_node(nodes: &[Node], a: &[LabelSelector], b: &[LabelSelector]) -> bool {
    let is_shared = |node: &Node| any_matches(a, &node.labels) && any_matches(b, &node.labels);
    nodes.is_empty() || nodes.iter().any(is_shared)
}

/// The Secret that a peer takes its password from.
pub(super) fn secret_of(version: &Version) -> Option<&ObjectName> {
    match &peer(version)?.password {
        PeerPassword::Secret(name) => Some(name),
        PeerPassword::None | PeerPassword::Text(_) => None,
    }
}

pub(super) fn nodes<'a>(
    in_force: impl Iterator<Item = &'a Arc<Version>>,
) -> impl Iterator<Item = &'a Node> {
    in_force.filter_map(|version| match &version.object {
        Object::Node(node) => Some(node),
        _ => None,
    })
}

fn peer(version: &Version) -> Option<&Peer> {
    match &version.object {
        Object::Peer(peer) => Some(peer),
        _ => None,
    }
}

impl Rule for Peers {
    fn admit(&mut self, version: &Arc<Version>) -> Result<(), Problem> {
        let Some(it) = peer(version) else { return Ok(()) };
        if let Some(name) = secret_of(version)
            && !self.secrets.contains(name)
        {
            return Err(Problem {
                path: FieldPath::of("spec.passwordSecret.name"),
                message: format!(
                    "there is no usable Secret {name}; expected one of type \
                     kubernetes.io/basic-auth with the key password"
                ),
            });
        }
        self.check_address(it)?;
        self.remember(it, version);
        Ok(())
    }

    /// A session does not end because its Secret is gone: both stay as they were.
    fn keep(&mut self, version: &Arc<Version>, _is_unchanged: bool) -> bool {
        let Some(it) = peer(version) else { return false };
        let has_password = secret_of(version).is_some_and(|name| self.lost_secrets.contains(name));
        if !has_password || self.check_address(it).is_err() {
            return false;
        }
        self.remember(it, version);
        true
    }
}

/// Peers that no known node has a session to.
pub(super) fn warnings<'a>(
    current: &'a [Arc<Version>],
    in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
) -> Vec<(&'a Version, Problem)> {
    if nodes(in_force.clone()).next().is_none() {
        return Vec::new();
    }
    let idle = current.iter().filter(|version| {
        peer(version).is_some_and(|it| {
            !nodes(in_force.clone()).any(|node| any_matches(&it.node_selectors, &node.labels))
        })
    });
    let problem = || Problem {
        path: FieldPath::of("spec.nodeSelectors"),
        message: "selects none of the nodes given".to_owned(),
    };
    idle.map(|version| (&**version, problem())).collect()
}
