//! An rtnetlink socket that never blocks.
//!
//! Knows groups and buffers, and no message. Owned by [`super::watch`].

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname,
    recvfrom, sendto, setsockopt, socket, sockopt,
};
use tokio::io::unix::AsyncFd;

use crate::kind::Kind;
use crate::scope::Scope;

/// Bytes of events that may wait: some thousands of messages. The kernel gives what `net.core.rmem_max`
/// allows.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// The longest datagram: the kernel lists tables in pieces of 32 KiB, and an event is shorter.
pub(super) const DATAGRAM_LENGTH_BYTES_MAX: usize = 64 << 10;

/// The kernel's side of every such socket.
const KERNEL: u32 = 0;

/// A socket of the namespace that its thread is in.
#[derive(Debug)]
pub(super) struct RouteSocket {
    descriptor: OwnedFd,
    port: u32,
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// A datagram of this many bytes.
    Datagram(usize),
    /// Events were dropped.
    Overrun,
    /// Nothing waits.
    Nothing,
}

impl AsRawFd for RouteSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl RouteSocket {
    /// Opens one; with `follows` it receives the events of what `scope` asks for.
    pub(super) fn open(scope: &Scope, follows: bool) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkRoute;
        let descriptor = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        let bytes = scope.receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER_BYTES);
        setsockopt(&descriptor, sockopt::RcvBuf, &bytes)?;
        let kinds = scope.kinds().iter().filter(|_| follows);
        let groups = kinds.flat_map(groups).fold(0, |all, group| all | group);
        // The kernel chooses a free number.
        bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        let port = getsockname::<NetlinkAddr>(descriptor.as_raw_fd())?.pid();
        Ok(Self { descriptor, port })
    }

    /// Has the runtime watch it.
    pub(super) fn watched(self) -> io::Result<AsyncFd<Self>> {
        // SAFETY: the descriptor is open, is always the same one, and is closed only when this is dropped.
        unsafe { AsyncFd::register(self) }.map_err(|error| error.into_parts().1)
    }

    /// Its port number, which answers to its requests carry.
    pub(super) fn port(&self) -> u32 {
        self.port
    }

    /// Sends a request to the kernel, which handles it within the call.
    pub(super) fn send(&self, request: &[u8]) -> io::Result<()> {
        let to = NetlinkAddr::new(KERNEL, 0);
        sendto(self.as_raw_fd(), request, &to, MsgFlags::empty())?;
        Ok(())
    }

    /// Reads the next datagram of the kernel. One that does not fit is cut off, and malformed to the reader.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match recvfrom::<NetlinkAddr>(self.as_raw_fd(), buffer) {
                Ok((length, Some(from))) if from.pid() == KERNEL => {
                    return Ok(Received::Datagram(length));
                }
                // Another process may write to the socket, too.
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => return Ok(Received::Overrun),
                Err(Errno::EAGAIN) => return Ok(Received::Nothing),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The multicast groups that report changes of a table, as bits.
fn groups(kind: Kind) -> impl Iterator<Item = u32> {
    let groups: &[u32] = match kind {
        Kind::Link => &[libc::RTNLGRP_LINK],
        Kind::Address => &[libc::RTNLGRP_IPV4_IFADDR, libc::RTNLGRP_IPV6_IFADDR],
        Kind::Route => &[libc::RTNLGRP_IPV4_ROUTE, libc::RTNLGRP_IPV6_ROUTE],
        Kind::Neighbour => &[libc::RTNLGRP_NEIGH],
    };
    groups.iter().filter_map(|group| 1_u32.checked_shl(group.checked_sub(1)?))
}
