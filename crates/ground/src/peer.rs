//! The parts of a neighbour's settings that users and sessions have in common.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU8;

use super::{AddressFamily, Asn, NextHop, Prefix, PrefixFilter};

/// Whether the neighbour is in our AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    /// iBGP.
    Internal,
    /// eBGP.
    External,
}

/// Which AS a neighbour may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemoteAs {
    /// This one.
    Asn(Asn),
    /// Ours, whatever that is.
    Internal,
    /// Any but ours.
    External,
}

impl RemoteAs {
    /// Whether a neighbour that says `asn` is the one that is meant by us, in `local`.
    pub fn admits(self, local: Asn, asn: u32) -> bool {
        match self {
            Self::Asn(expected) => asn == expected.get(),
            Self::Internal => asn == local.get(),
            Self::External => asn != local.get() && asn != 0,
        }
    }
}

impl fmt::Display for RemoteAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asn(asn) => write!(f, "AS {asn}"),
            Self::Internal => f.write_str("our own AS"),
            Self::External => f.write_str("any AS but ours"),
        }
    }
}

/// Neighbours that are accepted without being named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenRange {
    /// Where they dial from.
    pub prefix: Prefix,
    /// How many of them there may be at a time, at least 1.
    pub limit: u32,
}

impl ListenRange {
    /// The limit when the operator does not say.
    pub const LIMIT_DEFAULT: u32 = 100;
}

/// Several paths to one prefix in one session (RFC 7911).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct AddPath {
    /// How many are sent, 1 to 16; `None` does not offer it.
    pub send: Option<NonZeroU8>,
    /// Whether several are accepted.
    pub receive: bool,
}

/// Next hops that the operator chose in place of this end's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChosenNextHops {
    /// For IPv4 routes.
    pub ipv4: Option<Ipv4Addr>,
    /// For IPv6 routes.
    pub ipv6: Option<Ipv6Addr>,
}

impl ChosenNextHops {
    /// The one for routes of `family`, if it was chosen.
    pub fn of(self, family: AddressFamily) -> Option<NextHop> {
        match family {
            AddressFamily::Ipv4Unicast => self.ipv4.map(NextHop::Ipv4),
            AddressFamily::Ipv6Unicast => self.ipv6.map(|address| NextHop::ipv6(address, None)),
        }
    }
}

/// How many prefixes a neighbour may announce, in each family (RFC 4486 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaximumPrefixes {
    /// One more ends the session. At least 1.
    pub limit: u32,
    /// The share of the limit at which a warning is due, 1 to 100.
    pub warn_percent: u8,
}

impl MaximumPrefixes {
    /// The share at which a warning is due when the operator does not say (FRR's default).
    pub const WARN_PERCENT_DEFAULT: u8 = 75;

    /// The count at which a warning is due.
    pub fn warn_at(self) -> u32 {
        let share = u64::from(self.limit) * u64::from(self.warn_percent) / 100;
        u32::try_from(share).unwrap_or(self.limit).max(1)
    }
}

/// What is accepted from a neighbour. By default nothing (RFC 8212).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportPolicy {
    /// Which prefixes.
    pub allowed: PrefixFilter,
    /// How many of them; counted after `allowed`, since what that refuses is not kept. Several
    /// paths to one prefix are several, as for FRR and BIRD.
    pub maximum: Option<MaximumPrefixes>,
}
