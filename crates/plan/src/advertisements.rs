//! Which advertisements are in force on a node, and their content with every name in them
//! resolved.
//!
//! Knows no address. Called by the planner; `combination` refers to an advertisement by its place
//! in the list made here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{Community, LargeCommunity, PeerKey, Prefix};
use fairway_model::{
    Bandwidth, BgpAdvertisement, ClusterIndex, CommunityReference, CommunityValue, Node,
};
use fairway_seam::{PeerConfig, RouteAttributes};

use super::{AttributeDefaults, Fault};

/// The place of an advertisement in the list of those in force.
pub(super) type Place = usize;

/// An advertisement that selects the node.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) source: BgpAdvertisement,
    pub(super) attributes: RouteAttributes,
    pub(super) peers: BTreeSet<PeerKey>,
    /// The networks of this node's Pods, and its blocks of their addresses, if it originates them.
    pub(super) pod_networks: Vec<Prefix>,
}

/// The advertisements that select `node`, in name order, and those that had to be left out.
pub(super) fn on_node(
    index: &ClusterIndex,
    node: &Node,
    pod_blocks: &BTreeMap<Prefix, String>,
    peers: &[PeerConfig],
    defaults: AttributeDefaults,
) -> (Vec<InForce>, Vec<Fault>) {
    let aliases: BTreeMap<&str, CommunityValue> = index
        .communities
        .values()
        .flat_map(|community| &community.aliases)
        .map(|(alias, value)| (alias.as_str(), *value))
        .collect();
    let (mut in_force, mut faults) = (Vec::new(), Vec::new());
    let advertisements = index.bgp_advertisements.values();
    for source in advertisements.filter(|it| it.selects_node(&node.labels)) {
        match attributes(source, &aliases, defaults) {
            Ok(attributes) => {
                let told = |peer: &&PeerConfig| {
                    source.peers.is_empty() || source.peers.contains(&peer.name)
                };
                let peers = peers.iter().filter(told).map(|peer| peer.key).collect();
                let cidrs = node.pod_cidrs.iter().filter(|_| source.pod_cidrs);
                let blocks = pod_blocks.iter().filter(|(_, pool)| source.takes_pod_blocks_of(pool));
                let blocks = blocks.map(|(block, _)| block);
                let pod_networks = cidrs.chain(blocks).copied().collect();
                in_force.push(InForce { source: source.clone(), attributes, peers, pod_networks });
            }
            Err(alias) => {
                let advertisement = source.name.clone();
                faults.push(Fault::UnknownCommunity { advertisement, alias });
            }
        }
    }
    (in_force, faults)
}

/// The attributes of the advertisement, or the alias that is not defined.
fn attributes(
    source: &BgpAdvertisement,
    aliases: &BTreeMap<&str, CommunityValue>,
    defaults: AttributeDefaults,
) -> Result<RouteAttributes, String> {
    let mut communities: BTreeSet<Community> = BTreeSet::new();
    let mut large_communities: BTreeSet<LargeCommunity> = BTreeSet::new();
    for reference in &source.communities {
        let value = match reference {
            CommunityReference::Value(value) => *value,
            CommunityReference::Alias(alias) => {
                let defined = aliases.get(alias.as_str()).copied();
                let value = defined.or_else(|| CommunityReference::well_known(alias));
                value.ok_or_else(|| alias.clone())?
            }
        };
        match value {
            CommunityValue::Standard(community) => communities.insert(community),
            CommunityValue::Large(community) => large_communities.insert(community),
        };
    }
    Ok(RouteAttributes {
        local_pref: source.local_pref.or(defaults.local_pref),
        communities: communities.into_iter().collect(),
        large_communities: large_communities.into_iter().collect(),
        med: source.med.or(defaults.med),
        as_path_prepend: source.as_path_prepend,
        link_bandwidth: match source.link_bandwidth {
            Some(Bandwidth::Fixed(bandwidth)) => Some(bandwidth),
            Some(Bandwidth::Auto) | None => None,
        },
    })
}

impl InForce {
    /// The prefix for an address: that of the aggregation length.
    pub(super) fn prefix_of(&self, address: IpAddr) -> Prefix {
        let length = match address {
            IpAddr::V4(_) => self.source.aggregation_length_ipv4,
            IpAddr::V6(_) => self.source.aggregation_length_ipv6,
        };
        // Invalid lengths are refused when the advertisement is read; if one got here, the host route
        // affects no other address.
        Prefix::new(address, length).unwrap_or_else(|_| Prefix::host(address))
    }
}
