//! Which addresses this machine can be reached at, interface by interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;

use crate::types::LocalNextHops;

/// Where the kernel lists its IPv6 addresses with their state, which getifaddrs does not tell.
const IPV6_ADDRESSES: &str = "/proc/net/if_inet6";
/// `IFA_F_TEMPORARY`, `IFA_F_DADFAILED`, `IFA_F_DEPRECATED`, `IFA_F_TENTATIVE`: not to be given to
/// others as the way to us.
const UNFIT_FLAGS: u8 = 0x01 | 0x08 | 0x20 | 0x40;

/// All addresses at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Addresses(Vec<(String, IpAddr)>);

impl Addresses {
    /// Asks the system. What it does not tell is left out: then a session has a next hop for its
    /// own family only, which `show` says where it matters.
    pub(super) fn now() -> Self {
        let interfaces = getifaddrs().into_iter().flatten();
        let ipv4 = interfaces.filter_map(|it| {
            let address = it.address?.as_sockaddr_in()?.ip();
            Some((it.interface_name, IpAddr::V4(address)))
        });
        let table = std::fs::read_to_string(IPV6_ADDRESSES).unwrap_or_default();
        let ipv6 = table.lines().filter_map(ipv6_address);
        Self(ipv4.chain(ipv6.map(|(name, address)| (name, IpAddr::V6(address)))).collect())
    }

    /// The next hops that a connection from `local` may offer: its own address, and for the other
    /// family the first global address of the same interface.
    ///
    /// `Ours:` RFC 2545 §3 lets a link-local address go along on a shared subnet. We leave it out:
    /// routers prefer it when it is there, and a global one is right on every topology.
    pub(super) fn next_hops(&self, local: IpAddr) -> LocalNextHops {
        let interface = self.0.iter().find(|(_, address)| *address == local);
        let same = |name: &&(String, IpAddr)| interface.is_some_and(|(own, _)| *own == name.0);
        let here = || self.0.iter().filter(same).map(|(_, address)| *address);
        let mut next_hops = LocalNextHops {
            ipv4: here().find_map(global_ipv4),
            ipv6: here().find_map(global_ipv6),
            ipv6_link_local: None,
        };
        match local {
            IpAddr::V4(local) => next_hops.ipv4 = Some(local),
            IpAddr::V6(local) => next_hops.ipv6 = Some(local),
        }
        next_hops
    }
}

/// A line of the kernel's list: address, interface index, prefix length, scope, flags, name; all
/// but the name in hexadecimal.
fn ipv6_address(line: &str) -> Option<(String, Ipv6Addr)> {
    let mut fields = line.split_whitespace();
    let address = u128::from_str_radix(fields.next()?, 16).ok()?;
    let flags = u8::from_str_radix(fields.nth(3)?, 16).ok()?;
    let name = fields.next()?.to_owned();
    (flags & UNFIT_FLAGS == 0).then_some((name, Ipv6Addr::from(address)))
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
        assert_eq!(line("80"), Some(("eth0".to_owned(), "2001:db8::1".parse().unwrap())));
        for unfit in ["40", "c0", "20", "01", "08"] {
            assert_eq!(line(unfit), None, "flags {unfit}");
        }
    }

    #[test]
    fn the_other_family_comes_from_the_same_interface() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let addresses = Addresses(vec![
            ("lo".to_owned(), address("127.0.0.1")),
            ("eth1".to_owned(), address("2001:db8:1::1")),
            ("eth0".to_owned(), address("10.0.0.1")),
            ("eth0".to_owned(), address("fe80::1")),
            ("eth0".to_owned(), address("2001:db8::1")),
        ]);
        let next_hops = addresses.next_hops(address("10.0.0.1"));
        assert_eq!(next_hops.ipv6, "2001:db8::1".parse().ok());
        assert_eq!(addresses.next_hops(address("127.0.0.1")).ipv6, None);
        assert_eq!(addresses.next_hops(address("192.0.2.9")).ipv4, "192.0.2.9".parse().ok());
    }
}
