//! A netlink socket for requests. The kernel handles each within the call that sends it, so its answer is there.
//!
//! Knows no message.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, sendto,
    setsockopt, socket, sockopt,
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
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let descriptor = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        setsockopt(&descriptor, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
        // Without the capability the socket takes smaller requests alone, and none of them succeeds.
        let _ = setsockopt(&descriptor, sockopt::SndBufForce, &SEND_BUFFER_BYTES);
        bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
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
