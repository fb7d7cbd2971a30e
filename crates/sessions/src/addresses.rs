//! The addresses at which this machine can be reached, by interface.
//!
//! Decides from the kernel's description of the machine ([`Machine`]), which [`AddressWatch`] follows, and
//! from nothing else.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use fairway_netlink::{Address, Machine, Scope, Watch};
use tracing::{info, warn};

use fairway_ground::{InterfaceName, LocalNextHops, Prefix};

/// Where the kernel lists its interfaces, each with the one above it.
const INTERFACES: &str = "/sys/class/net";

/// The machine's addresses, which the kernel reports as they change. The first query opens it, and each
/// query after that failed tries again.
#[derive(Debug, Default)]
pub(super) struct AddressWatch {
    watch: Option<Watch>,
    /// A failure to open it is logged once, and so is its recovery.
    has_failed: bool,
}

impl AddressWatch {
    /// All addresses now. An error says nothing about the addresses: a caller that knows earlier ones keeps
    /// them.
    pub(super) fn addresses(&mut self) -> io::Result<Addresses> {
        if let Some(watch) = &self.watch {
            return Ok(Addresses::of(&watch.snapshot()));
        }
        match Watch::open(Scope::default()) {
            Ok(watch) => {
                if std::mem::take(&mut self.has_failed) {
                    info!("reading the addresses of this machine works again");
                }
                Ok(Addresses::of(&self.watch.insert(watch).snapshot()))
            }
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    warn!(
                        %error,
                        "cannot read the addresses of this machine (rtnetlink): next hops stay as they \
                         are; trying again every two seconds"
                    );
                }
                Err(error)
            }
        }
    }

    /// Waits until an interface or an address has changed. Cancel-safe; never resolves before the first
    /// query.
    pub(super) async fn changed(&mut self) {
        match &mut self.watch {
            Some(watch) => {
                watch.changed().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InterfaceAddress {
    interface: String,
    /// The kernel's number of the interface, which is the scope of its link-local addresses.
    index: u32,
    address: IpAddr,
    /// The address at the other end, where the link has two ends and the network is that end's.
    other_end: Option<IpAddr>,
    /// Bits of the network that it is on.
    length: u8,
    /// Whether it may be advertised as a next hop.
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
    /// interface.
    pub(super) networks: Vec<Prefix>,
}

impl LocalEnd {
    /// The end at `local` in `vrf`. What the system does not report is left out: then a session has a
    /// next hop for its own family only, until the next query.
    pub(super) fn at(local: SocketAddr, vrf: Option<InterfaceName>) -> Self {
        Addresses::now().unwrap_or_default().end_at(local, vrf)
    }
}

/// All addresses at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Addresses(Vec<InterfaceAddress>);

impl Addresses {
    /// Queries the system. An error says nothing about the addresses: a caller that knows earlier ones
    /// keeps them.
    pub(super) fn now() -> io::Result<Self> {
        fairway_netlink::read(Scope::default()).map(|machine| Self::of(&machine))
    }

    /// Those of `machine`, by interface. An address of an interface that is not described belongs to one
    /// that is about to come or go.
    pub(super) fn of(machine: &Machine) -> Self {
        let addresses = machine.addresses().filter_map(|it| {
            let interface = machine.link(it.index)?.name.clone();
            let vrf = machine.vrf_of(it.index).filter(|vrf| vrf.index != it.index);
            Some(interface_address(it, interface, vrf.map(|vrf| vrf.name.clone())))
        });
        Self(addresses.collect())
    }

    /// Whether `remote` is on a network of this machine, in `vrf`: also where our address there must
    /// not be advertised.
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

/// An address, as the kernel describes it.
fn interface_address(it: &Address, interface: String, vrf: Option<String>) -> InterfaceAddress {
    let Address { index, address, peer: other_end, prefix_length: length, .. } = *it;
    InterfaceAddress { interface, index, address, other_end, length, is_fit: it.is_settled(), vrf }
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
    use fairway_netlink::{Fact, Link};

    use super::*;

    fn link(index: u32) -> Link {
        Link {
            index,
            name: format!("eth{index}"),
            alternative_names: Vec::new(),
            kind: None,
            is_up: true,
            has_carrier: true,
            is_loopback: false,
            resolves_addresses: true,
            mtu_bytes: 1500,
            mac: None,
            master: None,
            vrf_table: None,
        }
    }

    fn address(index: u32, address: &str, prefix_length: u8) -> Address {
        Address {
            index,
            address: address.parse().unwrap(),
            peer: None,
            prefix_length,
            scope: 0,
            is_tentative: false,
            has_failed_detection: false,
            is_deprecated: false,
            has_lifetime: false,
            is_secondary_or_temporary: false,
            created_centiseconds: 0,
        }
    }

    fn of(facts: impl IntoIterator<Item = Fact>) -> Addresses {
        Addresses::of(&facts.into_iter().collect())
    }

    #[test]
    fn addresses_that_are_not_settled_are_not_offered() {
        let settled = address(2, "2001:db8::1", 64);
        let known = of([Fact::Link(link(2)), Fact::Address(settled.clone())]);
        let end = known.end_at(socket("2001:db8::1", 0), None);
        assert_eq!(end.networks, ["2001:db8::/64".parse().unwrap()]);
        let beside = "2001:db8::9".parse().unwrap();
        let link_local = address(2, "fe80::1", 64);
        type Flag = fn(&mut Address);
        let flags: [Flag; 4] = [
            |it| it.is_tentative = true,
            |it| it.is_deprecated = true,
            |it| it.is_secondary_or_temporary = true,
            |it| it.has_failed_detection = true,
        ];
        for (number, flag) in flags.iter().enumerate() {
            let unfit = [&settled, &link_local].map(|it| {
                let mut unfit = it.clone();
                flag(&mut unfit);
                Fact::Address(unfit)
            });
            let machine: Machine = [Fact::Link(link(2))].into_iter().chain(unfit).collect();
            let unfit = Addresses::of(&machine);
            let end = unfit.end_at(socket("2001:db8::1", 0), None);
            assert_eq!(end.networks, Vec::new(), "flag {number}");
            assert_eq!(machine.link_local(2).count(), 0, "flag {number}");
            assert!(unfit.are_beside(beside, None), "the link is what it is: flag {number}");
        }
        let fit: Machine = [Fact::Link(link(2)), Fact::Address(link_local)].into_iter().collect();
        assert_eq!(fit.link_local(2).count(), 1);
    }

    #[test]
    fn the_other_end_of_a_link_of_two_is_beside_us() {
        let is_beside = |length: u8, other_end: Option<&str>, remote: &str| {
            let peer = other_end.map(|it| it.parse().unwrap());
            let address = Address { peer, ..address(2, "10.0.0.1", length) };
            let addresses = of([Fact::Link(link(2)), Fact::Address(address)]);
            let end = addresses.end_at(([10, 0, 0, 1], 179).into(), None);
            assert_eq!(end.next_hops.ipv4, "10.0.0.1".parse().ok());
            addresses.are_beside(remote.parse().unwrap(), None)
        };
        let other_end = Some("10.9.0.2");
        assert!(!is_beside(32, None, "10.9.0.2"));
        assert!(is_beside(32, other_end, "10.9.0.2") && !is_beside(32, other_end, "10.9.0.3"));
        assert!(is_beside(24, None, "10.0.0.9") && !is_beside(24, None, "10.255.255.9"));
    }

    #[test]
    fn a_port_of_a_vrf_is_in_it_and_a_port_of_a_bridge_is_not() {
        let vrf = Link { kind: Some("vrf".to_owned()), vrf_table: Some(10), ..link(8) };
        let bridge = Link { kind: Some("bridge".to_owned()), ..link(9) };
        let of_vrf = Link { master: Some(8), ..link(2) };
        let of_bridge = Link { master: Some(9), ..link(3) };
        let links = [vrf, bridge, of_vrf, of_bridge].map(Fact::Link);
        let addresses =
            [address(2, "10.2.0.1", 24), address(3, "10.3.0.1", 24), address(8, "10.8.0.1", 24)];
        let addresses = of(links.into_iter().chain(addresses.map(Fact::Address)));
        let vrf = Some("eth8".parse().unwrap());
        let are_beside = |octet, vrf| addresses.are_beside([10, octet, 0, 9].into(), vrf);
        assert!(are_beside(2, vrf) && are_beside(8, vrf) && !are_beside(3, vrf));
        assert!(!are_beside(2, None) && are_beside(3, None));
    }

    #[tokio::test]
    async fn the_system_says_what_it_has() {
        let once = Addresses::now().unwrap();
        assert!(once.are_beside([127, 0, 0, 9].into(), None));
        assert_eq!(AddressWatch::default().addresses().unwrap(), once);
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
