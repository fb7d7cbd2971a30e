//! A neighbour as the operator sees it: dialled and dialling, up or down, and its advertised routes.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::backoff::Backoff;
use super::connection::{Connection, ConnectionId, Step};
use super::graceful_restart::takes_long_lived;
use super::monitor::Monitor;
use super::outbound::Outbound;
use super::reason::DownReason;
use super::receive::{Inbound, Malformed};
use super::recorder::Recorder;
use super::restart::Comeback;
use crate::rib::{AdjRibOut, Encoding, Exporter};
use crate::wire::notification::cease;
use crate::wire::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, MESSAGE_LENGTH_BYTES_MAX, MessageType, Notification,
    RawMessage, WireError,
};
use fairway_ground::{AddressFamily, FamilySet, Instant, LocalNextHops, Prefix, Rng};
use fairway_rpki::OriginTable;
use fairway_seam::{
    DrainState, Liveness, MalformedCounters, MessageCounters, PathSource, PeerConfig, RouteChange,
    SessionState,
};

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// TCP came up, for a dial that [`Action::Connect`] asked for.
    Connected(ConnectionId, Connected),
    /// TCP did not come up.
    ConnectFailed(ConnectionId, String),
    /// Bytes came.
    Received(ConnectionId, &'a [u8]),
    /// TCP ended: in order, or with an error.
    Closed(ConnectionId, Option<String>),
    /// BFD reports the state of the path to the neighbour.
    Bfd(Liveness),
    /// A deadline may have passed.
    Tick,
}

/// The two ends of a connection that came up.
#[derive(Debug, Clone)]
pub struct Connected {
    /// Our end.
    pub local: SocketAddr,
    /// Its end.
    pub remote: SocketAddr,
    /// The addresses that our end may offer as next hops.
    pub next_hops: LocalNextHops,
    /// The networks that this machine is on; empty when they are not known.
    pub networks: Vec<Prefix>,
}

/// What to do.
#[derive(Debug)]
pub enum Action {
    /// Dial the neighbour.
    Connect(ConnectionId),
    /// End a connection, after what is on its way and these last bytes, which may be none. Without
    /// them it ends at once.
    Close(ConnectionId, Option<Bytes>),
    /// The session is up: [`Peer::announce_all`] is due.
    Established,
    /// The session is down.
    Down(DownReason),
    /// An attempt failed.
    AttemptFailed(DownReason),
    /// Routes of this session were accepted, or those that were are gone.
    Routes(Arc<PathSource>, Vec<RouteChange>),
    /// The neighbour has sent all its routes of this family, after those before. Only where somebody monitors it.
    AllRoutes(AddressFamily),
    /// A malformed UPDATE came.
    Malformed(Malformed),
    /// The number of the neighbour's prefixes comes near the maximum; this is the number.
    NearMaximum(AddressFamily, u32),
}

/// How often a neighbour that dials again is sent a Cease because a session exists already.
const REJECTION_GAP: Duration = Duration::from_secs(1);

/// One neighbour.
#[derive(Debug)]
pub struct Peer {
    pub(super) config: PeerConfig,
    pub(super) outgoing: Option<Connection>,
    pub(super) incoming: Option<Connection>,
    pub(super) established: Option<Established>,
    /// What the last session left behind, while the neighbour may restart.
    pub(super) retained: Option<Inbound>,
    /// What RPKI caches say. Shared with all peers.
    pub(super) origins: Arc<OriginTable>,
    /// What was said last.
    pub(super) recorder: Recorder,
    /// What is told to those that monitor this node.
    pub(super) monitor: Option<Box<Monitor>>,
    /// The end of a wait: for the next dial, or, where none is made, until Idle is over.
    pub(super) dial_at: Option<Instant>,
    /// It waits because a session ended, not because TCP failed.
    pub(super) idle_hold: bool,
    pub(super) messages: MessageCounters,
    pub(super) malformed: MalformedCounters,
    pub(super) last_malformed: Option<(Instant, Malformed)>,
    pub(super) connections_established: u64,
    pub(super) connections_dropped: u64,
    /// Sessions that were ended by a limit.
    pub(super) limit_exceeded: u64,
    pub(super) panics: u64,
    pub(super) changed_at: Option<Instant>,
    /// The end of the last session, or of the last attempt that a NOTIFICATION ended.
    pub(super) last_reset: Option<(Instant, DownReason)>,
    /// The failure of the last attempt since then, if that was less than an answer. It does not replace a
    /// reason that says more.
    pub(super) last_attempt: Option<(Instant, DownReason)>,
    pub(super) last_read: Option<Instant>,
    pub(super) last_write: Option<Instant>,
    /// When a connection was last refused because a session exists already.
    rejected_at: Option<Instant>,
    /// Until when no connection is accepted either.
    pub(super) refused_until: Option<Instant>,
    /// Why it has no session, whatever the operator wants.
    pub(super) set_aside: Option<String>,
    /// The BFD state of the path, and when it changed.
    pub(super) liveness: Liveness,
    pub(super) liveness_at: Option<Instant>,
    /// Whether routes advertised to it attract traffic to this node.
    pub(super) drain: DrainState,
    /// When it was configured.
    pub(super) since: Instant,
    pub(super) comeback: Comeback,
    pub(super) backoff: Backoff,
    pub(super) rng: Rng,
    pub(super) incarnation: u64,
    pub(super) connections: u64,
    pub(super) actions: VecDeque<Action>,
}

/// What exists only while the session is up.
#[derive(Debug)]
pub(super) struct Established {
    pub(super) connection: ConnectionId,
    pub(super) since: Instant,
    pub(super) families: FamilySet,
    pub(super) outbound: Outbound,
    pub(super) inbound: Inbound,
}

impl Peer {
    /// A neighbour that is dialled at once, unless it is passive or shut down. `incarnation` is a
    /// number that no other peer has had; with `seed` it decides the jitter.
    pub fn new(now: Instant, config: PeerConfig, seed: u64, incarnation: u64) -> Self {
        let mut peer = Self {
            config,
            outgoing: None,
            incoming: None,
            established: None,
            retained: None,
            origins: Arc::default(),
            recorder: Recorder::default(),
            monitor: None,
            dial_at: None,
            idle_hold: false,
            messages: MessageCounters::default(),
            malformed: MalformedCounters::default(),
            last_malformed: None,
            connections_established: 0,
            connections_dropped: 0,
            limit_exceeded: 0,
            panics: 0,
            changed_at: None,
            last_reset: None,
            last_attempt: None,
            last_read: None,
            last_write: None,
            rejected_at: None,
            refused_until: None,
            set_aside: None,
            liveness: Liveness::default(),
            liveness_at: None,
            drain: DrainState::default(),
            since: now,
            comeback: Comeback::default(),
            backoff: Backoff::default(),
            rng: Rng::seeded(seed.wrapping_add(incarnation)),
            incarnation,
            connections: 0,
            actions: VecDeque::new(),
        };
        peer.begin(now);
        peer
    }

    /// The settings in force.
    pub fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// Takes note of what happened.
    pub fn handle(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::Connected(id, connected) => self.connected(now, id, connected),
            Event::ConnectFailed(id, why) => {
                if self.outgoing.as_ref().is_some_and(|it| it.id == id) {
                    self.outgoing = None;
                    self.connect_failed(now, DownReason::ConnectFailed(why));
                }
            }
            Event::Received(id, bytes) => self.received(now, id, bytes),
            Event::Closed(id, None) => self.end(now, id, DownReason::Closed),
            Event::Closed(id, Some(why)) => self.end(now, id, DownReason::Broken(why)),
            Event::Bfd(liveness) => self.hear_bfd(now, liveness),
            Event::Tick => self.tick(now),
        }
        self.read_what_waited(now);
    }

    /// The neighbour dialled us. Accepted in Idle, too.
    ///
    /// `Ours:` RFC 4271 §8.2.2 refuses connections in Idle; a neighbour that has just restarted
    /// would then wait for our own timer without need.
    pub fn accept(&mut self, now: Instant, connected: Connected) -> ConnectionId {
        let id = self.new_id();
        if self.is_held() {
            // It was shut down while it dialled, or connects before BFD is Up.
            self.wait_for_bfd(now);
            self.actions.push_back(Action::Close(id, None));
            return id;
        }
        let refusal = if self.established.is_some() && !self.may_be_replaced(now) {
            // An Established session wins (RFC 4271 §6.8).
            Some(cease::COLLISION)
        } else if self.refused_until.is_some_and(|until| now < until) {
            Some(cease::CONNECTION_REJECTED)
        } else {
            None
        };
        if let Some(subcode) = refusal {
            // A neighbour that ignores it does not get it again: a NOTIFICATION keeps a socket for a while.
            let told = self.rejected_at.is_some_and(|at| now.since(at) < REJECTION_GAP);
            let notification = (!told).then(|| Notification::cease(subcode).encode());
            if notification.is_some() {
                self.messages.sent.notifications += 1;
                self.rejected_at = Some(now);
            }
            self.actions.push_back(Action::Close(id, notification));
            return id;
        }
        self.make_room_for_incoming();
        if let Some(older) = self.incoming.take() {
            // A neighbour that dials a second time has given up the first connection.
            self.actions.push_back(Action::Close(older.id, None));
        }
        let mut connection = Connection::new(now, id, SessionState::Active);
        connection.connected(now, connected, &self.config, self.own_restart(now));
        self.recorder.state(now, &connection, SessionState::Active, "");
        self.incoming = Some(connection);
        self.wait_for_our_dial(now);
        id
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to be woken with [`Event::Tick`].
    pub fn next_deadline(&self) -> Option<Instant> {
        let connections = self.outgoing.iter().chain(&self.incoming);
        let deadlines = connections.filter_map(Connection::next_deadline);
        let kept = self.refresh_deadline().into_iter().chain(self.stale_deadline());
        deadlines.chain(self.dial_at).chain(kept).chain(self.end_of_rib_deadline()).min()
    }

    fn connected(&mut self, now: Instant, id: ConnectionId, connected: Connected) {
        let own_restart = self.own_restart(now);
        match self.outgoing.as_mut().filter(|it| it.id == id) {
            Some(connection) => {
                connection.connected(now, connected, &self.config, own_restart);
                self.recorder.state(now, connection, SessionState::Connect, "");
                self.backoff.connected();
            }
            // It was given up while the dial was on its way.
            None => self.actions.push_back(Action::Close(id, None)),
        }
    }

    fn received(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.last_read = Some(now);
        if let Some(connection) = self.connection_mut(id) {
            connection.receive(bytes);
        }
        self.read(now, id);
    }

    /// Processes the messages that have come in on a connection.
    pub(super) fn read(&mut self, now: Instant, id: ConnectionId) {
        // A message may end the connection: look it up each time.
        while let Some(connection) = self.connection_mut(id).filter(|it| it.may_be_read()) {
            match connection.next_message() {
                Ok(None) => break,
                Ok(Some(message)) => self.message(now, id, &message),
                Err(error) => self.end(now, id, error.into()),
            }
        }
    }

    fn message(&mut self, now: Instant, id: ConnectionId, message: &RawMessage) {
        let received = &mut self.messages.received;
        *match message.kind {
            MessageType::Open => &mut received.opens,
            MessageType::Update => &mut received.updates,
            MessageType::Notification => &mut received.notifications,
            MessageType::Keepalive => &mut received.keepalives,
            MessageType::RouteRefresh => &mut received.route_refreshes,
        } += 1;
        let Self { outgoing, incoming, config, rng, recorder, .. } = self;
        let Some(connection) = outgoing.iter_mut().chain(incoming).find(|it| it.id == id) else {
            return;
        };
        recorder.message(now, connection, true, [&message.header(), &message.body]);
        let before = connection.state;
        let step = connection.handle(now, message, config, rng);
        recorder.state(now, connection, before, "");
        let ended = self.note_step(step.as_ref(), message);
        match step {
            Ok(Step::Nothing) => {}
            Ok(Step::OpenConfirm) => self.resolve_collision(now, id),
            Ok(Step::Established) => self.session_up(now, id),
            Ok(Step::Update(update)) => self.update(now, update, message),
            Ok(Step::Refresh(refresh)) => self.refresh_heard(now, refresh),
            Ok(Step::Notification(notification)) => {
                self.end(now, id, DownReason::Received(notification));
            }
            Err(error) => {
                let misplaced = matches!(error, WireError::UnexpectedMessage { .. });
                if message.kind == MessageType::Update && !misplaced {
                    self.malformed.resets += 1;
                    let malformed = Malformed::reset(&error, message);
                    self.last_malformed = Some((now, malformed.clone()));
                    self.actions.push_back(Action::Malformed(malformed));
                }
                self.end(now, id, error.into());
            }
        }
        self.note_all_routes(ended);
    }

    fn session_up(&mut self, now: Instant, id: ConnectionId) {
        self.end_all_but(now, id);
        let holds_end_of_rib = self.holds_end_of_rib();
        let Some(connection) = self.connection_mut(id) else { return };
        let Some(negotiated) = &connection.negotiated else { return };
        let (families, restarts) = (negotiated.families, negotiated.restarts);
        let takes_long_lived = takes_long_lived(&negotiated.capabilities_received);
        let mut adj_rib_out = AdjRibOut::new(families, negotiated.add_path_sent);
        let encoding = Encoding {
            four_octet_as: negotiated.four_octet_as,
            message_length_bytes_max: if negotiated.extended_message {
                EXTENDED_MESSAGE_LENGTH_BYTES_MAX
            } else {
                MESSAGE_LENGTH_BYTES_MAX
            },
        };
        if negotiated.enhanced_route_refresh {
            adj_rib_out.mark_refreshes();
        }
        if holds_end_of_rib {
            adj_rib_out.hold_end_of_rib();
        }
        connection.next_hops = connection.agreed(connection.next_hops);
        let next_hops = connection.next_hops;
        let Some(mut inbound) = Inbound::begin(&self.config, self.connection(id)) else { return };
        let exporter = Exporter::new(&self.config, families, next_hops, self.drain, encoding)
            .take_long_lived(takes_long_lived)
            .validate(&self.origins);
        let back = self.retained.take().map(|it| inbound.take_over(now, it, &restarts));
        self.established = Some(Established {
            connection: id,
            since: now,
            families,
            outbound: Outbound::new(adj_rib_out, exporter),
            inbound,
        });
        self.connections_established += 1;
        self.changed_at = Some(now);
        self.dial_at = None;
        self.last_attempt = None;
        self.actions.push_back(Action::Established);
        self.note_up();
        self.routes_changed(now, back.unwrap_or_default(), None);
    }

    /// A connection is over. The last one decides when to dial again.
    pub(super) fn end(&mut self, now: Instant, id: ConnectionId, reason: DownReason) {
        let dialled = self.outgoing.as_ref().is_some_and(|it| it.id == id);
        let Some(connection) = self.take_connection(id) else { return };
        let (reason, last_words) = match reason {
            DownReason::Sent { why, .. } if !connection.has_spoken() => {
                (DownReason::Broken(why), None)
            }
            DownReason::Sent { ref notification, .. } => {
                self.messages.sent.notifications += 1;
                let last_words = notification.encode();
                (reason, Some(last_words))
            }
            // What is on its way arrives, and then the end of the stream.
            DownReason::Left(_) => (reason, Some(Bytes::new())),
            _ => (reason, None),
        };
        self.recorder.end(now, &connection, &reason.to_string(), last_words.as_deref());
        self.actions.push_back(Action::Close(id, last_words));
        let up = self.established.take_if(|up| up.connection == id);
        let lasted = up.as_ref().map(|up| now.since(up.since));
        if lasted.is_some() {
            self.note_down(&reason);
        }
        if let (Some(up), Some(negotiated)) = (up, &connection.negotiated) {
            self.session_lost(now, up.inbound, &negotiated.restarts, &reason);
        }
        if lasted.is_none() && (self.outgoing.is_some() || self.incoming.is_some()) {
            // The other connection continues; this one only lost a collision.
            return;
        }
        if !self.is_dialled() {
            // No reason to wait: the neighbour may connect again at any time.
            self.idle_hold = self.dial_at.is_some() || self.is_held();
        } else if lasted.is_some() || dialled || self.dial_at.is_none() {
            let wait = self.backoff.after_session_ended(lasted, &mut self.rng);
            self.dial_at = Some(now + wait);
            self.idle_hold = true;
        }
        // Otherwise a short-lived connection would delay a dial that is due.
        if lasted.is_some() || reason.has_notification() {
            self.last_reset = Some((now, reason.clone()));
            self.last_attempt = None;
        } else {
            self.last_attempt = Some((now, reason.clone()));
        }
        if lasted.is_some() {
            self.connections_dropped += 1;
            self.changed_at = Some(now);
            self.actions.push_back(Action::Down(reason));
        } else {
            self.actions.push_back(Action::AttemptFailed(reason));
        }
    }

    fn connect_failed(&mut self, now: Instant, reason: DownReason) {
        let limit = self.config.connect_retry_interval;
        let wait = self.backoff.after_connect_failed(limit, &mut self.rng);
        self.idle_hold = false;
        if self.established.is_none() {
            self.dial_at = Some(now + wait);
            self.last_attempt = Some((now, reason.clone()));
            self.actions.push_back(Action::AttemptFailed(reason));
        }
    }

    fn tick(&mut self, now: Instant) {
        for id in self.connection_ids() {
            let Self { outgoing, incoming, rng, .. } = self;
            let connection = outgoing.iter_mut().chain(incoming).find(|it| it.id == id);
            let dialling = connection.as_ref().is_some_and(|it| !it.is_connected());
            match connection.map(|it| it.tick(now, rng)) {
                Some(Err(_)) if dialling => {
                    self.actions.push_back(Action::Close(id, None));
                    let why = "the dial was lost".to_owned();
                    self.handle(now, Event::ConnectFailed(id, why));
                }
                Some(Err(error)) => self.end(now, id, error.into()),
                _ => {}
            }
        }
        self.expire_refreshes(now);
        self.expire_stale(now);
        self.expire_end_of_rib(now);
        if self.dial_at.is_some_and(|at| at <= now) {
            self.dial_at = None;
            self.idle_hold = self.is_held();
            let free = self.outgoing.is_none() && self.established.is_none();
            if self.is_dialled() && free && !self.is_about_to_come_up() {
                let id = self.new_id();
                self.outgoing = Some(Connection::new(now, id, SessionState::Connect));
                self.actions.push_back(Action::Connect(id));
                self.wait_for_our_dial(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
