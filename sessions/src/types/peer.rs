//! What an operator wants of one neighbour.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::{Asn, FamilySet, HoldTime, Password, PrefixFilter, RouterId};

/// How a neighbour is named: by its address. (Interfaces and VRFs join when those come.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey(pub IpAddr);

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether the neighbour is in our AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    /// iBGP.
    Internal,
    /// eBGP.
    External,
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
    /// How many of them; counted after `allowed`, since what that refuses is not kept.
    pub maximum: Option<MaximumPrefixes>,
}

/// The desired settings of one neighbour, valid by construction: `resources` checks what users
/// write before it becomes this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    /// The neighbour.
    pub key: PeerKey,
    /// The operator's name for it; shown, and what advertisements refer to.
    pub name: String,
    /// Our AS towards it.
    pub local_asn: Asn,
    /// Its AS.
    pub remote_asn: Asn,
    /// Our BGP identifier towards it.
    pub router_id: RouterId,
    /// The port that is dialled, 1 to 65535.
    pub port: u16,
    /// The address that is dialled from; the kernel chooses when `None`.
    pub source_address: Option<IpAddr>,
    /// What we offer in OPEN.
    pub hold_time: HoldTime,
    /// Our keepalive interval; the smaller of this and a third of the negotiated hold time is
    /// used (RFC 4271 §4.4). `None` is a third.
    pub keepalive_interval: Option<Duration>,
    /// The most time between two attempts to connect.
    pub connect_retry_interval: Duration,
    /// How long a connection waits for the neighbour's OPEN before it sends ours (RFC 4271 §8.1.1,
    /// DelayOpen). `None` is not at all, and what the daemon sets: no resource has a field for it.
    pub delay_open_time: Option<Duration>,
    /// The TCP-MD5 key.
    pub password: Option<Password>,
    /// Whether the neighbour may be more than one hop away; else external packets leave with a
    /// TTL of 1.
    pub multihop: bool,
    /// The families that we offer.
    pub families: FamilySet,
    /// What is accepted from it.
    pub import: ImportPolicy,
    /// Which learned routes it is told, beside those that name it.
    pub pass_on: PrefixFilter,
}

impl PeerConfig {
    /// How long to wait between two attempts to connect at most, when the operator does not say.
    pub const CONNECT_RETRY_INTERVAL_DEFAULT: Duration = Duration::from_secs(5);

    /// iBGP or eBGP.
    pub fn kind(&self) -> PeerKind {
        if self.local_asn == self.remote_asn { PeerKind::Internal } else { PeerKind::External }
    }

    /// TTL (or hop limit) of our packets: 1 for a neighbour that must be next door.
    pub fn ttl(&self) -> u8 {
        match self.kind() {
            PeerKind::External if !self.multihop => 1,
            // The kernel's default, said aloud so that a listener's own setting never leaks in.
            _ => 64,
        }
    }

    /// Whether going from `self` to `wanted` needs a new session. Everything that an OPEN or a
    /// socket fixed does; names and timers that only we use do not.
    pub fn needs_reset(&self, wanted: &Self) -> bool {
        let Self {
            key,
            name: _,
            local_asn,
            remote_asn,
            router_id,
            port,
            source_address,
            hold_time,
            keepalive_interval: _,
            connect_retry_interval: _,
            delay_open_time: _,
            password,
            multihop: _,
            families,
            import: _,
            pass_on: _,
        } = self;
        *key != wanted.key
            || *local_asn != wanted.local_asn
            || *remote_asn != wanted.remote_asn
            || *router_id != wanted.router_id
            || *port != wanted.port
            || *source_address != wanted.source_address
            || *hold_time != wanted.hold_time
            || *password != wanted.password
            || self.ttl() != wanted.ttl()
            || *families != wanted.families
    }
}

#[cfg(test)]
impl PeerConfig {
    /// The settings of speaker `number` (1 or 2) towards the other of a pair, for tests: AS 65001
    /// and 65002, hold time 9 s, both families.
    pub(crate) fn example(number: u8) -> Self {
        let asn = |number: u8| Asn::new(65_000 + u32::from(number)).unwrap();
        Self {
            key: PeerKey([192, 0, 2, 3 - number].into()),
            name: format!("peer-{number}"),
            local_asn: asn(number),
            remote_asn: asn(3 - number),
            router_id: RouterId::new(u32::from(number)).unwrap(),
            port: 179,
            source_address: None,
            hold_time: HoldTime::from_seconds(9).unwrap(),
            keepalive_interval: None,
            connect_retry_interval: Self::CONNECT_RETRY_INTERVAL_DEFAULT,
            delay_open_time: None,
            password: None,
            multihop: false,
            families: FamilySet::BOTH,
            import: ImportPolicy { allowed: PrefixFilter::Everything, maximum: None },
            pass_on: PrefixFilter::Nothing,
        }
    }
}
