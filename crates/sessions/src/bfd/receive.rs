//! The receive sockets: one for each family, port and VRF that a session needs.
//!
//! A socket that cannot be opened is retried; after its VRF device was replaced, a socket is reopened.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, getsockopt, setsockopt, socket,
    sockopt as nix_sockopt,
};
use tracing::{info, warn};

use super::clock::Clock;
use super::datagram::{self, Notes};
use super::echo::Mirror;
use super::endpoint::Endpoint;
use super::link_echo;
use crate::sockopt::{self, DATAGRAMS_MAX, Datagram};
use fairway_bfd::{Arrival, Port};
use fairway_ground::{Instant, InterfaceName};

/// TTL (hop limit) of packets sent from these sockets: echo packets.
const TTL: u8 = 255;

/// Size of a socket's buffer while this thread does not run: half a second of packets of a thousand sessions
/// at 50 ms, with the kernel's overhead for each (it doubles the number). Nothing is allocated in advance.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// Minimum size that the kernel counts for a datagram.
const DATAGRAM_ROOM_BYTES: u64 = 768;

/// Maximum number of reads of one socket before the sessions are processed: the rest waits some microseconds.
/// These are some thousand packets, which take a few milliseconds.
const READS_MAX: usize = 64;

/// Sockets that are reported at once; the others are reported next.
const READY_MAX: usize = 64;

/// The identifier of the eventfd among those of sockets.
const COMMANDS: u64 = 0;

/// The purpose of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) vrf: Option<InterfaceName>,
    pub(super) is_ipv4: bool,
    pub(super) port: Port,
    /// An interface index: for returned echo packets on this interface, which no UDP socket receives.
    pub(super) link: Option<u32>,
}

/// All receive sockets, and the epoll set of the thread.
pub(super) struct ReceiveSockets {
    endpoint: Endpoint,
    epoll: Epoll,
    /// By their epoll identifier.
    sockets: BTreeMap<u64, ReceiveSocket>,
    next_number: u64,
    /// Sockets that cannot be opened, and why.
    troubles: BTreeMap<Place, Errno>,
    batch: Box<[Datagram; DATAGRAMS_MAX]>,
    mirror: Mirror,
    ready: [EpollEvent; READY_MAX],
    ready_count: usize,
}

struct ReceiveSocket {
    place: Place,
    fd: OwnedFd,
    /// The index of its VRF.
    vrf_index: Option<u32>,
    /// When it was last seen empty.
    empty_at: Instant,
    /// The kernel's last count of datagrams that were dropped.
    lost: u32,
    /// Buffer size in bytes, as the kernel counts.
    room_bytes: usize,
}

/// The result of reading the sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Drained {
    /// Datagrams that were read.
    pub(super) count: usize,
    /// Packets of sessions may be missing: dropped because the socket was full, or still unread.
    pub(super) is_incomplete: bool,
}

impl ReceiveSockets {
    /// Without sockets. `commands` wakes the thread, too.
    pub(super) fn new(endpoint: Endpoint, commands: &EventFd) -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(commands, EpollEvent::new(EpollFlags::EPOLLIN, COMMANDS))?;
        Ok(Self {
            endpoint,
            epoll,
            sockets: BTreeMap::new(),
            next_number: COMMANDS.saturating_add(1),
            troubles: BTreeMap::new(),
            mirror: Mirror::new(),
            batch: Box::new([const { Datagram::empty() }; DATAGRAMS_MAX]),
            ready: [EpollEvent::empty(); READY_MAX],
            ready_count: 0,
        })
    }

    /// Keeps sockets for these places, and no others.
    pub(super) fn want(&mut self, now: Instant, wanted: &BTreeSet<Place>) {
        // Closing a descriptor removes it from the epoll set.
        self.sockets.retain(|_, socket| wanted.contains(&socket.place));
        self.troubles.retain(|place, _| wanted.contains(place));
        let open: BTreeSet<Place> = self.sockets.values().map(|socket| socket.place).collect();
        for place in wanted.difference(&open) {
            self.open(now, *place);
        }
    }

    /// Whether [`ReceiveSockets::look`] needs to be called regularly.
    pub(super) fn needs_look(&self) -> bool {
        !self.troubles.is_empty() || self.sockets.values().any(|it| it.vrf_index.is_some())
    }

    /// Retries sockets that could not be opened, and reopens those with a replaced VRF device.
    pub(super) fn look(&mut self, now: Instant) {
        let is_same = |socket: &ReceiveSocket| match socket.place.vrf {
            Some(vrf) => if_nametoindex(vrf.as_str()).ok() == socket.vrf_index,
            None => true,
        };
        let moved: Vec<u64> =
            self.sockets.iter().filter(|(_, it)| !is_same(it)).map(|(number, _)| *number).collect();
        let moved = moved.iter().filter_map(|number| self.sockets.remove(number));
        let mut places: Vec<Place> = moved.map(|socket| socket.place).collect();
        places.extend(self.troubles.keys());
        for place in places {
            self.open(now, place);
        }
    }

    /// Why packets are not received, or may be lost, and what to do. `packets_per_second` is the expected
    /// rate.
    pub(super) fn troubles(&self, packets_per_second: u64) -> impl Iterator<Item = String> + '_ {
        let short = self.sockets.values().filter(move |it| it.is_short(packets_per_second));
        let short = short.map(|it| {
            let name = self.name(it.place);
            format!(
                "{name}: packets may be lost while this machine is busy: the receive buffer is too \
                 small; raise net.core.rmem_max to {RECEIVE_BUFFER_BYTES}, and restart"
            )
        });
        self.troubles.iter().map(|(place, error)| self.describe(*place, *error)).chain(short)
    }

    /// The socket for `place`, if it is open.
    pub(super) fn get(&self, place: Place) -> Option<&OwnedFd> {
        self.sockets.values().find(|socket| socket.place == place).map(|socket| &socket.fd)
    }

    /// Waits for packets or a command, at most for `timeout`. Returns early if interrupted.
    pub(super) fn wait(&mut self, timeout: EpollTimeout) -> Result<(), Errno> {
        self.ready_count = match self.epoll.wait(&mut self.ready, timeout) {
            Err(Errno::EINTR) => 0,
            outcome => outcome?,
        };
        Ok(())
    }

    /// Whether the last wait found commands.
    pub(super) fn has_commands(&self) -> bool {
        self.ready.iter().take(self.ready_count).any(|event| event.data() == COMMANDS)
    }

    /// Reads all sockets that the last wait found. `hear` returns whether a packet is to be returned as echo.
    pub(super) fn drain(
        &mut self,
        clock: Clock,
        mut hear: impl FnMut(Instant, Arrival<'_>) -> bool,
    ) -> Drained {
        let mut drained = Drained::default();
        for event in self.ready.iter().take(self.ready_count) {
            if let Some(socket) = self.sockets.get_mut(&event.data()) {
                let outcome = socket.drain(clock, &mut *self.batch, &mut self.mirror, &mut hear);
                drained.count = drained.count.saturating_add(outcome.count);
                drained.is_incomplete |= outcome.is_incomplete;
            }
        }
        drained.is_incomplete |= self.ready_count == READY_MAX;
        drained
    }

    fn open(&mut self, now: Instant, place: Place) {
        let number = self.next_number;
        match ReceiveSocket::open(now, self.endpoint, place).and_then(|socket| {
            self.epoll.add(&socket.fd, EpollEvent::new(EpollFlags::EPOLLIN, number))?;
            Ok(socket)
        }) {
            Ok(socket) => {
                self.next_number = number.saturating_add(1);
                self.sockets.insert(number, socket);
                if self.troubles.remove(&place).is_some() {
                    info!(port = self.endpoint.number(place.port), "receiving BFD packets now");
                }
            }
            Err(error) => {
                if self.troubles.insert(place, error) != Some(error) {
                    let trouble = self.describe(place, error);
                    warn!(%trouble, "cannot receive BFD packets; retrying");
                }
            }
        }
    }

    fn name(&self, place: Place) -> String {
        let port = self.endpoint.number(place.port);
        let family = if place.is_ipv4 { "IPv4" } else { "IPv6" };
        let vrf = place.vrf.map(|vrf| format!(" in VRF {vrf}")).unwrap_or_default();
        format!("UDP port {port} over {family}{vrf}")
    }

    fn describe(&self, place: Place, error: Errno) -> String {
        if place.link.is_some() {
            let hint = match error {
                Errno::EPERM => " (requires the capability NET_RAW)",
                _ => "",
            };
            return format!("echo packets over IPv4: {}{hint}", error.desc());
        }
        let hint = match error {
            Errno::EADDRINUSE => {
                " (another BFD daemon runs on this machine: stop it, or disable its BFD)"
            }
            Errno::ENODEV => " (the device does not exist: create it)",
            Errno::EPERM | Errno::EACCES => " (a security policy forbids it: allow UDP sockets)",
            Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL if !place.is_ipv4 => {
                " (IPv6 is disabled on this machine: enable it)"
            }
            _ => "",
        };
        format!("{}: {}{hint}", self.name(place), error.desc())
    }
}

impl Place {
    /// The arrival of a datagram on this socket.
    fn arrival(self, at: Instant, datagram: &Datagram, notes: Notes) -> Option<Arrival<'_>> {
        let bytes = datagram.payload()?;
        let arrival = Arrival {
            at,
            source: SocketAddr::from(([0; 4], 0)),
            destination: notes.destination,
            interface_index: notes.interface_index.or(self.link).unwrap_or(0),
            vrf: self.vrf,
            ttl: notes.ttl,
            port: self.port,
            bytes,
        };
        if self.link.is_none() {
            return Some(Arrival { source: datagram::source(datagram)?, ..arrival });
        }
        let returned = link_echo::parse(bytes)?;
        Some(Arrival {
            source: SocketAddr::from((returned.source, returned.source_port)),
            destination: Some(returned.destination.into()),
            ttl: Some(returned.ttl),
            bytes: returned.payload,
            ..arrival
        })
    }
}

impl ReceiveSocket {
    fn open(now: Instant, endpoint: Endpoint, place: Place) -> Result<Self, Errno> {
        let address = SocketAddr::new(endpoint.address(place.is_ipv4), endpoint.number(place.port));
        // Before the socket is bound to the device, so that a change in between is noticed.
        let vrf_index = place.vrf.map(|vrf| if_nametoindex(vrf.as_str())).transpose()?;
        let fd = match place.link {
            Some(index) => link_echo::open(index, address.port())?,
            None => hearing(address, place.vrf)?,
        };
        let room_bytes = getsockopt(&fd, nix_sockopt::RcvBuf)?;
        Ok(Self { place, fd, vrf_index, empty_at: now, lost: 0, room_bytes })
    }

    /// Whether the buffer is smaller than requested, and that matters: datagrams were lost already, or may be
    /// lost if this thread does not run for a moment.
    fn is_short(&self, packets_per_second: u64) -> bool {
        let asked = RECEIVE_BUFFER_BYTES.saturating_mul(2);
        let room = u64::try_from(self.room_bytes).unwrap_or(u64::MAX);
        let tenth = packets_per_second.saturating_mul(DATAGRAM_ROOM_BYTES) / 10;
        self.place.link.is_none() && self.room_bytes < asked && (self.lost > 0 || room < tenth)
    }

    fn drain(
        &mut self,
        clock: Clock,
        batch: &mut [Datagram],
        mirror: &mut Mirror,
        hear: &mut impl FnMut(Instant, Arrival<'_>) -> bool,
    ) -> Drained {
        let mut drained = Drained::default();
        for _ in 0..READS_MAX {
            let read_at = clock.now();
            let count = match sockopt::receive_datagrams(&self.fd, batch) {
                Ok(count) => count,
                Err(Errno::EINTR) => continue,
                // Nothing to read, or an error of an echo packet, which the call clears.
                Err(_) => 0,
            };
            let moment = clock.moment();
            for datagram in batch.iter().take(count) {
                let notes = Notes::of(datagram);
                let lost = notes.lost.unwrap_or(self.lost);
                drained.is_incomplete |= lost != self.lost;
                self.lost = lost;
                let at = moment.arrival(notes.stamp, self.empty_at);
                // Skipped packets are longer than any BFD packet, or have no source address.
                if let Some(arrival) = self.place.arrival(at, datagram, notes)
                    && hear(moment.now, arrival)
                {
                    mirror.send_back(&self.fd, notes, arrival);
                }
            }
            drained.count = drained.count.saturating_add(count);
            if count < batch.len() {
                self.empty_at = read_at;
                return drained;
            }
        }
        drained.is_incomplete = true;
        drained
    }
}

/// A socket that receives packets for `address`, only in `vrf`, with all metadata.
pub(super) fn hearing(address: SocketAddr, vrf: Option<InterfaceName>) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family, SockType::Datagram, flags, None)?;
    if let Some(vrf) = vrf {
        sockopt::set_device(&fd, vrf)?;
    }
    sockopt::set_ipv6_only(&fd, address)?;
    sockopt::set_network(&fd, address.ip(), TTL)?;
    // More than the system-wide maximum requires a capability; less is accepted.
    setsockopt(&fd, nix_sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .or_else(|_| setsockopt(&fd, nix_sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES))?;
    setsockopt(&fd, nix_sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&fd, nix_sockopt::RxqOvfl, &1)?;
    if address.is_ipv4() {
        setsockopt(&fd, nix_sockopt::Ipv4RecvTtl, &true)?;
        setsockopt(&fd, nix_sockopt::Ipv4PacketInfo, &true)?;
    } else {
        setsockopt(&fd, nix_sockopt::Ipv6RecvHopLimit, &true)?;
        setsockopt(&fd, nix_sockopt::Ipv6RecvPacketInfo, &true)?;
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::super::tests::address;
    use super::*;

    #[test]
    fn a_buffer_that_is_cut_short_matters_where_much_comes_in_or_some_was_lost() {
        let place = Place { vrf: None, is_ipv4: true, port: Port::Multihop, link: None };
        let endpoint = Endpoint::test(address(), 40_000, 40_000);
        let socket = ReceiveSocket::open(Instant::ZERO, endpoint, place).unwrap();
        assert!(socket.room_bytes >= 2_304, "the kernel has a minimum");
        // The common default: 212,992, which the kernel doubles.
        let short = ReceiveSocket { room_bytes: 425_984, ..socket };
        assert!(!short.is_short(1_000) && short.is_short(20_000));
        let short = ReceiveSocket { lost: 1, ..short };
        assert!(short.is_short(0));
        let granted = ReceiveSocket { room_bytes: 2 * RECEIVE_BUFFER_BYTES, ..short };
        assert!(!granted.is_short(20_000));
    }
}
