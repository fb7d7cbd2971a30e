//! Which addresses this end of a connection can be reached at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;

use crate::types::LocalNextHops;

/// The next hops that a connection from `local` may offer: its own address, and for the other
/// family the first global address of the same interface.
///
/// `Ours:` RFC 2545 §3 lets a link-local address go along on a shared subnet. We leave it out:
/// routers prefer it when it is there, and a global one is right on every topology.
pub(super) fn next_hops(local: IpAddr) -> LocalNextHops {
    let addresses = interface_addresses(local);
    let ipv4 = addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) if is_global_v4(*address) => Some(*address),
        _ => None,
    });
    let ipv6 = addresses.iter().find_map(|address| match address {
        IpAddr::V6(address) if is_global_v6(*address) => Some(*address),
        _ => None,
    });
    match local {
        IpAddr::V4(local) => LocalNextHops { ipv4: Some(local), ipv6, ipv6_link_local: None },
        IpAddr::V6(local) => LocalNextHops { ipv4, ipv6: Some(local), ipv6_link_local: None },
    }
}

/// All addresses of the interface that has `local`. None when the system does not tell: then only
/// the family of the connection has a next hop, which is said where it matters.
fn interface_addresses(local: IpAddr) -> Vec<IpAddr> {
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let all: Vec<(String, IpAddr)> = interfaces
        .filter_map(|it| {
            let storage = it.address?;
            let address = storage
                .as_sockaddr_in()
                .map(|address| IpAddr::V4(address.ip()))
                .or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))?;
            Some((it.interface_name, address))
        })
        .collect();
    let Some((name, _)) = all.iter().find(|(_, address)| *address == local) else {
        return Vec::new();
    };
    all.iter().filter(|(other, _)| other == name).map(|(_, address)| *address).collect()
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    !address.is_loopback() && !address.is_link_local() && !address.is_unspecified()
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    !address.is_loopback() && !address.is_unicast_link_local() && !address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_offers_its_own_address_and_no_loopback_for_the_other_family() {
        let hops = next_hops(IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(hops.ipv4, Some(Ipv4Addr::LOCALHOST));
        assert_eq!(hops.ipv6, None);
    }
}
