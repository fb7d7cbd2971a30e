//! The identity of a neighbour: its remote end and its VRF.

use std::fmt;
use std::net::IpAddr;

use super::{AddressFamily, InterfaceName, Prefix};

/// The remote end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remote {
    /// A neighbour with this address.
    Address(IpAddr),
    /// The only router on the link of this interface ("unnumbered").
    Interface(InterfaceName),
    /// Any neighbour with an address in this range. A range has no session: each of its neighbours has a key
    /// of its own.
    Range(Prefix),
    /// The default gateway of the machine in this family, as long as its address is not known: in a plan that is made
    /// elsewhere. It has no session.
    DefaultGateway(AddressFamily),
}

/// Identifies a neighbour on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey {
    /// The remote end.
    pub remote: Remote,
    /// The VRF of its session; the main table when `None`.
    pub vrf: Option<InterfaceName>,
}

impl PeerKey {
    /// The configured address. An unnumbered neighbour has none, a range has many.
    pub fn address(&self) -> Option<IpAddr> {
        match self.remote {
            Remote::Address(address) => Some(address),
            Remote::Interface(_) | Remote::Range(_) | Remote::DefaultGateway(_) => None,
        }
    }

    /// The interface of an unnumbered neighbour.
    pub fn interface(&self) -> Option<InterfaceName> {
        match self.remote {
            Remote::Interface(interface) => Some(interface),
            Remote::Address(_) | Remote::Range(_) | Remote::DefaultGateway(_) => None,
        }
    }

    /// Whether it is a range and not a single neighbour.
    pub fn is_range(&self) -> bool {
        matches!(self.remote, Remote::Range(_))
    }
}

impl From<IpAddr> for PeerKey {
    fn from(address: IpAddr) -> Self {
        Self { remote: Remote::Address(address), vrf: None }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Interface(interface) => interface.fmt(f),
            Self::Range(range) => range.fmt(f),
            Self::DefaultGateway(family) => write!(f, "{} default gateway", family.ip_version()),
        }
    }
}

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)?;
        self.vrf.map_or(Ok(()), |vrf| write!(f, " vrf {vrf}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_operators_say_them() {
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let key = PeerKey::from(address);
        assert_eq!((key.to_string().as_str(), key.address()), ("192.0.2.1", Some(address)));
        let vrf = "blue".parse().ok();
        assert_eq!(PeerKey { vrf, ..key }.to_string(), "192.0.2.1 vrf blue");
        let interface = "eth0".parse().unwrap();
        let unnumbered = PeerKey { remote: Remote::Interface(interface), vrf: None };
        assert_eq!((unnumbered.address(), unnumbered.interface()), (None, Some(interface)));
        let remote = Remote::DefaultGateway(AddressFamily::Ipv6Unicast);
        assert_eq!(PeerKey { remote, vrf }.to_string(), "IPv6 default gateway vrf blue");
    }
}
