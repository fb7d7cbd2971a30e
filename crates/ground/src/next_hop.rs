//! Next hops: of routes, and of our end of a session.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AddressFamily, FamilySet};

/// The next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextHop {
    /// NEXT_HOP, or MP_REACH_NLRI with four octets.
    Ipv4(Ipv4Addr),
    /// MP_REACH_NLRI with a global address and, on a shared subnet, a link-local one (RFC 2545 §3).
    Ipv6 {
        /// The global address, or the link-local one if there is no other.
        global: Ipv6Addr,
        /// The link-local address in addition to a global one.
        link_local: Option<Ipv6Addr>,
    },
}

impl NextHop {
    /// The meaning of `first` and `second` of MP_REACH_NLRI. A router that has only a link-local address
    /// sends it in both places (FRR), alone, or after `::` (BIRD); all of that is one value here. A second
    /// address that is not link-local is ignored, as other routers do.
    pub fn ipv6(first: Ipv6Addr, second: Option<Ipv6Addr>) -> Self {
        match second.filter(Ipv6Addr::is_unicast_link_local) {
            Some(link_local) if first.is_unspecified() || first.is_unicast_link_local() => {
                Self::Ipv6 { global: link_local, link_local: None }
            }
            link_local => Self::Ipv6 { global: first, link_local },
        }
    }

    /// The main address.
    pub fn address(self) -> IpAddr {
        match self {
            Self::Ipv4(address) => IpAddr::V4(address),
            Self::Ipv6 { global, .. } => IpAddr::V6(global),
        }
    }

    /// Without the link-local address in addition to the global one.
    pub fn global_only(self) -> Self {
        match self {
            Self::Ipv6 { global, .. } => Self::Ipv6 { global, link_local: None },
            Self::Ipv4(_) => self,
        }
    }

    /// Whether it is valid on one link only.
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

/// The addresses of our end of a connection: the edge reads them from the interface of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalNextHops {
    /// For IPv4 routes.
    pub ipv4: Option<Ipv4Addr>,
    /// For IPv6 routes: the global address.
    pub ipv6: Option<Ipv6Addr>,
    /// The link-local address in addition, on a session over link-local addresses.
    pub ipv6_link_local: Option<Ipv6Addr>,
    /// Both sides support IPv6 next hops for IPv4 routes (RFC 8950).
    pub extended: bool,
    /// The session runs over IPv6: IPv4 routes get IPv6 next hops if that was negotiated.
    pub over_ipv6: bool,
}

impl LocalNextHops {
    /// The next hops that routes of `families` need, on a session from `local`. If the extended next hop was
    /// negotiated, a session over IPv6 needs no IPv4 address.
    pub fn agreed(self, families: FamilySet, extended: bool, local: IpAddr) -> Self {
        let needs_ipv4 = families.contains(AddressFamily::Ipv4Unicast);
        let needs_ipv6 = extended || families.contains(AddressFamily::Ipv6Unicast);
        Self {
            ipv4: self.ipv4.filter(|_| needs_ipv4),
            ipv6: self.ipv6.filter(|_| needs_ipv6),
            ipv6_link_local: self.ipv6_link_local.filter(|_| needs_ipv6),
            extended,
            over_ipv6: local.is_ipv6(),
        }
    }

    /// The next hop for routes of `family`, if this end has one.
    pub fn of(self, family: AddressFamily) -> Option<NextHop> {
        let by_ipv6 = self.extended && (self.over_ipv6 || self.ipv4.is_none());
        if family == AddressFamily::Ipv4Unicast && !by_ipv6 {
            return self.ipv4.map(NextHop::Ipv4);
        }
        let only_link_local = |link_local| NextHop::ipv6(link_local, None);
        match self.ipv6 {
            Some(global) => Some(NextHop::ipv6(global, self.ipv6_link_local)),
            None => self.ipv6_link_local.map(only_link_local),
        }
    }
}

/// Next hops that the operator chose instead of this end's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChosenNextHops {
    /// For IPv4 routes.
    pub ipv4: Option<Ipv4Addr>,
    /// For IPv6 routes.
    pub ipv6: Option<Ipv6Addr>,
}

impl ChosenNextHops {
    /// The chosen next hop for routes of `family`, if any.
    pub fn of(self, family: AddressFamily) -> Option<NextHop> {
        match family {
            AddressFamily::Ipv4Unicast => self.ipv4.map(NextHop::Ipv4),
            AddressFamily::Ipv6Unicast => self.ipv6.map(|address| NextHop::ipv6(address, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1);
    const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 1);

    #[test]
    fn all_ways_to_write_a_link_local_next_hop_are_one() {
        let only = NextHop::ipv6(LINK_LOCAL, None);
        assert_eq!(NextHop::ipv6(LINK_LOCAL, Some(LINK_LOCAL)), only);
        assert_eq!(NextHop::ipv6(Ipv6Addr::UNSPECIFIED, Some(LINK_LOCAL)), only);
        assert!(only.is_link_local());
        let both = NextHop::Ipv6 { global: GLOBAL, link_local: Some(LINK_LOCAL) };
        assert_eq!(NextHop::ipv6(GLOBAL, Some(LINK_LOCAL)), both);
        assert_eq!(NextHop::ipv6(GLOBAL, Some(GLOBAL)), NextHop::ipv6(GLOBAL, None));
        let nothing = NextHop::ipv6(Ipv6Addr::UNSPECIFIED, Some(GLOBAL));
        assert_eq!(nothing, NextHop::Ipv6 { global: Ipv6Addr::UNSPECIFIED, link_local: None });
    }

    #[test]
    fn ipv4_goes_by_ipv6_where_both_agreed_and_the_session_has_no_better() {
        let end = LocalNextHops {
            ipv4: Some([192, 0, 2, 1].into()),
            ipv6: Some(GLOBAL),
            ..LocalNextHops::default()
        };
        let ipv4 = Some(NextHop::Ipv4([192, 0, 2, 1].into()));
        let ipv6 = Some(NextHop::ipv6(GLOBAL, None));
        let of_ipv4 = |end: LocalNextHops, extended, local: IpAddr| {
            let agreed = end.agreed(FamilySet::BOTH, extended, local);
            assert_eq!(agreed.of(AddressFamily::Ipv6Unicast), ipv6);
            agreed.of(AddressFamily::Ipv4Unicast)
        };
        let (over_ipv4, over_ipv6) = ([192, 0, 2, 1].into(), GLOBAL.into());
        assert_eq!(of_ipv4(end, false, over_ipv6), ipv4);
        assert_eq!(of_ipv4(end, true, over_ipv6), ipv6);
        assert_eq!(of_ipv4(end, true, over_ipv4), ipv4);
        let without = LocalNextHops { ipv4: None, ..end };
        assert_eq!(of_ipv4(without, true, over_ipv4), ipv6);
        assert_eq!(of_ipv4(without, false, over_ipv6), None);
    }

    #[test]
    fn a_session_of_one_family_keeps_what_its_routes_need() {
        let end = LocalNextHops { ipv6_link_local: Some(LINK_LOCAL), ..LocalNextHops::default() };
        let only_ipv4 = FamilySet::only(AddressFamily::Ipv4Unicast);
        let local = LINK_LOCAL.into();
        let by_link_local = Some(NextHop::ipv6(LINK_LOCAL, None));
        let agreed = end.agreed(only_ipv4, true, local);
        assert_eq!(agreed.of(AddressFamily::Ipv4Unicast), by_link_local);
        let agreed = end.agreed(only_ipv4, false, local);
        assert_eq!(agreed.of(AddressFamily::Ipv4Unicast), None);
    }
}
