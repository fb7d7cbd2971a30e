//! One speaker without sockets: its peer, its routes, and what it heard from the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use super::log::{Hex, Log, What};
use super::rules::{Speech, check_slots};
use super::wire::Parcel;
use crate::backend::{DesiredRoute, RouteAttributes};
use crate::bgp::{Action, Connected, ConnectionId, Event, Peer};
use crate::rib::LocRib;
use crate::time::Instant;
use crate::types::{Community, LocalNextHops, Nlri, PeerConfig, Prefix, RouteChange};

/// Room that a socket offers at once.
const ROOM: usize = 16 * 1024;
/// No two dials of one side may be closer than this: the shortest backoff with the most jitter.
const DIAL_GAP_MIN: Duration = Duration::from_millis(750);

/// A speaker with one neighbour.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) peer: Peer,
    pub(super) rib: LocRib,
    /// What the neighbour announced and did not withdraw, by community: as a receiver would have
    /// it.
    pub(super) heard: BTreeMap<Prefix, Vec<Community>>,
    /// Connections that are up, and which wire they run over.
    pub(super) wires: BTreeMap<ConnectionId, usize>,
    /// Dials on their way.
    pub(super) dialling: BTreeSet<ConnectionId>,
    pub(super) log: Log,
    speeches: BTreeMap<ConnectionId, Speech>,
    last_dial: Option<Instant>,
    side: usize,
    seed: u64,
    incarnation: u64,
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
        Self {
            peer: Peer::new(Instant::ZERO, config, seed, 0),
            rib: LocRib::default(),
            heard: BTreeMap::new(),
            wires: BTreeMap::new(),
            dialling: BTreeSet::new(),
            log,
            speeches: BTreeMap::new(),
            last_dial: None,
            side,
            seed,
            incarnation: 0,
        }
    }

    /// The process dies and comes back with the same configuration and routes.
    pub(super) fn restart(&mut self, now: Instant) {
        self.log.note(now, None, || What::Started);
        self.incarnation += 1;
        let config = self.peer.config().clone();
        self.peer = Peer::new(now, config, self.seed, self.incarnation);
        self.heard.clear();
        self.wires.clear();
        self.dialling.clear();
        self.speeches.clear();
        self.last_dial = None;
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
        self.peer.handle(now, Event::Received(id, bytes));
    }

    pub(super) fn closed(&mut self, now: Instant, id: ConnectionId, why: Option<&str>) {
        let why = why.map(str::to_owned);
        self.log.note(now, Some(id), || What::Closed { why: why.clone() });
        self.peer.handle(now, Event::Closed(id, why));
    }

    /// Lets time do its work, if the peer wanted to be woken.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let due = self.peer.next_deadline().is_some_and(|deadline| deadline <= now);
        if due {
            self.log.note(now, None, || What::Tick);
            self.peer.handle(now, Event::Tick);
            let next = self.peer.next_deadline();
            assert!(next.is_none_or(|next| next > now), "a tick settles what was due");
        }
        due
    }

    /// Originates exactly these prefixes, each with this community.
    pub(super) fn originate(&mut self, routes: &BTreeMap<Prefix, Community>) {
        let peers = Arc::new(BTreeSet::from([self.peer.config().key]));
        let route = |(prefix, community): (&Prefix, &Community)| DesiredRoute {
            prefix: *prefix,
            peers: Arc::clone(&peers),
            attributes: Arc::new(RouteAttributes {
                communities: vec![*community],
                ..RouteAttributes::default()
            }),
        };
        let touched = self.rib.set(routes.iter().map(route).collect());
        self.peer.announce(&self.rib, &touched);
    }

    /// What the neighbour should have heard from us.
    pub(super) fn told(&self) -> BTreeMap<Prefix, Vec<Community>> {
        let routes = self.rib.originated();
        routes.map(|route| (route.prefix, route.attributes.communities.clone())).collect()
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
                    self.heard.clear();
                    self.peer.announce_all(&self.rib);
                }
                Action::Routes(_, changes) => self.hear(changes),
                Action::Down(_) => assert!(self.heard.is_empty(), "routes go with their session"),
                Action::AttemptFailed(_) | Action::Malformed(_) | Action::NearMaximum(..) => {}
            }
        }
        for (id, wire) in &self.wires {
            let mut bytes = BytesMut::new();
            self.peer.poll_transmit(now, *id, ROOM, &mut bytes);
            if !bytes.is_empty() {
                self.speeches.entry(*id).or_default().check(&bytes, self.peer.config());
                self.log.note(now, Some(*id), || What::Sends { bytes: Hex(bytes.to_vec()) });
                effects.push(Effect::Write(*wire, bytes.to_vec()));
            }
        }
        check_slots(self);
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

    fn hear(&mut self, changes: Vec<RouteChange>) {
        for RouteChange { nlri: Nlri { prefix, .. }, attributes } in changes {
            match attributes {
                Some(attributes) => self.heard.insert(prefix, attributes.communities.clone()),
                None => self.heard.remove(&prefix),
            };
        }
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
