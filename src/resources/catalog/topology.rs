//! Rules between pools, and between peers, their Secrets and nodes.
//!
//! Pools share no address; no node has two sessions to one router; a peer's Secret exists. Knows no
//! files.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_sessions::types::{PeerKey, Remote};

use super::Version;
use super::needs::{needs, secret};
use super::resolve::{Problem, Rule};
use crate::model::{
    AddressRange, LabelSelector, Node, Object, ObjectName, Peer, PeerPassword, any_matches,
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

/// No node has two peers with one address, interface or range, and what peers refer to exists.
pub(super) struct Peers {
    by_key: BTreeMap<PeerKey, Vec<Arc<Version>>>,
    secrets: BTreeMap<ObjectName, Arc<Version>>,
    /// The last good versions of Secrets that say something else now, or nothing any more.
    former_secrets: BTreeMap<ObjectName, Arc<Version>>,
    nodes: Vec<Node>,
}

impl Peers {
    /// Among the objects that are in force already.
    pub(super) fn new<'a>(
        in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
        former_secrets: BTreeMap<ObjectName, Arc<Version>>,
    ) -> Self {
        let secrets = in_force.clone().filter(|version| secret(version).is_some());
        Self {
            by_key: BTreeMap::new(),
            secrets: secrets.map(|it| (it.key.name.clone(), Arc::clone(it))).collect(),
            former_secrets,
            nodes: nodes(in_force).cloned().collect(),
        }
    }

    /// Whether no node has another peer with its address, interface or range.
    fn check_key(&self, it: &Peer) -> Result<(), Problem> {
        let others = self.by_key.get(&it.key()).map_or(&[][..], Vec::as_slice);
        let rival = others
            .iter()
            .filter_map(|version| peer(version))
            .find(|other| may_share_a_node(&self.nodes, &it.node_selectors, &other.node_selectors));
        let Some(other) = rival else { return Ok(()) };
        let (field, noun) = match it.remote {
            Remote::Address(_) => ("spec.peerAddress", "address"),
            Remote::Interface(_) => ("spec.interface", "interface"),
            Remote::Range(_) => ("spec.listenRange", "range"),
        };
        Err(Problem {
            path: FieldPath::of(field),
            message: format!(
                "{} is the {noun} of BGPPeer/{} too, and one node may have both; expected \
                 another {noun}, or nodeSelectors that exclude each other",
                it.key(),
                other.name.name
            ),
        })
    }

    /// Whether what it takes from Secrets is there.
    fn check_secrets(&self, version: &Version) -> Result<(), Problem> {
        for need in needs(version) {
            if !self.secrets.get(need.secret).is_some_and(|it| need.is_met_by(it)) {
                return Err(need.problem());
            }
        }
        Ok(())
    }

    fn remember(&mut self, it: &Peer, version: &Arc<Version>) {
        self.by_key.entry(it.key()).or_default().push(Arc::clone(version));
    }
}

/// Without known nodes any two selectors may meet on one.
pub(super) fn may_share_a_node(nodes: &[Node], a: &[LabelSelector], b: &[LabelSelector]) -> bool {
    let is_shared = |node: &Node| any_matches(a, &node.labels) && any_matches(b, &node.labels);
    nodes.is_empty() || nodes.iter().any(is_shared)
}

pub(super) fn nodes<'a>(
    in_force: impl Iterator<Item = &'a Arc<Version>>,
) -> impl Iterator<Item = &'a Node> {
    in_force.filter_map(|version| match &version.object {
        Object::Node(node) => Some(node),
        _ => None,
    })
}

pub(super) fn peer(version: &Version) -> Option<&Peer> {
    match &version.object {
        Object::Peer(peer) => Some(peer),
        _ => None,
    }
}

impl Rule for Peers {
    fn admit(&mut self, version: &Arc<Version>) -> Result<(), Problem> {
        let Some(it) = peer(version) else { return Ok(()) };
        self.check_secrets(version)?;
        self.check_key(it)?;
        self.remember(it, version);
        Ok(())
    }

    /// A session does not end because its Secret is gone, or lost a key: both stay as they were.
    fn keep(&mut self, version: &Arc<Version>, _is_unchanged: bool) -> bool {
        let Some(it) = peer(version) else { return false };
        let has_keys = needs(version).all(|need| {
            let known = [&self.secrets, &self.former_secrets].map(|all| all.get(need.secret));
            known.into_iter().flatten().any(|it| need.is_met_by(it))
        });
        if !has_keys || self.check_secrets(version).is_ok() || self.check_key(it).is_err() {
            return false;
        }
        self.remember(it, version);
        true
    }
}

/// What is worth a word about peers that are in force.
pub(super) fn warnings<'a>(
    current: &'a [Arc<Version>],
    in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
) -> Vec<(&'a Version, Problem)> {
    let mut warnings = idle(current, in_force.clone());
    warnings.extend(shadowed(current, in_force));
    warnings
}

/// Peers that no known node has a session to.
fn idle<'a>(
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

/// Peers without a key in a range that has one: the kernel asks for the key of everybody in a
/// range, and knows no exception.
fn shadowed<'a>(
    current: &'a [Arc<Version>],
    in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
) -> Vec<(&'a Version, Problem)> {
    let nodes: Vec<Node> = nodes(in_force.clone()).cloned().collect();
    let signed = in_force.filter_map(|version| peer(version)).filter(|it| has_keys(it));
    let ranges: Vec<_> = signed
        .filter_map(|it| match it.remote {
            Remote::Range(range) => Some((range, it)),
            Remote::Address(_) | Remote::Interface(_) => None,
        })
        .collect();
    let problem = |it: &Peer| {
        let (field, address, length) = match it.remote {
            Remote::Address(address) => ("spec.peerAddress", address, u8::MAX),
            Remote::Range(range) => ("spec.listenRange", range.address(), range.length()),
            Remote::Interface(_) => return None,
        };
        let (range, other) = ranges.iter().find(|(range, other)| {
            let is_within = range.length() < length && range.contains(address);
            let may_meet = may_share_a_node(&nodes, &it.node_selectors, &other.node_selectors);
            is_within && it.vrf == other.vrf && may_meet
        })?;
        Some(Problem {
            path: FieldPath::of(field),
            message: format!(
                "is in {range} of BGPPeer/{}: the kernel asks everybody who dials from there for \
                 the key of that range, so this peer is accepted only with that key; expected one \
                 of its own (password, passwordSecret or tcpAO)",
                other.name.name
            ),
        })
    };
    let bare = current.iter().filter_map(|version| Some((&**version, peer(version)?)));
    let bare = bare.filter(|(_, it)| !has_keys(it));
    bare.filter_map(|(version, it)| Some((version, problem(it)?))).collect()
}

fn has_keys(it: &Peer) -> bool {
    it.password != PeerPassword::None || !it.tcp_ao.is_empty()
}
