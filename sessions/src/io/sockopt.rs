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

/// Linux's number of the option; `libc` does not have it.
const TCP_AO_GET_KEYS: libc::c_int = 41;

/// Size of the kernel's `struct tcp_ao_getsockopt`.
pub(super) const AO_STATE_LENGTH_BYTES: usize = 304;

/// Keys of one peer: a key has a number of one byte.
const AO_STATES_MAX: usize = 256;

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

/// Sets an option to the bytes of one of the kernel's structures.
pub(super) fn set_bytes(
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

/// The keys of TCP-AO that a socket holds, each as the kernel's `struct tcp_ao_getsockopt`: what
/// the kernel knows of this option, and no more than there can be for one peer.
pub(super) fn ao_keys(socket: &impl AsFd) -> Result<Vec<[u8; AO_STATE_LENGTH_BYTES]>, Errno> {
    let mut keys = vec![[0; AO_STATE_LENGTH_BYTES]; AO_STATES_MAX];
    let room = u32::try_from(AO_STATES_MAX).map_err(|_| Errno::EINVAL)?;
    let question = keys.first_mut().ok_or(Errno::EINVAL)?;
    // `nkeys`, the room there is, and `get_all`, the third bit of a field.
    question.get_mut(272..276).ok_or(Errno::EINVAL)?.copy_from_slice(&room.to_ne_bytes());
    let get_all: u16 = if cfg!(target_endian = "big") { 1 << 13 } else { 1 << 2 };
    question.get_mut(276..278).ok_or(Errno::EINVAL)?.copy_from_slice(&get_all.to_ne_bytes());
    let mut length = libc::socklen_t::try_from(AO_STATE_LENGTH_BYTES).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed. The kernel writes `room`
    // structures of `length` bytes at most, which is what `keys` has room for, and a length; both
    // live until the call returns.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_AO_GET_KEYS,
            keys.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    Errno::result(outcome)?;
    let count = keys.first().and_then(|first| first.get(272..276)?.try_into().ok());
    let count = u32::from_ne_bytes(count.unwrap_or_default());
    keys.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(keys)
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

    /// What a change of password rests on: TCP repeats what the other end could not verify.
    #[tokio::test]
    async fn a_connection_lives_while_its_ends_change_their_keys_one_after_the_other() {
        use std::time::Duration;

        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        use tokio::net::{TcpListener, TcpSocket};
        use tokio::time::timeout;

        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            let (old, new) = (Password::new("old").unwrap(), Password::new("new").unwrap());
            let listener = TcpListener::bind((address, 0)).await.unwrap();
            set_md5(&listener, address, Some(&old)).unwrap();
            let dialler = match address {
                IpAddr::V4(_) => TcpSocket::new_v4().unwrap(),
                IpAddr::V6(_) => TcpSocket::new_v6().unwrap(),
            };
            set_md5(&dialler, address, Some(&old)).unwrap();
            let mut near = dialler.connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut far, _) = listener.accept().await.unwrap();

            set_md5(&near, address, Some(&new)).unwrap();
            near.write_all(b"x").await.unwrap();
            let unheard = timeout(Duration::from_millis(100), far.read_u8()).await;
            assert!(unheard.is_err(), "the far end still has the old key");
            set_md5(&far, address, Some(&new)).unwrap();
            let heard = timeout(Duration::from_secs(10), far.read_u8()).await;
            assert_eq!(heard.expect("it is repeated").unwrap(), b'x');
            far.write_all(b"y").await.unwrap();
            let heard = timeout(Duration::from_secs(10), near.read_u8()).await;
            assert_eq!(heard.expect("both have the new key").unwrap(), b'y');
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
