//! One TCP connection to a neighbour, from dialling to Established (RFC 4271 §8).
//!
//! Knows no other connection: collisions are [`super::Peer`]'s business.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Connected;
use super::graceful_restart::{OwnRestart, Restarts};
use super::monitor::whole;
use super::negotiate::{Negotiated, negotiate, our_open};
use crate::wire::header::{RawMessage, keepalive};
use crate::wire::{
    Capability, Framing, KnownAttributes, MessageType, Notification, Open, RouteRefresh, Update,
    UpdateContext, WireError,
};
use fairway_ground::{FamilySet, Instant, LocalNextHops, Prefix, Rng};
use fairway_seam::{ConnectionEnds, PeerConfig, SessionState};

/// How long an OPEN may take to arrive.
///
/// `Ours:` RFC 4271 §8.2.2 suggests 4 minutes; a neighbour that sends nothing after connecting will
/// not start later, and holds a slot.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a dial may take to report. The edge gives up long before; this is for an edge that
/// lost track of it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// KEEPALIVEs may not follow each other faster than this (RFC 4271 §4.4).
const KEEPALIVE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// A tick that is this much too late means that this process stood still, not the neighbour.
const LATE: Duration = Duration::from_millis(250);
/// How long the neighbour's bytes then have to be read.
const GRACE: Duration = Duration::from_secs(1);

/// How long a neighbour may refuse to take our bytes, at least (RFC 9687 §4: the larger of eight
/// minutes and twice the hold time).
const SEND_HOLD_TIME_MIN: Duration = Duration::from_secs(8 * 60);

/// Names a connection, also beyond the life of its peer: late events of a peer that was removed must
/// not reach the peer that was configured after it under the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId {
    /// Which of all peers that ever existed.
    pub(super) incarnation: u64,
    /// Which of its connections.
    pub(super) number: u64,
}

/// The result of a message.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing for the peer to do.
    Nothing,
    /// The neighbour's OPEN was accepted: the peer must check for a collision.
    OpenConfirm,
    /// The session is up.
    Established,
    /// Routes were received.
    Update(Update),
    /// The neighbour requests all routes again.
    Refresh(RouteRefresh),
    /// The neighbour ends the session.
    Notification(Notification),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    /// When it was begun, or came in.
    pub(super) since: Instant,
    pub(super) state: SessionState,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    /// Both, for the recorder.
    pub(super) ends: Option<Arc<ConnectionEnds>>,
    pub(super) next_hops: LocalNextHops,
    pub(super) networks: Vec<Prefix>,
    pub(super) negotiated: Option<Negotiated>,
    pub(super) keepalive_interval: Option<Duration>,
    framing: Framing,
    /// What the neighbour has said before.
    pub(super) known: KnownAttributes,
    /// The capabilities of our OPEN.
    offered: Vec<Capability>,
    /// Waiting to be written.
    open: Option<Bytes>,
    /// As on the wire; empty before it was made, or heard.
    pub(super) sent_open: Bytes,
    pub(super) received_open: Bytes,
    /// Until when our OPEN is held back, for the neighbour to send its OPEN first.
    delay_open_deadline: Option<Instant>,
    /// Until when what the neighbour sent waits to be read, for it to answer our own dial first.
    pub(super) read_deadline: Option<Instant>,
    keepalive_due: bool,
    /// Families that the neighbour is to be asked to send again.
    pub(super) refresh_due: FamilySet,
    hold_deadline: Option<Instant>,
    keepalive_deadline: Option<Instant>,
    send_hold_deadline: Option<Instant>,
}

impl Connection {
    /// One without TCP yet: `state` is Connect for one that is dialled, Active for one that
    /// is about to be accepted.
    pub(super) fn new(now: Instant, id: ConnectionId, state: SessionState) -> Self {
        Self {
            id,
            since: now,
            state,
            local: None,
            remote: None,
            ends: None,
            next_hops: LocalNextHops::default(),
            networks: Vec::new(),
            negotiated: None,
            keepalive_interval: None,
            framing: Framing::default(),
            known: KnownAttributes::default(),
            offered: Vec::new(),
            open: None,
            sent_open: Bytes::new(),
            received_open: Bytes::new(),
            delay_open_deadline: None,
            read_deadline: None,
            keepalive_due: false,
            refresh_due: FamilySet::EMPTY,
            hold_deadline: Some(now + CONNECT_TIMEOUT),
            keepalive_deadline: None,
            send_hold_deadline: None,
        }
    }

    /// TCP is up: send OPEN and wait for the neighbour's, or the other way round.
    pub(super) fn connected(
        &mut self,
        now: Instant,
        connected: Connected,
        config: &PeerConfig,
        own_restart: OwnRestart,
    ) {
        let Connected { local, remote, next_hops, networks } = connected;
        self.local = Some(local);
        self.remote = Some(remote);
        self.ends = Some(Arc::new(ConnectionEnds { local, remote }));
        self.next_hops = next_hops;
        self.networks = networks;
        let open = our_open(config, own_restart);
        self.sent_open = open.encode();
        self.open = Some(self.sent_open.clone());
        self.offered = open.capabilities;
        match config.delay_open_time {
            Some(delay) => {
                self.delay_open_deadline = Some(now + delay);
                self.hold_deadline = None;
            }
            None => self.release_open(now),
        }
    }

    /// Our OPEN may be sent.
    fn release_open(&mut self, now: Instant) {
        self.delay_open_deadline = None;
        self.state = SessionState::OpenSent;
        self.hold_deadline = Some(now + OPEN_TIMEOUT);
    }

    /// The addresses of this end.
    pub(super) fn own_addresses(&self) -> Vec<IpAddr> {
        let LocalNextHops { ipv4, ipv6, ipv6_link_local, .. } = self.next_hops;
        let local = self.local.map(|local| local.ip());
        let ipv6 = [ipv6, ipv6_link_local].map(|it| it.map(IpAddr::V6));
        [local, ipv4.map(IpAddr::V4)].into_iter().chain(ipv6).flatten().collect()
    }

    /// Those of `next_hops` that the session needs, by what was negotiated.
    pub(super) fn agreed(&self, next_hops: LocalNextHops) -> LocalNextHops {
        match (&self.negotiated, self.local) {
            (Some(agreed), Some(local)) => {
                next_hops.agreed(agreed.families, agreed.extended_next_hop, local.ip())
            }
            _ => next_hops,
        }
    }

    /// AS numbers have four octets.
    pub(super) fn has_four_octet_as(&self) -> bool {
        self.negotiated.as_ref().is_none_or(|it| it.four_octet_as)
    }

    /// TCP is up.
    pub(super) fn is_connected(&self) -> bool {
        self.remote.is_some()
    }

    /// What both sides agreed on for restarts; nothing before both have sent OPEN.
    pub(super) fn restarts(&self) -> Restarts {
        self.negotiated.as_ref().map(|it| it.restarts).unwrap_or_default()
    }

    /// Our OPEN has been sent, or may be. Before it no NOTIFICATION is sent (RFC 4271 §8.1.1,
    /// SendNOTIFICATIONwithoutOPEN, which we do not offer).
    pub(super) fn has_spoken(&self) -> bool {
        self.state >= SessionState::OpenSent
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.framing.push(bytes);
    }

    /// Nothing is in the way of [`Connection::next_message`].
    pub(super) fn may_be_read(&self) -> bool {
        self.read_deadline.is_none()
    }

    pub(super) fn next_message(&mut self) -> Result<Option<RawMessage>, WireError> {
        self.framing.next_message()
    }

    /// Processes one message.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        message: &RawMessage,
        config: &PeerConfig,
        rng: &mut Rng,
    ) -> Result<Step, WireError> {
        use MessageType as M;
        use SessionState as S;
        match (self.state, message.kind) {
            (_, M::Notification) => Ok(Step::Notification(Notification::parse(&message.body))),
            // Before OpenSent only a connection that waits for this OPEN can process a message.
            (S::Connect | S::Active | S::OpenSent, M::Open) => {
                let offered = self.offered.clone();
                let negotiated = negotiate(config, offered, Open::parse(&message.body)?)?;
                self.received_open = whole(message);
                self.delay_open_deadline = None;
                self.state = S::OpenConfirm;
                self.keepalive_interval = negotiated.keepalive_interval(config);
                if negotiated.extended_message {
                    self.framing.allow_extended_messages();
                }
                self.negotiated = Some(negotiated);
                self.keepalive_due = true;
                self.restart_hold_timer(now);
                self.restart_keepalive_timer(now, rng);
                Ok(Step::OpenConfirm)
            }
            (S::OpenConfirm, M::Keepalive) => {
                self.state = S::Established;
                self.restart_hold_timer(now);
                self.restart_send_hold_timer(now);
                Ok(Step::Established)
            }
            (S::Established, M::Keepalive) => {
                self.restart_hold_timer(now);
                Ok(Step::Nothing)
            }
            (S::Established, M::Update) => {
                self.restart_hold_timer(now);
                let agreed = self.negotiated.as_ref();
                let context = UpdateContext {
                    kind: config.kind(),
                    four_octet_as: agreed.is_some_and(|it| it.four_octet_as),
                    families: agreed.map_or(FamilySet::EMPTY, |it| it.families),
                    extended_next_hop: agreed.is_some_and(|it| it.extended_next_hop),
                    add_path: agreed.map_or(FamilySet::EMPTY, |it| it.add_path_received),
                };
                Update::parse_knowing(&message.body, context, &mut self.known).map(Step::Update)
            }
            (S::Established, M::RouteRefresh) => {
                RouteRefresh::parse(&message.body).map(Step::Refresh)
            }
            (state, kind) => Err(unexpected(state, kind)),
        }
    }

    /// The hold timer runs from the last KEEPALIVE or UPDATE (RFC 4271 §6.5). Where it is off, a
    /// connection must still become a session, or it would hold its slot forever.
    fn restart_hold_timer(&mut self, now: Instant) {
        let hold_time = self.negotiated.as_ref().and_then(|it| it.hold_time.duration());
        let opening = self.state < SessionState::Established;
        let hold_time = hold_time.or(opening.then_some(OPEN_TIMEOUT));
        self.hold_deadline = hold_time.map(|hold_time| now + hold_time);
    }

    /// The send hold timer runs from the last bytes that the socket took (RFC 9687 §4). Without a
    /// hold timer there is none.
    pub(super) fn restart_send_hold_timer(&mut self, now: Instant) {
        let hold_time = self.negotiated.as_ref().and_then(|it| it.hold_time.duration());
        self.send_hold_deadline = hold_time
            .filter(|_| self.state == SessionState::Established)
            .map(|hold_time| now + hold_time.saturating_mul(2).max(SEND_HOLD_TIME_MIN));
    }

    /// KeepaliveTimer runs from the last KEEPALIVE or UPDATE (RFC 4271 §8.2.2).
    pub(super) fn restart_keepalive_timer(&mut self, now: Instant, rng: &mut Rng) {
        self.keepalive_deadline = self
            .keepalive_interval
            .map(|interval| now + rng.jittered(interval).max(KEEPALIVE_INTERVAL_MIN));
    }

    /// The operator configured another keepalive interval.
    pub(super) fn reconfigure(&mut self, now: Instant, config: &PeerConfig, rng: &mut Rng) {
        let interval = self.negotiated.as_ref().and_then(|it| it.keepalive_interval(config));
        if interval != self.keepalive_interval {
            self.keepalive_interval = interval;
            self.restart_keepalive_timer(now, rng);
        }
    }

    /// Handles the timers that are due at `now`. A fault means that the neighbour was silent for too long.
    pub(super) fn tick(&mut self, now: Instant, rng: &mut Rng) -> Result<(), WireError> {
        if let Some(deadline) = self.hold_deadline.filter(|deadline| *deadline <= now) {
            if now.since(deadline) > LATE {
                // `Ours:` what the neighbour sent meanwhile is still in the socket. The next tick comes in
                // time and decides.
                self.hold_deadline = Some(now + GRACE);
                return Ok(());
            }
            let negotiated = self.negotiated.as_ref().map(|it| it.hold_time.seconds());
            let seconds = negotiated.unwrap_or(u16::try_from(OPEN_TIMEOUT.as_secs()).unwrap_or(0));
            return Err(WireError::HoldTimerExpired(seconds));
        }
        if self.delay_open_deadline.is_some_and(|deadline| deadline <= now) {
            self.release_open(now);
        }
        if self.send_hold_deadline.is_some_and(|deadline| deadline <= now) {
            return Err(WireError::SendHoldTimerExpired);
        }
        if self.keepalive_deadline.is_some_and(|deadline| deadline <= now) {
            self.keepalive_due = true;
            self.restart_keepalive_timer(now, rng);
        }
        Ok(())
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let timers = [
            self.delay_open_deadline,
            self.read_deadline,
            self.hold_deadline,
            self.keepalive_deadline,
            self.send_hold_deadline,
        ];
        timers.into_iter().flatten().min()
    }

    /// The timers that run, and when each expires.
    #[cfg(test)]
    pub(super) fn timers(&self) -> Vec<(&'static str, Instant)> {
        // Until TCP is up the dial timeout is stored in place of the hold timer.
        let hold = if self.is_connected() { "hold" } else { "connect" };
        let timers = [
            ("delay", self.delay_open_deadline),
            ("read", self.read_deadline),
            (hold, self.hold_deadline),
            ("keepalive", self.keepalive_deadline),
            ("send", self.send_hold_deadline),
        ];
        timers.into_iter().filter_map(|(name, deadline)| Some((name, deadline?))).collect()
    }

    /// The next message that is not an UPDATE, if one waits to be written.
    pub(super) fn take_control(&mut self) -> Option<(MessageType, Bytes)> {
        if self.delay_open_deadline.is_some() {
            return None;
        }
        if let Some(open) = self.open.take() {
            return Some((MessageType::Open, open));
        }
        if std::mem::take(&mut self.keepalive_due) {
            return Some((MessageType::Keepalive, keepalive()));
        }
        let family = self.refresh_due.iter().next()?;
        self.refresh_due.remove(family);
        Some((MessageType::RouteRefresh, RouteRefresh::request(family).encode()))
    }

    /// Whether [`Connection::take_control`] has something.
    pub(super) fn has_control(&self) -> bool {
        let waiting = self.open.is_some() || self.keepalive_due || !self.refresh_due.is_empty();
        waiting && self.delay_open_deadline.is_none()
    }
}

/// A message that the state does not allow (RFC 6608).
fn unexpected(state: SessionState, kind: MessageType) -> WireError {
    let subcode = match state {
        SessionState::OpenSent => 1,
        SessionState::OpenConfirm => 2,
        SessionState::Established => 3,
        SessionState::Unknown
        | SessionState::Idle
        | SessionState::Connect
        | SessionState::Active => 0,
    };
    WireError::UnexpectedMessage { message: kind, state: state.name(), subcode }
}
