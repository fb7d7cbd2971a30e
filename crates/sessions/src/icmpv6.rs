//! A socket for router discovery on one interface.

use std::io::{self, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6,
    recvmsg, sendto, setsockopt, socket, sockopt as nix_sockopt,
};
use tokio::io::unix::AsyncFd;

use super::sockopt;
use fairway_bgp::ndp::message::{HOP_LIMIT, ROUTER_ADVERTISEMENT, ROUTER_SOLICITATION};
use fairway_ground::InterfaceName;

/// All nodes on the link; the destination of advertisements.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);
/// All routers on the link; the destination of solicitations.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 2);

/// Octets of a packet that are read. A packet that exceeds an Ethernet frame is not for us.
pub(super) const PACKET_LENGTH_BYTES_MAX: usize = 1500;

/// A raw ICMPv6 socket that receives solicitations and advertisements of one interface.
#[derive(Debug)]
pub(super) struct Icmpv6Socket {
    socket: AsyncFd<OwnedFd>,
    /// The index of the interface.
    index: u32,
}

/// A received packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub(super) source: Ipv6Addr,
    pub(super) hop_limit: u8,
    /// Its length in octets.
    pub(super) length: usize,
}

impl Icmpv6Socket {
    /// Opens one on `interface` with index `index`. Requires the capability `NET_RAW`.
    pub(super) fn open(interface: InterfaceName, index: u32) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::IcmpV6;
        let fd = socket(AddressFamily::Inet6, SockType::Raw, flags, protocol)?;
        sockopt::pass_icmpv6_types(&fd, &[ROUTER_SOLICITATION, ROUTER_ADVERTISEMENT])?;
        setsockopt(&fd, nix_sockopt::BindToDevice, &interface.as_str().into())?;
        setsockopt(&fd, nix_sockopt::Ipv6MulticastHops, &HOP_LIMIT.into())?;
        setsockopt(&fd, nix_sockopt::Ipv6RecvHopLimit, &true)?;
        // Every host is in the all-nodes group by default.
        sockopt::join_group(&fd, ALL_ROUTERS, index)?;
        Ok(Self { socket: sockopt::watched(fd)?, index })
    }

    /// Sends `message` to all nodes on the link.
    pub(super) fn send(&self, message: &[u8]) -> Result<(), Errno> {
        let to = SockaddrIn6::from(SocketAddrV6::new(ALL_NODES, 0, 0, self.index));
        sendto(self.socket.as_raw_fd(), message, &to, MsgFlags::empty()).map(drop)
    }

    /// The next packet. Cancel-safe: one that was not returned is not lost.
    pub(super) async fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            let mut ready = self.socket.readable().await?;
            match ready.try_io(|socket| receive(socket.as_raw_fd(), buffer)) {
                Ok(Ok(Some(received))) => return Ok(received),
                Ok(Err(error)) => return Err(error),
                // Spurious readiness, or a packet without a known source.
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    }
}

fn receive(socket: i32, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    let mut control = nix::cmsg_space!(i32);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::empty();
    let message = recvmsg::<SockaddrIn6>(socket, &mut parts, Some(&mut control), flags)?;
    if message.flags.contains(MsgFlags::MSG_TRUNC) {
        return Ok(None);
    }
    let hop_limit = message.cmsgs()?.find_map(|it| match it {
        ControlMessageOwned::Ipv6HopLimit(limit) => u8::try_from(limit).ok(),
        _ => None,
    });
    let length = message.bytes;
    let received = message.address.zip(hop_limit);
    Ok(received.map(|(source, hop_limit)| Received { source: source.ip(), hop_limit, length }))
}
