//! BGPAdvertisement and Community: with which attributes a route leaves, and to whom.

use std::collections::{BTreeMap, BTreeSet};

use fairway_sessions::types::{Community, LargeCommunity, LinkBandwidth, Prefix};

use super::{LabelSelector, ObjectName};

/// A community of either size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommunityValue {
    /// Four octets.
    Standard(Community),
    /// Twelve octets.
    Large(LargeCommunity),
}

/// A community in an advertisement: a value, or the alias of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommunityReference {
    /// Written out.
    Value(CommunityValue),
    /// Defined by some Community object.
    Alias(String),
}

/// One Community object: names for values. A name is defined once in all objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunityAliases {
    /// The object.
    pub name: ObjectName,
    /// Its aliases.
    pub aliases: BTreeMap<String, CommunityValue>,
}

/// What `linkBandwidth` of an advertisement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bandwidth {
    /// By the usable endpoints on the node.
    Auto,
    /// As written.
    Fixed(LinkBandwidth),
}

/// A BGPAdvertisement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BgpAdvertisement {
    /// Its name.
    pub name: ObjectName,
    /// IPv4 routes are announced as prefixes of this length, 1 to 32.
    pub aggregation_length_ipv4: u8,
    /// IPv6 routes are announced as prefixes of this length, 1 to 128.
    pub aggregation_length_ipv6: u8,
    /// LOCAL_PREF; 0 and unset are `None`.
    pub local_pref: Option<u32>,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// How often our AS is in the path beside once, 0 to 16.
    pub as_path_prepend: u8,
    /// The weight of this node among those that announce the same.
    pub link_bandwidth: Option<Bandwidth>,
    /// Communities to attach.
    pub communities: BTreeSet<CommunityReference>,
    /// Pools by name.
    pub pools: BTreeSet<String>,
    /// Pools by label. Without names and selectors: every pool.
    pub pool_selectors: Vec<LabelSelector>,
    /// Nodes that announce.
    pub node_selectors: Vec<LabelSelector>,
    /// Services that are announced.
    pub service_selectors: Vec<LabelSelector>,
    /// Names of BGPPeers that are told; all when empty.
    pub peers: BTreeSet<String>,
    /// Prefixes that are originated too, service or no service.
    pub prefixes: Vec<Prefix>,
}
