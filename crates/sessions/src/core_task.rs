//! The task that drives the speaker: its clock, its sockets, its log.
//!
//! One loop: pass each event to the speaker, carry out its actions, fill the sockets that have room,
//! sleep until the next deadline. Everything that it waits for is cancel-safe (`recv`, `changed`, a
//! sleep), and no action waits. What follows from an event is [`fairway_bgp::speaker::Speaker`]'s.

mod addresses;
mod bfd;
mod bmp;
mod events;
mod forwarding;
mod handover;
mod view;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use self::bfd::Coupling;
use self::forwarding::Forwarding;
use super::addresses::AddressWatch;
use super::bfd::BfdOptions;
use super::bmp::{Ask, Stations};
use super::clock::Clock;
use super::dial_pace::DialPace;
use super::guard::CatchUnwind;
use super::listeners::Listeners;
use super::memory::{Memory, Verdict, resident_bytes};
use super::neighbour::{Line, Neighbour, Surroundings};
use super::news::NetworkEvent;
use super::rejected_segments::Baseline;
use super::rpki::Caches;
pub(super) use handover::Handed;

use fairway_bgp::speaker::{Action, Event, Guard, PeerAction, Speaker};
use fairway_ground::{Allowance, Allowances, Bound, Instant, PeerKey};
use fairway_seam::{BgpView, Clear, ClearError, Desired, EarlierRun, Leave, ViewScope};

/// Events handled before the loop fills sockets and checks deadlines, beside the ends of connections: a quarter of
/// a megabyte of UPDATEs at most.
const BURST_MAX: usize = 16;

/// Bytes given to a socket at once. Small enough that a change never waits behind much, large
/// enough that a full table needs few turns.
const TRANSMIT_LENGTH_BYTES: usize = 16 * 1024;

/// Connections that an address may make: ten in a second for as long as it likes, which costs little.
const ACCEPTS: Allowance = Allowance { burst: 50, interval: Duration::from_millis(100) };

/// What the backend requests.
#[derive(Debug)]
pub(super) enum Command {
    /// A snapshot.
    View(ViewScope, oneshot::Sender<BgpView>),
    /// Reset or refresh a session.
    Clear(PeerKey, Clear, oneshot::Sender<Result<(), ClearError>>),
    /// End all sessions; answered when every NOTIFICATION is on its way.
    Shutdown(Leave, oneshot::Sender<()>),
}

/// The state of the loop.
#[derive(Debug)]
pub(super) struct CoreTask {
    clock: Clock,
    speaker: Speaker<CatchUnwind>,
    /// Connections that neighbours make.
    accepts: Allowances<(PeerKey, IpAddr)>,
    surroundings: Surroundings,
    /// What runs for each peer of the speaker.
    neighbours: BTreeMap<PeerKey, Neighbour>,
    /// What a neighbour is sent next.
    filled: BytesMut,
    /// Publishes the generation up to which all withdrawals have been written to all peers.
    withdrawn: watch::Sender<u64>,
    /// Publishes a count of changes, and whether anything has changed since the last count.
    changed: watch::Sender<u64>,
    has_changed: bool,
    listeners: Listeners,
    bfd: Coupling,
    memory: Memory,
    forwarding: Forwarding,
    rpki: Caches,
    bmp: Stations,
    rejected_before: Baseline,
    addresses: AddressWatch,
    addresses_due: Instant,
    addresses_next: Instant,
}

impl CoreTask {
    pub(super) fn new(
        listeners: Listeners,
        events: mpsc::Sender<NetworkEvent>,
        tasks: TaskTracker,
        seed: u64,
        earlier: Option<EarlierRun>,
        bfd: BfdOptions,
    ) -> Self {
        let clock = Clock::start();
        Self {
            clock,
            speaker: Speaker::guarded(CatchUnwind, clock.now(), seed, earlier),
            surroundings: Surroundings {
                events,
                tasks,
                seed,
                dial_pace: DialPace::default(),
                lines: Allowances::new(Line::ALLOWANCE, Bound::LogLine),
            },
            accepts: Allowances::new(ACCEPTS, Bound::Accept),
            neighbours: BTreeMap::new(),
            filled: BytesMut::new(),
            withdrawn: watch::Sender::default(),
            changed: watch::Sender::default(),
            has_changed: false,
            listeners,
            bfd: Coupling::new(bfd, seed),
            memory: Memory::new(None),
            forwarding: Forwarding::default(),
            rpki: Caches::new(clock),
            bmp: Stations::new(clock),
            rejected_before: Baseline::now(),
            addresses: AddressWatch::default(),
            addresses_due: Instant::ZERO,
            addresses_next: Instant::ZERO,
        }
    }

    /// The same; the process may take so much memory.
    pub(super) fn within(self, memory_limit_bytes: Option<u64>) -> Self {
        Self { memory: Memory::new(memory_limit_bytes), ..self }
    }

    /// The generation up to which all withdrawals have been written to all peers.
    pub(super) fn withdrawn(&self) -> watch::Receiver<u64> {
        self.withdrawn.subscribe()
    }

    /// The count of changes to sessions and to what was advertised to peers.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Runs until the backend is dropped or told to shut down.
    pub(super) async fn run(
        mut self,
        mut desired: watch::Receiver<Handed>,
        mut commands: mpsc::Receiver<Command>,
        mut network: mpsc::Receiver<NetworkEvent>,
    ) {
        loop {
            // Without peers no fact of the machine is needed.
            let looks = !self.neighbours.is_empty() || self.listeners.follows_devices();
            let look = looks.then_some(self.addresses_due);
            let deadlines = [self.speaker.next_deadline(), look, self.bfd.deadline()];
            let deadline = deadlines.into_iter().flatten().min();
            let clock = self.clock;
            let wake = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(clock.at(deadline)).await,
                    None => std::future::pending().await,
                }
                // Readers first: a hold timer must not expire while a KEEPALIVE waits.
                tokio::task::yield_now().await;
            };
            tokio::select! {
                changed = desired.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let (wanted, changed_at) = desired.borrow_and_update().take();
                    self.apply(wanted, changed_at);
                }
                Some(event) = network.recv() => self.network_event(event),
                event = self.bfd.event() => self.bfd_event(event),
                command = commands.recv() => match command {
                    Some(Command::View(scope, answer)) => {
                        self.bfd.complete(self.view(scope), answer);
                    }
                    Some(Command::Clear(key, how, answer)) => {
                        // The client may have stopped waiting: then the answer is not needed.
                        let _ = answer.send(self.clear(key, how));
                    }
                    Some(Command::Shutdown(how, done)) => {
                        self.shut_down(how);
                        self.forwarding.leave(how).await;
                        self.bmp.leave().await;
                        self.bfd.leave(&self.surroundings.tasks).await;
                        self.bfd.fade();
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                },
                () = self.addresses.changed(), if looks => {
                    self.addresses_due = self.addresses_due.min(self.addresses_next);
                }
                () = self.forwarding.has_room(), if self.forwarding.waits() => {
                    self.forwarding.pass_on();
                }
                next_hops = self.forwarding.next_hops() => {
                    self.handle(clock.now(), Event::NextHops(next_hops));
                }
                (origins, concerned) = self.rpki.verdicts() => {
                    self.handle(clock.now(), Event::Origins(origins, concerned));
                }
                ask = self.bmp.ask() => self.answer_stations(ask),
                () = wake => {}
            }
            while let Some(event) = self.bfd.next_event() {
                self.bfd_event(event);
            }
            let mut room = BURST_MAX;
            while room > 0 && !self.speaker.has_much_to_pass_on() {
                let Ok(event) = network.try_recv() else { break };
                // A connection that has ended needs nothing more: it is not told what the others will be.
                room = room.saturating_sub(usize::from(!event.news.is_end()));
                self.network_event(event);
            }
            self.turn();
        }
    }

    /// Lets every peer act on what is due, and fills the sockets that have room.
    fn turn(&mut self) {
        let now = self.clock.now();
        self.speaker.report_routes(tracing::enabled!(tracing::Level::DEBUG));
        self.look_around(now);
        self.follow_paths(now);
        self.relieve_memory(now);
        self.start_stations_over(now);
        self.handle(now, Event::Tick);
        loop {
            self.filled.clear();
            let filled = self.speaker.poll_transmit(now, TRANSMIT_LENGTH_BYTES, &mut self.filled);
            let Some((key, id)) = filled else { break };
            if let Some(neighbour) = self.neighbours.get_mut(&key) {
                // No larger than it is, for as long as the socket is full: a buffer that grew has up to twice as much.
                neighbour.write(id, Bytes::copy_from_slice(&self.filled));
            }
        }
        self.carry_out(now);
        if std::mem::take(&mut self.has_changed) {
            self.changed.send_modify(|number| *number = number.saturating_add(1));
        }
    }

    /// Ends the session of the neighbour with the most routes if the process takes more memory than it may.
    fn relieve_memory(&mut self, now: Instant) {
        if !self.memory.is_due(now) {
            return;
        }
        let (Some(limit), Some(resident)) = (self.memory.limit_bytes(), resident_bytes()) else {
            return;
        };
        let (held, largest) = (self.speaker.held_bytes(), self.speaker.largest_held_bytes());
        let why = || {
            format!(
                "the process takes {} MiB of memory, and may take {} (--memory-limit)",
                resident >> 20,
                limit >> 20
            )
        };
        match self.memory.judge(now, resident, held, largest) {
            Verdict::Enough => {}
            Verdict::Relieve => {
                let why = why();
                if let Some((peer, bytes)) = self.speaker.relieve(now, &why) {
                    let held_mebibytes = bytes >> 20;
                    error!(%peer, held_mebibytes, "{why}: the routes of the neighbor with the most are given up");
                }
                self.carry_out(now);
            }
            Verdict::Unexplained => warn!("{}; no neighbor has much of it in its routes", why()),
        }
    }

    /// Passes an event to the speaker and carries out its actions.
    fn handle(&mut self, now: Instant, event: Event<'_>) {
        self.speaker.handle(now, event);
        self.carry_out(now);
    }

    /// Carries out the actions of the speaker.
    fn carry_out(&mut self, now: Instant) {
        while let Some(action) = self.speaker.poll_action() {
            match action {
                Action::Peer(key, PeerAction::Configured(config)) => {
                    self.bfd.look_again();
                    if self.neighbours.contains_key(&key) {
                        self.guarded(now, key, |neighbour, _| neighbour.reconfigure(*config));
                    } else {
                        let neighbour = Neighbour::new(*config, &self.surroundings);
                        self.neighbours.insert(key, neighbour);
                    }
                    self.examine(now, key);
                }
                Action::Peer(key, PeerAction::Removed) => {
                    self.neighbours.remove(&key);
                    self.bfd.forget(key);
                }
                Action::Peer(key, action) => {
                    self.guarded(now, key, |it, surroundings| it.act(now, action, surroundings));
                }
                Action::WithdrawnUpTo(generation) => drop(self.withdrawn.send_replace(generation)),
                Action::Changed => self.has_changed = true,
                Action::Forward(changes) => self.forwarding.want(changes),
                Action::Untrack(next_hops) => self.forwarding.untrack(next_hops),
                Action::Monitored(key, events) => self.bmp.tell(key, events),
                Action::LocRib(changes) => self.bmp.tell_best(changes),
                Action::ForwardingComplete => self.forwarding.complete(),
                Action::SourcesSilent => {
                    warn!(
                        "a source is not ready in time: withdrawing routes that only the earlier run \
                         announced"
                    );
                }
            }
        }
    }

    /// Runs `work` on what runs for one neighbour. A panic in it is an internal error: it resets the
    /// session of that neighbour and nothing else.
    fn guarded<T>(
        &mut self,
        now: Instant,
        key: PeerKey,
        work: impl FnOnce(&mut Neighbour, &mut Surroundings) -> T,
    ) -> Option<T> {
        let neighbour = self.neighbours.get_mut(&key)?;
        let surroundings = &mut self.surroundings;
        let worked = CatchUnwind.run(|| work(neighbour, surroundings));
        if worked.is_none() {
            self.speaker.start_over(now, key);
        }
        worked
    }

    /// Checks whether this machine can have a session with a neighbour.
    fn examine(&mut self, now: Instant, key: PeerKey) {
        let Some(neighbour) = self.neighbours.get(&key) else { return };
        let unsupported = neighbour.unsupported();
        if self.speaker.set_aside(now, key, unsupported.as_ref().map(ToString::to_string)) {
            let config = neighbour.config();
            match unsupported {
                Some(why) => error!(peer = %key, name = config.name, %why, "set aside"),
                None => info!(peer = %key, name = config.name, "no longer set aside"),
            }
        }
    }

    /// Resets a session, or requests or sends its routes again.
    fn clear(&mut self, key: PeerKey, how: Clear) -> Result<(), ClearError> {
        if let Some(neighbour) = self.neighbours.get(&key) {
            info!(peer = %key, name = neighbour.config().name, ?how, "cleared by the operator");
        }
        let now = self.clock.now();
        let outcome = self.speaker.clear(now, key, how);
        self.carry_out(now);
        outcome
    }

    fn keys(&self) -> Vec<PeerKey> {
        self.neighbours.keys().copied().collect()
    }

    /// Makes the desired state true.
    fn apply(&mut self, desired: Arc<Desired>, changed_at: Option<tokio::time::Instant>) {
        let now = self.clock.now();
        self.listeners.admit(desired.peers.iter());
        self.bfd.look_again();
        self.rpki.want(&desired.rpki_servers);
        self.monitor(now, &desired.bmp_stations);
        let changed_at = changed_at.map(|at| handover::instant(now, at));
        self.handle(now, Event::Desired(desired, changed_at));
    }

    fn shut_down(&mut self, how: Leave) {
        self.handle(self.clock.now(), Event::Leave(how));
    }
}

#[cfg(test)]
mod tests;
