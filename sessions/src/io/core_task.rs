//! The task that owns the RIB and all peers.
//!
//! One loop: something happened, the peers it concerns act, sockets with room are filled, sleep
//! until the next deadline. Everything it waits for is cancel-safe (`recv`, `changed`, a sleep),
//! and nothing it does waits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info};

use super::addresses::Addresses;
use super::clock::Clock;
use super::neighbour::{Neighbour, NetworkEvent};
use super::sockopt;
use crate::backend::{BgpView, Clear, ClearError, Desired, ViewScope};
use crate::bgp::{Event, Peer};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{Password, PeerConfig, PeerKey, Prefix};
use crate::wire::notification::cease;

/// Events handled before sockets are filled and deadlines looked at: a quarter of a megabyte of
/// UPDATEs at most.
const BURST_MAX: usize = 16;

/// How old the list of the machine's addresses may be.
const ADDRESSES_INTERVAL: Duration = Duration::from_secs(2);

/// Why a peer is not accepted, for `show`.
const UNPROTECTED: &str = "a listener did not take its TCP-MD5 key (the kernel bounds their \
                           number by net.core.optmem_max)";

/// What the backend asks.
#[derive(Debug)]
pub(super) enum Command {
    /// A snapshot.
    View(ViewScope, oneshot::Sender<BgpView>),
    /// Reset or refresh a session.
    Clear(PeerKey, Clear, oneshot::Sender<Result<(), ClearError>>),
    /// End all sessions; answered when everything is on its way.
    Shutdown(oneshot::Sender<()>),
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
    generation: u64,
    listeners: Vec<Arc<TcpListener>>,
    known: watch::Sender<Arc<BTreeSet<IpAddr>>>,
    /// The TCP-MD5 keys that all listeners hold.
    listener_keys: BTreeMap<PeerKey, Password>,
    /// Peers whose key a listener did not take: they are not accepted.
    unprotected: BTreeSet<PeerKey>,
    addresses_due: Instant,
    seed: u64,
    /// Peers that there ever were.
    incarnations: u64,
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
            surroundings: Surroundings { rib: LocRib::default(), events, tasks },
            neighbours: BTreeMap::new(),
            generation: 0,
            listeners,
            known,
            listener_keys: BTreeMap::new(),
            unprotected: BTreeSet::new(),
            addresses_due: Instant::ZERO,
            seed,
            incarnations: 0,
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
            let peers = self.neighbours.values().filter_map(|it| it.peer.next_deadline());
            let has_sessions = self.neighbours.values().any(|it| it.peer.local_address().is_some());
            let deadline = peers.chain(has_sessions.then_some(self.addresses_due)).min();
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
                    let wanted = Arc::clone(&desired.borrow_and_update());
                    self.apply(&wanted);
                }
                Some(event) = network.recv() => self.network_event(event),
                command = commands.recv() => match command {
                    // Whoever asked may have stopped waiting: then nobody needs the answer.
                    Some(Command::View(scope, answer)) => {
                        let _ = answer.send(self.view(scope));
                    }
                    Some(Command::Clear(key, how, answer)) => {
                        let _ = answer.send(self.clear(key, how));
                    }
                    Some(Command::Shutdown(done)) => {
                        self.shut_down();
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                },
                () = wake => {}
            }
            for _ in 0..BURST_MAX {
                let Ok(event) = network.try_recv() else { break };
                self.network_event(event);
            }
            self.turn();
        }
    }

    /// Runs `work` on one neighbour. A panic in it is a fault of ours, and ends that neighbour's
    /// session and nothing else.
    fn with_neighbour(
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
            let touched = self.surroundings.rib.forget(key);
            self.pass_on(now, &touched);
        }
    }

    /// Lets every peer act on what is due, and fills the sockets that have room.
    fn turn(&mut self) {
        let now = self.clock.now();
        self.follow_addresses(now);
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                if neighbour.peer.next_deadline().is_some_and(|deadline| deadline <= now) {
                    neighbour.peer.handle(now, Event::Tick);
                }
                neighbour.act(now, surroundings);
            });
            self.learn(now, key);
        }
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, _| neighbour.transmit(now));
        }
    }

    /// Takes what a neighbour announced and withdrew into the RIB, and tells the others.
    fn learn(&mut self, now: Instant, key: PeerKey) {
        // One by one: should telling the others make this one begin anew, the rest is void.
        loop {
            let mut touched = None;
            self.with_neighbour(now, key, |neighbour, surroundings| {
                let change = neighbour.changes.pop_front();
                touched = change.map(|(source, it)| surroundings.rib.learn(&source, it));
            });
            let Some(touched) = touched else { return };
            self.pass_on(now, &touched);
        }
    }

    /// Tells those who are told learned routes what became of `prefixes`.
    fn pass_on(&mut self, now: Instant, prefixes: &BTreeSet<Prefix>) {
        if prefixes.is_empty() {
            return;
        }
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                if neighbour.peer.passes_on() {
                    neighbour.peer.announce(&surroundings.rib, prefixes);
                }
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

    /// Looks now and then whether the machine's addresses are others: sessions come up before the
    /// last address does, and addresses go while sessions stay.
    fn follow_addresses(&mut self, now: Instant) {
        if self.addresses_due > now {
            return;
        }
        self.addresses_due = now + ADDRESSES_INTERVAL;
        let addresses = match Addresses::now() {
            Ok(addresses) => addresses,
            Err(error) => {
                // The same as before, for all we know: nothing is withdrawn for this.
                debug!(%error, "cannot read the machine's addresses");
                return;
            }
        };
        // Every session each time: one that came up since may have looked before the others.
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.follow_addresses(now, &addresses, &surroundings.rib);
            });
        }
    }

    fn network_event(&mut self, event: NetworkEvent) {
        let now = self.clock.now();
        let NetworkEvent { key, news } = event;
        self.with_neighbour(now, key, |neighbour, surroundings| {
            neighbour.hear(now, news, surroundings);
        });
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
            self.protect(config);
            if !self.neighbours.contains_key(key) {
                self.incarnations = self.incarnations.saturating_add(1);
                let peer = Peer::new(now, (*config).clone(), self.seed, self.incarnations);
                self.neighbours.insert(*key, Neighbour::new(peer));
            }
            self.with_neighbour(now, *key, |neighbour, surroundings| {
                if neighbour.peer.config() != *config {
                    neighbour.logged_failure = None;
                    neighbour.peer.reconfigure(now, (*config).clone());
                    neighbour.peer.announce_all(&surroundings.rib);
                }
            });
        }
        let accepted = wanted.keys().filter(|key| !self.unprotected.contains(key));
        self.known.send_replace(Arc::new(accepted.filter_map(PeerKey::address).collect()));

        let touched = self.surroundings.rib.set(desired.routes.clone());
        for key in wanted.into_keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.peer.announce(&surroundings.rib, &touched);
            });
        }
    }

    fn remove(&mut self, now: Instant, key: PeerKey) {
        self.with_neighbour(now, key, |neighbour, surroundings| {
            info!(peer = %key, name = neighbour.peer.config().name, "peer removed");
            neighbour.peer.stop(now, cease::PEER_DECONFIGURED, "the peer was removed");
            neighbour.act(now, surroundings);
        });
        self.learn(now, key);
        self.neighbours.remove(&key);
        self.unprotected.remove(&key);
        if self.listener_keys.remove(&key).is_some() {
            // A key that stays behind only keeps out an address that is no peer any more.
            let _ = self.set_key(key, None);
        }
    }

    /// Listeners must have the key before the first SYN comes. A peer whose key they do not take is
    /// dialled, with its key, but not accepted without; every change of the desired state tries
    /// again.
    fn protect(&mut self, config: &PeerConfig) {
        let PeerConfig { key, name, password, .. } = config;
        if self.listener_keys.get(key) == password.as_ref() && !self.unprotected.contains(key) {
            return;
        }
        match (self.set_key(*key, password.as_ref()), password) {
            (Ok(()), Some(password)) => {
                self.listener_keys.insert(*key, password.clone());
                self.unprotected.remove(key);
            }
            (Ok(()), None) => {
                self.listener_keys.remove(key);
                self.unprotected.remove(key);
            }
            (Err(cause), _) => {
                self.listener_keys.remove(key);
                if self.unprotected.insert(*key) {
                    error!(
                        peer = %key, name, %cause,
                        "a listener did not take the TCP-MD5 key (the kernel bounds their number \
                         by net.core.optmem_max): connections from this peer are refused, it is \
                         only dialled"
                    );
                }
            }
        }
    }

    fn set_key(&self, key: PeerKey, password: Option<&Password>) -> Result<(), nix::Error> {
        let Some(address) = key.address() else { return Ok(()) };
        let of_family = self.listeners.iter().filter(|listener| {
            listener.local_addr().is_ok_and(|local| local.is_ipv4() == address.is_ipv4())
        });
        let mut listeners =
            of_family.map(|listener| sockopt::set_md5(&**listener, address, password));
        listeners.try_for_each(|outcome| outcome)
    }

    fn shut_down(&mut self) {
        let now = self.clock.now();
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.peer.stop(now, cease::ADMINISTRATIVE_SHUTDOWN, "fairway is stopping");
                neighbour.act(now, surroundings);
            });
        }
    }

    fn view(&self, scope: ViewScope) -> BgpView {
        let now = self.clock.now();
        let views = self.neighbours.iter().filter_map(|(key, neighbour)| {
            let mut view = catch_unwind(AssertUnwindSafe(|| neighbour.peer.view(now, scope)));
            if let Ok(view) = &mut view {
                view.not_accepted = self.unprotected.contains(key).then_some(UNPROTECTED);
            }
            if view.is_err() {
                error!(peer = %key, "a fault of ours: it cannot be shown");
            }
            view.ok()
        });
        let rib = &self.surroundings.rib;
        let originated = scope.originated.then(|| rib.originated().cloned().collect());
        let learned = scope.learned.then(|| rib.learned().collect());
        BgpView {
            generation: self.generation,
            peers: views.collect(),
            routes: originated.unwrap_or_default(),
            learned: learned.unwrap_or_default(),
            prefixes: rib.counts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SessionState;

    /// A neighbour on loopback, where nobody answers.
    fn config(number: u8) -> PeerConfig {
        let key = PeerKey::from(std::net::IpAddr::from([127, 0, 0, number]));
        PeerConfig { key, port: 1, ..PeerConfig::example(1) }
    }

    #[tokio::test]
    async fn a_panic_ends_one_peer_and_not_the_others() {
        let (events, _network) = mpsc::channel(16);
        let (known, _) = watch::channel(Arc::default());
        let mut core = CoreTask::new(Vec::new(), known, events, TaskTracker::new(), 7);
        let desired = Desired { peers: vec![config(2), config(3)], ..Desired::default() };
        core.apply(&desired);
        core.turn();
        let state = |core: &CoreTask, number: u8| {
            core.neighbours[&PeerKey::from(std::net::IpAddr::from([127, 0, 0, number]))]
                .peer
                .state()
        };
        assert_eq!(state(&core, 2), SessionState::Connect);
        let now = core.clock.now();
        core.with_neighbour(now, config(2).key, |_, _| panic!("a fault of ours"));
        assert_eq!(state(&core, 2), SessionState::Idle);
        assert_eq!(state(&core, 3), SessionState::Connect);
        let panics: Vec<u64> =
            core.view(ViewScope::SESSIONS).peers.iter().map(|it| it.panics).collect();
        assert_eq!(panics, [1, 0]);
        let neighbour = &core.neighbours[&config(2).key];
        assert!(neighbour.dials.is_empty() && neighbour.peer.next_deadline() > Some(now));
    }
}
