//! BGPAdvertisement and Community: with which attributes a route is sent, and to which peers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fairway_ground::{Community, LargeCommunity, LinkBandwidth, Prefix};

use super::selector::chooses_pool;
use super::{LabelSelector, Labels, ObjectName, Service, any_matches};

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
    /// Defined by a Community object, else a well-known name, as no-export.
    Alias(String),
}

impl CommunityReference {
    /// The well-known meaning of `alias`, which holds unless a Community object defines it.
    pub fn well_known(alias: &str) -> Option<CommunityValue> {
        let is_name = !alias.contains(':');
        is_name.then(|| alias.parse().ok()).flatten().map(CommunityValue::Standard)
    }
}

/// One Community object: names for values. A name is defined once in all objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunityAliases {
    /// The object.
    pub name: ObjectName,
    /// Its aliases.
    pub aliases: BTreeMap<String, CommunityValue>,
}

/// The value of `linkBandwidth` of an advertisement.
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
    /// How many extra times our AS is in the path, 0 to 16.
    pub as_path_prepend: u8,
    /// The weight of this node among those that announce the same.
    pub link_bandwidth: Option<Bandwidth>,
    /// Communities to attach.
    pub communities: BTreeSet<CommunityReference>,
    /// Pools by name.
    pub pools: BTreeSet<String>,
    /// Pools by label. Without names and selectors: every pool, or none if it is about its prefixes alone.
    pub pool_selectors: Vec<LabelSelector>,
    /// Nodes that announce.
    pub node_selectors: Vec<LabelSelector>,
    /// Services that are announced.
    pub service_selectors: Vec<LabelSelector>,
    /// Names of BGPPeers that receive the routes; all when empty.
    pub peers: BTreeSet<String>,
    /// Prefixes that are originated regardless of Services. With any, and without `pools`,
    /// `pool_selectors` and `service_selectors`, it is about them alone.
    pub prefixes: Vec<Prefix>,
    /// Each node originates the networks of its Pods: these count as its `prefixes`.
    pub pod_cidrs: bool,
    /// Each node originates its blocks of addresses of Pods, and such addresses that it has of others' blocks.
    pub pod_blocks: bool,
    /// Only those of the IPPools with these names; all when empty.
    pub pod_block_pools: BTreeSet<String>,
    /// Nodes drop packets to its prefixes that nothing on them takes.
    pub blackhole: bool,
}

/// The value of an attribute that a route can have only one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SingleValue {
    /// LOCAL_PREF, MULTI_EXIT_DISC, or how often our AS is prepended.
    Number(u32),
    /// The link bandwidth.
    Bandwidth(Bandwidth),
}

/// Where two advertisements conflict about one route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The field of `spec`.
    pub field: &'static str,
    /// The value of the one.
    pub this: Option<SingleValue>,
    /// The value of the other.
    pub that: Option<SingleValue>,
}

impl BgpAdvertisement {
    /// Whether it is about the blocks of this IPPool.
    pub fn takes_pod_blocks_of(&self, pool: &str) -> bool {
        self.pod_blocks && (self.pod_block_pools.is_empty() || self.pod_block_pools.contains(pool))
    }

    /// Whether it is about its prefixes alone: it has some, and selects neither pools nor Services.
    ///
    /// `Ours:` without selectors an advertisement means every pool, as in MetalLB, which has no
    /// `prefixes`. One that lists prefixes would give its attributes to every Service then, and a
    /// community meant for one prefix, as BLACKHOLE, would take all of them down.
    pub fn is_about_prefixes_alone(&self) -> bool {
        (self.pod_cidrs || self.pod_blocks || !self.prefixes.is_empty())
            && self.pools.is_empty()
            && self.pool_selectors.is_empty()
            && self.service_selectors.is_empty()
    }

    /// Whether it announces addresses of `pool`, which has these labels.
    pub fn selects_pool(&self, pool: &str, labels: &Labels) -> bool {
        !self.is_about_prefixes_alone()
            && chooses_pool(&self.pools, &self.pool_selectors, pool, labels)
    }

    /// Whether it selects `service`.
    pub fn selects_service(&self, service: &Service) -> bool {
        any_matches(&self.service_selectors, &service.labels)
    }

    /// Whether a node with these labels announces it.
    pub fn selects_node(&self, labels: &Labels) -> bool {
        any_matches(&self.node_selectors, labels)
    }

    /// The first field in which it contradicts `other`: both cannot apply to one
    /// route. Communities never conflict, they add up.
    pub fn contradiction(&self, other: &Self) -> Option<Contradiction> {
        let pairs = self.single_values().into_iter().zip(other.single_values());
        let mut different = pairs.filter(|((_, this), (_, that))| this != that);
        let ((field, this), (_, that)) = different.next()?;
        Some(Contradiction { field, this, that })
    }

    fn single_values(&self) -> [(&'static str, Option<SingleValue>); 4] {
        let prepend = (self.as_path_prepend > 0).then(|| u32::from(self.as_path_prepend));
        [
            ("localPref", self.local_pref.map(SingleValue::Number)),
            ("med", self.med.map(SingleValue::Number)),
            ("asPathPrepend", prepend.map(SingleValue::Number)),
            ("linkBandwidth", self.link_bandwidth.map(SingleValue::Bandwidth)),
        ]
    }
}

impl fmt::Display for SingleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Bandwidth(Bandwidth::Auto) => f.write_str("auto"),
            Self::Bandwidth(Bandwidth::Fixed(bandwidth)) => bandwidth.bits_per_second.fmt(f),
        }
    }
}
