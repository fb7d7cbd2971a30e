//! The machine: an event arrives, the peers that it concerns act, connections with room are filled, and
//! the next deadline is known.
//!
//! Knows no socket, clock or task. What one peer does is [`crate::session::Peer`]'s, which route is best
//! [`crate::rib::LocRib`]'s.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use super::action::{Action, Outbox, PeerAction};
use super::agenda::Agenda;
use super::event::Event;
use super::forwarding::Forwarding;
use super::guard::{Guard, Unguarded};
use super::neighbour::Neighbour;
use super::parts::share;
use super::ranges::Ranges;
use crate::rib::{ExportGroups, LocRib, PrefixSet};
use crate::session::{self, Connected, ConnectionId, Peer, Startup};
use fairway_ground::{BmpTables, Instant, InterfaceName, LocalNextHops, PeerKey, Prefix};
use fairway_rpki::{Concerned, OriginTable};
use fairway_seam::{Clear, ClearError, Desired, EarlierRun, Latencies};

/// Some 16 KiB of UPDATEs.
const CHANGES_MAX: usize = 4_000;

/// One BGP speaker. `G` decides what happens when the work on one peer panics.
#[derive(Debug)]
pub struct Speaker<G: Guard = Unguarded> {
    pub(super) guard: G,
    pub(super) rib: LocRib,
    /// What peers with the same policy are sent.
    pub(super) groups: ExportGroups,
    /// Each in a box: a node of the map has room for eleven.
    pub(super) neighbours: BTreeMap<PeerKey, Box<Neighbour>>,
    pub(super) agenda: Agenda,
    pub(super) ranges: Ranges,
    pub(super) startup: Startup,
    pub(super) forwarding: Forwarding,
    /// The tables that somebody monitors.
    pub(super) monitored: Option<BmpTables>,
    /// What RPKI caches say.
    pub(super) origins: Arc<OriginTable>,
    /// What is in force.
    pub(super) desired: Arc<Desired>,
    /// Some neighbour may wait for its End-of-RIB.
    pub(super) holds_end_of_rib: bool,
    /// The generation up to which all withdrawals have been written to all peers.
    pub(super) withdrawn_up_to: u64,
    pub(super) has_changed: bool,
    pub(super) changes_told: Latencies,
    /// Those that have acted in this turn.
    pub(super) acted: BTreeSet<PeerKey>,
    /// Those of them that may have something to send.
    pub(super) unfilled: VecDeque<PeerKey>,
    /// How many neighbours have changes of routes that the RIB has not got yet.
    pub(super) unlearning: usize,
    /// How many have to look again at routes that they were announced or told.
    pub(super) looking_again: usize,
    pub(super) outbox: Outbox,
    pub(super) seed: u64,
    /// How many peers have existed.
    pub(super) incarnations: u64,
}

impl Speaker {
    /// A speaker without peers, in a process that starts at `now`, perhaps after another one which left
    /// `earlier` behind. `seed` decides the jitter of the timers.
    pub fn new(now: Instant, seed: u64, earlier: Option<EarlierRun>) -> Self {
        Self::guarded(Unguarded, now, seed, earlier)
    }
}

impl<G: Guard> Speaker<G> {
    /// The same with a guard round the work on each peer.
    pub fn guarded(guard: G, now: Instant, seed: u64, earlier: Option<EarlierRun>) -> Self {
        Self {
            guard,
            rib: LocRib::default(),
            groups: ExportGroups::default(),
            neighbours: BTreeMap::new(),
            agenda: Agenda::default(),
            ranges: Ranges::default(),
            startup: Startup::new(now, earlier),
            forwarding: Forwarding::new(now),
            monitored: None,
            origins: Arc::default(),
            desired: Arc::default(),
            holds_end_of_rib: false,
            withdrawn_up_to: 0,
            has_changed: false,
            changes_told: Latencies::default(),
            acted: BTreeSet::new(),
            unfilled: VecDeque::new(),
            unlearning: 0,
            looking_again: 0,
            outbox: Outbox::default(),
            seed,
            incarnations: 0,
        }
    }

    /// Counts incarnations from `number` on: no connection of this process has the name of one of the
    /// process before, which may still be on the network.
    #[cfg(test)]
    pub(crate) fn after_incarnation(mut self, number: u64) -> Self {
        self.incarnations = number;
        self
    }

    /// The guard.
    #[cfg(test)]
    pub(crate) fn guard(&self) -> &G {
        &self.guard
    }

    /// Processes an event.
    pub fn handle(&mut self, now: Instant, event: Event<'_>) {
        match event {
            Event::Desired(desired, changed_at) => self.apply(now, desired, changed_at),
            Event::Peer(key, event) => {
                self.with_neighbour(now, key, |neighbour, _, _| neighbour.peer.handle(now, event));
            }
            Event::Written(key, id) => {
                self.with_neighbour(now, key, |neighbour, _, _| neighbour.written(id));
            }
            Event::LinkLost(key, why) => {
                self.with_neighbour(now, key, |neighbour, _, _| {
                    neighbour.peer.link_lost(now, &why);
                });
            }
            Event::DialSoon(key) => {
                self.with_neighbour(now, key, |neighbour, _, _| neighbour.peer.dial_soon(now));
            }
            Event::Origins(origins, concerned) => self.validate_again(now, origins, &concerned),
            Event::NextHops(next_hops) => self.follow_next_hops(next_hops),
            Event::Leave(how) => {
                for key in self.keys() {
                    self.with_neighbour(now, key, |it, _, _| it.peer.leave(now, how));
                }
            }
            Event::Tick => self.tick(now),
        }
    }

    fn validate_again(&mut self, now: Instant, origins: Arc<OriginTable>, concerned: &Concerned) {
        self.origins = origins;
        let exports_by_origin = self.neighbours.values().any(|it| it.peer.exports_by_origin());
        let known: PrefixSet = match exports_by_origin {
            true => self.rib.ids_where(|prefix| concerned.contains(prefix)).collect(),
            false => PrefixSet::default(),
        };
        for key in self.keys() {
            let origins = Arc::clone(&self.origins);
            self.with_neighbour(now, key, |it, rib, _| {
                it.peer.validate_again(origins, concerned, &known);
                it.peer.announce_all(rib);
            });
        }
    }

    /// What RPKI caches say.
    pub fn origins(&self) -> &OriginTable {
        &self.origins
    }

    /// A peer dialled us. `None` where there is no such peer; an action that follows may refuse the
    /// connection.
    pub fn accept(
        &mut self,
        now: Instant,
        key: PeerKey,
        connected: Connected,
    ) -> Option<ConnectionId> {
        let mut id = None;
        self.with_neighbour(now, key, |neighbour, _, _| {
            id = Some(neighbour.peer.accept(now, connected));
        });
        id
    }

    /// This machine cannot have a session with a peer, for the reason `why`, or can. Returns whether that
    /// is a change.
    pub fn set_aside(&mut self, now: Instant, key: PeerKey, why: Option<String>) -> bool {
        let mut is_new = false;
        self.with_neighbour(now, key, |neighbour, _, _| {
            is_new = neighbour.peer.set_aside(now, why);
        });
        is_new
    }

    /// Resets a session, or requests or sends its routes again.
    pub fn clear(&mut self, now: Instant, key: PeerKey, how: Clear) -> Result<(), ClearError> {
        let mut outcome = Err(ClearError::NoSuchPeer);
        self.with_neighbour(now, key, |neighbour, _, _| {
            let peer = &mut neighbour.peer;
            outcome = match how {
                Clear::Hard => {
                    peer.reset(now);
                    Ok(())
                }
                Clear::SoftIn => peer.refresh_in(),
                Clear::SoftOut => peer.refresh_out(),
                // A neighbour without ROUTE-REFRESH can still be sent all routes.
                Clear::Soft => peer.refresh_out().and_then(|()| peer.refresh_in()),
            };
        });
        outcome
    }

    /// The addresses and networks of this machine may have changed: `end_at` returns the next hops of the
    /// end of a session at an address in a VRF, and its connected networks. All peers are checked each
    /// time: a session that came up since may have used an earlier state than the others.
    pub fn follow_addresses(
        &mut self,
        now: Instant,
        end_at: impl Fn(SocketAddr, Option<InterfaceName>) -> (LocalNextHops, Vec<Prefix>),
    ) {
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, rib, outbox| {
                if let Some(local) = neighbour.peer.local_address() {
                    let end = end_at(local, key.vrf);
                    neighbour.follow_addresses(now, rib, end, outbox);
                }
            });
        }
    }

    /// The edge's work for this peer panicked: the peer restarts, as when its own work panics.
    pub fn start_over(&mut self, now: Instant, key: PeerKey) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        self.incarnations = self.incarnations.saturating_add(1);
        let farewell = neighbour.start_over(now, self.seed, self.incarnations);
        self.outbox.push_for(key, PeerAction::StartedOver(farewell));
        self.agenda.touch(key);
        self.rib.forget(key);
    }

    /// The next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.outbox.pop()
    }

    /// When [`Event::Tick`] is due; at once, where something happened since the last one.
    pub fn next_deadline(&self) -> Option<Instant> {
        let earlier = self.startup.deadline(&self.desired);
        let waits = [self.agenda.next_deadline(), earlier, self.forwarding_deadline()];
        waits.into_iter().flatten().min()
    }

    /// Whether learned and removed routes are reported, each with its attributes: only for a log level
    /// that prints them, since a table may be large.
    pub fn report_routes(&mut self, reports: bool) {
        self.outbox.reports_routes = reports;
    }

    /// The routes.
    pub fn rib(&self) -> &LocRib {
        &self.rib
    }

    /// Whether so many changes wait to be passed on that a turn is due: the more there are in one, the more peers that
    /// are slower than those changes have in memory.
    pub fn has_much_to_pass_on(&self) -> bool {
        self.rib.change_count() >= CHANGES_MAX
    }

    /// All peers in the order of their keys.
    pub fn peers(&self) -> impl Iterator<Item = (PeerKey, &Peer)> {
        self.neighbours.iter().map(|(key, it)| (*key, &it.peer))
    }

    /// Memory that goes with the routes of all neighbours, in bytes, roughly.
    pub fn held_bytes(&self) -> u64 {
        let held = self.neighbours.values().map(|it| it.peer.held_bytes());
        held.fold(0, u64::saturating_add)
    }

    /// Of the neighbour with the most.
    pub fn largest_held_bytes(&self) -> u64 {
        self.neighbours.values().map(|it| it.peer.held_bytes()).max().unwrap_or_default()
    }

    /// Gives up the routes of the neighbour with the most memory in them, with Cease 6/8; returns which one that was,
    /// and how many bytes. `None` if there is no neighbour with routes.
    pub fn relieve(&mut self, now: Instant, why: &str) -> Option<(PeerKey, u64)> {
        let held = self.neighbours.iter().map(|(key, it)| (it.peer.held_bytes(), *key));
        let (bytes, key) = held.max().filter(|(bytes, _)| *bytes > 0)?;
        self.with_neighbour(now, key, |neighbour, _, _| neighbour.peer.give_up_routes(now, why));
        Some((key, bytes))
    }

    /// One peer.
    pub fn peer(&self, key: PeerKey) -> Option<&Peer> {
        self.neighbours.get(&key).map(|it| &it.peer)
    }

    pub(super) fn keys(&self) -> Vec<PeerKey> {
        self.neighbours.keys().copied().collect()
    }

    /// Runs `work` on one peer, which then has its turn.
    pub(super) fn with_neighbour(
        &mut self,
        now: Instant,
        key: PeerKey,
        work: impl FnOnce(&mut Neighbour, &mut LocRib, &mut Outbox),
    ) {
        if self.neighbours.contains_key(&key) {
            self.agenda.touch(key);
            self.run_guarded(now, key, |neighbour, rib, outbox| {
                work(neighbour, rib, outbox);
                neighbour.act(now, rib, outbox);
            });
        }
    }

    /// The same inside a turn; `None` if there is no such peer, or if it panicked. A panic ends the
    /// session of this peer and nothing else.
    pub(super) fn run_guarded<T>(
        &mut self,
        now: Instant,
        key: PeerKey,
        work: impl FnOnce(&mut Neighbour, &mut LocRib, &mut Outbox) -> T,
    ) -> Option<T> {
        let neighbour = self.neighbours.get_mut(&key)?;
        let (rib, outbox) = (&mut self.rib, &mut self.outbox);
        let worked = self.guard.run(|| work(neighbour, rib, outbox));
        if worked.is_none() {
            self.start_over(now, key);
        }
        worked
    }

    /// Lets every peer act on what is due, until no peer has changes for another.
    fn tick(&mut self, now: Instant) {
        self.end_startup(now);
        self.agenda.wake(now);
        let touched = || self.agenda.touched().filter_map(|key| self.neighbours.get(key));
        self.unlearning = touched().filter(|it| !it.unlearned.is_empty()).count();
        self.looking_again = touched().filter(|it| it.peer.has_to_look_again()).count();
        loop {
            while let Some(key) = self.agenda.next() {
                self.act(now, key);
                if self.acted.insert(key) {
                    self.unfilled.push_back(key);
                }
            }
            if !self.rib.has_changes() {
                break;
            }
            self.pass_on(now);
        }
        self.complete_forwarding(now);
        self.untrack();
        self.reclaim();
    }

    /// Gives back what prefixes without routes take, as soon as no peer has to be told of them.
    fn reclaim(&mut self) {
        let peers = &self.neighbours;
        let is_quiet = || peers.values().all(|neighbour| neighbour.peer.waiting_count() == 0);
        if self.rib.has_new_vacant() || self.rib.has_vacant() && is_quiet() {
            self.rib.reclaim(|id| peers.values().any(|neighbour| neighbour.peer.awaits(id)));
        }
    }

    /// Lets one peer act on what is due.
    fn act(&mut self, now: Instant, key: PeerKey) {
        let is_first = !self.acted.contains(&key);
        let (unlearned, looked_at) = (share(self.unlearning), share(self.looking_again));
        self.run_guarded(now, key, |neighbour, rib, outbox| {
            if is_first {
                neighbour.unlearned.learn_part(rib, unlearned);
                neighbour.peer.look_again(now, rib, looked_at);
            }
            if neighbour.peer.next_deadline().is_some_and(|deadline| deadline <= now) {
                neighbour.peer.handle(now, session::Event::Tick);
            }
            neighbour.act(now, rib, outbox);
        });
    }

    /// Passes changes of routes to the peers that they are advertised to.
    pub(super) fn pass_on(&mut self, now: Instant) {
        let changes = self.rib.take_changes();
        self.forward(changes.list.iter().map(|change| change.id));
        self.monitor_best(&changes);
        let concerned =
            self.neighbours.iter().filter(|(_, it)| changes.of_originated || it.peer.passes_on());
        let concerned: Vec<PeerKey> = concerned.map(|(key, _)| *key).collect();
        let mut groups = std::mem::take(&mut self.groups);
        for key in concerned {
            self.with_neighbour(now, key, |neighbour, rib, _| {
                neighbour.peer.pass_on(rib, &mut groups, &changes)
            });
        }
        self.groups = groups;
    }
}
