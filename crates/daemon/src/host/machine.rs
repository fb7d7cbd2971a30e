//! What the machine provides: its name, its addresses, a seed, file descriptors.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::fs::OFlags;
use tokio::signal::unix::{SignalKind, signal};
use tracing::debug;

/// The host name, the default name of the node.
pub(crate) fn host_name() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok().filter(|name| !name.is_empty())
}

/// The machine's IPv4 addresses that other machines could reach, for a node without a Node object. First the
/// source address of the default route, since that makes a good router ID: bridges of container engines have
/// the same address on every machine.
pub(crate) fn addresses() -> Vec<IpAddr> {
    let interfaces = getifaddrs().into_iter().flatten();
    let ipv4 = interfaces.filter_map(|it| Some(it.address?.as_sockaddr_in()?.ip()));
    let reachable = ipv4.filter(|it: &Ipv4Addr| !it.is_loopback() && !it.is_link_local());
    // The kernel lists interfaces in the order they came up, so hardware before bridges.
    let mut addresses: Vec<IpAddr> = outward_address().into_iter().collect();
    for address in reachable.map(IpAddr::V4) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The source address of the default route. Connecting a datagram socket sends nothing.
fn outward_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // A documentation address: the route to it is the default route.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Signals that other programs send to reopen a log or as a timer end no daemon: their default action would.
pub(crate) fn outlive_signals() -> io::Result<()> {
    // A handler stays after its stream is dropped.
    let kinds = [
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
        SignalKind::io(),
    ];
    kinds.into_iter().try_for_each(|kind| signal(kind).map(drop))
}

/// Opens a file for reading, and never waits: for a writer of a pipe, or for another process with a lease.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// The kernel's boot ID.
pub(crate) fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Raises the limit to what the system allows: a socket for each neighbour and some to spare.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        debug!(%error, soft, "cannot raise the limit of open files");
    }
}

/// A number that differs from start to start, for the jitter of timers.
pub(crate) fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
