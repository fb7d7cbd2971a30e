//! One speaker of many without its sockets, and what must hold of it after every turn.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::BytesMut;

use super::fixpoint::{self, Accepted, Used};
use super::speech::{Said, Speech, Table};
use super::topology::{PREFIXES, Wishes, address, key, node_of, own, prefix};
use crate::session::{self, Connected, ConnectionId};
use crate::speaker::{Action, Event, Guard, PeerAction, Speaker};
use fairway_ground::{Instant, LocalNextHops, PeerKind, Prefix, Rng};
use fairway_seam::{Clear, Desired, DrainState, SessionState};

/// Room that a socket offers at once: a few messages.
const ROOM: usize = 4_200;

/// A guard that sometimes reports that the work has panicked.
#[derive(Debug)]
pub(super) struct Faulty {
    rng: Cell<u64>,
    /// Once in so many steps of work; never, if 0.
    every: Cell<u64>,
}

impl Guard for Faulty {
    fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let done = work();
        if self.every.get() == 0 {
            return Some(done);
        }
        let mut rng = Rng::seeded(self.rng.get());
        let drawn = rng.next_u64();
        self.rng.set(drawn);
        (!drawn.is_multiple_of(self.every.get())).then_some(done)
    }
}

/// One end of a connection that is up.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) cable: usize,
    heard: Speech,
    /// What was given to it, and what of that has been written.
    said: Speech,
    written: Table,
}

/// What a speaker does to the network.
#[derive(Debug)]
pub(super) enum Effect {
    /// It dials this neighbour.
    Dial(usize, ConnectionId),
    /// It writes to this cable; the event that it was written is due.
    Write(usize, usize, ConnectionId, Vec<u8>),
    /// It closes its end of this cable.
    Close(usize),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) number: usize,
    pub(super) speaker: Speaker<Faulty>,
    pub(super) is_running: bool,
    pub(super) sockets: BTreeMap<(usize, ConnectionId), Socket>,
    pub(super) dialling: BTreeSet<(usize, ConnectionId)>,
    /// Processes so far.
    pub(super) run: u64,
    generation: u64,
    /// What was originated in each generation, and for which neighbours.
    history: BTreeMap<u64, BTreeMap<Prefix, Vec<usize>>>,
    /// Prefixes that were not originated in a generation, and for which there was a learned route to
    /// advertise instead: that takes the place of a withdrawal, and is not waited for.
    replaced: BTreeSet<(u64, Prefix)>,
    withdrawn_up_to: u64,
    /// Work on a peer that panicked.
    pub(super) panics: u64,
    seed: u64,
}

impl Node {
    pub(super) fn new(number: usize, all: &[Wishes], seed: u64, fault_every: u64) -> Self {
        let mut node = Self {
            number,
            speaker: speaker(Instant::ZERO, seed, fault_every),
            is_running: true,
            sockets: BTreeMap::new(),
            dialling: BTreeSet::new(),
            run: 0,
            generation: 0,
            history: BTreeMap::new(),
            replaced: BTreeSet::new(),
            withdrawn_up_to: 0,
            panics: 0,
            seed,
        };
        node.apply(Instant::ZERO, all);
        node
    }

    /// The process ends without a NOTIFICATION.
    pub(super) fn stop(&mut self) {
        self.is_running = false;
        self.sockets.clear();
        self.dialling.clear();
    }

    /// Another one starts, and finds nothing.
    pub(super) fn start(&mut self, now: Instant, all: &[Wishes], fault_every: u64) {
        self.is_running = true;
        self.run += 1;
        let seed = self.seed.wrapping_add(self.run);
        // No connection of it has the name of an earlier one.
        self.speaker = speaker(now, seed, fault_every).after_incarnation(self.run * 1_000_000);
        self.history.clear();
        self.replaced.clear();
        self.withdrawn_up_to = 0;
        self.generation = 0;
        self.apply(now, all);
    }

    pub(super) fn never_panics_again(&mut self) {
        self.speaker.guard().every.set(0);
    }

    /// The speaker is given the state that its operator wants.
    pub(super) fn apply(&mut self, now: Instant, all: &[Wishes]) {
        if !self.is_running {
            return;
        }
        let wishes = &all[self.number];
        self.generation += 1;
        let originated = wishes.originated.iter().map(|(prefix, it)| (*prefix, it.to.clone()));
        let originated = if wishes.drained { BTreeMap::new() } else { originated.collect() };
        self.history.insert(self.generation, originated);
        let config = |other: &usize| wishes.config(self.number, *other, all[*other].asn);
        let desired = Desired {
            generation: self.generation,
            peers: wishes.neighbours.keys().map(config).collect(),
            routes: wishes.routes().into(),
            drain: if wishes.drained { DrainState::Drained } else { DrainState::InService },
            ..Desired::default()
        };
        self.speaker.handle(now, Event::Desired(Arc::new(desired), None));
    }

    pub(super) fn clear(&mut self, now: Instant, neighbour: usize, how: Clear) {
        let _ = self.speaker.clear(now, key(neighbour), how);
    }

    pub(super) fn accept(
        &mut self,
        now: Instant,
        from: usize,
        cable: usize,
    ) -> Option<ConnectionId> {
        let id = self.speaker.accept(now, key(from), ends(self.number, from))?;
        self.sockets.insert((from, id), Socket::new(cable));
        Some(id)
    }

    pub(super) fn connected(&mut self, now: Instant, to: usize, id: ConnectionId, cable: usize) {
        self.dialling.remove(&(to, id));
        self.sockets.insert((to, id), Socket::new(cable));
        self.hear(now, to, session::Event::Connected(id, ends(self.number, to)));
    }

    pub(super) fn connect_failed(&mut self, now: Instant, to: usize, id: ConnectionId) {
        if self.dialling.remove(&(to, id)) {
            self.hear(now, to, session::Event::ConnectFailed(id, "refused".to_owned()));
        }
    }

    pub(super) fn received(
        &mut self,
        now: Instant,
        all: &[Wishes],
        from: usize,
        id: ConnectionId,
        bytes: &[u8],
    ) {
        let kind = kind(all, self.number, from);
        if let Some(socket) = self.sockets.get_mut(&(from, id)) {
            socket.heard.take(bytes, kind);
        }
        self.hear(now, from, session::Event::Received(id, bytes));
    }

    pub(super) fn closed(&mut self, now: Instant, from: usize, id: ConnectionId) {
        self.hear(now, from, session::Event::Closed(id, None));
    }

    pub(super) fn written(&mut self, now: Instant, to: usize, id: ConnectionId) {
        if let Some(socket) = self.sockets.get_mut(&(to, id)) {
            socket.written = socket.said.table.clone();
            self.speaker.handle(now, Event::Written(key(to), id));
        }
    }

    fn hear(&mut self, now: Instant, neighbour: usize, event: session::Event<'_>) {
        self.speaker.handle(now, Event::Peer(key(neighbour), event));
    }

    /// Its turn, and whether it kept the rules.
    pub(super) fn settle(&mut self, now: Instant, all: &[Wishes]) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.carry_out(&mut effects);
        self.note_replaced(all);
        self.speaker.handle(now, Event::Tick);
        self.carry_out(&mut effects);
        let mut bytes = BytesMut::new();
        while let Some((to, id)) = self.speaker.poll_transmit(now, ROOM, &mut bytes) {
            let (to, bytes) = (node_of(to), bytes.split());
            let kind = kind(all, to, self.number);
            let socket = self.sockets.get_mut(&(to, id)).expect("a peer that sends is connected");
            socket.said.take(&bytes, kind);
            effects.push(Effect::Write(socket.cable, to, id, bytes.to_vec()));
        }
        self.carry_out(&mut effects);
        self.check_kept();
        // Work that panicked while sockets were filled is passed on in the next turn, at once.
        if self.speaker.next_deadline().is_none_or(|deadline| deadline > now) {
            self.check_told(all);
        }
        effects
    }

    fn note_replaced(&mut self, all: &[Wishes]) {
        let originated = &all[self.number].originated;
        let learned = self.speaker.rib().learned().map(|route| route.prefix);
        let replaced = learned.filter(|prefix| !originated.contains_key(prefix));
        self.replaced.extend(replaced.map(|prefix| (self.generation, prefix)));
    }

    fn carry_out(&mut self, effects: &mut Vec<Effect>) {
        while let Some(action) = self.speaker.poll_action() {
            match action {
                Action::Peer(peer, action) => self.act(node_of(peer), action, effects),
                Action::WithdrawnUpTo(generation) => self.check_withdrawn(generation),
                Action::Changed
                | Action::Forward(_)
                | Action::Untrack(_)
                | Action::Monitored(..)
                | Action::LocRib(_)
                | Action::ForwardingComplete => {}
                Action::SourcesSilent => panic!("all sources have spoken"),
            }
        }
    }

    fn act(&mut self, peer: usize, action: PeerAction, effects: &mut Vec<Effect>) {
        match action {
            PeerAction::Connect(id) => {
                self.dialling.insert((peer, id));
                effects.push(Effect::Dial(peer, id));
            }
            PeerAction::Close(id, last_words) => {
                self.dialling.remove(&(peer, id));
                self.close(peer, id, last_words.unwrap_or_default().to_vec(), effects);
            }
            PeerAction::StartedOver(farewell) => {
                self.panics += 1;
                self.dialling.retain(|(to, _)| *to != peer);
                let open = self.sockets.keys().filter(|(of, _)| *of == peer).copied();
                for (_, id) in open.collect::<Vec<_>>() {
                    self.close(peer, id, farewell.to_vec(), effects);
                }
            }
            PeerAction::Configured(_) | PeerAction::Removed | PeerAction::Report(_) => {}
        }
    }

    fn close(
        &mut self,
        peer: usize,
        id: ConnectionId,
        last_words: Vec<u8>,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(socket) = self.sockets.remove(&(peer, id)) {
            if !last_words.is_empty() {
                effects.push(Effect::Write(socket.cable, peer, id, last_words));
            }
            effects.push(Effect::Close(socket.cable));
        }
    }

    /// The RIB, by neighbour.
    pub(super) fn accepted(&self) -> Accepted {
        let mut accepted = Accepted::new();
        for route in self.speaker.rib().learned() {
            let said = Said {
                path: route.path.attributes.as_path.asns().collect(),
                communities: route.path.attributes.communities.to_vec(),
            };
            let from = node_of(route.path.source.key);
            accepted.entry(from).or_default().insert(route.prefix, said);
        }
        accepted
    }

    /// The route to `prefix` that it uses, of those that it received.
    fn used(&self, prefix: Prefix) -> Option<Used> {
        let mut learned = self.speaker.rib().learned();
        let best = learned.find(|route| route.prefix == prefix && route.lost_at.is_none())?;
        let said = Said {
            path: best.path.attributes.as_path.asns().collect(),
            communities: best.path.attributes.communities.to_vec(),
        };
        Some(Used { from: Some(node_of(best.path.source.key)), said })
    }

    fn session(&self, neighbour: usize) -> Option<&Socket> {
        let peer = self.speaker.peer(key(neighbour))?;
        let is_up = peer.state() == SessionState::Established;
        let id = peer
            .connections()
            .into_iter()
            .find(|(_, state, _)| is_up && *state == SessionState::Established);
        self.sockets.get(&(neighbour, id?.0))
    }

    pub(super) fn is_up(&self, neighbour: usize) -> bool {
        self.session(neighbour).is_some()
    }

    /// No route is kept that its neighbour does not announce any more.
    fn check_kept(&self) {
        for (from, table) in self.accepted() {
            let heard = self.session(from).map(|socket| &socket.heard.table);
            let heard =
                heard.unwrap_or_else(|| panic!("{} keeps {table:?} of {from}", self.number));
            for (prefix, said) in &table {
                assert_eq!(heard.get(prefix), Some(said), "{} of {from}: {prefix}", self.number);
            }
        }
    }

    /// The best of all paths is used, and each neighbour that has room was sent it.
    fn check_told(&self, all: &[Wishes]) {
        let accepted = self.accepted();
        let prefixes: Vec<Prefix> = (0..PREFIXES).map(prefix).collect();
        for prefix in &prefixes {
            let used = self.used(*prefix);
            if !all[self.number].originated.contains_key(prefix) {
                let best = fixpoint::best(all, self.number, *prefix, &accepted);
                assert_eq!(used, best, "{} uses another path to {prefix}", self.number);
            }
            for to in all[self.number].neighbours.keys() {
                let Some(socket) = self.session(*to) else { continue };
                let peer = self.speaker.peer(key(*to));
                if peer.is_some_and(session::Peer::owes_updates) {
                    continue; // Its socket has no room.
                }
                let told = fixpoint::told(all, (self.number, *to), *prefix, used.as_ref());
                let said = socket.said.table.get(prefix);
                assert_eq!(said, told.as_ref(), "{} to {to}: {prefix}", self.number);
            }
        }
    }

    /// What is not desired in this generation, nor later, has been withdrawn everywhere.
    fn check_withdrawn(&mut self, generation: u64) {
        assert!(generation > self.withdrawn_up_to, "it was reported before");
        assert!(generation <= self.generation, "it is not known yet");
        self.withdrawn_up_to = generation;
        let sessions: BTreeSet<usize> = self.sockets.keys().map(|(to, _)| *to).collect();
        for to in sessions {
            let Some(socket) = self.session(to) else { continue };
            for (prefix, said) in &socket.written {
                let own = [own(self.number, 0), own(self.number, 1)];
                let is_ours = said.communities.first().is_some_and(|it| own.contains(it));
                let later = self.history.range(generation..);
                let mut wanted = later.filter_map(|(_, routes)| routes.get(prefix));
                let is_wanted = wanted.any(|told| told.contains(&to));
                let is_replaced = self.replaced.range((generation, *prefix)..);
                let is_replaced = is_replaced.into_iter().any(|(_, it)| it == prefix);
                let is_fine = !is_ours || is_wanted || is_replaced;
                assert!(is_fine, "{to} has {prefix} still, of {}", self.number);
            }
        }
    }

    /// All withdrawals have been written by now, and nothing is left to do.
    pub(super) fn assert_quiet(&self, now: Instant) {
        assert_eq!(self.withdrawn_up_to, self.generation, "{} waits", self.number);
        let deadline = self.speaker.next_deadline();
        assert!(deadline.is_none_or(|it| it > now), "{} has something to do", self.number);
    }
}

impl Socket {
    fn new(cable: usize) -> Self {
        let (heard, said) = (Speech::default(), Speech::default());
        Self { cable, heard, said, written: Table::new() }
    }
}

fn speaker(now: Instant, seed: u64, fault_every: u64) -> Speaker<Faulty> {
    let guard = Faulty { rng: Cell::new(seed), every: Cell::new(fault_every) };
    Speaker::guarded(guard, now, seed, None)
}

fn kind(all: &[Wishes], node: usize, other: usize) -> PeerKind {
    if all[node].asn == all[other].asn { PeerKind::Internal } else { PeerKind::External }
}

fn ends(node: usize, other: usize) -> Connected {
    let ipv4 = match address(node) {
        std::net::IpAddr::V4(address) => Some(address),
        std::net::IpAddr::V6(_) => None,
    };
    Connected {
        local: (address(node), 179).into(),
        remote: (address(other), 179).into(),
        next_hops: LocalNextHops { ipv4, ..LocalNextHops::default() },
        networks: Vec::new(),
    }
}
