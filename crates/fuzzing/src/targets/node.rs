//! The node that is tested: the real speaker with two neighbours; this module has its sockets. What it
//! sends and does to each is checked.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fairway_bgp::rib::LocRib;
use fairway_bgp::session::{self, ConnectionId, DownReason, Peer};
use fairway_bgp::speaker::{Action, Event, PeerAction, Report, Speaker};
use fairway_bgp::wire::Notification;
use fairway_bgp::wire::attribute::AttributeFault;
use fairway_ground::Instant;
use fairway_ground::PeerKey;
use fairway_seam::{AdvertisedScope, Desired, PeerView, SessionState, ViewScope};

use super::speaker::{
    Identity, Nowhere, PRINTED_WHOLE_BYTES_MAX, ROOM_BYTES, last_notification, outcome, print_peer,
};
use crate::Outcome;

/// Where the input comes in.
pub const INBOUND: usize = 0;
/// Where routes go out.
pub const OUT: usize = 1;

/// The node's end of a session.
#[derive(Debug)]
struct End {
    key: PeerKey,
    id: ConnectionId,
    is_up: bool,
    /// Why the attempt or the session ended.
    ended: Option<DownReason>,
    /// The connection was closed, with or without last words.
    closed: Option<Option<Notification>>,
    /// What its socket took and has not been read.
    said: BytesMut,
}

/// See the module.
#[derive(Debug)]
pub struct Node {
    speaker: Speaker,
    now: Instant,
    ends: [End; 2],
    /// Faults of attributes in what came in.
    pub faults: Vec<AttributeFault>,
}

impl Node {
    /// Both neighbours are connected, and the node has sent its OPENs. `local` is how it presents
    /// itself to the first one.
    pub fn connected(local: Identity, neighbour: Identity, second: Identity) -> Self {
        let now = Instant::ZERO;
        let mut speaker = Speaker::new(now, 1, None);
        let identities = [(local, neighbour), (Identity::US, second)];
        let peers = identities.map(|(local, remote)| local.config(remote)).to_vec();
        let keys = [INBOUND, OUT].map(|end| peers[end].key);
        let desired = Desired { peers, ..Desired::default() };
        speaker.handle(now, Event::Desired(Arc::new(desired), None));
        let end = |key| End {
            key,
            id: ConnectionId::default(),
            is_up: false,
            ended: None,
            closed: None,
            said: BytesMut::new(),
        };
        let mut node = Self { speaker, now, ends: keys.map(end), faults: Vec::new() };
        node.turn();
        for (end, (local, remote)) in identities.into_iter().enumerate() {
            let End { key, id, .. } = node.ends[end];
            assert_ne!(id, ConnectionId::default(), "it does not dial");
            let connected = session::Event::Connected(id, local.ends(remote));
            node.speaker.handle(now, Event::Peer(key, connected));
        }
        node.turn();
        node
    }

    /// Routes are reported one by one while the input is short: as for printing, the hundredth adds
    /// nothing to the first.
    pub fn expects(&mut self, input: &[u8]) {
        self.speaker.report_routes(input.len() <= PRINTED_WHOLE_BYTES_MAX);
    }

    /// Bytes arrive, cut in two, a little later.
    pub fn receive(&mut self, end: usize, bytes: &[u8]) {
        let (front, back) = bytes.split_at(bytes.len() / 3);
        for part in [front, back] {
            self.now = self.now + Duration::from_millis(1);
            let End { key, id, .. } = self.ends[end];
            self.speaker.handle(self.now, Event::Peer(key, session::Event::Received(id, part)));
            self.turn();
        }
    }

    /// The connection breaks.
    pub fn break_connection(&mut self, end: usize) {
        let End { key, id, .. } = self.ends[end];
        self.ends[end].ended = None;
        self.speaker.handle(self.now, Event::Peer(key, session::Event::Closed(id, None)));
        self.turn();
    }

    /// Everything that it sends at this end.
    pub fn transmit(&mut self, end: usize) -> BytesMut {
        let mut said = BytesMut::new();
        while !self.ends[end].said.is_empty() {
            said.extend_from_slice(&self.ends[end].said.split());
            let End { key, id, .. } = self.ends[end];
            self.speaker.handle(self.now, Event::Written(key, id));
            self.turn();
        }
        let End { id, closed, .. } = &self.ends[end];
        let wants = closed.is_none() && self.peer(end).wants_to_transmit(*id);
        assert!(!wants, "messages are pending but not sent");
        said
    }

    /// The speaker processes its events, and sockets that have room take what it sends.
    fn turn(&mut self) {
        self.carry_out();
        self.speaker.handle(self.now, Event::Tick);
        self.carry_out();
        let mut bytes = BytesMut::new();
        while let Some((key, id)) = self.speaker.poll_transmit(self.now, ROOM_BYTES, &mut bytes) {
            let end = self.end_of(key);
            assert_eq!(id, self.ends[end].id, "another connection");
            assert!(self.ends[end].said.is_empty(), "the socket has no room");
            self.ends[end].said.extend_from_slice(&bytes.split());
        }
        self.carry_out();
        let overdue = self.speaker.next_deadline().is_some_and(|deadline| deadline <= self.now);
        assert!(!overdue, "something is still due after a turn");
    }

    fn end_of(&self, key: PeerKey) -> usize {
        let position = self.ends.iter().position(|end| end.key == key);
        position.expect("there are two neighbors")
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.speaker.poll_action() {
            if let Action::Peer(key, action) = action {
                let end = self.end_of(key);
                self.act(end, action);
            }
        }
    }

    fn act(&mut self, number: usize, action: PeerAction) {
        let end = &mut self.ends[number];
        match action {
            PeerAction::Connect(id) => {
                assert_eq!(end.id, ConnectionId::default(), "it dials while it is connected");
                end.id = id;
            }
            PeerAction::Close(id, last_words) => {
                assert_eq!(id, end.id, "another connection");
                assert!(end.closed.is_none(), "closed twice");
                end.closed = Some(last_words.map(|bytes| last_notification(&bytes)));
                end.said.clear();
            }
            PeerAction::Report(Report::Down(reason) | Report::AttemptFailed(reason)) => {
                assert!(end.ended.is_none(), "it ended twice");
                end.ended = Some(reason);
            }
            PeerAction::Report(Report::Up(_)) => end.is_up = true,
            PeerAction::Report(Report::Routes(changes)) => {
                assert_eq!(number, INBOUND, "the second neighbor announces nothing");
                assert!(!changes.is_empty(), "a change of nothing");
            }
            PeerAction::Report(Report::Malformed(malformed)) => {
                assert_eq!(number, INBOUND, "the second neighbor announces nothing");
                assert!(malformed.to_string().len() > 10);
                self.faults.extend(malformed.faults);
            }
            PeerAction::Configured(_) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn peer(&self, end: usize) -> &Peer {
        self.speaker.peer(self.ends[end].key).expect("both are configured")
    }

    /// The state of the session at this end.
    pub fn state(&self, end: usize) -> SessionState {
        self.peer(end).state()
    }

    /// Whether there is, or was, a session at this end.
    pub fn was_up(&self, end: usize) -> bool {
        self.ends[end].is_up
    }

    /// Whether the connection at this end was closed.
    pub fn is_closed(&self, end: usize) -> bool {
        self.ends[end].closed.is_some()
    }

    /// The final state of this end, which is always a definite one.
    pub fn outcome(&self, end: usize) -> Outcome {
        let End { closed, ended, .. } = &self.ends[end];
        outcome(closed.as_ref(), ended.as_ref(), self.state(end))
    }

    /// The view for `show` of the session at this end.
    pub fn view(&self, end: usize, scope: ViewScope) -> PeerView {
        let peer = self.peer(end);
        PeerView {
            advertised: peer.advertised(self.rib(), AdvertisedScope::All),
            ..peer.view(self.now, scope)
        }
    }

    /// Its routes.
    pub fn rib(&self) -> &LocRib {
        self.speaker.rib()
    }

    /// Prints everything that can be printed. `whole` includes debug output.
    pub fn print(&self, whole: bool) {
        for (number, end) in self.ends.iter().enumerate() {
            print_peer(self.peer(number), self.now, end.ended.as_ref(), whole);
        }
        let mut nowhere = Nowhere::default();
        for number in 0..self.ends.len() {
            let advertised = self.peer(number).advertised(self.rib(), AdvertisedScope::All);
            nowhere.print_routes(advertised.iter().map(|it| (it.prefix, &it.attributes)));
        }
        let learned: Vec<_> = self.rib().learned().collect();
        nowhere.print_routes(learned.iter().map(|it| (it.prefix, &it.path.attributes)));
        if whole {
            write!(nowhere, "{learned:?} {:?}", self.speaker).expect("counting never fails");
        }
        for fault in &self.faults {
            write!(nowhere, "{fault:?}").expect("as above");
        }
    }
}
