//! The task that owns the RIB and all peers.
//!
//! One loop: something happened, the peers it concerns act, sockets with room are filled, sleep
//! until the next deadline. Everything it waits for is cancel-safe (`recv`, `changed`, a sleep),
//! and nothing it does waits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

use super::addresses::next_hops;
use super::clock::Clock;
use super::connection::Link;
use super::dial::dial;
use super::sockopt;
use crate::backend::{BgpView, Desired};
use crate::bgp::{Action, Connected, ConnectionId, DownReason, Event, Peer};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{LocalNextHops, Password, PeerConfig, PeerKey};
use crate::wire::Update;
use crate::wire::notification::cease;

/// Bytes given to a socket at once. Small enough that a change never waits behind much, large
/// enough that a full table needs few turns.
const TRANSMIT_LENGTH_BYTES: usize = 64 * 1024;
/// Events handled before sockets are filled and deadlines looked at.
const BURST_MAX: usize = 64;

/// What connections, dials and listeners report.
#[derive(Debug)]
pub(super) enum NetworkEvent {
    /// A neighbour dialled us.
    Accepted { key: PeerKey, stream: TcpStream, remote: SocketAddr },
    /// A dial succeeded.
    Connected { key: PeerKey, id: ConnectionId, stream: TcpStream, next_hops: LocalNextHops },
    /// A dial failed.
    ConnectFailed { key: PeerKey, id: ConnectionId, why: String },
    /// Bytes came.
    Received { key: PeerKey, id: ConnectionId, bytes: Bytes },
    /// What was given to the writer has left.
    Written { key: PeerKey, id: ConnectionId },
    /// The connection ended.
    Closed { key: PeerKey, id: ConnectionId },
}

/// What the backend asks.
#[derive(Debug)]
pub(super) enum Command {
    /// A snapshot.
    View(oneshot::Sender<BgpView>),
    /// End all sessions; answered when everything is on its way.
    Shutdown(oneshot::Sender<()>),
}

/// A neighbour and what runs for it.
#[derive(Debug)]
struct Neighbour {
    peer: Peer,
    links: BTreeMap<ConnectionId, Link>,
    dials: BTreeMap<ConnectionId, AbortHandle>,
    /// The failure that was logged last, so that the same one is not logged for ever.
    logged_failure: Option<String>,
}

/// The state of the loop.
#[derive(Debug)]
pub(super) struct CoreTask {
    clock: Clock,
    rib: LocRib,
    neighbours: BTreeMap<PeerKey, Neighbour>,
    generation: u64,
    listeners: Vec<Arc<TcpListener>>,
    known: watch::Sender<Arc<BTreeSet<IpAddr>>>,
    events: mpsc::Sender<NetworkEvent>,
    tasks: TaskTracker,
    seed: u64,
}

impl CoreTask {
    pub(super) fn new(
        listeners: Vec<Arc<TcpListener>>,
        known: watch::Sender<Arc<BTreeSet<IpAddr>>>,
        events: mpsc::Sender<NetworkEvent>,
        tasks: TaskTracker,
        seed: u64,
    ) -> Self {
        Self {
            clock: Clock::start(),
            rib: LocRib::default(),
            neighbours: BTreeMap::new(),
            generation: 0,
            listeners,
            known,
            events,
            tasks,
            seed,
        }
    }

    /// Runs until the backend is dropped or told to shut down.
    pub(super) async fn run(
        mut self,
        mut desired: watch::Receiver<Arc<Desired>>,
        mut commands: mpsc::Receiver<Command>,
        mut network: mpsc::Receiver<NetworkEvent>,
    ) {
        loop {
            let deadline = self.neighbours.values().filter_map(|it| it.peer.next_deadline()).min();
            let clock = self.clock;
            let wake = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(clock.at(deadline)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = desired.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let wanted = Arc::clone(&desired.borrow_and_update());
                    self.apply(&wanted);
                }
                Some(event) = network.recv() => {
                    self.network_event(event);
                    for _ in 1..BURST_MAX {
                        let Ok(event) = network.try_recv() else { break };
                        self.network_event(event);
                    }
                }
                command = commands.recv() => match command {
                    Some(Command::View(answer)) => {
                        // Whoever asked may have stopped waiting.
                        let _ = answer.send(self.view());
                    }
                    Some(Command::Shutdown(done)) => {
                        self.shut_down();
                        // Whoever asked may have stopped waiting.
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                },
                () = wake => {}
            }
            self.turn();
        }
    }

    /// Lets every peer act on what is due, and fills the sockets that have room.
    fn turn(&mut self) {
        let now = self.clock.now();
        let keys: Vec<PeerKey> = self.neighbours.keys().copied().collect();
        for key in keys {
            let Some(neighbour) = self.neighbours.get_mut(&key) else { continue };
            if neighbour.peer.next_deadline().is_some_and(|deadline| deadline <= now) {
                neighbour.peer.handle(now, Event::Tick);
            }
            neighbour.act(now, &self.rib, &self.events);
            neighbour.transmit(now);
        }
    }

    /// Makes the desired state true: peers first, so that routes find them.
    fn apply(&mut self, desired: &Desired) {
        let now = self.clock.now();
        self.generation = desired.generation;
        let wanted: BTreeMap<PeerKey, &PeerConfig> =
            desired.peers.iter().map(|config| (config.key, config)).collect();
        let gone: Vec<PeerKey> =
            self.neighbours.keys().filter(|key| !wanted.contains_key(key)).copied().collect();
        for key in gone {
            self.remove(now, key);
        }
        for (key, config) in &wanted {
            self.set_listener_password(config);
            match self.neighbours.get_mut(key) {
                Some(neighbour) if neighbour.peer.config() == *config => {}
                Some(neighbour) => {
                    neighbour.logged_failure = None;
                    neighbour.peer.reconfigure(now, (*config).clone());
                }
                None => {
                    self.seed = self.seed.wrapping_add(1);
                    let peer = Peer::new(now, (*config).clone(), self.seed);
                    self.neighbours.insert(*key, Neighbour::new(peer));
                }
            }
        }
        self.known.send_replace(Arc::new(wanted.keys().map(|key| key.0).collect()));

        let touched = self.rib.set(desired.routes.clone());
        for neighbour in self.neighbours.values_mut() {
            neighbour.peer.announce(&self.rib, &touched);
        }
    }

    fn remove(&mut self, now: Instant, key: PeerKey) {
        let Some(mut neighbour) = self.neighbours.remove(&key) else { return };
        let name = neighbour.peer.config().name.clone();
        info!(peer = %key, name, "peer removed");
        neighbour.peer.stop(now, cease::PEER_DECONFIGURED, "the peer was removed");
        neighbour.act(now, &self.rib, &self.events);
        self.set_key(key, None, &name);
    }

    /// Listeners must have the key before the first SYN comes.
    fn set_listener_password(&self, config: &PeerConfig) {
        let present = self.neighbours.get(&config.key).map(|it| it.peer.config());
        let present = present.and_then(|present| present.password.as_ref());
        if present != config.password.as_ref() {
            self.set_key(config.key, config.password.as_ref(), &config.name);
        }
    }

    fn set_key(&self, key: PeerKey, password: Option<&Password>, name: &str) {
        for listener in &self.listeners {
            let same_family =
                listener.local_addr().is_ok_and(|local| local.is_ipv4() == key.0.is_ipv4());
            if !same_family {
                continue;
            }
            if let Err(cause) = sockopt::set_md5(&**listener, key.0, password) {
                error!(
                    peer = %key, name, %cause,
                    "the kernel refused the TCP-MD5 key for incoming connections; it bounds them \
                     by net.core.optmem_max. The peer can only be dialled"
                );
            }
        }
    }

    fn network_event(&mut self, event: NetworkEvent) {
        let now = self.clock.now();
        match event {
            NetworkEvent::Accepted { key, stream, remote } => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.accepted(now, stream, remote, &self.events, &self.tasks);
                }
            }
            NetworkEvent::Connected { key, id, stream, next_hops } => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.connected(now, id, stream, next_hops, &self.events, &self.tasks);
                }
            }
            NetworkEvent::ConnectFailed { key, id, why } => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.dials.remove(&id);
                    neighbour.peer.handle(now, Event::ConnectFailed(id, why));
                }
            }
            NetworkEvent::Received { key, id, bytes } => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.peer.handle(now, Event::Received(id, &bytes));
                }
            }
            NetworkEvent::Written { key, id } => {
                let neighbour = self.neighbours.get_mut(&key);
                if let Some(link) = neighbour.and_then(|it| it.links.get_mut(&id)) {
                    link.busy = false;
                }
            }
            NetworkEvent::Closed { key, id } => {
                if let Some(neighbour) = self.neighbours.get_mut(&key) {
                    neighbour.peer.handle(now, Event::Closed(id));
                }
            }
        }
    }

    fn shut_down(&mut self) {
        let now = self.clock.now();
        for neighbour in self.neighbours.values_mut() {
            neighbour.peer.stop(now, cease::ADMINISTRATIVE_SHUTDOWN, "fairway is stopping");
            neighbour.act(now, &self.rib, &self.events);
        }
    }

    fn view(&self) -> BgpView {
        let now = self.clock.now();
        BgpView {
            generation: self.generation,
            peers: self.neighbours.values().map(|it| it.peer.view(now)).collect(),
            routes: self.rib.iter().cloned().collect(),
        }
    }
}

impl Neighbour {
    fn new(peer: Peer) -> Self {
        Self { peer, links: BTreeMap::new(), dials: BTreeMap::new(), logged_failure: None }
    }

    /// Does what the peer wants done.
    fn act(&mut self, now: Instant, rib: &LocRib, events: &mpsc::Sender<NetworkEvent>) {
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Connect(id) => self.connect(id, events),
                Action::Close(id, last_words) => {
                    if let Some(dial) = self.dials.remove(&id) {
                        dial.abort();
                    }
                    if let Some(link) = self.links.remove(&id) {
                        link.finish(last_words);
                    }
                }
                Action::Established => {
                    self.peer.announce_all(rib);
                    self.log_up(now);
                }
                Action::Down(reason) => self.log_down(&reason),
                Action::AttemptFailed(reason) => self.log_failure(&reason),
                Action::Refused(update) => self.log_refused(&update),
            }
        }
    }

    /// Gives every idle writer what the peer has for it.
    fn transmit(&mut self, now: Instant) {
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

    fn connect(&mut self, id: ConnectionId, events: &mpsc::Sender<NetworkEvent>) {
        let config = self.peer.config().clone();
        let events = events.clone();
        let task = tokio::spawn(async move {
            let key = config.key;
            let event = match dial(&config).await {
                Ok(stream) => {
                    let local = stream.local_addr().map(|local| next_hops(local.ip()));
                    let next_hops = local.unwrap_or_default();
                    NetworkEvent::Connected { key, id, stream, next_hops }
                }
                Err(error) => NetworkEvent::ConnectFailed { key, id, why: error.to_string() },
            };
            // Without a core there is nobody to tell.
            let _ = events.send(event).await;
        });
        self.dials.insert(id, task.abort_handle());
    }

    fn connected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        stream: TcpStream,
        next_hops: LocalNextHops,
        events: &mpsc::Sender<NetworkEvent>,
        tasks: &TaskTracker,
    ) {
        if self.dials.remove(&id).is_none() {
            return; // Given up meanwhile; dropping the stream closes it.
        }
        match self.prepare(&stream, next_hops) {
            Ok(connected) => {
                let key = self.peer.config().key;
                self.links.insert(id, Link::start(key, id, stream, events, tasks));
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
        events: &mpsc::Sender<NetworkEvent>,
        tasks: &TaskTracker,
    ) {
        let key = self.peer.config().key;
        let next_hops = stream.local_addr().map(|local| next_hops(local.ip().to_canonical()));
        let prepared = next_hops
            .map_err(|error| error.to_string())
            .and_then(|next_hops| self.prepare(&stream, next_hops));
        match prepared {
            Ok(connected) => {
                debug!(peer = %key, %remote, "connection accepted");
                let id = self.peer.accept(now, connected);
                self.links.insert(id, Link::start(key, id, stream, events, tasks));
            }
            Err(why) => warn!(peer = %key, %remote, why, "cannot use an accepted connection"),
        }
    }

    /// Options that both kinds of connection need.
    fn prepare(&self, stream: &TcpStream, next_hops: LocalNextHops) -> Result<Connected, String> {
        let config = self.peer.config();
        let text = |error: std::io::Error| error.to_string();
        let local = stream.local_addr().map_err(text)?;
        let remote = stream.peer_addr().map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        sockopt::set_network(stream, local.ip(), config.ttl()).map_err(|it| it.to_string())?;
        let patience = config.hold_time.duration().unwrap_or_default();
        sockopt::set_user_timeout(stream, patience).map_err(|it| it.to_string())?;
        Ok(Connected { local, remote, next_hops })
    }

    fn log_up(&mut self, now: Instant) {
        self.logged_failure = None;
        let view = self.peer.view(now);
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
        warn!(peer = %config.key, name = config.name, %reason, "session down");
    }

    fn log_failure(&mut self, reason: &DownReason) {
        let config = self.peer.config();
        let reason = reason.to_string();
        if self.logged_failure.as_ref() == Some(&reason) {
            debug!(peer = %config.key, name = config.name, reason, "no session");
        } else {
            warn!(
                peer = %config.key, name = config.name, reason,
                "no session; trying again, and silent until the reason changes"
            );
            self.logged_failure = Some(reason);
        }
    }

    fn log_refused(&self, update: &Update) {
        let config = self.peer.config();
        let (peer, name) = (config.key, &config.name);
        for fault in &update.faults {
            warn!(
                %peer, name, attribute = fault.code, disposition = ?fault.disposition,
                what = fault.what, "malformed UPDATE"
            );
        }
        for group in &update.announced {
            for prefix in &group.prefixes {
                let next_hop = group.attributes.next_hop;
                let as_path = &group.attributes.as_path;
                debug!(%peer, name, %prefix, %next_hop, %as_path, "route refused");
            }
        }
        for prefix in &update.withdrawn {
            debug!(%peer, name, %prefix, "route withdrawn by the neighbour");
        }
    }
}
