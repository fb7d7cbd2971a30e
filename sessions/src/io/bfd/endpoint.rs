//! Where BFD is heard and said: ports and addresses. The same on every machine but in tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bfd::Port;

/// Addresses of the receive sockets, and how far the ports are from where the RFCs have them.
/// Sessions send to the same ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint {
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    port_offset: u16,
}

impl Endpoint {
    /// All addresses, and the ports of the RFCs.
    pub(super) const STANDARD: Self =
        Self { v4: Ipv4Addr::UNSPECIFIED, v6: Ipv6Addr::UNSPECIFIED, port_offset: 0 };

    /// One of many on the same machine: each has an address of its own.
    #[cfg(test)]
    pub(super) const fn test(v4: Ipv4Addr, v6: Ipv6Addr, port_offset: u16) -> Self {
        Self { v4, v6, port_offset }
    }

    pub(super) const fn number(self, port: Port) -> u16 {
        port.number().saturating_add(self.port_offset)
    }

    pub(super) const fn address(self, is_ipv4: bool) -> IpAddr {
        if is_ipv4 { IpAddr::V4(self.v4) } else { IpAddr::V6(self.v6) }
    }
}
