//! The task that owns the RIB and all peers.
//!
//! One loop: something happened, the peers it concerns act, sockets with room are filled, sleep
//! until the next deadline. Everything it waits for is cancel-safe (`recv`, `changed`, a sleep),
//! and nothing it does waits.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use super::clock::Clock;
use super::neighbour::{Neighbour, NetworkEvent};
use super::sockopt;
use crate::backend::{BgpView, Desired};
use crate::bgp::{Event, Peer};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{Password, PeerConfig, PeerKey};
use crate::wire::notification::cease;

/// Events handled before sockets are filled and deadlines looked at.
const BURST_MAX: usize = 64;

/// What the backend asks.
#[derive(Debug)]
pub(super) enum Command {
    /// A snapshot.
    View(oneshot::Sender<BgpView>),
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

    /// Runs `work` on one neighbour. A panic in it is a fault of ours, and ends that neighbour's
    /// session and nothing else.
    fn with_neighbour(
        &mut self,
        now: Instant,
        key: PeerKey,
        work: impl FnOnce(&mut Neighbour, &Surroundings),
    ) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        let surroundings = &self.surroundings;
        // Unwind-safe: whatever state the panic left is thrown away.
        let worked = catch_unwind(AssertUnwindSafe(|| work(neighbour, surroundings)));
        if worked.is_err() {
            error!(peer = %key, "a fault of ours: its session is ended and begins anew");
            self.incarnations = self.incarnations.saturating_add(1);
            neighbour.begin_anew(now, self.seed, self.incarnations);
        }
    }

    /// Lets every peer act on what is due, and fills the sockets that have room.
    fn turn(&mut self) {
        let now = self.clock.now();
        let keys: Vec<PeerKey> = self.neighbours.keys().copied().collect();
        for key in keys {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                if neighbour.peer.next_deadline().is_some_and(|deadline| deadline <= now) {
                    neighbour.peer.handle(now, Event::Tick);
                }
                neighbour.act(now, surroundings);
                neighbour.transmit(now);
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
            self.set_listener_password(config);
            match self.neighbours.get_mut(key) {
                Some(neighbour) if neighbour.peer.config() == *config => {}
                Some(neighbour) => {
                    neighbour.logged_failure = None;
                    neighbour.peer.reconfigure(now, (*config).clone());
                }
                None => {
                    self.incarnations = self.incarnations.saturating_add(1);
                    let peer = Peer::new(now, (*config).clone(), self.seed, self.incarnations);
                    self.neighbours.insert(*key, Neighbour::new(peer));
                }
            }
        }
        self.known.send_replace(Arc::new(wanted.keys().map(|key| key.0).collect()));

        let touched = self.surroundings.rib.set(desired.routes.clone());
        for key in wanted.into_keys() {
            self.with_neighbour(now, key, |neighbour, surroundings| {
                neighbour.peer.announce(&surroundings.rib, &touched);
            });
        }
    }

    fn remove(&mut self, now: Instant, key: PeerKey) {
        let Some(mut neighbour) = self.neighbours.remove(&key) else { return };
        let name = neighbour.peer.config().name.clone();
        info!(peer = %key, name, "peer removed");
        neighbour.peer.stop(now, cease::PEER_DECONFIGURED, "the peer was removed");
        neighbour.act(now, &self.surroundings);
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

    fn shut_down(&mut self) {
        let now = self.clock.now();
        for neighbour in self.neighbours.values_mut() {
            neighbour.peer.stop(now, cease::ADMINISTRATIVE_SHUTDOWN, "fairway is stopping");
            neighbour.act(now, &self.surroundings);
        }
    }

    fn view(&self) -> BgpView {
        let now = self.clock.now();
        BgpView {
            generation: self.generation,
            peers: self.neighbours.values().map(|it| it.peer.view(now)).collect(),
            routes: self.surroundings.rib.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::SessionState;
    use crate::types::{AddressFamily, Asn, FamilySet, HoldTime, RouterId};

    fn config(number: u8) -> PeerConfig {
        PeerConfig {
            key: PeerKey([127, 0, 0, number].into()),
            name: format!("peer-{number}"),
            local_asn: Asn::new(65001).unwrap(),
            remote_asn: Asn::new(65002).unwrap(),
            router_id: RouterId::new(1).unwrap(),
            port: 1,
            source_address: None,
            hold_time: HoldTime::DEFAULT,
            keepalive_interval: None,
            connect_retry_interval: PeerConfig::CONNECT_RETRY_INTERVAL_DEFAULT,
            password: None,
            multihop: false,
            families: FamilySet::only(AddressFamily::Ipv4Unicast),
        }
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
            core.neighbours[&PeerKey([127, 0, 0, number].into())].peer.state()
        };
        assert_eq!(state(&core, 2), SessionState::Connect);
        let now = core.clock.now();
        core.with_neighbour(now, config(2).key, |_, _| panic!("a fault of ours"));
        assert_eq!(state(&core, 2), SessionState::Idle);
        assert_eq!(state(&core, 3), SessionState::Connect);
        let neighbour = &core.neighbours[&config(2).key];
        assert!(neighbour.dials.is_empty() && neighbour.peer.next_deadline() > Some(now));
    }
}
