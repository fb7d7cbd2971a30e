//! The ports and addresses of BFD. The same on every machine except in tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairway_bfd::Port;

/// Where packets are received, and the ports that they are sent to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint {
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    /// Offset of the ports from those of the RFCs: of this system, and of the remote ones.
    offset: u16,
    remote_offset: u16,
}

impl Endpoint {
    /// All addresses, and the ports of the RFCs.
    pub(super) const STANDARD: Self =
        Self { v4: Ipv4Addr::UNSPECIFIED, v6: Ipv6Addr::UNSPECIFIED, offset: 0, remote_offset: 0 };

    /// One of several on the same machine.
    #[cfg(test)]
    pub(super) const fn test(v4: Ipv4Addr, offset: u16, remote_offset: u16) -> Self {
        Self { v4, v6: Ipv6Addr::UNSPECIFIED, offset, remote_offset }
    }

    /// The local port.
    pub(super) const fn number(self, port: Port) -> u16 {
        port.number().saturating_add(self.offset)
    }

    /// The remote port.
    pub(super) const fn remote_number(self, port: Port) -> u16 {
        port.number().saturating_add(self.remote_offset)
    }

    pub(super) const fn address(self, is_ipv4: bool) -> IpAddr {
        if is_ipv4 { IpAddr::V4(self.v4) } else { IpAddr::V6(self.v6) }
    }
}
