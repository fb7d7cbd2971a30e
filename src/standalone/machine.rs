//! What only the machine can tell: its name, its addresses, a seed.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};

use nix::ifaddrs::getifaddrs;

/// The host name, the default name of the node.
pub(crate) fn host_name() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok().filter(|name| !name.is_empty())
}

/// The machine's addresses that others could reach, for a node that no Node object describes.
/// Sorted, so that the order of interfaces does not decide about the router ID.
pub(super) fn addresses() -> Vec<IpAddr> {
    let interfaces = getifaddrs().into_iter().flatten();
    let ipv4 = interfaces.filter_map(|it| Some(it.address?.as_sockaddr_in()?.ip()));
    let mut addresses: Vec<IpAddr> = ipv4
        .filter(|it: &Ipv4Addr| !it.is_loopback() && !it.is_link_local())
        .map(IpAddr::V4)
        .collect();
    addresses.sort();
    addresses
}

/// A number that differs from start to start, for the jitter of timers.
pub(super) fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
