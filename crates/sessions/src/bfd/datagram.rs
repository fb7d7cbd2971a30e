//! The kernel's metadata of a datagram: source, time, interface, TTL, and the number of datagrams lost before
//! it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use nix::libc;

use crate::sockopt::Datagram;

/// The metadata in addition to the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Notes {
    /// When the kernel received it, since the Unix epoch by the wall clock.
    pub(super) stamp: Option<Duration>,
    /// TTL, or hop limit.
    pub(super) ttl: Option<u8>,
    /// The index of the receiving interface.
    pub(super) interface_index: Option<u32>,
    /// The destination address.
    pub(super) destination: Option<IpAddr>,
    /// Datagrams that were dropped because the socket was full, since it was opened (wraps around).
    pub(super) lost: Option<u32>,
}

impl Notes {
    /// Reads the metadata. Anything missing or malformed stays `None`.
    pub(super) fn of(datagram: &Datagram) -> Self {
        let mut notes = Self::default();
        let mut rest = datagram.control();
        while let Some((level, kind, data, after)) = next_message(rest) {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => notes.stamp = stamp(data),
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => notes.lost = u32_at(data, 0),
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    notes.ttl = u32_at(data, 0).and_then(|ttl| u8::try_from(ttl).ok());
                }
                // `struct in_pktinfo`: interface, address to answer from, destination address.
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    notes.interface_index = u32_at(data, 0);
                    notes.destination = array_at::<4>(data, 8).map(IpAddr::from);
                }
                // `struct in6_pktinfo`: address, interface.
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    notes.destination = array_at::<16>(data, 0).map(IpAddr::from);
                    notes.interface_index = u32_at(data, 16);
                }
                _ => {}
            }
            rest = after;
        }
        notes
    }
}

/// The source address.
pub(super) fn source(datagram: &Datagram) -> Option<SocketAddr> {
    let name = datagram.name();
    let family = u16::from_ne_bytes(array_at(name, 0)?);
    let port = u16::from_be_bytes(array_at(name, 2)?);
    match i32::from(family) {
        libc::AF_INET => {
            let address = Ipv4Addr::from(array_at::<4>(name, 4)?);
            Some(SocketAddrV4::new(address, port).into())
        }
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(array_at::<16>(name, 8)?);
            let scope = u32_at(name, 24)?;
            Some(SocketAddrV6::new(address, port, 0, scope).into())
        }
        _ => None,
    }
}

/// Level, type and data of the first `struct cmsghdr` of a list, and the rest of the list.
fn next_message(list: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    const WORD: usize = size_of::<usize>();
    // Length including this header, level, type; messages are aligned to words.
    const HEADER: usize = (WORD + 8).next_multiple_of(WORD);
    let length = usize::from_ne_bytes(array_at(list, 0)?);
    let level = i32::from_ne_bytes(array_at(list, WORD)?);
    let kind = i32::from_ne_bytes(array_at(list, WORD + 4)?);
    let data = list.get(HEADER..length)?;
    let after = length.checked_next_multiple_of(WORD).and_then(|next| list.get(next..));
    Some((level, kind, data, after.unwrap_or_default()))
}

fn stamp(data: &[u8]) -> Option<Duration> {
    // `struct timespec`: two words on every machine with a 64-bit clock.
    let seconds = u64::try_from(i64::from_ne_bytes(array_at(data, 0)?)).ok()?;
    let nanoseconds = u32::try_from(i64::from_ne_bytes(array_at(data, 8)?)).ok()?;
    (nanoseconds < 1_000_000_000).then(|| Duration::new(seconds, nanoseconds))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_ne_bytes)
}

fn array_at<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of a list, padded as the kernel does.
    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let word = size_of::<usize>();
        let header = (word + 8).next_multiple_of(word);
        let length = header + data.len();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(header, 0);
        bytes.extend(data);
        bytes.resize(length.next_multiple_of(word), 0);
        bytes
    }

    #[test]
    fn lists_that_lie_about_their_lengths_end_early() {
        let good = message(libc::IPPROTO_IP, libc::IP_TTL, &255_i32.to_ne_bytes());
        let (level, kind, data, after) = next_message(&good).unwrap();
        assert_eq!((level, kind, u32_at(data, 0)), (libc::IPPROTO_IP, libc::IP_TTL, Some(255)));
        assert!(after.is_empty());
        for length in [0, 1, 15, good.len() + 1, usize::MAX] {
            let mut bad = good.clone();
            bad[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(next_message(&bad), None, "{length}");
        }
        for cut in 0..good.len() - 4 {
            assert_eq!(next_message(&good[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn stamps_that_are_no_time_are_none() {
        let bytes = |seconds: i64, nanoseconds: i64| {
            [seconds.to_ne_bytes(), nanoseconds.to_ne_bytes()].concat()
        };
        assert_eq!(stamp(&bytes(7, 5)), Some(Duration::new(7, 5)));
        for (seconds, nanoseconds) in [(-1, 0), (0, -1), (0, 1_000_000_000)] {
            assert_eq!(stamp(&bytes(seconds, nanoseconds)), None);
        }
        assert_eq!(stamp(&[0; 15]), None);
    }
}
