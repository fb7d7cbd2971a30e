//! Where a BMP station is, and what it is told.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The tables that a station is told the routes of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BmpTables {
    /// Routes as neighbours announce them (RFC 7854).
    pub adj_rib_in_pre_policy: bool,
    /// Routes as they are accepted.
    pub adj_rib_in_post_policy: bool,
    /// Routes as neighbours are sent them (RFC 8671).
    pub adj_rib_out_post_policy: bool,
    /// Routes as this node uses them (RFC 9069).
    pub loc_rib: bool,
}

impl BmpTables {
    /// None of them.
    pub const NONE: Self = Self {
        adj_rib_in_pre_policy: false,
        adj_rib_in_post_policy: false,
        adj_rib_out_post_policy: false,
        loc_rib: false,
    };
    /// What GoBGP and OpenBGPD report, too.
    pub const DEFAULT: Self = Self { adj_rib_in_pre_policy: true, ..Self::NONE };

    /// Those of either.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            adj_rib_in_pre_policy: self.adj_rib_in_pre_policy || other.adj_rib_in_pre_policy,
            adj_rib_in_post_policy: self.adj_rib_in_post_policy || other.adj_rib_in_post_policy,
            adj_rib_out_post_policy: self.adj_rib_out_post_policy || other.adj_rib_out_post_policy,
            loc_rib: self.loc_rib || other.loc_rib,
        }
    }
}

/// A station that collects messages of BMP over TCP (RFC 7854).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BmpStation {
    /// An IP address or a DNS name.
    pub host: Arc<str>,
    /// The TCP port.
    pub port: u16,
    /// What it is told.
    pub tables: BmpTables,
    /// Seconds between two reports of statistics; 0 for none.
    pub statistics_interval_seconds: u16,
}

impl BmpStation {
    /// GoBGP's default; IANA has assigned none (RFC 7854 §3.2).
    pub const PORT_DEFAULT: u16 = 11_019;
    /// The shortest time between two reports of statistics.
    pub const STATISTICS_INTERVAL_SECONDS_MIN: u16 = 5;
    /// The most stations of one node.
    pub const COUNT_MAX: usize = 8;

    /// Whether both are at the same place.
    pub fn is_at(&self, other: &Self) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }
}

impl fmt::Display for BmpStation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        match host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{port}"),
            Err(_) => write!(f, "{host}:{port}"),
        }
    }
}
