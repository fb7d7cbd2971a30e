//! The path attributes of a route (RFC 4271 §5).

use std::fmt;
use std::net::Ipv4Addr;

use fairway_ground::{
    AsPath, AsPathSegment, Community, ExtendedCommunity, LargeCommunity, NextHop,
};
use thin_vec::ThinVec;

/// The origin of a route (RFC 4271 §5.1.1), in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Interior to the originating AS.
    Igp,
    /// Learned through EGP.
    Egp,
    /// Learned by other means.
    Incomplete,
}

impl Origin {
    /// The name that FRR prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Igp => "IGP",
            Self::Egp => "EGP",
            Self::Incomplete => "incomplete",
        }
    }

    /// The code that tables print.
    pub fn code(self) -> char {
        match self {
            Self::Igp => 'i',
            Self::Egp => 'e',
            Self::Incomplete => '?',
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The system that formed an aggregate (RFC 4271 §5.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aggregator {
    /// Its AS.
    pub asn: u32,
    /// Its router ID.
    pub router: Ipv4Addr,
}

/// An attribute that Fairway does not interpret, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnknownAttribute {
    /// The flags octet as received, without the Extended Length bit.
    pub flags: u8,
    /// The type code.
    pub code: u8,
    /// The value.
    pub value: Vec<u8>,
}

impl UnknownAttribute {
    /// The type code of ORIGINATOR_ID (RFC 4456 §8).
    pub const ORIGINATOR_ID: u8 = 9;
    /// The type code of CLUSTER_LIST (RFC 4456 §8).
    pub const CLUSTER_LIST: u8 = 10;
}

/// The attributes of a route. Equal values encode to equal bytes: lists are sorted and without duplicates. Those that many routes
/// do not have take a word each: of a full table that is a tenth of all memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAttributes {
    /// ORIGIN.
    pub origin: Origin,
    /// AS_PATH.
    pub as_path: AsPath,
    /// NEXT_HOP, or the one of MP_REACH_NLRI.
    pub next_hop: NextHop,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// LOCAL_PREF, on iBGP.
    pub local_pref: Option<u32>,
    /// ATOMIC_AGGREGATE.
    pub atomic_aggregate: bool,
    /// AGGREGATOR.
    pub aggregator: Option<Aggregator>,
    /// COMMUNITIES, sorted.
    pub communities: ThinVec<Community>,
    /// EXTENDED_COMMUNITIES, sorted.
    pub extended_communities: ThinVec<ExtendedCommunity>,
    /// LARGE_COMMUNITIES, sorted.
    pub large_communities: ThinVec<LargeCommunity>,
    /// ONLY_TO_CUSTOMER: the AS since which the route may only be sent to customers (RFC 9234 §5).
    pub only_to_customer: Option<u32>,
    /// All other received attributes, in order of type code.
    pub unknown: ThinVec<UnknownAttribute>,
    /// Type codes of interpreted attributes with the Partial bit, which is sent on, in order (RFC 4271 §5).
    pub partial: ThinVec<u8>,
}

impl PathAttributes {
    /// What this takes in memory, in bytes.
    pub fn size_bytes(&self) -> u64 {
        let segments = self.as_path.0.iter().map(|segment| {
            let (AsPathSegment::Set(asns) | AsPathSegment::Sequence(asns)) = segment;
            size_of::<AsPathSegment>().saturating_add(size_of_val(&**asns))
        });
        let unknown = self
            .unknown
            .iter()
            .map(|it| size_of::<UnknownAttribute>().saturating_add(it.value.len()));
        let lists = [
            size_of_val(&*self.communities),
            size_of_val(&*self.extended_communities),
            size_of_val(&*self.large_communities),
            self.partial.len(),
        ];
        let sizes = segments.chain(unknown).chain(lists);
        let total = sizes.fold(size_of::<Self>(), usize::saturating_add);
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    /// A locally originated route: ORIGIN IGP and nothing optional.
    pub fn originated(as_path: AsPath, next_hop: NextHop) -> Self {
        Self {
            origin: Origin::Igp,
            as_path,
            next_hop,
            med: None,
            local_pref: None,
            atomic_aggregate: false,
            aggregator: None,
            communities: ThinVec::new(),
            extended_communities: ThinVec::new(),
            large_communities: ThinVec::new(),
            only_to_customer: None,
            unknown: ThinVec::new(),
            partial: ThinVec::new(),
        }
    }

    /// ORIGINATOR_ID: the router that brought the route into the AS (RFC 4456 §8).
    pub fn originator(&self) -> Option<Ipv4Addr> {
        let octets: [u8; 4] = self.unknown(UnknownAttribute::ORIGINATOR_ID).try_into().ok()?;
        Some(octets.into())
    }

    /// CLUSTER_LIST: the clusters that the route has passed, the last one first (RFC 4456 §8).
    pub fn clusters(&self) -> impl Iterator<Item = Ipv4Addr> {
        let (octets, _) = self.unknown(UnknownAttribute::CLUSTER_LIST).as_chunks::<4>();
        octets.iter().map(|it| Ipv4Addr::from(*it))
    }

    /// The value of an attribute that is kept as bytes; empty without it.
    fn unknown(&self, code: u8) -> &[u8] {
        self.unknown.iter().find(|it| it.code == code).map_or(&[], |it| &it.value)
    }

    /// The same with `community` added, if it is not there yet.
    pub fn with_community(&self, community: Community) -> Self {
        let mut attributes = self.clone();
        if !attributes.communities.contains(&community) {
            attributes.communities.push(community);
            attributes.communities.sort_unstable();
        }
        attributes
    }
}
