//! One speaker with one neighbour: the real one without its sockets, and what it received from the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::helper::Helper;
use super::log::{Hex, Log, What};
use super::process::{Found, Process, Routes};
use super::rules::{Speech, check_slots};
use super::wire::Parcel;
use crate::session::{self, Connected, ConnectionId, Peer};
use crate::speaker::{Action, Event, PeerAction, Report, Speaker};
use fairway_ground::{Community, Instant, LocalNextHops, PeerKey, Prefix};
use fairway_seam::{Clear, Leave, PeerConfig, SessionState};

/// Room that a socket offers at once.
const ROOM: usize = 16 * 1024;
/// No two dials of one side may be closer than this: the shortest backoff with the most jitter.
const DIAL_GAP_MIN: Duration = Duration::from_millis(750);

/// When a speaker starts: there is a moment before its first timer is due.
const BEGINNING: Instant = Instant::from_micros(1);

/// A speaker with one neighbour.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) speaker: Speaker,
    key: PeerKey,
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
    /// A timer is due, and its time has come.
    ticks: bool,
    /// The connection that delivered the bytes that are processed.
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
        let mut router = Self {
            helper: Helper::new(&config),
            process: Process::first(&config),
            is_running: true,
            speaker: Speaker::new(BEGINNING, seed.wrapping_sub(1), None),
            key: config.key,
            wires: BTreeMap::new(),
            dialling: BTreeSet::new(),
            log,
            speeches: BTreeMap::new(),
            last_dial: None,
            ticks: false,
            hearing: ConnectionId::default(),
            side,
            // The first peer is the first incarnation, and adds 1.
            seed: seed.wrapping_sub(1),
            incarnation: 0,
        };
        router.apply(BEGINNING);
        router
    }

    /// The neighbour. There is one from the first moment to the last.
    pub(super) fn peer(&self) -> &Peer {
        self.speaker.peer(self.key).expect("a neighbor is configured")
    }

    /// The speaker is given the desired state of its sources.
    fn apply(&mut self, now: Instant) {
        let desired = self.process.desired();
        self.speaker.handle(now, Event::Desired(Arc::new(desired), None));
        self.process.write(self.speaker.rib().originated());
    }

    fn hear(&mut self, now: Instant, event: session::Event<'_>) {
        self.speaker.handle(now, Event::Peer(self.key, event));
    }

    /// The process leaves, and does what it still does then.
    pub(super) fn leave(&mut self, now: Instant, how: Leave) -> Vec<Effect> {
        self.speaker.handle(now, Event::Leave(how));
        self.is_running = false;
        let mut effects = Vec::new();
        self.carry_out(now, &mut effects);
        let says_something =
            |effect: &Effect| matches!(effect, Effect::Write(_, bytes) if !bytes.is_empty());
        let is_kept = self.peer().config().graceful_restart.is_some();
        let is_quiet = is_kept && how == Leave::ForRestart;
        assert!(
            !is_quiet || !effects.iter().any(says_something),
            "it leaves without a NOTIFICATION"
        );
        effects
    }

    /// The operator clears the session, which is dialled again at once.
    pub(super) fn clear(&mut self, now: Instant) {
        self.last_dial = None;
        self.helper.is_cleared();
        let cleared = self.speaker.clear(now, self.key, Clear::Hard);
        assert_eq!(cleared, Ok(()), "a configured peer can be cleared");
    }

    /// There is no process any more: nothing is left of its state.
    pub(super) fn stop(&mut self, now: Instant, how: &str) {
        self.log.note(now, None, || What::Stopped { how: how.to_owned() });
        self.is_running = false;
        self.helper = Helper::new(self.peer().config());
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
        let earlier = self.process.begin(now, found, forwarding, awaits);
        self.speaker = Speaker::new(now, self.seed, earlier).after_incarnation(self.incarnation);
        self.apply(now);
    }

    /// All sources are ready.
    pub(super) fn sources_speak(&mut self, now: Instant) {
        if self.is_running && self.process.sources_speak() {
            self.apply(now);
        }
    }

    /// What the neighbour announced, as the RIB has it.
    pub(super) fn heard(&self) -> BTreeMap<Prefix, Vec<Community>> {
        let learned = self.speaker.rib().learned().filter(|_| self.is_running);
        learned.map(|route| (route.prefix, route.path.attributes.communities.to_vec())).collect()
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
        self.hear(now, session::Event::Connected(id, ends(self.side)));
    }

    pub(super) fn accept(&mut self, now: Instant, wire: usize) -> ConnectionId {
        let accepted = self.speaker.accept(now, self.key, ends(self.side));
        let id = accepted.expect("a neighbor is configured");
        self.log.note(now, Some(id), || What::Accepted);
        self.wires.insert(id, wire);
        id
    }

    /// A dial failed. Returns whether it was still pending.
    pub(super) fn connect_failed(&mut self, now: Instant, id: ConnectionId, why: &str) -> bool {
        let waited = self.dialling.remove(&id);
        if waited {
            self.log.note(now, Some(id), || What::ConnectFailed { why: why.to_owned() });
            self.hear(now, session::Event::ConnectFailed(id, why.to_owned()));
        }
        waited
    }

    pub(super) fn received(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.log.note(now, Some(id), || What::Received { bytes: Hex(bytes.to_vec()) });
        self.hearing = id;
        if self.wires.contains_key(&id) {
            self.helper.hear(id, bytes);
        }
        self.hear(now, session::Event::Received(id, bytes));
    }

    pub(super) fn closed(&mut self, now: Instant, id: ConnectionId, why: Option<&str>) {
        let why = why.map(str::to_owned);
        self.log.note(now, Some(id), || What::Closed { why: why.clone() });
        self.hear(now, session::Event::Closed(id, why));
    }

    /// When to be woken.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let deadline = self.speaker.next_deadline();
        let helper = self.helper.next_deadline();
        assert!(helper.is_none() || deadline <= helper, "{deadline:?}: stale until {helper:?}");
        deadline
    }

    /// Lets time pass, if something is due.
    pub(super) fn tick(&mut self, now: Instant) {
        self.ticks = self.due_at().is_some_and(|deadline| deadline <= now);
        if self.ticks {
            self.log.note(now, None, || What::Tick);
        }
    }

    fn due_at(&self) -> Option<Instant> {
        self.peer().next_deadline()
    }

    /// The moment of a turn: without [`Router::tick`] one before the next timer, so that what
    /// arrives and what is due at the same time come in both orders.
    fn turn_at(&self, now: Instant) -> Instant {
        let before = |due: Instant| Instant::from_micros(due.as_micros().saturating_sub(1));
        let latest = self.due_at().filter(|_| !self.ticks).map(before);
        latest.into_iter().chain([now]).min().unwrap_or(now)
    }

    /// These prefixes are configured from now on, each with this community.
    pub(super) fn originate(&mut self, now: Instant, routes: Routes) {
        self.process.wanted = routes;
        if self.is_running {
            self.apply(now);
        }
    }

    /// All routes are requested from the neighbour, if there is a session.
    pub(super) fn ask_again(&mut self, now: Instant) {
        let _ = self.speaker.clear(now, self.key, Clear::SoftIn);
    }

    /// What the neighbour should have received from us.
    pub(super) fn told(&self) -> BTreeMap<Prefix, Vec<Community>> {
        let routes = self.process.wanted.iter();
        routes.map(|(prefix, community)| (*prefix, vec![*community])).collect()
    }

    /// The actions of the speaker after an event, and whether it kept the rules.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.carry_out(now, &mut effects);
        if self.ticks {
            self.helper.expire(now);
        }
        loop {
            self.speaker.handle(self.turn_at(now), Event::Tick);
            self.carry_out(now, &mut effects);
            let mut written = Vec::new();
            let mut bytes = BytesMut::new();
            while let Some((_, id)) = self.speaker.poll_transmit(now, ROOM, &mut bytes) {
                self.write(now, id, &bytes.split(), &mut effects);
                written.push(id);
            }
            self.carry_out(now, &mut effects);
            // A long list of changes enters the RIB in several turns, which follow each other at once.
            let is_busy = self.speaker.next_deadline() == Some(Instant::ZERO);
            if written.is_empty() && !is_busy {
                break;
            }
            // The socket takes everything at once.
            for id in written {
                self.speaker.handle(now, Event::Written(self.key, id));
            }
        }
        let is_left = std::mem::take(&mut self.ticks) && self.due_at().is_some_and(|it| it <= now);
        assert!(!is_left, "a tick settles what was due");
        if self.is_running {
            check_slots(self);
            let peer = self.speaker.peer(self.key).expect("a neighbor is configured");
            self.helper.check(now, peer, self.speaker.rib());
        }
        effects
    }

    fn carry_out(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while let Some(action) = self.speaker.poll_action() {
            match action {
                Action::Peer(_, action) => self.act(now, action, effects),
                Action::SourcesSilent => self.process.write(self.speaker.rib().originated()),
                Action::WithdrawnUpTo(_)
                | Action::Changed
                | Action::Forward(_)
                | Action::Untrack(_)
                | Action::Monitored(..)
                | Action::LocRib(_)
                | Action::ForwardingComplete => {}
            }
        }
    }

    fn act(&mut self, now: Instant, action: PeerAction, effects: &mut Vec<Effect>) {
        match action {
            PeerAction::Connect(id) => {
                let gap = self.last_dial.replace(now).map(|last| now.since(last));
                assert!(gap.is_none_or(|gap| gap >= DIAL_GAP_MIN), "dials again after {gap:?}");
                self.dialling.insert(id);
                self.log.note(now, Some(id), || What::Dials);
                effects.push(Effect::Dial(id));
            }
            PeerAction::Close(id, last_words) => self.close(now, id, last_words, effects),
            PeerAction::Report(Report::Up(_)) => {
                self.process.sessions += 1;
                let connections = self.peer().connections();
                let up = connections.iter().find(|it| it.1 == SessionState::Established);
                self.helper.is_up(now, up.map_or(self.hearing, |it| it.0));
            }
            PeerAction::Report(Report::Down(reason)) => self.helper.is_down(now, &reason),
            PeerAction::Configured(_) | PeerAction::Report(_) => {}
            PeerAction::Removed | PeerAction::StartedOver(_) => panic!("{action:?}"),
        }
    }

    fn write(&mut self, now: Instant, id: ConnectionId, bytes: &[u8], effects: &mut Vec<Effect>) {
        let wire = *self.wires.get(&id).expect("a peer without a wire sends nothing");
        let peer = self.speaker.peer(self.key).expect("a neighbor is configured");
        let speech = self.speeches.entry(id).or_default();
        speech.check(bytes, peer.config());
        speech.check_restart(now, peer.config(), &self.process);
        self.log.note(now, Some(id), || What::Sends { bytes: Hex(bytes.to_vec()) });
        effects.push(Effect::Write(wire, bytes.to_vec()));
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
            speech.check_last_words(&bytes, self.peer().config());
            self.log.note(now, Some(id), || What::Sends { bytes: Hex(bytes.to_vec()) });
            effects.push(Effect::Write(wire, bytes.to_vec()));
        }
        let says_more = self.peer().wants_to_transmit(id);
        assert!(!says_more, "a connection that is over sends nothing");
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
