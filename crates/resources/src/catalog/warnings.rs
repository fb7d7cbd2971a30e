//! Warnings about valid configuration: references to names that do not exist, selectors that select
//! nothing, pools that are not announced, peers that no node has.
//!
//! Only about objects with documents that are in force. Knows no files.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_ground::Remote;
use fairway_model::{
    BgpAdvertisement, Kind, LabelSelector, Labels, Layer2Advertisement, Namespace, Object, Peer,
    PeerPassword, Pool,
};

use super::advertisements::is_by_name;
use super::nodes::Nodes;
use super::settle::Problem;
use super::version::Version;
use crate::field_path::FieldPath;

/// The warnings about each of `current`, some of what is in force.
pub(super) fn warnings<'a>(
    current: impl Iterator<Item = &'a Version>,
    in_force: impl Iterator<Item = &'a Arc<Version>> + Clone,
) -> Vec<(&'a Version, Problem)> {
    let facts = Facts::of(in_force);
    let found = current.flat_map(|version| {
        let problems = match &*version.object {
            Object::Peer(it) => facts.about_peer(it),
            Object::Pool(it) => facts.about_pool(it, version),
            Object::BgpAdvertisement(it) => facts.about_advertisement(it, version),
            Object::Layer2Advertisement(it) => facts.about_layer2_advertisement(it, version),
            _ => Vec::new(),
        };
        problems.into_iter().map(move |problem| (version, problem))
    });
    found.collect()
}

/// What is in force, as far as warnings need it.
struct Facts<'a> {
    nodes: Nodes,
    namespaces: Vec<&'a Namespace>,
    peers: BTreeSet<&'a str>,
    pool_names: BTreeSet<&'a str>,
    pools: Vec<&'a Pool>,
    /// Pools that an advertisement of either kind names.
    named_pools: BTreeSet<&'a str>,
    /// Advertisements that select pools in other ways.
    choosing: Vec<&'a BgpAdvertisement>,
    layer2: Vec<&'a Layer2Advertisement>,
    /// Ranges with a key, which the kernel requires of every connection from them.
    signed_ranges: Vec<&'a Peer>,
}

impl<'a> Facts<'a> {
    fn of(in_force: impl Iterator<Item = &'a Arc<Version>> + Clone) -> Self {
        let mut facts = Self {
            nodes: Nodes::of(in_force.clone()),
            namespaces: Vec::new(),
            peers: BTreeSet::new(),
            pool_names: BTreeSet::new(),
            pools: Vec::new(),
            named_pools: BTreeSet::new(),
            choosing: Vec::new(),
            layer2: Vec::new(),
            signed_ranges: Vec::new(),
        };
        for version in in_force {
            match &*version.object {
                Object::Namespace(it) => facts.namespaces.push(it),
                Object::Peer(it) => {
                    facts.peers.insert(&it.name.name);
                    if matches!(it.remote, Remote::Range(_)) && has_keys(it) {
                        facts.signed_ranges.push(it);
                    }
                }
                Object::Pool(it) => {
                    facts.pool_names.insert(&it.name.name);
                    facts.pools.push(it);
                }
                Object::BgpAdvertisement(it) => {
                    facts.named_pools.extend(it.pools.iter().map(String::as_str));
                    if !is_by_name(it) {
                        facts.choosing.push(it);
                    }
                }
                Object::Layer2Advertisement(it) => facts.layer2.push(it),
                _ => {}
            }
        }
        facts
    }

    fn about_peer(&self, it: &Peer) -> Vec<Problem> {
        let idle = self.about_nodes(&it.node_selectors);
        let shadowed = if has_keys(it) { None } else { self.shadowed(it) };
        idle.into_iter().chain(shadowed).collect()
    }

    /// A peer without a key inside a range with a key: the kernel requires the key of every address in
    /// the range, without exceptions.
    fn shadowed(&self, it: &Peer) -> Option<Problem> {
        let (field, address, length) = match it.remote {
            Remote::Address(address) => ("spec.peerAddress", address, u8::MAX),
            Remote::Range(range) => ("spec.listenRange", range.address(), range.length()),
            Remote::Interface(_) | Remote::DefaultGateway(_) => return None,
        };
        let (range, other) = self.signed_ranges.iter().find_map(|other| {
            let Remote::Range(range) = other.remote else { return None };
            let is_within = range.length() < length && range.contains(address);
            let may_meet = self.nodes.may_share(&it.node_selectors, &other.node_selectors);
            (is_within && it.vrf == other.vrf && may_meet).then_some((range, other))
        })?;
        Some(Problem::new(
            FieldPath::of(field),
            format!(
                "is in {range} of BGPPeer/{}: the kernel requires the key of that range for every \
                 connection from it, so this peer is accepted only with that key; expected a key \
                 of its own (password, passwordSecret or tcpAO)",
                other.name.name
            ),
        ))
    }

    fn about_pool(&self, it: &Pool, version: &Version) -> Vec<Problem> {
        let mut problems = Vec::new();
        let name = it.name.name.as_str();
        let is_announced = self.named_pools.contains(name)
            || self.choosing.iter().any(|by| by.selects_pool(name, &it.labels))
            || self.layer2.iter().any(|by| by.selects_pool(it));
        if !is_announced {
            problems.push(Problem::new(
                FieldPath::default(),
                "no BGPAdvertisement and no L2Advertisement covers the pool: its addresses are not \
                 announced",
            ));
        }
        let Some(allocation) = &it.allocation else { return problems };
        if self.namespaces.is_empty() {
            return problems;
        }
        let path = FieldPath::of("spec.serviceAllocation.namespaces");
        for name in &allocation.namespaces {
            if !self.namespaces.iter().any(|namespace| namespace.name == *name) {
                let message = format!("no Namespace {name} is given");
                problems.push(Problem::new(version.lines.find(&path, name), message));
            }
        }
        let path = FieldPath::of("spec.serviceAllocation.namespaceSelectors");
        let labels = || self.namespaces.iter().map(|namespace| &namespace.labels);
        let selectors = &allocation.namespace_selectors;
        problems.extend(selects_nothing(selectors, &path, labels, "Namespaces given"));
        problems
    }

    fn about_advertisement(&self, it: &BgpAdvertisement, version: &Version) -> Vec<Problem> {
        let mut problems = self.unknown("ipAddressPools", Kind::IpAddressPool, version);
        problems.extend(self.unknown("peers", Kind::BgpPeer, version));
        problems.extend(self.about_pool_selectors(&it.pool_selectors));
        problems.extend(self.about_nodes(&it.node_selectors));
        problems
    }

    fn about_layer2_advertisement(
        &self,
        it: &Layer2Advertisement,
        version: &Version,
    ) -> Vec<Problem> {
        let mut problems = self.unknown("ipAddressPools", Kind::IpAddressPool, version);
        problems.extend(self.about_pool_selectors(&it.pool_selectors));
        problems.extend(self.about_nodes(&it.node_selectors));
        problems
    }

    /// Names in a field to which no object of the kind corresponds.
    fn unknown(&self, field: &str, kind: Kind, version: &Version) -> Vec<Problem> {
        let known = if kind == Kind::BgpPeer { &self.peers } else { &self.pool_names };
        let list = FieldPath::of("spec").key(field);
        let names = version.lines.scalars(&list).filter(|(path, _)| **path != list);
        let unknown = names.filter(|(_, name)| !known.contains(name));
        let problem = |(path, name): (&FieldPath, &str)| {
            Problem::new(path.clone(), format!("no {kind} {name} is in force"))
        };
        unknown.map(problem).collect()
    }

    fn about_pool_selectors(&self, selectors: &[LabelSelector]) -> Vec<Problem> {
        let path = FieldPath::of("spec.ipAddressPoolSelectors");
        let labels = || self.pools.iter().map(|pool| &pool.labels);
        selects_nothing(selectors, &path, labels, "IPAddressPools in force")
    }

    fn about_nodes(&self, selectors: &[LabelSelector]) -> Option<Problem> {
        self.nodes.are_missed_by(selectors).then(|| {
            let path = FieldPath::of("spec.nodeSelectors");
            Problem::new(path, "selects none of the nodes given")
        })
    }
}

/// Selectors that match none of the objects with these labels.
fn selects_nothing<'b, L: Iterator<Item = &'b Labels>>(
    selectors: &[LabelSelector],
    path: &FieldPath,
    labels: impl Fn() -> L,
    what: &str,
) -> Vec<Problem> {
    let idle = selectors
        .iter()
        .enumerate()
        .filter(|(_, selector)| !labels().any(|labels| selector.matches(labels)));
    let problem =
        |position| Problem::new(path.index(position), format!("selects none of the {what}"));
    idle.map(|(position, _)| problem(position)).collect()
}

fn has_keys(it: &Peer) -> bool {
    it.password != PeerPassword::None || !it.tcp_ao.is_empty()
}
