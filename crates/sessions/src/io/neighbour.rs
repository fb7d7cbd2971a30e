//! A neighbour and what runs for it: its links and dials, and what the log says of it.
//!
//! Does what the pure [`Peer`] wants done. Called by the core task, which owns it.

mod lateness;
mod log;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::AbortHandle;
use tracing::{debug, error, info, warn};

use super::addresses::{Addresses, LocalEnd};
use super::connection::Link;
use super::connection_keys::ConnectionKeys;
use super::core_task::Surroundings;
use super::dial::{DialError, dial};
use super::link::{LinkState, LinkWatch};
use super::{sockopt, tcp_ao};
use crate::backend::{SessionState, StalePhase, ViewScope};
use crate::bgp::{
    Action, Connected, ConnectionId, DownReason, Event, Peer, UntoldSince, WithdrawnUpTo,
};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{PathSource, PeerConfig, PeerKey, Remote, RouteChange};
use crate::wire::Notification;
use crate::wire::notification::cease;

/// Bytes given to a socket at once. Small enough that a change never waits behind much, large
/// enough that a full table needs few turns.
const TRANSMIT_LENGTH_BYTES: usize = 64 * 1024;

/// How long a peer is left alone after a fault of ours: the same bytes may bring it about again.
const FAULT_WAIT: Duration = Duration::from_secs(30);

/// What connections, dials and listeners report of a neighbour.
#[derive(Debug)]
pub(super) struct NetworkEvent {
    /// The neighbour.
    pub(super) key: PeerKey,
    /// What they report.
    pub(super) news: News,
}

/// See [`NetworkEvent`].
#[derive(Debug)]
pub(super) enum News {
    /// What is known of the link of an unnumbered neighbour has changed.
    Link(LinkState),
    /// The neighbour dialled us.
    Accepted { stream: TcpStream, remote: SocketAddr, end: LocalEnd },
    /// A dial succeeded.
    Connected { id: ConnectionId, stream: TcpStream, end: LocalEnd },
    /// A dial failed.
    ConnectFailed { id: ConnectionId, why: String },
    /// Bytes came. The next are read when the permit is dropped.
    Received { id: ConnectionId, bytes: Bytes, permit: OwnedSemaphorePermit },
    /// What was given to the writer has left.
    Written { id: ConnectionId },
    /// The connection ended, in order or with an error.
    Closed { id: ConnectionId, why: Option<String> },
}

/// What others are told of a neighbour when it changes.
#[derive(Debug, PartialEq, Eq)]
struct Noted {
    state: SessionState,
    updates_sent: u64,
    /// Every UPDATE has been written to its socket.
    is_written: bool,
}

/// A neighbour and what runs for it.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) peer: Peer,
    links: BTreeMap<ConnectionId, Link>,
    withdrawn_up_to: WithdrawnUpTo,
    untold: UntoldSince,
    pub(super) dials: BTreeMap<ConnectionId, AbortHandle>,
    /// What is known of its link, and who finds out, where it is unnumbered.
    link: LinkState,
    _watch: Option<LinkWatch>,
    /// Dials that failed one after the other: each tries another key of TCP-AO.
    dials_failed: usize,
    /// The keys are others than those that connections were told.
    pub(super) keys_changed: bool,
    /// The failure that was logged last, so that the same one is not logged for ever.
    pub(super) logged_failure: Option<String>,
    /// When a malformed UPDATE was logged last, and how many came since.
    malformed_logged_at: Option<Instant>,
    malformed_unlogged: u64,
    /// What is counted as a change when it is other.
    noted: Option<Noted>,
    /// How far its restart had come when that was logged last.
    logged_stale: Option<StalePhase>,
    /// What it announced and withdrew, on its way to the RIB.
    pub(super) changes: VecDeque<(Arc<PathSource>, Vec<RouteChange>)>,
}

impl Neighbour {
    /// A neighbour for which nothing runs yet, but for who watches the link of an unnumbered one.
    pub(super) fn new(peer: Peer, seed: u64, surroundings: &Surroundings) -> Self {
        let key = peer.config().key;
        let watch = |interface| LinkWatch::start(key, interface, seed, surroundings.events.clone());
        Self {
            link: LinkState::default(),
            _watch: key.interface().map(watch),
            peer,
            links: BTreeMap::new(),
            withdrawn_up_to: WithdrawnUpTo::default(),
            untold: UntoldSince::default(),
            dials: BTreeMap::new(),
            dials_failed: 0,
            keys_changed: false,
            logged_failure: None,
            malformed_logged_at: None,
            malformed_unlogged: 0,
            noted: None,
            logged_stale: None,
            changes: VecDeque::new(),
        }
    }

    /// Takes note of what happened.
    pub(super) fn hear(&mut self, now: Instant, news: News, surroundings: &Surroundings) {
        match news {
            News::Link(link) => {
                let is_new = link.router.is_some() && link.router != self.link.router;
                if let Some(why) = link.trouble.as_ref().filter(|it| it.is_gone()) {
                    self.peer.link_lost(now, &why.to_string());
                }
                self.link = link;
                if is_new {
                    self.peer.dial_soon(now);
                }
            }
            News::Accepted { stream, remote, end } => {
                self.accepted(now, stream, remote, end, surroundings);
            }
            News::Connected { id, stream, end } => {
                self.connected(now, id, stream, end, surroundings);
            }
            News::ConnectFailed { id, why } => {
                self.dials.remove(&id);
                self.dials_failed = self.dials_failed.wrapping_add(1);
                self.peer.handle(now, Event::ConnectFailed(id, why));
            }
            News::Received { id, bytes, permit } => {
                self.peer.handle(now, Event::Received(id, &bytes));
                drop(permit);
            }
            News::Written { id } => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.busy = false;
                }
                if !self.is_writing() {
                    self.withdrawn_up_to.written();
                    self.untold.written();
                }
            }
            News::Closed { id, why } => self.peer.handle(now, Event::Closed(id, why)),
        }
    }

    /// Ends everything and starts over, as another incarnation of the same peer.
    pub(super) fn begin_anew(&mut self, now: Instant, seed: u64, incarnation: u64) {
        let farewell = Notification::cease(cease::UNSPECIFIC).encode();
        for link in std::mem::take(&mut self.links).into_values() {
            link.finish(Some(farewell.clone()));
        }
        for dial in std::mem::take(&mut self.dials).into_values() {
            dial.abort();
        }
        // What it announced is forgotten with it.
        self.changes.clear();
        self.peer = self.peer.after_panic(now, now + FAULT_WAIT, seed, incarnation);
    }

    /// Does what the peer wants done.
    pub(super) fn act(&mut self, now: Instant, surroundings: &Surroundings) {
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Connect(id) => self.connect(id, &surroundings.events),
                Action::Close(id, last_words) => {
                    if let Some(dial) = self.dials.remove(&id) {
                        dial.abort();
                    }
                    if let Some(link) = self.links.remove(&id) {
                        link.finish(last_words);
                    }
                }
                Action::Established => {
                    self.peer.announce_all(&surroundings.rib);
                    self.log_up(now);
                }
                Action::Down(reason) => self.log_down(&reason),
                Action::AttemptFailed(reason) => self.log_failure(&reason),
                Action::Routes(source, changes) => {
                    self.log_routes(&changes);
                    self.changes.push_back((source, changes));
                }
                Action::Malformed(malformed) => self.log_malformed(now, &malformed),
                Action::NearMaximum(family, count) => self.log_near_maximum(family, count),
            }
        }
        self.log_stale(now);
        // Connections that had to go are gone: the others live on with the new keys.
        if std::mem::take(&mut self.keys_changed) {
            self.follow_keys();
        }
    }

    /// Gives every idle writer what the peer has for it.
    pub(super) fn transmit(&mut self, now: Instant) {
        for (id, link) in &mut self.links {
            if link.busy || !self.peer.wants_to_transmit(*id) {
                continue;
            }
            let mut bytes = BytesMut::new();
            self.peer.poll_transmit(now, *id, TRANSMIT_LENGTH_BYTES, &mut bytes);
            if !bytes.is_empty() {
                link.write(bytes.freeze());
            }
        }
    }

    fn is_writing(&self) -> bool {
        self.links.values().any(|link| link.busy)
    }

    /// Looks how far it knows what is gone in `generation`, which is in force; says whether it knows
    /// more than before.
    pub(super) fn note_withdrawals(&mut self, now: Instant, generation: u64, before: u64) -> bool {
        let (owes, is_writing) = (self.peer.owes_withdrawals(now), self.is_writing());
        self.withdrawn_up_to.given(generation, owes, is_writing);
        self.withdrawn_up_to.generation() > before
    }

    /// All that was gone in this generation has been written to its socket.
    pub(super) fn withdrawn_up_to(&self) -> u64 {
        self.withdrawn_up_to.generation()
    }

    /// Whether something for it waits, or is on its way to its socket.
    pub(super) fn is_being_told(&self) -> bool {
        self.links.iter().any(|(id, link)| link.busy || self.peer.wants_to_transmit(*id))
    }

    /// Whether its session, or what it was told, is other than at the last call.
    pub(super) fn note_changes(&mut self) -> bool {
        let updates_sent = self.peer.updates_sent();
        let before = self.noted.as_ref();
        let knew_all = before.is_some_and(|it| it.is_written && it.updates_sent == updates_sent);
        // Bytes on their way are news after an UPDATE alone: each KEEPALIVE is on its way, too.
        let is_written = knew_all || !self.is_being_told();
        let noted = Noted { state: self.peer.state(), updates_sent, is_written };
        let is_other = before != Some(&noted);
        self.noted = Some(noted);
        is_other
    }

    fn connect(&mut self, id: ConnectionId, events: &mpsc::Sender<NetworkEvent>) {
        let config = self.peer.config().clone();
        let remote = self.remote();
        let events = events.clone();
        let attempt = self.dials_failed;
        let task = tokio::spawn(async move {
            let key = config.key;
            let dialled = match remote {
                Ok(remote) => dial(&config, remote, attempt).await,
                Err(error) => Err(error),
            };
            let news = match dialled {
                Ok(stream) => {
                    let end = stream.local_addr().map(|local| LocalEnd::at(local, key.vrf));
                    News::Connected { id, stream, end: end.unwrap_or_default() }
                }
                Err(error) => News::ConnectFailed { id, why: error.to_string() },
            };
            // Without a core there is nobody to tell.
            let _ = events.send(NetworkEvent { key, news }).await;
        });
        self.dials.insert(id, task.abort_handle());
    }

    /// The router of its link, where it is unnumbered and one was heard.
    pub(super) fn router(&self) -> Option<Ipv6Addr> {
        self.link.router.map(|(address, _)| address)
    }

    /// Where it is to be dialled.
    fn remote(&self) -> Result<SocketAddr, DialError> {
        let PeerConfig { key, port, .. } = self.peer.config();
        match key.remote {
            Remote::Address(address) => Ok(SocketAddr::new(address, *port)),
            Remote::Interface(interface) => match (self.link.remote(*port), &self.link.trouble) {
                (Some(remote), _) => Ok(remote.into()),
                (None, Some(trouble)) => Err(trouble.clone().into()),
                (None, None) => Err(DialError::NoRouter(interface)),
            },
            Remote::Range(_) => Err(DialError::NoAddress),
        }
    }

    fn connected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        stream: TcpStream,
        end: LocalEnd,
        surroundings: &Surroundings,
    ) {
        if self.dials.remove(&id).is_none() {
            return; // Given up meanwhile; dropping the stream closes it.
        }
        self.dials_failed = 0;
        match self.prepare(&stream, end) {
            Ok((connected, keys)) => {
                let key = self.peer.config().key;
                let Surroundings { events, tasks, .. } = surroundings;
                self.links.insert(id, Link::start(key, id, stream, keys, events, tasks));
                self.peer.handle(now, Event::Connected(id, connected));
            }
            Err(why) => self.peer.handle(now, Event::ConnectFailed(id, why)),
        }
    }

    fn accepted(
        &mut self,
        now: Instant,
        stream: TcpStream,
        remote: SocketAddr,
        end: LocalEnd,
        surroundings: &Surroundings,
    ) {
        let key = self.peer.config().key;
        match self.is_from_router(remote.ip()).and_then(|()| self.prepare(&stream, end)) {
            Ok((connected, keys)) => {
                debug!(peer = %key, %remote, "connection accepted");
                let id = self.peer.accept(now, connected);
                let Surroundings { events, tasks, .. } = surroundings;
                self.links.insert(id, Link::start(key, id, stream, keys, events, tasks));
            }
            Err(why) => warn!(peer = %key, %remote, why, "cannot use an accepted connection"),
        }
    }

    /// Looks whether this end of the session can be reached elsewhere than before, and who is next
    /// door.
    pub(super) fn follow_addresses(&mut self, now: Instant, addresses: &Addresses, rib: &LocRib) {
        let Some(local) = self.peer.local_address() else { return };
        let LocalEnd { next_hops, networks } = addresses.end_at(local, self.peer.config().key.vrf);
        if self.peer.set_next_hops(rib, next_hops) {
            let config = self.peer.config();
            let (ipv4, ipv6) = (next_hops.ipv4, next_hops.ipv6);
            info!(peer = %config.key, name = config.name, ?ipv4, ?ipv6, "next hops changed");
        }
        self.peer.set_networks(now, &networks);
    }

    /// Listeners hold the keys of an unnumbered neighbour only once it was heard. A connection from
    /// before that, or from another address of the link, is not let in without them.
    fn is_from_router(&self, remote: IpAddr) -> Result<(), String> {
        let PeerConfig { key, password, tcp_ao, .. } = self.peer.config();
        let has_keys = password.is_some() || !tcp_ao.is_empty();
        let router = self.link.router.map(|(address, _)| IpAddr::V6(address));
        if key.interface().is_some() && has_keys && router != Some(remote) {
            return Err("it was not heard as the router of the link, whose keys are known".into());
        }
        Ok(())
    }

    /// Looks whether this machine can have a session with it.
    pub(super) fn examine(&mut self, now: Instant) {
        let unsupported = tcp_ao::supports(&self.peer.config().tcp_ao).err();
        if self.peer.set_aside(now, unsupported.map(|why| why.to_string())) {
            let config = self.peer.config();
            match unsupported {
                Some(why) => error!(peer = %config.key, name = config.name, %why, "set aside"),
                None => info!(peer = %config.key, name = config.name, "no longer set aside"),
            }
        }
    }

    /// Brings the keys of all connections up to date. One that cannot be is left as it is: the
    /// hold timer knows whether it still works.
    pub(super) fn follow_keys(&mut self) {
        let config = self.peer.config();
        let (peer, name) = (config.key, &config.name);
        for keys in self.links.values_mut().filter_map(|link| link.keys.as_mut()) {
            match keys.follow(config) {
                Ok(changes) => {
                    for change in &changes {
                        info!(%peer, name, %change, "TCP-AO");
                    }
                    if !changes.is_empty() && keys.is_rolling(config) {
                        info!(
                            %peer, name,
                            "TCP-AO: a key that is no longer in the list stays until the neighbour \
                             uses another"
                        );
                    }
                }
                Err(cause) => warn!(%peer, name, %cause, "a connection did not take its keys"),
            }
        }
    }

    /// Looks whether old keys are still in use.
    pub(super) fn follow_rollover(&mut self) {
        let config = self.peer.config();
        let mut keys = self.links.values().filter_map(|link| link.keys.as_ref());
        if keys.any(|keys| keys.is_rolling(config)) {
            self.follow_keys();
        }
    }

    /// Options that both kinds of connection need, and the keys of those that have any.
    fn prepare(
        &self,
        stream: &TcpStream,
        end: LocalEnd,
    ) -> Result<(Connected, Option<ConnectionKeys>), String> {
        let config = self.peer.config();
        let text = |error: std::io::Error| error.to_string();
        let local = stream.local_addr().map_err(text)?;
        let remote = stream.peer_addr().map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        sockopt::set_network(stream, local.ip(), config.ttl()).map_err(|it| it.to_string())?;
        // An accepted connection has that of its listener, which suits others, too.
        let least = config.ttl_min().unwrap_or(0);
        sockopt::set_ttl_min(stream, local.ip(), least).map_err(|it| it.to_string())?;
        sockopt::set_keepalive(stream).map_err(|it| it.to_string())?;
        let keys = ConnectionKeys::of(stream, config).map_err(|it| it.to_string())?;
        let LocalEnd { next_hops, networks } = end;
        Ok((Connected { local, remote, next_hops, networks }, keys))
    }

    fn log_up(&mut self, now: Instant) {
        self.logged_failure = None;
        let view = self.peer.view(now, ViewScope::SESSIONS);
        let Some(session) = view.session else { return };
        let families: Vec<String> = session.families.iter().map(|it| it.to_string()).collect();
        info!(
            peer = %view.config.key,
            name = view.config.name,
            remote_as = %session.remote_asn,
            router_id = %session.remote_router_id,
            families = families.join(", "),
            hold_time_seconds = session.hold_time_seconds,
            "session up"
        );
    }

    fn log_down(&self, reason: &DownReason) {
        let config = self.peer.config();
        match reason {
            // We meant it.
            DownReason::Sent { notification: Notification { code: 6, subcode, .. }, .. }
                if *subcode != cease::BFD_DOWN =>
            {
                info!(peer = %config.key, name = config.name, reason = %reason, "session down");
            }
            DownReason::Left(_) => {
                info!(peer = %config.key, name = config.name, reason = %reason, "session down");
            }
            _ => warn!(peer = %config.key, name = config.name, reason = %reason, "session down"),
        }
    }

    fn log_failure(&mut self, reason: &DownReason) {
        let config = self.peer.config();
        let reason = reason.to_string();
        // One that nobody named is forgotten when it leaves: it could fill the log with one line.
        if config.is_dynamic() || self.logged_failure.as_ref() == Some(&reason) {
            debug!(peer = %config.key, name = config.name, reason, "no session");
        } else {
            warn!(
                peer = %config.key, name = config.name, reason,
                "no session; trying again, and silent until the reason changes"
            );
            self.logged_failure = Some(reason);
        }
    }
}
