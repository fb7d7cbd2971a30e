//! An address of an interface.
//!
//! Knows its own attributes and its place among the addresses of the interface; which VRF that is in, is
//! [`crate::Machine`]'s. Made by [`crate::decode`].

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

/// An address of an interface, as the kernel last described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The number of the interface.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// The address at the other end, where the network is that end's (`ip address add ... peer`).
    pub peer: Option<IpAddr>,
    /// Bits of the network that it is on.
    pub prefix_length: u8,
    /// How far it can be used: 0 everywhere, 200 on this site, 253 on its link, 254 on this machine.
    pub scope: u8,
    /// Duplicate address detection still runs: nothing can be sent from it. The kernel lists such an IPv6
    /// address, but reports it only once the detection is over.
    pub is_tentative: bool,
    /// Duplicate address detection found another owner.
    pub has_failed_detection: bool,
    /// It is not for new connections: its preferred lifetime is over.
    pub is_deprecated: bool,
    /// The kernel removes it when its time is over, unless that is renewed.
    pub has_lifetime: bool,
    /// A second one of the same network (IPv4), or one that changes for privacy (IPv6): the kernel uses one
    /// flag for both.
    pub is_secondary_or_temporary: bool,
    /// When it was added to the interface, in hundredths of a second since the machine started.
    pub created_centiseconds: u32,
}

/// What identifies the address that a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressKey(IpAddr, Option<(IpAddr, u8)>);

/// The place of an address in the list of its interface.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(bool, bool, u32, Option<Ipv6Addr>);

impl Address {
    /// The network that it is on; `None` for a prefix length that the family does not have.
    pub fn network(&self) -> Option<IpNet> {
        IpNet::new(self.peer.unwrap_or(self.address), self.prefix_length).ok().map(|it| it.trunc())
    }

    /// Whether it can be advertised as a lasting address of this machine: it is usable now, and neither about
    /// to go nor made to change.
    pub fn is_settled(&self) -> bool {
        let is_temporary = self.address.is_ipv6() && self.is_secondary_or_temporary;
        // A lease of DHCP may be deprecated; an address without a network that is deprecated belongs to a program that
        // shares it with other machines, as layer 2 does.
        let is_alone = self.prefix_length == 32;
        let is_deprecated = self.is_deprecated && (self.address.is_ipv6() || is_alone);
        !(self.is_tentative || self.has_failed_detection || is_deprecated || is_temporary)
    }

    /// Whether it can be used from other links: neither loopback nor link-local.
    pub fn is_global(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
            IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
        }
    }

    /// An interface may have an IPv4 address several times, with other networks or ends; an IPv6 address
    /// once.
    pub(crate) fn key(&self) -> AddressKey {
        let network = (self.peer.unwrap_or(self.address), self.prefix_length);
        AddressKey(self.address, self.address.is_ipv4().then_some(network))
    }

    /// IPv4 first, as the kernel lists them: primary addresses, then secondary ones, each in the order in
    /// which they came. The kernel lists IPv6 addresses with the newest first; here the oldest is first, so
    /// that the first address stays the same when another is added.
    pub(crate) fn rank(&self) -> Rank {
        match self.address {
            IpAddr::V4(_) => Rank(false, self.is_secondary_or_temporary, 0, None),
            IpAddr::V6(address) => Rank(true, false, self.created_centiseconds, Some(address)),
        }
    }
}
