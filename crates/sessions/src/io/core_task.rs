//! The task that owns the RIB and all peers.
//!
//! One loop: something happened, the peers it concerns act, sockets with room are filled, sleep
//! until the next deadline. Everything it waits for is cancel-safe (`recv`, `changed`, a sleep),
//! and nothing it does waits.

mod addresses;
mod bfd;
mod changes;
mod handover;
mod startup;
mod view;
mod withdrawals;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

use self::bfd::Coupling;
use super::addresses::AddressWatch;
use super::bfd::BfdOptions;
pub(super) use handover::Handed;

use super::agenda::Agenda;
use super::clock::Clock;
use super::listen::reset;
use super::listeners::Listeners;
use super::neighbour::{Neighbour, NetworkEvent, News};
use super::ranges::{Ranges, Refused};
use crate::backend::{BgpView, Clear, ClearError, Desired, EarlierRun, Leave, ViewScope};
use crate::bgp::{Event, Peer, Startup};
use crate::latencies::Latencies;
use crate::rib::{LocRib, Touched};
use crate::time::Instant;
use crate::types::{PeerConfig, PeerKey, Remote};
use crate::wire::notification::cease;

/// Events handled before sockets are filled and deadlines looked at: a quarter of a megabyte of
/// UPDATEs at most.
const BURST_MAX: usize = 16;

/// What the backend asks.
#[derive(Debug)]
pub(super) enum Command {
    /// A snapshot.
    View(ViewScope, oneshot::Sender<BgpView>),
    /// Reset or refresh a session.
    Clear(PeerKey, Clear, oneshot::Sender<Result<(), ClearError>>),
    /// End all sessions; answered when everything is on its way.
    Shutdown(Leave, oneshot::Sender<()>),
}

/// What every neighbour needs of the loop.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// The routes of our own.
    pub(super) rib: LocRib,
    /// Where its tasks report.
    pub(super) events: mpsc::Sender<NetworkEvent>,
    /// Tasks that must end before the process may.
    pub(super) tasks: TaskTracker,
}

/// The state of the loop.
#[derive(Debug)]
pub(super) struct CoreTask {
    clock: Clock,
    surroundings: Surroundings,
    neighbours: BTreeMap<PeerKey, Neighbour>,
    agenda: Agenda,
    changes_told: Latencies,
    ranges: Ranges,
    startup: Startup,
    /// What is in force.
    desired: Arc<Desired>,
    /// Some neighbour may wait for its End-of-RIB.
    holds_end_of_rib: bool,
    /// Where it is said up to which generation everybody knows what is gone.
    withdrawn: watch::Sender<u64>,
    /// Where it is counted how often something changed, and whether it has since.
    changed: watch::Sender<u64>,
    has_changed: bool,
    listeners: Listeners,
    bfd: Coupling,
    addresses: AddressWatch,
    addresses_due: Instant,
    addresses_next: Instant,
    seed: u64,
    /// Peers that there ever were.
    incarnations: u64,
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
            surroundings: Surroundings { rib: LocRib::default(), events, tasks },
            neighbours: BTreeMap::new(),
            agenda: Agenda::default(),
            changes_told: Latencies::default(),
            ranges: Ranges::default(),
            startup: Startup::new(clock.now(), earlier),
            desired: Arc::default(),
            holds_end_of_rib: false,
            withdrawn: watch::Sender::default(),
            changed: watch::Sender::default(),
            has_changed: false,
            listeners,
            bfd: Coupling::new(bfd, seed),
            addresses: AddressWatch::default(),
            addresses_due: Instant::ZERO,
            addresses_next: Instant::ZERO,
            seed,
            incarnations: 0,
        }
    }

    /// Runs until the backend is dropped or told to shut down.
    pub(super) async fn run(
        mut self,
        mut desired: watch::Receiver<Handed>,
        mut commands: mpsc::Receiver<Command>,
        mut network: mpsc::Receiver<NetworkEvent>,
    ) {
        loop {
            // Who has no peers needs to know nothing of the machine.
            let looks = !self.neighbours.is_empty() || self.listeners.follows_devices();
            let look = looks.then_some(self.addresses_due);
            let earlier = self.startup.deadline(&self.desired);
            let deadlines = [self.agenda.next_deadline(), look, earlier, self.bfd.deadline()];
            let deadline = deadlines.into_iter().flatten().min();
            let clock = self.clock;
            let wake = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(clock.at(deadline)).await,
                    None => std::future::pending().await,
                }
                // Readers first: a hold timer must not run out while a KEEPALIVE waits.
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
                        // Whoever asked may have stopped waiting: then nobody needs the answer.
                        let _ = answer.send(self.clear(key, how));
                    }
                    Some(Command::Shutdown(how, done)) => {
                        self.shut_down(how);
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
                () = wake => {}
            }
            while let Some(event) = self.bfd.next_event() {
                self.bfd_event(event);
            }
            for _ in 0..BURST_MAX {
                let Ok(event) = network.try_recv() else { break };
                self.network_event(event);
            }
            self.turn();
        }
    }

    /// Runs `work` on one neighbour, which then has its turn. A panic in it is a fault of ours, and
    /// ends that neighbour's session and nothing else.
    fn with_neighbour(
        &mut self,
        now: Instant,
        key: PeerKey,
        work: impl FnOnce(&mut Neighbour, &mut Surroundings),
    ) {
        if self.neighbours.contains_key(&key) {
            self.agenda.touch(key);
            self.run_guarded(now, key, work);
        }
    }

    /// The same inside a turn.
    fn run_guarded(
        &mut self,
        now: Instant,
        key: PeerKey,
        work: impl FnOnce(&mut Neighbour, &mut Surroundings),
    ) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let surroundings = &mut self.surroundings;
        // Unwind-safe: whatever state the panic left is thrown away.
        let worked = catch_unwind(AssertUnwindSafe(|| work(neighbour, surroundings)));
        if worked.is_err() {
            error!(peer = %key, "a fault of ours: its session is ended and begins anew");
            self.incarnations = self.incarnations.saturating_add(1);
            neighbour.begin_anew(now, self.seed, self.incarnations);
            self.agenda.touch(key);
            let touched = self.surroundings.rib.forget(key);
            self.pass_on(now, &touched);
        }
    }

    /// Lets every peer act on what is due, and fills the sockets that have room.
    fn turn(&mut self) {
        let now = self.clock.now();
        self.look_around(now);
        self.follow_paths(now);
        self.end_startup(now);
        self.agenda.wake(now);
        let mut acted = BTreeSet::new();
        while let Some(key) = self.agenda.next() {
            self.act(now, key);
            acted.insert(key);
        }
        // After all have acted: what one said may be for another to pass on, in the same message.
        for key in &acted {
            self.run_guarded(now, *key, |neighbour, _| neighbour.transmit(now));
        }
        self.note_withdrawals(now, &acted);
        self.note_told(now, &acted);
        acted.iter().for_each(|key| self.settle(*key));
        self.note_changes(&acted);
    }

    /// Lets one peer act on what is due.
    fn act(&mut self, now: Instant, key: PeerKey) {
        self.run_guarded(now, key, |neighbour, surroundings| {
            if neighbour.peer.next_deadline().is_some_and(|deadline| deadline <= now) {
                neighbour.peer.handle(now, Event::Tick);
            }
            neighbour.act(now, surroundings);
        });
        self.learn(now, key);
    }

    /// One peer has done all that it could: it waits for what is next, or leaves if it came from a
    /// range and waits for nothing.
    fn settle(&mut self, key: PeerKey) {
        let Some(neighbour) = self.neighbours.get(&key) else { return };
        if neighbour.peer.config().is_dynamic() && neighbour.peer.is_at_rest() {
            return self.forget(key);
        }
        let deadline = neighbour.peer.next_deadline();
        self.agenda.wait(key, deadline);
    }

    fn forget(&mut self, key: PeerKey) {
        self.has_changed = true;
        self.bfd.forget(key);
        let gone = self.neighbours.remove(&key);
        self.startup.forget(key, gone.is_some_and(|it| it.peer.had_session()));
        self.agenda.forget(key);
        self.ranges.leave(key);
    }

    /// Takes what a neighbour announced and withdrew into the RIB, and tells the others.
    fn learn(&mut self, now: Instant, key: PeerKey) {
        // One by one: should telling the others make this one begin anew, the rest is void.
        loop {
            let mut touched = None;
            self.run_guarded(now, key, |neighbour, surroundings| {
                let change = neighbour.changes.pop_front();
                touched = change.map(|(source, it)| surroundings.rib.learn(&source, it));
            });
            let Some(touched) = touched else { return };
            self.pass_on(now, &touched);
        }
    }

    /// Tells those who are told learned routes what became of them.
    fn pass_on(&mut self, now: Instant, touched: &Touched) {
        if touched.is_empty() {
            return;
        }
        let told = self.neighbours.iter().filter(|(_, it)| it.peer.passes_on());
        let told: Vec<PeerKey> = told.map(|(key, _)| *key).collect();
        for key in told {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.peer.pass_on(&surroundings.rib, touched);
            });
        }
    }

    /// Resets a session, or has its routes said again.
    fn clear(&mut self, key: PeerKey, how: Clear) -> Result<(), ClearError> {
        let now = self.clock.now();
        let mut outcome = Err(ClearError::NoSuchPeer);
        self.with_neighbour(now, key, |neighbour, _| {
            let peer = &mut neighbour.peer;
            info!(peer = %key, name = peer.config().name, ?how, "cleared by the operator");
            outcome = match how {
                Clear::Hard => {
                    peer.reset(now);
                    Ok(())
                }
                Clear::SoftIn => peer.refresh_in(),
                Clear::SoftOut => peer.refresh_out(),
                // One that cannot be asked can still be told.
                Clear::Soft => peer.refresh_out().and_then(|()| peer.refresh_in()),
            };
        });
        outcome
    }

    fn keys(&self) -> Vec<PeerKey> {
        self.neighbours.keys().copied().collect()
    }

    fn network_event(&mut self, event: NetworkEvent) {
        let now = self.clock.now();
        let NetworkEvent { key, news } = event;
        let key = match &news {
            News::Accepted { stream, remote, .. } if key.is_range() => {
                match self.join(now, key, remote.ip()) {
                    Some(key) => key,
                    None => return reset(stream),
                }
            }
            News::Link(link) if self.neighbours.contains_key(&key) => {
                self.listeners.set_router(key, link.router.map(|(address, _)| address));
                self.bfd.look_again();
                key
            }
            _ => key,
        };
        self.with_neighbour(now, key, |neighbour, surroundings| {
            neighbour.hear(now, news, surroundings);
        });
    }

    /// The neighbour that dials from `address` in `range`, which may be a new one; `None` when there
    /// is no room for it.
    fn join(&mut self, now: Instant, range: PeerKey, address: IpAddr) -> Option<PeerKey> {
        let key = PeerKey { remote: Remote::Address(address), ..range };
        if self.neighbours.contains_key(&key) {
            return Some(key);
        }
        match self.ranges.join(now, range, address) {
            Ok(config) => {
                debug!(peer = %key, name = config.name, %range, "a neighbour of a listen range");
                self.insert(now, config);
                Some(key)
            }
            Err(Refused::Gone) => None,
            Err(Refused::Full { limit, turned_away }) => {
                if let Some(turned_away) = turned_away {
                    warn!(
                        peer = %key, %range, limit, turned_away,
                        "the listen range is full (listenLimit): connections from others are reset"
                    );
                }
                None
            }
        }
    }

    fn insert(&mut self, now: Instant, config: PeerConfig) {
        let key = config.key;
        self.incarnations = self.incarnations.saturating_add(1);
        let hold_until = self.startup.hold_end_of_rib_until(now, &config);
        self.holds_end_of_rib |= hold_until.is_some();
        let mut peer = Peer::new(now, config, self.seed, self.incarnations);
        peer.restarted(self.startup.own_restart(now, peer.config()), hold_until);
        peer.set_drain(&self.surroundings.rib, self.desired.drain);
        let mut neighbour = Neighbour::new(peer, self.seed, &self.surroundings);
        neighbour.examine(now);
        self.neighbours.insert(key, neighbour);
        self.bfd.look_again();
        self.agenda.touch(key);
    }

    /// Makes the desired state true: peers first, so that routes find them.
    fn apply(&mut self, desired: Arc<Desired>, changed_at: Option<tokio::time::Instant>) {
        let now = self.clock.now();
        self.has_changed = true;
        let routes = self.startup.routes(&desired);
        self.desired = Arc::clone(&desired);
        self.listeners.admit(desired.peers.iter());
        self.ranges.set(desired.peers.iter());
        let wanted = self.wanted(&desired);
        for key in self.keys() {
            if !wanted.contains_key(&key) {
                self.remove(now, key);
            }
        }
        for (key, config) in &wanted {
            if !self.neighbours.contains_key(key) {
                self.insert(now, config.clone());
            }
            self.with_neighbour(now, *key, |neighbour, surroundings| {
                if neighbour.peer.config() != config {
                    neighbour.logged_failure = None;
                    neighbour.keys_changed = true;
                    neighbour.peer.reconfigure(now, config.clone());
                    neighbour.examine(now);
                    neighbour.peer.announce_all(&surroundings.rib);
                }
            });
        }
        self.bfd.look_again();
        self.originate(now, routes);
        self.note_change(now, changed_at);
    }

    /// The neighbours that there should be: those that are named, and of those that came from a
    /// range whoever could come again, as what it would be then.
    fn wanted(&mut self, desired: &Desired) -> BTreeMap<PeerKey, PeerConfig> {
        let named = desired.peers.iter().filter(|config| !config.key.is_range());
        let mut wanted: BTreeMap<PeerKey, PeerConfig> =
            named.map(|config| (config.key, config.clone())).collect();
        let admission = self.listeners.admission();
        let dynamic = self.neighbours.values().filter(|it| it.peer.config().is_dynamic());
        for key in dynamic.map(|it| it.peer.config().key) {
            let Some(address) = key.address() else { continue };
            let range = admission.name(key.vrf, address, None);
            match range.and_then(|range| Some((range, self.ranges.member(range, address)?))) {
                Some((range, config)) => {
                    self.ranges.move_to(range, key);
                    wanted.insert(key, config);
                }
                // It is named now, or nobody knows it any more.
                None => self.ranges.leave(key),
            }
        }
        wanted
    }

    fn remove(&mut self, now: Instant, key: PeerKey) {
        self.with_neighbour(now, key, |neighbour, surroundings| {
            info!(peer = %key, name = neighbour.peer.config().name, "peer removed");
            neighbour.peer.stop(now, cease::PEER_DECONFIGURED, "the peer was removed");
            neighbour.act(now, surroundings);
        });
        self.learn(now, key);
        self.forget(key);
    }

    fn shut_down(&mut self, how: Leave) {
        let now = self.clock.now();
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.peer.leave(now, how);
                neighbour.act(now, surroundings);
            });
        }
    }
}

#[cfg(test)]
mod tests;
