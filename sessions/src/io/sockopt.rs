//! Socket options that BGP needs, typed. The only unsafe code of the project is here: TCP-MD5 has
//! no wrapper in `nix`.

#![allow(unsafe_code)]

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

use crate::types::Password;

/// DSCP CS6 (network control), where routers expect their own protocols.
const TRAFFIC_CLASS: libc::c_int = 0xC0;

/// Size of the kernel's `struct tcp_md5sig`: a socket address (128), flags, prefix length, key
/// length (2), interface (4), key (80).
const MD5_LENGTH_BYTES: usize = 216;

/// Sets the TCP-MD5 key for everything exchanged with `peer` (RFC 2385); `None` takes it away.
/// On a listener it must be there before the first SYN.
pub(super) fn set_md5(
    socket: &impl AsFd,
    peer: IpAddr,
    key: Option<&Password>,
) -> Result<(), Errno> {
    let value = md5_option(peer, key.map_or(&[], Password::expose)).ok_or(Errno::EINVAL)?;
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed, and the kernel reads
    // `length` bytes from `value`, which lives until the call returns.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_MD5SIG,
            value.as_ptr().cast(),
            length,
        )
    };
    match Errno::result(outcome) {
        // There was no key to take away.
        Err(Errno::ENOENT) if key.is_none() => Ok(()),
        outcome => outcome.map(drop),
    }
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
