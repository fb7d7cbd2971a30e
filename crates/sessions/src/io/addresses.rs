//! Which addresses this machine can be reached at, interface by interface.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

use crate::types::{InterfaceName, LocalNextHops, Prefix};

/// Where the kernel lists its IPv6 addresses with their state, which getifaddrs does not tell.
const IPV6_ADDRESSES: &str = "/proc/net/if_inet6";
/// Where it lists its interfaces, each with the one above it.
const INTERFACES: &str = "/sys/class/net";
/// `IFA_F_TEMPORARY`, `IFA_F_DADFAILED`, `IFA_F_DEPRECATED`, `IFA_F_TENTATIVE`: not to be given to
/// others as the way to us.
const UNFIT_FLAGS: u8 = 0x01 | 0x08 | 0x20 | 0x40;

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InterfaceAddress {
    interface: String,
    /// The kernel's number of the interface, which is the scope of its link-local addresses; 0
    /// where there is none to tell apart.
    index: u32,
    address: IpAddr,
    /// The address at the other end, where the link has two ends and the network is that end's.
    other_end: Option<IpAddr>,
    /// Bits of the network that it is on.
    length: u8,
    /// Whether others may be given it as the way to us.
    is_fit: bool,
    /// The VRF that the interface is in, or is.
    vrf: Option<String>,
}

/// Our end of a connection, as the machine's addresses describe it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LocalEnd {
    /// What it may offer as next hops.
    pub(super) next_hops: LocalNextHops,
    /// The networks of all interfaces of its VRF: the session may run over the address of another
    /// one.
    pub(super) networks: Vec<Prefix>,
}

impl LocalEnd {
    /// The end at `local` in `vrf`. What the system does not tell is left out: then a session has a
    /// next hop for its own family only, until the system is asked again.
    pub(super) fn at(local: SocketAddr, vrf: Option<InterfaceName>) -> Self {
        Addresses::now().unwrap_or_default().end_at(local, vrf)
    }
}

/// All addresses at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Addresses(Vec<InterfaceAddress>);

impl Addresses {
    /// Asks the system. An error says nothing about the addresses: whoever knows earlier ones goes
    /// on with them.
    pub(super) fn now() -> io::Result<Self> {
        let ipv4 = getifaddrs()?.filter_map(ipv4_address);
        let table = ipv6_table(std::fs::read_to_string(IPV6_ADDRESSES))?;
        let addresses = ipv4.chain(table.lines().filter_map(ipv6_address));
        Ok(Self(
            addresses.map(|it| InterfaceAddress { vrf: vrf_of(&it.interface), ..it }).collect(),
        ))
    }

    /// The link-local addresses of the interface with this number that are settled.
    pub(super) fn link_local(&self, index: u32) -> Vec<Ipv6Addr> {
        let of_link = self.0.iter().filter(|it| it.is_fit && it.index == index);
        let link_local = of_link.filter_map(|it| match it.address {
            IpAddr::V6(address) if address.is_unicast_link_local() => Some(address),
            _ => None,
        });
        link_local.collect()
    }

    /// Whether `remote` is on a network of this machine, in `vrf`: also where our address there is
    /// not to be given to others.
    pub(super) fn are_beside(&self, remote: IpAddr, vrf: Option<InterfaceName>) -> bool {
        let mut networks = self.0.iter().filter(|it| it.is_in(vrf)).filter_map(|it| it.network());
        networks.any(|network| network.contains(remote))
    }

    /// The end of a connection from `local` in `vrf`: the next hops that it may offer are its own
    /// address, and for the other family the first global address of the same interface.
    ///
    /// `Ours:` RFC 2545 §3 lets a link-local address go along on a shared subnet. Where the session
    /// has global addresses we leave it out: routers prefer it when it is there, and a global one
    /// is right on every topology. A session over link-local addresses is about its link: its
    /// address is the next hop, beside a global one if the link has a network of its own.
    pub(super) fn end_at(&self, local: SocketAddr, vrf: Option<InterfaceName>) -> LocalEnd {
        let scope = match local {
            SocketAddr::V6(local) => local.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let local = local.ip();
        // Another VRF may use the same addresses for other things, and so may another link.
        let in_vrf = || self.0.iter().filter(|it| it.is_fit && it.is_in(vrf));
        let is_here = |it: &&InterfaceAddress| scope == 0 || it.index == scope;
        let own = in_vrf().filter(is_here).find(|it| it.address == local);
        let here = || {
            let same =
                |it: &&InterfaceAddress| own.is_some_and(|own| own.interface == it.interface);
            in_vrf().filter(same)
        };
        let mut next_hops = LocalNextHops {
            ipv4: here().find_map(|it| global_ipv4(it.address)),
            ipv6: here().find_map(|it| global_ipv6(it.address)),
            ..LocalNextHops::default()
        };
        match local {
            IpAddr::V4(local) => next_hops.ipv4 = Some(local),
            IpAddr::V6(local) if local.is_unicast_link_local() => {
                let shared = here().filter(|it| it.length < 128);
                next_hops.ipv6 = shared.filter_map(|it| global_ipv6(it.address)).next();
                next_hops.ipv6_link_local = Some(local);
            }
            IpAddr::V6(local) => next_hops.ipv6 = Some(local),
        }
        let networks = in_vrf().filter_map(InterfaceAddress::network);
        LocalEnd { next_hops, networks: networks.collect() }
    }
}

impl InterfaceAddress {
    /// The network that it is on.
    fn network(&self) -> Option<Prefix> {
        Prefix::new(self.other_end.unwrap_or(self.address), self.length).ok()
    }

    fn is_in(&self, vrf: Option<InterfaceName>) -> bool {
        match vrf {
            // The device of a VRF has its loopback address.
            Some(vrf) if self.interface == vrf.as_str() => true,
            vrf => self.vrf.as_deref() == vrf.as_ref().map(InterfaceName::as_str),
        }
    }
}

/// The VRF that an interface is in: the device above it, unless that is a bridge or a bond.
pub(super) fn vrf_of(interface: &str) -> Option<String> {
    let folder = Path::new(INTERFACES);
    let above = std::fs::read_link(folder.join(interface).join("master")).ok()?;
    let above = above.file_name()?.to_str()?;
    let mut others = ["bridge", "bonding"].iter();
    let is_vrf = !others.any(|kind| folder.join(above).join(kind).exists());
    is_vrf.then(|| above.to_owned())
}

/// A kernel without IPv6 has no list, and that is an answer; one that cannot be opened (there are
/// no descriptors left, say) is none.
fn ipv6_table(read: io::Result<String>) -> io::Result<String> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// An IPv4 address, as the system tells it.
fn ipv4_address(it: nix::ifaddrs::InterfaceAddress) -> Option<InterfaceAddress> {
    let ip = |it: &SockaddrStorage| Some(it.as_sockaddr_in()?.ip());
    let address = it.address.as_ref().and_then(ip)?;
    let ones = it.netmask.as_ref().and_then(ip).map_or(32, |mask| u32::from(mask).count_ones());
    let length = u8::try_from(ones).unwrap_or(32);
    // An interface that could have many others has the one in place of a broadcast address, which no
    // network of one address has.
    let other_end = it.destination.as_ref().or(it.broadcast.as_ref().filter(|_| length == 32));
    Some(InterfaceAddress {
        interface: it.interface_name,
        index: 0,
        address: IpAddr::V4(address),
        other_end: other_end.and_then(ip).map(IpAddr::V4),
        length,
        is_fit: true,
        vrf: None,
    })
}

/// A line of the kernel's list: address, interface index, prefix length, scope, flags, name; all
/// but the name in hexadecimal.
fn ipv6_address(line: &str) -> Option<InterfaceAddress> {
    let mut fields = line.split_whitespace();
    let address = u128::from_str_radix(fields.next()?, 16).ok()?;
    let index = u32::from_str_radix(fields.next()?, 16).ok()?;
    let length = u8::from_str_radix(fields.next()?, 16).ok()?;
    let flags = u8::from_str_radix(fields.nth(1)?, 16).ok()?;
    let interface = fields.next()?.to_owned();
    let address = IpAddr::V6(Ipv6Addr::from(address));
    let is_fit = flags & UNFIT_FLAGS == 0;
    Some(InterfaceAddress { interface, index, address, other_end: None, length, is_fit, vrf: None })
}

fn global_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) if !address.is_loopback() && !address.is_link_local() => Some(address),
        _ => None,
    }
}

fn global_ipv6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) if !address.is_loopback() && !address.is_unicast_link_local() => {
            Some(address)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_settled_are_not_offered() {
        let line = |flags: &str| {
            ipv6_address(&format!("20010db8000000000000000000000001 02 40 00 {flags}     eth0"))
        };
        let settled = line("80").unwrap();
        assert_eq!((settled.interface.as_str(), settled.length), ("eth0", 64));
        assert_eq!(settled.address, "2001:db8::1".parse::<IpAddr>().unwrap());
        assert!(settled.is_fit);
        let beside = "2001:db8::9".parse().unwrap();
        for flags in ["40", "c0", "20", "01", "08"] {
            let unfit = Addresses(vec![line(flags).unwrap()]);
            let end = unfit.end_at(socket("2001:db8::1", 0), None);
            assert_eq!(end.networks, Vec::new(), "flags {flags}");
            assert_eq!(unfit.link_local(2), Vec::<Ipv6Addr>::new(), "flags {flags}");
            assert!(unfit.are_beside(beside, None), "the link is what it is: flags {flags}");
        }
    }

    #[test]
    fn the_other_end_of_a_link_of_two_is_beside_us() {
        let socket_address = |text: &str| {
            let address: Ipv4Addr = text.parse().unwrap();
            Some(SockaddrStorage::from(SocketAddr::from((address, 0))))
        };
        let told = |mask: &str| nix::ifaddrs::InterfaceAddress {
            interface_name: "eth0".to_owned(),
            flags: nix::net::if_::InterfaceFlags::empty(),
            address: socket_address("10.0.0.1"),
            netmask: socket_address(mask),
            broadcast: None,
            destination: None,
        };
        let other_end = socket_address("10.9.0.2");
        let is_beside = |it, remote: &str| {
            let addresses = Addresses(vec![ipv4_address(it).unwrap()]);
            let end = addresses.end_at(([10, 0, 0, 1], 179).into(), None);
            assert_eq!(end.next_hops.ipv4, "10.0.0.1".parse().ok());
            addresses.are_beside(remote.parse().unwrap(), None)
        };
        let host = || told("255.255.255.255");
        assert!(!is_beside(host(), "10.9.0.2"));
        let tunnel = || nix::ifaddrs::InterfaceAddress { destination: other_end, ..host() };
        assert!(is_beside(tunnel(), "10.9.0.2") && !is_beside(tunnel(), "10.9.0.3"));
        let ethernet = || nix::ifaddrs::InterfaceAddress { broadcast: other_end, ..host() };
        assert!(is_beside(ethernet(), "10.9.0.2") && !is_beside(ethernet(), "10.9.0.3"));
        let shared = || nix::ifaddrs::InterfaceAddress {
            broadcast: socket_address("10.255.255.255"),
            ..told("255.255.255.0")
        };
        assert!(is_beside(shared(), "10.0.0.9") && !is_beside(shared(), "10.255.255.9"));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_an_empty_one() {
        let read = |kind: io::ErrorKind| ipv6_table(Err(kind.into())).ok();
        assert_eq!(read(io::ErrorKind::NotFound).as_deref(), Some(""));
        assert_eq!(read(io::ErrorKind::PermissionDenied), None);
        let no_descriptors = io::Error::from_raw_os_error(nix::libc::EMFILE);
        assert!(ipv6_table(Err(no_descriptors)).is_err());
        assert!(Addresses::now().is_ok());
    }

    fn at(interface: &str, address: &str, length: u8) -> InterfaceAddress {
        InterfaceAddress {
            interface: interface.to_owned(),
            index: interface.trim_start_matches(char::is_alphabetic).parse().unwrap_or(0),
            address: address.parse().unwrap(),
            other_end: None,
            length,
            is_fit: true,
            vrf: None,
        }
    }

    /// Link-local addresses have a scope.
    fn socket(address: &str, scope: u32) -> SocketAddr {
        let address: Ipv6Addr = address.parse().unwrap();
        std::net::SocketAddrV6::new(address, 179, 0, scope).into()
    }

    #[test]
    fn a_link_local_end_is_that_of_its_link() {
        let addresses = Addresses(vec![
            at("eth1", "fe80::1", 64),
            at("eth1", "2001:db8:1::1", 64),
            at("eth2", "2001:db8:2::ffff", 128),
            at("eth2", "fe80::1", 64),
            at("eth2", "192.0.2.1", 32),
        ]);
        let end = addresses.end_at(socket("fe80::1", 1), None).next_hops;
        let link_local = "fe80::1".parse().ok();
        assert_eq!((end.ipv6, end.ipv6_link_local), ("2001:db8:1::1".parse().ok(), link_local));
        let end = addresses.end_at(socket("fe80::1", 2), None).next_hops;
        assert_eq!((end.ipv6, end.ipv6_link_local), (None, link_local));
        assert_eq!(end.ipv4, "192.0.2.1".parse().ok());
    }

    #[test]
    fn the_other_family_comes_from_the_same_interface() {
        let addresses = Addresses(vec![
            at("lo", "127.0.0.1", 8),
            at("eth1", "2001:db8:1::1", 64),
            at("eth0", "10.0.0.1", 24),
            at("eth0", "fe80::1", 64),
            at("eth0", "2001:db8::1", 64),
        ]);
        let end_at =
            |local: &str| addresses.end_at((local.parse::<IpAddr>().unwrap(), 179).into(), None);
        let end = end_at("10.0.0.1");
        assert_eq!(end.next_hops.ipv6, "2001:db8::1".parse().ok());
        let networks: Vec<String> = end.networks.iter().map(ToString::to_string).collect();
        let all = ["127.0.0.0/8", "2001:db8:1::/64", "10.0.0.0/24", "fe80::/64", "2001:db8::/64"];
        assert_eq!(networks, all);
        assert_eq!(end_at("127.0.0.1").next_hops.ipv6, None);
        let unknown = end_at("192.0.2.9");
        assert_eq!(unknown.next_hops.ipv4, "192.0.2.9".parse().ok());
    }

    #[test]
    fn a_vrf_has_its_own_addresses_and_networks() {
        let at = |interface: &str, address: &str, vrf: Option<&str>| InterfaceAddress {
            vrf: vrf.map(str::to_owned),
            ..at(interface, address, 24)
        };
        let addresses = Addresses(vec![
            at("eth0", "10.0.0.1", None),
            at("eth0", "2001:db8::1", None),
            at("eth1", "10.0.0.1", Some("blue")),
            at("eth1", "2001:db8:b::1", Some("blue")),
            at("blue", "127.0.0.1", None),
            at("eth2", "10.9.0.1", Some("red")),
        ]);
        let end_at = |vrf: Option<&str>| {
            let vrf = vrf.map(|vrf| vrf.parse().unwrap());
            let end = addresses.end_at(([10, 0, 0, 1], 179).into(), vrf);
            (end.next_hops.ipv6.unwrap().to_string(), end.networks.len())
        };
        assert_eq!(end_at(None), ("2001:db8::1".to_owned(), 3));
        assert_eq!(end_at(Some("blue")), ("2001:db8:b::1".to_owned(), 3));
    }
}
