//! One speaker without sockets: its peer, its routes, and what it heard from the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::BytesMut;

use super::helper::Helper;
use super::log::{Hex, Log, What};
use super::process::{Found, Process, Routes};
use super::rules::{Speech, check_slots};
use super::wire::Parcel;
use crate::backend::Leave;
use crate::bgp::{Action, Connected, ConnectionId, Event, Peer};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{Community, LocalNextHops, PeerConfig, Prefix};

/// Room that a socket offers at once.
const ROOM: usize = 16 * 1024;
/// No two dials of one side may be closer than this: the shortest backoff with the most jitter.
const DIAL_GAP_MIN: Duration = Duration::from_millis(750);

/// A speaker with one neighbour.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) peer: Peer,
    pub(super) rib: LocRib,
    /// What the RIB must hold of the neighbour's routes.
    pub(super) helper: Helper,
    pub(super) process: Process,
    /// Whether there is a process.
    pub(super) is_running: bool,
    /// Connections that are up, and which wire they run over.
    pub(super) wires: BTreeMap<ConnectionId, usize>,
    /// Dials on their way.
    pub(super) dialling: BTreeSet<ConnectionId>,
    pub(super) log: Log,
    speeches: BTreeMap<ConnectionId, Speech>,
    last_dial: Option<Instant>,
    /// Over which the bytes came that are acted on.
    hearing: ConnectionId,
    side: usize,
    seed: u64,
    pub(super) incarnation: u64,
}

/// What a speaker does to the network.
#[derive(Debug)]
pub(super) enum Effect {
    /// It dials.
    Dial(ConnectionId),
    /// It writes to this wire.
    Write(usize, Vec<u8>),
    /// It closes its end of this wire.
    Close(usize),
}

impl Router {
    pub(super) fn new(side: usize, config: PeerConfig, seed: u64, mut log: Log) -> Self {
        log.note(Instant::ZERO, None, || What::Started);
        let mut process = Process::first(&config);
        let mut rib = LocRib::default();
        rib.set(process.routes());
        Self {
            helper: Helper::new(&config),
            process,
            is_running: true,
            peer: Peer::new(Instant::ZERO, config, seed, 0),
            rib,
            wires: BTreeMap::new(),
            dialling: BTreeSet::new(),
            log,
            speeches: BTreeMap::new(),
            last_dial: None,
            hearing: ConnectionId::default(),
            side,
            seed,
            incarnation: 0,
        }
    }

    /// The process leaves, and does what it still does then.
    pub(super) fn leave(&mut self, now: Instant, how: Leave) -> Vec<Effect> {
        self.peer.leave(now, how);
        self.is_running = false;
        let effects = self.settle(now);
        let says_something =
            |effect: &Effect| matches!(effect, Effect::Write(_, bytes) if !bytes.is_empty());
        let is_kept = self.peer.config().graceful_restart.is_some();
        let is_quiet = is_kept && how == Leave::ForRestart;
        assert!(!is_quiet || !effects.iter().any(says_something), "it leaves without a word");
        effects
    }

    /// The operator clears the session, which is dialled again at once.
    pub(super) fn clear(&mut self, now: Instant) {
        self.last_dial = None;
        self.helper.is_cleared();
        self.peer.reset(now);
    }

    /// There is no process any more: nothing is left of what it knew.
    pub(super) fn stop(&mut self, now: Instant, how: &str) {
        self.log.note(now, None, || What::Stopped { how: how.to_owned() });
        self.is_running = false;
        self.rib = LocRib::default();
        self.helper = Helper::new(self.peer.config());
        self.wires.clear();
        self.dialling.clear();
        self.speeches.clear();
        self.last_dial = None;
    }

    /// There is another one.
    pub(super) fn start(&mut self, now: Instant, found: Found, forwarding: bool, awaits: bool) {
        self.log.note(now, None, || What::Started);
        self.is_running = true;
        self.incarnation += 1;
        self.process.begin(now, found, forwarding, awaits);
        self.rib.set(self.process.routes());
        let config = self.peer.config().clone();
        self.peer = Peer::new(now, config, self.seed, self.incarnation);
        let (own, hold_end_of_rib_until) = self.process.comeback(now);
        self.peer.restarted(own, hold_end_of_rib_until);
    }

    /// All sources have said what they have to say.
    pub(super) fn sources_speak(&mut self) {
        if self.is_running && self.process.sources_speak() {
            self.announce();
            self.peer.sources_have_spoken();
        }
    }

    /// What is originated may be something else than before.
    fn announce(&mut self) {
        let touched = self.rib.set(self.process.routes());
        self.peer.announce(&self.rib, &touched);
    }

    /// What the neighbour announced, as the RIB has it.
    pub(super) fn heard(&self) -> BTreeMap<Prefix, Vec<Community>> {
        let learned = self.rib.learned();
        learned.map(|route| (route.prefix, route.path.attributes.communities.clone())).collect()
    }

    /// What arrived over `wire`, where our end is connection `id`.
    pub(super) fn take(&mut self, now: Instant, id: ConnectionId, wire: usize, parcel: Parcel) {
        match parcel {
            Parcel::Connected => self.connected(now, id, wire),
            Parcel::Refused => drop(self.connect_failed(now, id, "refused")),
            Parcel::Bytes(bytes) => self.received(now, id, &bytes),
            Parcel::End => self.closed(now, id, None),
            Parcel::Reset => self.closed(now, id, Some("reset")),
        }
    }

    /// TCP is up, for a dial or for a connection that the neighbour dialled.
    pub(super) fn connected(&mut self, now: Instant, id: ConnectionId, wire: usize) {
        self.log.note(now, Some(id), || What::Connected);
        self.dialling.remove(&id);
        self.wires.insert(id, wire);
        self.peer.handle(now, Event::Connected(id, ends(self.side)));
    }

    pub(super) fn accept(&mut self, now: Instant, wire: usize) -> ConnectionId {
        let id = self.peer.accept(now, ends(self.side));
        self.log.note(now, Some(id), || What::Accepted);
        self.wires.insert(id, wire);
        id
    }

    /// A dial came to nothing. Says whether anybody still waited for it.
    pub(super) fn connect_failed(&mut self, now: Instant, id: ConnectionId, why: &str) -> bool {
        let waited = self.dialling.remove(&id);
        if waited {
            self.log.note(now, Some(id), || What::ConnectFailed { why: why.to_owned() });
            self.peer.handle(now, Event::ConnectFailed(id, why.to_owned()));
        }
        waited
    }

    pub(super) fn received(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.log.note(now, Some(id), || What::Received { bytes: Hex(bytes.to_vec()) });
        self.hearing = id;
        if self.wires.contains_key(&id) {
            self.helper.hear(id, bytes);
        }
        self.peer.handle(now, Event::Received(id, bytes));
    }

    pub(super) fn closed(&mut self, now: Instant, id: ConnectionId, why: Option<&str>) {
        let why = why.map(str::to_owned);
        self.log.note(now, Some(id), || What::Closed { why: why.clone() });
        self.peer.handle(now, Event::Closed(id, why));
    }

    /// When to be woken.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let deadline = self.peer.next_deadline();
        let helper = self.helper.next_deadline();
        assert!(helper.is_none() || deadline <= helper, "{deadline:?}: stale until {helper:?}");
        deadline.into_iter().chain(self.process.next_deadline()).min()
    }

    /// Lets time do its work, if there is something due.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.process.expire(now) {
            self.announce();
        }
        if self.peer.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.log.note(now, None, || What::Tick);
            self.helper.expire(now);
            self.peer.handle(now, Event::Tick);
            let next = self.peer.next_deadline();
            assert!(next.is_none_or(|next| next > now), "a tick settles what was due");
        }
    }

    /// These prefixes are configured from now on, each with this community.
    pub(super) fn originate(&mut self, routes: Routes) {
        self.process.wanted = routes;
        if self.is_running {
            self.announce();
        }
    }

    /// What the neighbour should have heard from us.
    pub(super) fn told(&self) -> BTreeMap<Prefix, Vec<Community>> {
        let routes = self.process.wanted.iter();
        routes.map(|(prefix, community)| (*prefix, vec![*community])).collect()
    }

    /// What the peer wants done after something happened, and whether it kept the rules.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Connect(id) => {
                    let gap = self.last_dial.replace(now).map(|last| now.since(last));
                    assert!(gap.is_none_or(|gap| gap >= DIAL_GAP_MIN), "dials again after {gap:?}");
                    self.dialling.insert(id);
                    self.log.note(now, Some(id), || What::Dials);
                    effects.push(Effect::Dial(id));
                }
                Action::Close(id, last_words) => self.close(now, id, last_words, &mut effects),
                Action::Established => {
                    self.process.sessions += 1;
                    self.helper.is_up(now, self.hearing);
                    self.peer.announce_all(&self.rib);
                }
                Action::Routes(source, changes) => drop(self.rib.learn(&source, changes)),
                Action::Down(reason) => self.helper.is_down(now, &reason),
                Action::AttemptFailed(_) | Action::Malformed(_) | Action::NearMaximum(..) => {}
            }
        }
        for (id, wire) in &self.wires {
            let mut bytes = BytesMut::new();
            self.peer.poll_transmit(now, *id, ROOM, &mut bytes);
            if !bytes.is_empty() {
                let speech = self.speeches.entry(*id).or_default();
                speech.check(&bytes, self.peer.config());
                speech.check_restart(now, self.peer.config(), &self.process);
                self.log.note(now, Some(*id), || What::Sends { bytes: Hex(bytes.to_vec()) });
                effects.push(Effect::Write(*wire, bytes.to_vec()));
            }
        }
        if self.is_running {
            check_slots(self);
            self.helper.check(now, &self.peer, &self.rib);
        }
        effects
    }

    fn close(
        &mut self,
        now: Instant,
        id: ConnectionId,
        last_words: Option<bytes::Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        self.dialling.remove(&id);
        self.helper.closes(id);
        self.log.note(now, Some(id), || What::Closes);
        let Some(wire) = self.wires.remove(&id) else { return };
        let mut speech = self.speeches.remove(&id).unwrap_or_default();
        if let Some(bytes) = last_words {
            speech.check_last_words(&bytes, self.peer.config());
            self.log.note(now, Some(id), || What::Sends { bytes: Hex(bytes.to_vec()) });
            effects.push(Effect::Write(wire, bytes.to_vec()));
        }
        let mut more = BytesMut::new();
        self.peer.poll_transmit(now, id, ROOM, &mut more);
        assert!(more.is_empty(), "a connection that is over has nothing to say");
        effects.push(Effect::Close(wire));
    }
}

/// The two ends of a connection as `side` sees them.
pub(super) fn ends(side: usize) -> Connected {
    let number = u8::from(side == 1) + 1;
    Connected {
        local: ([192, 0, 2, number], 179).into(),
        remote: ([192, 0, 2, 3 - number], 179).into(),
        next_hops: LocalNextHops {
            ipv4: Some([192, 0, 2, number].into()),
            ..LocalNextHops::default()
        },
        networks: Vec::new(),
    }
}
