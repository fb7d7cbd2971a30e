//! Socket options that BGP needs, typed. The only unsafe code of the project is here: `nix` has no
//! wrapper for some of them.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::unix::AsyncFd;

use crate::types::{InterfaceName, Password, Prefix};

/// DSCP CS6 (network control), where routers expect their own protocols.
const TRAFFIC_CLASS: libc::c_int = 0xC0;

/// `ICMP6_FILTER` (RFC 3542 §3.2).
const ICMP6_FILTER: libc::c_int = 1;

/// Size of the kernel's `struct tcp_md5sig`: a socket address (128), flags, prefix length, key
/// length (2), interface (4), key (80).
const MD5_LENGTH_BYTES: usize = 216;
/// Where its flags and its prefix length are; `TCP_MD5SIG_EXT` reads them.
const MD5_FLAGS: Range<usize> = 128..130;
/// `TCP_MD5SIG_FLAG_PREFIX`.
const MD5_FLAG_PREFIX: u8 = 1;

/// The longest headers of a SYN: 40 bytes of IPv6, its extensions, 60 of TCP.
const SYN_LENGTH_BYTES_MAX: usize = 512;

/// Sets the TCP-MD5 key for everything exchanged with `peer` (RFC 2385); `None` takes it away.
/// On a listener it must be there before the first SYN.
pub(super) fn set_md5(
    socket: &impl AsFd,
    peer: IpAddr,
    key: Option<&Password>,
) -> Result<(), Errno> {
    let value = md5_option(peer, key.map_or(&[], Password::expose)).ok_or(Errno::EINVAL)?;
    match set_bytes(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG, &value) {
        // There was no key to take away.
        Err(Errno::ENOENT) if key.is_none() => Ok(()),
        outcome => outcome,
    }
}

/// Sets the TCP-MD5 key for whoever dials from `range`; `None` takes it away. A neighbour with a
/// key of its own keeps that: the kernel takes the key of the smallest range. One without any is
/// held to the key of the range, since the kernel cannot be told of an exception.
pub(super) fn set_md5_range(
    socket: &impl AsFd,
    range: Prefix,
    key: Option<&Password>,
) -> Result<(), Errno> {
    let mut value =
        md5_option(range.address(), key.map_or(&[], Password::expose)).ok_or(Errno::EINVAL)?;
    if let Some(flags) = value.get_mut(MD5_FLAGS) {
        flags.copy_from_slice(&[MD5_FLAG_PREFIX, range.length()]);
    }
    match set_bytes(socket, libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT, &value) {
        Err(Errno::ENOENT) if key.is_none() => Ok(()),
        outcome => outcome,
    }
}

/// Drops what arrives at a socket of the family of `address` with a TTL (or hop limit) of less
/// than `least` (RFC 5082 §3); 0 lets everything in.
pub(super) fn set_ttl_min(socket: &impl AsFd, address: IpAddr, least: u8) -> Result<(), Errno> {
    let (level, option) = match address {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MINTTL),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT),
    };
    set_bytes(socket, level, option, &libc::c_int::from(least).to_ne_bytes())
}

/// Keeps a socket to `device`: the interfaces of a VRF, where that is one.
pub(super) fn set_device(socket: &impl AsFd, device: InterfaceName) -> Result<(), Errno> {
    setsockopt(socket, sockopt::BindToDevice, &device.as_str().into())
}

/// Makes a listener keep the SYN of each connection, for [`syn_ttl`] to look at.
pub(super) fn keep_syn(listener: &impl AsFd) -> Result<(), Errno> {
    set_bytes(listener, libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, &1_i32.to_ne_bytes())
}

/// The TTL (or hop limit) that the SYN of an accepted connection arrived with. It can be asked
/// once.
pub(super) fn syn_ttl(socket: &impl AsFd) -> Result<u8, Errno> {
    let mut header = [0_u8; SYN_LENGTH_BYTES_MAX];
    let mut length = libc::socklen_t::try_from(header.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the kernel writes at
    // most `length` bytes to `header` and their number to `length`, which both outlive the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_SAVED_SYN,
            header.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    Errno::result(outcome)?;
    let header = usize::try_from(length).ok().and_then(|length| header.get(..length));
    let header = header.unwrap_or_default();
    // The version is in the first four bits of either header.
    let position = match header.first().map(|byte| byte >> 4) {
        Some(4) => 8,
        Some(6) => 7,
        _ => return Err(Errno::ENODATA),
    };
    header.get(position).copied().ok_or(Errno::ENODATA)
}

fn set_bytes(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads
    // `length` bytes from `value`, which lives until the call returns.
    let outcome = unsafe {
        let value = value.as_ptr().cast();
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value, length)
    };
    Errno::result(outcome).map(drop)
}

/// The bytes of `struct tcp_md5sig`, which is part of the kernel's stable interface.
fn md5_option(peer: IpAddr, key: &[u8]) -> Option<[u8; MD5_LENGTH_BYTES]> {
    let mut option = [0; MD5_LENGTH_BYTES];
    let mut put = |at: usize, bytes: &[u8]| -> Option<()> {
        option.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
        Some(())
    };
    match peer {
        IpAddr::V4(address) => {
            put(0, &u16::try_from(libc::AF_INET).ok()?.to_ne_bytes())?;
            put(4, &address.octets())?;
        }
        IpAddr::V6(address) => {
            put(0, &u16::try_from(libc::AF_INET6).ok()?.to_ne_bytes())?;
            put(8, &address.octets())?;
        }
    }
    put(130, &u16::try_from(key.len()).ok()?.to_ne_bytes())?;
    put(136, key)?;
    Some(option)
}

/// TTL (hop limit) and traffic class of what leaves a socket of the family of `local`.
pub(super) fn set_network(socket: &impl AsFd, local: IpAddr, ttl: u8) -> Result<(), Errno> {
    let ttl = libc::c_int::from(ttl);
    match local {
        IpAddr::V4(_) => {
            setsockopt(socket, sockopt::Ipv4Ttl, &ttl)?;
            setsockopt(socket, sockopt::Ipv4Tos, &TRAFFIC_CLASS)
        }
        IpAddr::V6(_) => {
            setsockopt(socket, sockopt::Ipv6Ttl, &ttl)?;
            setsockopt(socket, sockopt::Ipv6TClass, &TRAFFIC_CLASS)
        }
    }
}

/// Lets the kernel find out about a neighbour that is gone, for sessions without a hold timer:
/// after a minute of silence, three questions ten seconds apart.
pub(super) fn set_keepalive(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::KeepAlive, &true)?;
    setsockopt(socket, sockopt::TcpKeepIdle, &60)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &10)?;
    setsockopt(socket, sockopt::TcpKeepCount, &3)
}

/// Makes a socket that is dropped reset its connection at once, without lingering state.
pub(super) fn set_reset_on_drop(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })
}

/// Keeps an IPv6 listener to IPv6, so that one for IPv4 can have the same port.
pub(super) fn set_ipv6_only(socket: &impl AsFd, address: SocketAddr) -> Result<(), Errno> {
    if address.is_ipv6() { setsockopt(socket, sockopt::Ipv6V6Only, &true) } else { Ok(()) }
}

/// Has the runtime watch a descriptor.
pub(super) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: it is open, and it is closed only when the returned value is dropped.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Lets only ICMPv6 messages of these types through to a raw socket (RFC 3542 §3.2).
pub(super) fn pass_icmpv6_types(socket: &impl AsFd, types: &[u8]) -> Result<(), Errno> {
    // A bit for each type; a set one blocks.
    let mut blocked = [u32::MAX; 8];
    for kind in types {
        if let Some(word) = blocked.get_mut(usize::from(kind / 32)) {
            *word &= !(1 << (kind % 32));
        }
    }
    let value = blocked.map(u32::to_ne_bytes);
    set_bytes(socket, libc::IPPROTO_ICMPV6, ICMP6_FILTER, value.as_flattened())
}

/// Hears what is sent to `group` on the interface with this number. `nix` has no way to name it.
pub(super) fn join_group(socket: &impl AsFd, group: Ipv6Addr, index: u32) -> Result<(), Errno> {
    // `struct ipv6_mreq`.
    let value = [&group.octets()[..], &index.to_ne_bytes()].concat();
    set_bytes(socket, libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, &value)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use nix::sys::socket::getsockopt;

    use super::*;

    //= RFC 4271 §E MUST: TCP MD5 is supported.
    #[test]
    fn the_kernel_takes_keys_of_both_families_and_forgets_them() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let listener = TcpListener::bind((address, 0)).unwrap();
            let key = Password::new([b'k'; 80]).unwrap();
            assert_eq!(set_md5(&listener, address, Some(&key)), Ok(()));
            assert_eq!(set_md5(&listener, address, None), Ok(()));
            assert_eq!(set_md5(&listener, address, None), Ok(()));
        }
    }

    //= RFC 4271 §E SHOULD: packets carry the precedence of network control, DSCP 110xxx.
    #[test]
    fn packets_leave_as_network_control_and_as_far_as_they_may() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let listener = TcpListener::bind((address, 0)).unwrap();
            set_network(&listener, address, 1).unwrap();
            let (ttl, class) = match address {
                IpAddr::V4(_) => (
                    getsockopt(&listener, sockopt::Ipv4Ttl).unwrap(),
                    getsockopt(&listener, sockopt::Ipv4Tos).unwrap(),
                ),
                IpAddr::V6(_) => (
                    getsockopt(&listener, sockopt::Ipv6Ttl).unwrap(),
                    getsockopt(&listener, sockopt::Ipv6TClass).unwrap(),
                ),
            };
            assert_eq!((ttl, class >> 5), (1, 0b110), "{address}");
        }
    }
}
