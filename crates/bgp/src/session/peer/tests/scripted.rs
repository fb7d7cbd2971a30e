//! One peer in isolation: its neighbour is a script, and every sent byte and timer can be inspected.

use super::*;
use crate::wire::Framing;

/// A peer, its clock, and what it sent since the last call.
pub(super) struct Scripted {
    pub(super) peer: Peer,
    pub(super) now: Instant,
    pub(super) rib: LocRib,
    said: Vec<String>,
    dialled: Option<ConnectionId>,
    closed: Vec<ConnectionId>,
}

impl Scripted {
    pub(super) fn new(config: PeerConfig) -> Self {
        let peer = Peer::new(Instant::ZERO, config, 7, 0);
        let (now, rib) = (Instant::ZERO, LocRib::default());
        Self { peer, now, rib, said: Vec::new(), dialled: None, closed: Vec::new() }
    }

    pub(super) fn handle(&mut self, event: Event<'_>) {
        self.peer.handle(self.now, event);
        self.listen();
    }

    pub(super) fn receive(&mut self, id: ConnectionId, message: &[u8]) {
        self.handle(Event::Received(id, message));
    }

    /// The dial that is due is made.
    pub(super) fn dial(&mut self) -> ConnectionId {
        self.handle(Event::Tick);
        self.dialled.take().expect("a dial was due")
    }

    pub(super) fn dial_and_connect(&mut self) -> ConnectionId {
        let id = self.dial();
        self.handle(Event::Connected(id, ends(1)));
        id
    }

    pub(super) fn accept(&mut self) -> ConnectionId {
        let id = self.peer.accept(self.now, ends(1));
        self.listen();
        id
    }

    /// Lets time pass up to the moment when `timer` expires, and lets it expire.
    pub(super) fn expire(&mut self, timer: &str) {
        let find = |peer: &Peer| timers(peer).into_iter().find(|(name, _)| *name == timer);
        let (_, deadline) = find(&self.peer).unwrap_or_else(|| panic!("{timer} does not run"));
        while self.peer.next_deadline().is_some_and(|next| next < deadline) {
            self.now = self.peer.next_deadline().unwrap();
            self.handle(Event::Tick);
        }
        self.said.clear();
        self.now = deadline;
        self.handle(Event::Tick);
        let next = self.peer.next_deadline();
        assert!(next.is_none_or(|next| next > self.now), "a tick settles what was due");
    }

    /// What was sent since the last call: names of messages, NOTIFICATIONs as `code/subcode:data`.
    pub(super) fn said(&mut self) -> String {
        std::mem::take(&mut self.said).join(" ")
    }

    /// The timers that run, in alphabetical order.
    pub(super) fn timers(&self) -> String {
        let names: BTreeSet<_> = timers(&self.peer).into_iter().map(|(name, _)| name).collect();
        names.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// Whether the peer asked for the end of this connection.
    pub(super) fn has_closed(&self, id: ConnectionId) -> bool {
        self.closed.contains(&id)
    }

    /// Carries out the actions of the peer, and reads what it sends.
    pub(super) fn listen(&mut self) {
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Connect(id) => self.dialled = Some(id),
                Action::Close(id, last_words) => {
                    self.closed.push(id);
                    self.note(&last_words.unwrap_or_default());
                }
                _ => {}
            }
        }
        for id in self.peer.connection_ids() {
            let mut bytes = BytesMut::new();
            self.peer.poll_transmit(
                self.now,
                id,
                &self.rib,
                &mut ExportGroups::default(),
                ROOM,
                &mut bytes,
            );
            self.note(&bytes);
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        let mut framing = Framing::default();
        framing.push(bytes);
        while let Some(message) = framing.next_message().expect("what we send can be read") {
            self.said.push(match message.kind {
                MessageType::Notification => words_of(&Notification::parse(&message.body)),
                kind => kind.name().to_owned(),
            });
        }
    }
}

/// `code/subcode`, and the data behind a colon if there is any.
pub(super) fn words_of(notification: &Notification) -> String {
    let Notification { code, subcode, data } = notification;
    let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
    let colon = if data.is_empty() { "" } else { ":" };
    format!("{code}/{subcode}{colon}{hex}")
}

fn timers(peer: &Peer) -> Vec<(&'static str, Instant)> {
    let connections = peer.outgoing.iter().chain(&peer.incoming);
    let waiting = if peer.idle_hold { "idle" } else { "retry" };
    let dial = peer.dial_at.map(|at| (waiting, at));
    connections.flat_map(Connection::timers).chain(dial).collect()
}
