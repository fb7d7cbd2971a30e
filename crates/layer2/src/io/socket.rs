//! Packet sockets with a filter, and memberships of groups: the system calls that `nix` does not wrap. This is
//! the only unsafe code of the crate.

#![allow(unsafe_code)]

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socket, sockopt,
};
use tokio::io::unix::AsyncFd;

use crate::filter::Instruction;

/// Bytes of frames that may wait: some thousands. The kernel gives what `net.core.rmem_max` allows.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// Octets of a frame that are read.
pub(super) const FRAME_LENGTH_BYTES_MAX: usize = 1_514;

/// Frames of one type on one interface. Requires the capability `NET_RAW`.
#[derive(Debug)]
pub(super) struct FrameSocket(OwnedFd);

impl AsRawFd for FrameSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl FrameSocket {
    /// Opens one that receives nothing before [`Self::bind`], so that no frame comes past the filter.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let descriptor = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        setsockopt(&descriptor, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
        Ok(Self(descriptor))
    }

    /// Receives frames of this type on the interface of this number from now on.
    pub(super) fn bind(&self, index: u32, ethertype: u16) -> Result<(), Errno> {
        let address = libc::sockaddr_ll {
            sll_family: u16::try_from(libc::AF_PACKET).map_err(|_| Errno::EINVAL)?,
            sll_protocol: ethertype.to_be(),
            sll_ifindex: i32::try_from(index).map_err(|_| Errno::EINVAL)?,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let length = libc::socklen_t::try_from(size_of_val(&address)).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `address`, which outlives the
        // call.
        let outcome = unsafe { libc::bind(self.as_raw_fd(), (&raw const address).cast(), length) };
        Errno::result(outcome).map(drop)
    }

    /// Has the kernel drop what `program` does not accept; it takes the place of the one before.
    pub(super) fn filter(&self, program: &[Instruction]) -> Result<(), Errno> {
        let filters: Vec<libc::sock_filter> = program
            .iter()
            .map(|it| libc::sock_filter {
                code: it.code,
                jt: it.if_true,
                jf: it.if_false,
                k: it.value,
            })
            .collect();
        let len = u16::try_from(filters.len()).map_err(|_| Errno::ENOMEM)?;
        // The kernel only reads from it.
        let value = libc::sock_fprog { len, filter: filters.as_ptr().cast_mut() };
        let length = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the descriptor is open; the kernel reads `length` bytes of `value` and `len` instructions
        // behind its pointer, which both outlive the call.
        let outcome = unsafe {
            let value = (&raw const value).cast();
            libc::setsockopt(
                self.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                value,
                length,
            )
        };
        Errno::result(outcome).map(drop)
    }

    /// Has the runtime watch it.
    pub(super) fn watched(self) -> io::Result<AsyncFd<Self>> {
        // SAFETY: the descriptor is open, is always the same one, and is closed only when this is dropped.
        unsafe { AsyncFd::register(self) }.map_err(|error| error.into_parts().1)
    }

    /// The next frame; `None` if there is none.
    pub(super) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>, Errno> {
        match recv(self.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(length) => Ok(buffer.get(..length)),
            Err(Errno::EAGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a frame on its interface.
    pub(super) fn send(&self, frame: &[u8]) -> Result<(), Errno> {
        send(self.as_raw_fd(), frame, MsgFlags::empty()).map(drop)
    }
}

/// A socket that is in groups, and receives nothing.
#[derive(Debug)]
pub(super) struct GroupSocket(OwnedFd);

impl GroupSocket {
    pub(super) fn open() -> Result<Self, Errno> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        socket(AddressFamily::Inet6, SockType::Datagram, flags, None).map(Self)
    }

    /// Joins `group` on the interface of this number: the kernel tells switches so (MLD).
    pub(super) fn join(&self, index: u32, group: Ipv6Addr) -> Result<(), Errno> {
        self.set(libc::IPV6_ADD_MEMBERSHIP, index, group)
    }

    pub(super) fn leave(&self, index: u32, group: Ipv6Addr) -> Result<(), Errno> {
        self.set(libc::IPV6_DROP_MEMBERSHIP, index, group)
    }

    fn set(&self, option: libc::c_int, index: u32, group: Ipv6Addr) -> Result<(), Errno> {
        let value = libc::ipv6_mreq {
            ipv6mr_multiaddr: libc::in6_addr { s6_addr: group.octets() },
            ipv6mr_interface: index,
        };
        let length = libc::socklen_t::try_from(size_of_val(&value)).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `value`, which outlives the
        // call.
        let outcome = unsafe {
            let value = (&raw const value).cast();
            libc::setsockopt(self.0.as_raw_fd(), libc::IPPROTO_IPV6, option, value, length)
        };
        Errno::result(outcome).map(drop)
    }
}
