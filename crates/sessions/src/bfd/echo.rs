//! Echo packets: ours, which the remote system returns, and those of the remote system (RFC 5880 §6.4).
//!
//! As in FRR over IPv6: they are sent to the remote address with a TTL of 255, and come back with 254. Over
//! IPv4 this is used where `link_echo` is not possible.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendto};

use super::datagram::Notes;
use fairway_bfd::Arrival;

/// TTL (hop limit) of returned packets: as if they had been forwarded.
const TTL_BACK: libc::c_int = 254;

/// Sends an echo packet to `remote`. A link-local address is on the interface with index `scope`.
pub(super) fn send(
    socket: &OwnedFd,
    remote: IpAddr,
    port: u16,
    scope: u32,
    bytes: &[u8],
) -> Result<(), Errno> {
    let to = match remote {
        IpAddr::V6(address) => SocketAddrV6::new(address, port, 0, scope).into(),
        IpAddr::V4(_) => SocketAddr::new(remote, port),
    };
    let to = SockaddrStorage::from(to);
    sendto(socket.as_raw_fd(), bytes, &to, MsgFlags::MSG_DONTWAIT).map(drop)
}

/// Returns echo packets to their source. Buffers for the system call are reused, so that sending does not
/// allocate.
pub(super) struct Mirror {
    ipv4: MultiHeaders<SockaddrStorage>,
    ipv6: MultiHeaders<SockaddrStorage>,
}

impl Mirror {
    pub(super) fn new() -> Self {
        let ipv4 = cmsg_space!(libc::c_int, libc::in_pktinfo);
        let ipv6 = cmsg_space!(libc::c_int, libc::in6_pktinfo);
        Self {
            ipv4: MultiHeaders::preallocate(1, Some(ipv4)),
            ipv6: MultiHeaders::preallocate(1, Some(ipv6)),
        }
    }

    /// Returns a received packet from its destination address and over its interface. A packet that cannot be
    /// sent counts as lost.
    pub(super) fn send_back(&mut self, socket: &OwnedFd, notes: Notes, arrival: Arrival<'_>) {
        let to = [Some(SockaddrStorage::from(arrival.source))];
        let parts = [[IoSlice::new(arrival.bytes)]];
        let index = notes.interface_index.unwrap_or(0);
        let fd = socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let _ = match notes.destination {
            Some(IpAddr::V4(address)) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: libc::c_int::try_from(index).unwrap_or(0),
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                let control =
                    [ControlMessage::Ipv4Ttl(&TTL_BACK), ControlMessage::Ipv4PacketInfo(&info)];
                sendmmsg(fd, &mut self.ipv4, &parts, to, control, flags).map(drop)
            }
            Some(IpAddr::V6(address)) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr { s6_addr: address.octets() },
                    ipi6_ifindex: index,
                };
                let control = [
                    ControlMessage::Ipv6HopLimit(&TTL_BACK),
                    ControlMessage::Ipv6PacketInfo(&info),
                ];
                sendmmsg(fd, &mut self.ipv6, &parts, to, control, flags).map(drop)
            }
            None => Ok(()),
        };
    }
}
