//! The socket that a session sends its packets from.
//!
//! Each session has one, connected to the remote address, so that the kernel looks up the route only when it
//! changes. It is opened for the first packet, and reopened when it becomes unusable: an interface was
//! removed, or our address changed.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect, send, setsockopt,
    socket, sockopt as nix_sockopt,
};

use super::endpoint::Endpoint;
use crate::sockopt;
use fairway_bfd::{Port, SlotId};
use fairway_ground::{BfdPath, Instant, Rng};

/// The range of source ports (RFC 5881 §4): the first, and their number.
const SOURCE_PORT_FIRST: u16 = 49_152;
const SOURCE_PORT_COUNT: u64 = 16_384;

/// How many ports are tried for a session before it has to wait: with half of them in use, one of a million
/// million sessions would find none.
const SOURCE_PORT_TRIES: usize = 40;

/// Minimum interval between attempts to reopen an unusable socket.
const OPEN_INTERVAL: Duration = Duration::from_secs(1);

/// While a session is not up, its socket is reopened at this interval: the kernel chose our address when it
/// was opened, and may choose a better one now.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// TTL (hop limit) of packets: a directly connected system checks that they were not forwarded (RFC 5881 §5).
const TTL: u8 = 255;

/// Nothing is read from these sockets, so nothing should be buffered. The kernel enforces a minimum.
const RECEIVE_BUFFER_BYTES: usize = 1;

/// The send sockets of all sessions.
#[derive(Debug)]
pub(super) struct Lines {
    /// By slot.
    lines: Vec<Option<Line>>,
    /// Source ports in use: no two sessions of this machine share one (RFC 5881 §4).
    taken: BTreeSet<u16>,
    endpoint: Endpoint,
    rng: Rng,
}

/// The send socket of one session.
#[derive(Debug)]
struct Line {
    slot: SlotId,
    path: BfdPath,
    socket: Option<UdpSocket>,
    /// The source port: the same for the lifetime of the session (RFC 5881 §4).
    port: Option<u16>,
    /// When opening the socket was last attempted.
    opened_at: Option<Instant>,
    /// The index of the interface or VRF of the path.
    device_index: Option<u32>,
    /// Our address, as chosen by the kernel.
    local: Option<IpAddr>,
    /// Why the last packet could not be sent.
    trouble: Option<Errno>,
}

impl Lines {
    pub(super) fn new(endpoint: Endpoint, seed: u64) -> Self {
        Self { lines: Vec::new(), taken: BTreeSet::new(), endpoint, rng: Rng::seeded(seed) }
    }

    /// Prepares for the session in `slot` with `path`. Returns the index of its interface, if it has one that
    /// exists.
    pub(super) fn open(&mut self, slot: SlotId, path: BfdPath) -> Option<u32> {
        self.close(slot);
        if self.lines.len() <= slot.index() {
            self.lines.resize_with(slot.index().saturating_add(1), || None);
        }
        let place = self.lines.get_mut(slot.index())?;
        let line = place.insert(Line {
            slot,
            path,
            socket: None,
            port: None,
            opened_at: None,
            device_index: device_index(&path),
            local: None,
            trouble: None,
        });
        line.interface_index()
    }

    /// The session in `slot` was deleted.
    pub(super) fn close(&mut self, slot: SlotId) {
        let line = self.lines.get_mut(slot.index()).and_then(Option::take);
        if let Some(port) = line.and_then(|line| line.port) {
            self.taken.remove(&port);
        }
    }

    /// The paths of all sessions.
    pub(super) fn paths(&self) -> impl Iterator<Item = &BfdPath> {
        self.lines.iter().flatten().map(|line| &line.path)
    }

    /// The index of the interface of the session in `slot`, if it has one.
    pub(super) fn interface_index(&self, slot: SlotId) -> Option<u32> {
        self.lines.get(slot.index())?.as_ref()?.interface_index()
    }

    /// Our address of the session in `slot`.
    pub(super) fn local(&self, slot: SlotId) -> Option<IpAddr> {
        self.lines.get(slot.index())?.as_ref()?.local
    }

    /// Why packets cannot be sent, by session.
    pub(super) fn troubles(&self) -> impl Iterator<Item = String> + '_ {
        let described = |line: &Line| {
            line.trouble.map(|error| format!("{}: cannot send: {}", line.path, error.desc()))
        };
        self.lines.iter().flatten().filter_map(described)
    }

    /// Whether [`Lines::look`] needs to be called regularly.
    pub(super) fn needs_look(&self) -> bool {
        self.lines.iter().flatten().any(|line| line.path.interface.or(line.path.vrf).is_some())
    }

    /// Finds devices that were replaced or removed. Returns the interfaces that changed.
    pub(super) fn look(&mut self) -> Vec<(SlotId, Option<u32>)> {
        let mut changes = Vec::new();
        for line in self.lines.iter_mut().flatten() {
            let index = device_index(&line.path);
            if index != line.device_index {
                line.device_index = index;
                line.socket = None;
                changes.push((line.slot, line.interface_index()));
            }
        }
        changes
    }

    /// Sends `bytes` for the session in `slot`, which is up or not.
    pub(super) fn send(
        &mut self,
        slot: SlotId,
        now: Instant,
        is_up: bool,
        bytes: &[u8],
    ) -> Result<(), Errno> {
        let line = self.lines.get_mut(slot.index()).and_then(Option::as_mut);
        let line = line.ok_or(Errno::ENOENT)?;
        let age = line.opened_at.map_or(Duration::MAX, |opened_at| now.since(opened_at));
        let is_old = !is_up && age >= RENEW_INTERVAL;
        let outcome = match line.socket.as_ref().filter(|_| !is_old) {
            Some(socket) => say(socket, bytes),
            None => Err(line.trouble.unwrap_or(Errno::ENOTCONN)),
        };
        let outcome = match outcome {
            Err(error) if is_old || (age >= OPEN_INTERVAL && line.needs_new_socket(error)) => {
                line.opened_at = Some(now);
                // The old socket uses the port.
                line.socket = None;
                line.open(self.endpoint, &mut self.taken, &mut self.rng)
                    .and_then(|socket| say(line.socket.insert(socket), bytes))
            }
            outcome => outcome,
        };
        line.trouble = outcome.err();
        outcome
    }
}

impl Line {
    /// Whether the socket itself may be the cause, or there is none. Other errors concern the route, the
    /// remote system, or queues.
    fn needs_new_socket(&self, error: Errno) -> bool {
        self.socket.is_none()
            || !matches!(
                error,
                Errno::ECONNREFUSED
                    | Errno::EHOSTUNREACH
                    | Errno::ENETUNREACH
                    | Errno::EPERM
                    | Errno::EAGAIN
                    | Errno::ENOBUFS
                    | Errno::EMSGSIZE
            )
    }

    fn interface_index(&self) -> Option<u32> {
        self.path.interface.and(self.device_index)
    }

    fn open(
        &mut self,
        endpoint: Endpoint,
        taken: &mut BTreeSet<u16>,
        rng: &mut Rng,
    ) -> Result<UdpSocket, Errno> {
        let BfdPath { remote, vrf, multihop, interface, local } = self.path;
        let family = if remote.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Datagram, flags, None)?;
        sockopt::set_network(&fd, remote, TTL)?;
        setsockopt(&fd, nix_sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
        if let Some(device) = interface.or(vrf) {
            sockopt::set_device(&fd, device)?;
        }
        let scope = interface.map_or(Ok(0), |interface| if_nametoindex(interface.as_str()))?;
        let any = if remote.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        let local = local.unwrap_or(any);
        let port = self.bind(&fd, local, scope, taken, rng)?;
        if self.port != Some(port) {
            if let Some(old) = self.port.replace(port) {
                taken.remove(&old);
            }
            taken.insert(port);
        }
        let port_of_path = if multihop { Port::Multihop } else { Port::SingleHop };
        let to = scoped(remote, endpoint.remote_number(port_of_path), scope);
        connect(fd.as_raw_fd(), &SockaddrStorage::from(to))?;
        let socket = UdpSocket::from(fd);
        self.local = socket.local_addr().ok().map(|local| local.ip());
        Ok(socket)
    }

    /// Binds to the port of this session, or to one that no session uses.
    fn bind(
        &self,
        fd: &OwnedFd,
        local: IpAddr,
        scope: u32,
        taken: &BTreeSet<u16>,
        rng: &mut Rng,
    ) -> Result<u16, Errno> {
        let drawn = (0..SOURCE_PORT_TRIES).map(|_| {
            let offset = u16::try_from(rng.next_u64() % SOURCE_PORT_COUNT).unwrap_or(0);
            SOURCE_PORT_FIRST.saturating_add(offset)
        });
        for port in self.port.into_iter().chain(drawn.filter(|port| !taken.contains(port))) {
            match bind(fd.as_raw_fd(), &SockaddrStorage::from(scoped(local, port, scope))) {
                Ok(()) => return Ok(port),
                Err(Errno::EADDRINUSE) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EADDRINUSE)
    }
}

/// The socket address, with `scope` as interface index if the address is link-local.
fn scoped(address: IpAddr, port: u16, scope: u32) -> SocketAddr {
    match address {
        IpAddr::V6(it) if it.is_unicast_link_local() => {
            SocketAddrV6::new(it, port, 0, scope).into()
        }
        address => SocketAddr::new(address, port),
    }
}

/// Sends, and retries once if the kernel reported an error of an earlier packet: the remote system does not
/// listen yet, or is down.
fn say(socket: &UdpSocket, bytes: &[u8]) -> Result<(), Errno> {
    let fd = socket.as_raw_fd();
    match send(fd, bytes, MsgFlags::MSG_DONTWAIT) {
        Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EINTR) => {
            send(fd, bytes, MsgFlags::MSG_DONTWAIT).map(drop)
        }
        outcome => outcome.map(drop),
    }
}

/// The index of the device of a path, if there is one.
fn device_index(path: &BfdPath) -> Option<u32> {
    let device = path.interface.or(path.vrf)?;
    if_nametoindex(device.as_str()).ok()
}
