//! An rtnetlink socket that never blocks.
//!
//! Knows groups and buffers, and no message. Owned by [`super::watch`].

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use netlink_packet_core::NLM_F_MULTIPART;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname,
    recvfrom, sendto, setsockopt, socket, sockopt,
};
use tokio::io::unix::AsyncFd;

use crate::kind::Kind;
use crate::route::RouteMark;
use crate::scope::{RouteScope, Scope};

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
        let socket = Self { descriptor, port };
        match scope.routes {
            Some(RouteScope::Unmarked(mark)) if follows => {
                socket.attach(&without_events_of(mark))?
            }
            Some(RouteScope::Default) if follows => socket.attach(&default_routes_alone())?,
            _ => {}
        }
        Ok(socket)
    }

    /// Has the kernel drop what `program` does not accept.
    fn attach(&self, program: &[libc::sock_filter]) -> io::Result<()> {
        let len = u16::try_from(program.len()).map_err(|_| Errno::ENOMEM)?;
        // The kernel only reads from it.
        let value = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
        let length = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the descriptor is open; the kernel reads `length` bytes of `value` and `len` instructions
        // behind its pointer, which both outlive the call.
        let outcome = unsafe {
            let value = (&raw const value).cast();
            let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
            libc::setsockopt(self.as_raw_fd(), level, option, value, length)
        };
        Errno::result(outcome).map(drop).map_err(io::Error::from)
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

const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const LOAD_WORD_AT_INDEX: u16 = 0x40;
const SET: u16 = 0x00;
const SET_INDEX: u16 = 0x01;
const COPY_TO_INDEX: u16 = 0x07;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;
/// The place of the attribute whose kind is the index, from the place in the accumulator on (`SKF_AD_NLATTR`).
const FIND_ATTRIBUTE: u32 = 0xFFFF_F00C;

/// Places in a message.
const KIND: u32 = 4;
const FLAGS: u32 = 6;
/// Of one about a route.
const DESTINATION_LENGTH: u32 = 16 + 1;
const PROTOCOL: u32 = 16 + 5;
const ATTRIBUTES: u32 = 16 + 12;

/// In the machine's order of bytes, which loads take for the network's.
fn half(value: u16) -> u32 {
    u32::from(u16::from_be_bytes(value.to_ne_bytes()))
}

fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Drops the events of routes that are no default routes, so that a million of them do not wake a reader that wants none of
/// them. Lists pass: one datagram of them has many routes.
fn default_routes_alone() -> [libc::sock_filter; 9] {
    [
        step(LOAD_HALF, 0, 0, KIND),
        step(JUMP_IF_EQUAL, 1, 0, half(libc::RTM_NEWROUTE)),
        step(JUMP_IF_EQUAL, 0, 4, half(libc::RTM_DELROUTE)),
        step(LOAD_HALF, 0, 0, FLAGS),
        step(JUMP_IF_BITS, 2, 0, half(NLM_F_MULTIPART)),
        step(LOAD_BYTE, 0, 0, DESTINATION_LENGTH),
        step(JUMP_IF_EQUAL, 0, 1, 0),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

/// Drops the events of routes with this mark, likewise.
fn without_events_of(mark: RouteMark) -> [libc::sock_filter; 15] {
    let word = |value: u32| u32::from_be_bytes(value.to_ne_bytes());
    [
        step(LOAD_HALF, 0, 0, KIND),
        step(JUMP_IF_EQUAL, 1, 0, half(libc::RTM_NEWROUTE)),
        step(JUMP_IF_EQUAL, 0, 10, half(libc::RTM_DELROUTE)),
        step(LOAD_HALF, 0, 0, FLAGS),
        step(JUMP_IF_BITS, 8, 0, half(NLM_F_MULTIPART)),
        step(LOAD_BYTE, 0, 0, PROTOCOL),
        step(JUMP_IF_EQUAL, 0, 6, u32::from(mark.protocol)),
        step(SET, 0, 0, ATTRIBUTES),
        step(SET_INDEX, 0, 0, u32::from(libc::RTA_PRIORITY)),
        step(LOAD_WORD, 0, 0, FIND_ATTRIBUTE),
        step(COPY_TO_INDEX, 0, 0, 0),
        // Without the attribute the place is 0, and the word behind it another number than any metric but by chance.
        step(LOAD_WORD_AT_INDEX, 0, 0, 4),
        step(JUMP_IF_EQUAL, 1, 0, word(mark.metric)),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
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
