//! Next hops: what a route carries, and what a session may offer.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AddressFamily, FamilySet};

/// The next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextHop {
    /// NEXT_HOP, or MP_REACH_NLRI with four octets.
    Ipv4(Ipv4Addr),
    /// MP_REACH_NLRI with a global address and, on a shared subnet, a link-local one beside it
    /// (RFC 2545 §3).
    Ipv6 {
        /// The global address.
        global: Ipv6Addr,
        /// The link-local address.
        link_local: Option<Ipv6Addr>,
    },
}

impl NextHop {
    /// The address that names it.
    pub fn address(self) -> IpAddr {
        match self {
            Self::Ipv4(address) => IpAddr::V4(address),
            Self::Ipv6 { global, .. } => IpAddr::V6(global),
        }
    }

    /// Without the half that is for one link.
    pub fn global_only(self) -> Self {
        match self {
            Self::Ipv6 { global, .. } => Self::Ipv6 { global, link_local: None },
            Self::Ipv4(_) => self,
        }
    }

    /// Whether it means something on one link only.
    pub fn is_link_local(self) -> bool {
        match self.address() {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// What this end of one connection can be reached at: the edge reads it from the interface that
/// the connection runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalNextHops {
    /// For IPv4 routes.
    pub ipv4: Option<Ipv4Addr>,
    /// For IPv6 routes: the global address.
    pub ipv6: Option<Ipv6Addr>,
    /// The link-local address that goes with it.
    pub ipv6_link_local: Option<Ipv6Addr>,
}

impl LocalNextHops {
    /// Only those that routes of `families` need.
    pub fn only(self, families: FamilySet) -> Self {
        let has_ipv6 = families.contains(AddressFamily::Ipv6Unicast);
        Self {
            ipv4: self.ipv4.filter(|_| families.contains(AddressFamily::Ipv4Unicast)),
            ipv6: self.ipv6.filter(|_| has_ipv6),
            ipv6_link_local: self.ipv6_link_local.filter(|_| has_ipv6),
        }
    }

    /// The next hop for routes of `family`, if this end has one.
    pub fn of(self, family: AddressFamily) -> Option<NextHop> {
        match family {
            AddressFamily::Ipv4Unicast => self.ipv4.map(NextHop::Ipv4),
            AddressFamily::Ipv6Unicast => {
                self.ipv6.map(|global| NextHop::Ipv6 { global, link_local: self.ipv6_link_local })
            }
        }
    }
}
