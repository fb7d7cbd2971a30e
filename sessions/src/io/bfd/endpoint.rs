//! Where BFD is heard and said: ports and addresses. The same on every machine but in tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bfd::PortKind;

/// Ports and addresses of the receive sockets; sessions send to the same ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint {
    pub(super) v4: Ipv4Addr,
    pub(super) v6: Ipv6Addr,
    /// RFC 5881 §4.
    pub(super) single_hop: u16,
    /// RFC 5883 §5.
    pub(super) multihop: u16,
    /// RFC 5881 §4.
    pub(super) echo: u16,
}

impl Endpoint {
    /// What the RFCs say, at all addresses.
    pub(super) const STANDARD: Self = Self {
        v4: Ipv4Addr::UNSPECIFIED,
        v6: Ipv6Addr::UNSPECIFIED,
        single_hop: 3784,
        multihop: 4784,
        echo: 3785,
    };

    pub(super) const fn port(self, kind: PortKind) -> u16 {
        match kind {
            PortKind::SingleHop => self.single_hop,
            PortKind::Multihop => self.multihop,
            PortKind::Echo => self.echo,
        }
    }

    pub(super) const fn address(self, is_ipv4: bool) -> IpAddr {
        if is_ipv4 { IpAddr::V4(self.v4) } else { IpAddr::V6(self.v6) }
    }
}
