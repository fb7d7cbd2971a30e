//! The parts of a neighbour's settings that users and sessions have in common.

use std::fmt;
use std::num::NonZeroU8;
use std::sync::Arc;

use super::{Asn, Prefix, PrefixFilter, RouteRule};

/// Whether the neighbour is in our AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    /// iBGP.
    Internal,
    /// eBGP.
    External,
}

/// The AS that a neighbour must be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemoteAs {
    /// This one.
    Asn(Asn),
    /// Our own AS.
    Internal,
    /// Any but our own.
    External,
}

impl RemoteAs {
    /// Whether a neighbour with `asn` matches, if ours is `local`.
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

/// Neighbours that are accepted without being configured by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenRange {
    /// The range of their addresses.
    pub prefix: Prefix,
    /// How many of them may be connected at a time, at least 1.
    pub limit: u32,
}

impl ListenRange {
    /// The default limit.
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

/// How many prefixes a neighbour may announce, in each family (RFC 4486 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaximumPrefixes {
    /// The limit, at least 1. Exceeding it ends the session.
    pub limit: u32,
    /// The share of the limit that triggers a warning, 1 to 100 percent.
    pub warn_percent: u8,
    /// The most bytes of path attributes of all accepted routes, as they are in memory, each set counted once; from
    /// the limit if unset. Exceeding it ends the session, too.
    pub attribute_bytes: Option<u32>,
}

impl MaximumPrefixes {
    /// FRR's default for the warning, in percent.
    pub const WARN_PERCENT_DEFAULT: u8 = 75;

    /// Without `attribute_bytes`, for each prefix of the limit: some times what a full table takes.
    const ATTRIBUTE_BYTES_OF_PREFIX: u64 = 1024;
    /// Without `attribute_bytes`, at least.
    const ATTRIBUTE_BYTES_LEAST: u64 = 1 << 20;

    /// The most bytes of path attributes.
    pub fn attribute_bytes_max(self) -> u64 {
        let of_limit = u64::from(self.limit).saturating_mul(Self::ATTRIBUTE_BYTES_OF_PREFIX);
        self.attribute_bytes.map_or(of_limit.max(Self::ATTRIBUTE_BYTES_LEAST), u64::from)
    }

    /// The count that triggers a warning.
    pub fn warn_at(self) -> u32 {
        let share = u64::from(self.limit) * u64::from(self.warn_percent) / 100;
        u32::try_from(share).unwrap_or(self.limit).max(1)
    }
}

/// A neighbour whose routes are passed on in another way than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientKind {
    /// Of a route reflector: it receives the routes of internal neighbours, and they receive its routes (RFC 4456).
    Reflector,
    /// Of a route server: it receives routes as other external neighbours announced them (RFC 7947).
    RouteServer,
}

/// Which routes are accepted from a neighbour. None by default (RFC 8212).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportPolicy {
    /// The allowed prefixes.
    pub allowed: PrefixFilter,
    /// The limit. It counts after `allowed`, since rejected prefixes are not kept. Several paths to one
    /// prefix count as several, as in FRR and BIRD.
    pub maximum: Option<MaximumPrefixes>,
    /// How often our own AS may be in a path (FRR's `allowas-in`).
    pub own_as_max: u8,
    /// What happens to the routes that are accepted so far, in order.
    pub rules: Arc<[RouteRule]>,
    /// All routes that are refused are kept for operators (FRR's `soft-reconfiguration inbound`), and not only the first.
    pub keeps_filtered: bool,
}
