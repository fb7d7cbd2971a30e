//! A netlink socket for requests. The kernel handles each within the call that sends it, so its answer is there.
//!
//! Knows no message.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, getsockname,
    recvfrom, sendto, setsockopt, socket, sockopt,
};

/// The longest datagram of the kernel: it lists tables in pieces of 32 KiB.
const DATAGRAM_LENGTH_BYTES_MAX: usize = 64 << 10;
/// Octets of requests in one call; as many answers fit into the socket.
pub(super) const REQUEST_BYTES_MAX: usize = 32 << 10;
/// Octets of answers that may wait. The kernel gives what `net.core.rmem_max` allows.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// Octets of one request: a transaction of the packet filter has some thousands of rules, each with a few elements.
const SEND_BUFFER_BYTES: usize = 16 << 20;

/// The kernel's side of every such socket.
const KERNEL: u32 = 0;

/// A socket of the network namespace that its thread is in.
#[derive(Debug)]
pub(super) struct Socket {
    descriptor: OwnedFd,
    buffer: Vec<u8>,
}

impl Socket {
    pub(super) fn open(protocol: SockProtocol) -> io::Result<Self> {
        Self::open_with(protocol, 0)
    }

    /// That receives the events of a group, too, which is 1 to 32.
    pub(super) fn open_for_group(protocol: SockProtocol, group: u32) -> io::Result<Self> {
        let groups = group.checked_sub(1).and_then(|it| 1_u32.checked_shl(it));
        Self::open_with(protocol, groups.unwrap_or_default())
    }

    /// The number by which the kernel knows this socket.
    pub(super) fn port(&self) -> io::Result<u32> {
        let own: NetlinkAddr = getsockname(self.descriptor.as_raw_fd())?;
        Ok(own.pid())
    }

    fn open_with(protocol: SockProtocol, groups: u32) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let descriptor = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        setsockopt(&descriptor, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
        // Without the capability the socket takes smaller requests alone, and none of them succeeds.
        let _ = setsockopt(&descriptor, sockopt::SndBufForce, &SEND_BUFFER_BYTES);
        bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self { descriptor, buffer: vec![0; DATAGRAM_LENGTH_BYTES_MAX] })
    }

    pub(super) fn send(&self, requests: &[u8]) -> io::Result<()> {
        let to = NetlinkAddr::new(KERNEL, 0);
        let sent = sendto(self.descriptor.as_raw_fd(), requests, &to, MsgFlags::empty())?;
        match sent == requests.len() {
            true => Ok(()),
            false => Err(io::Error::other("the kernel took a part of a request")),
        }
    }

    /// Waits until a datagram is there.
    pub(super) fn wait(&self) -> io::Result<()> {
        let mut descriptors = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next datagram; `None` if nothing waits.
    pub(super) fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        let length = loop {
            match recvfrom::<NetlinkAddr>(self.descriptor.as_raw_fd(), &mut self.buffer) {
                Ok((length, Some(from))) if from.pid() == KERNEL => break length,
                // Another process may write to the socket, too.
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        };
        Ok(self.buffer.get(..length))
    }
}
