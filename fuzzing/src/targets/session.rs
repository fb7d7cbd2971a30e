//! Bytes on the connections of a real [`Peer`].

use std::fmt::Write;
use std::time::Duration;

use bytes::BytesMut;
use fairway_sessions::backend::SessionState;
use fairway_sessions::bgp::{Action, Connected, ConnectionId, DownReason, Event, Peer};
use fairway_sessions::time::Instant;
use fairway_sessions::types::{
    Asn, FamilySet, HoldTime, LocalNextHops, PeerConfig, PeerKey, RouterId,
};
use fairway_sessions::wire::{Framing, MessageType, Notification};

use crate::outcome::assert_sendable;
use crate::{Answer, Outcome};

/// Room in a socket.
const ROOM_BYTES: usize = 65_536;

/// The settings of speaker `number` (1 or 2) towards the other.
pub fn config(number: u8, local_asn: u32, remote_asn: u32) -> PeerConfig {
    let asn = |number| Asn::new(number).expect("not AS 0");
    PeerConfig {
        key: PeerKey([192, 0, 2, 3 - number].into()),
        name: format!("peer-{number}"),
        local_asn: asn(local_asn),
        remote_asn: asn(remote_asn),
        router_id: RouterId::new(u32::from(number)).expect("not zero"),
        port: 179,
        source_address: None,
        hold_time: HoldTime::DEFAULT,
        keepalive_interval: None,
        connect_retry_interval: PeerConfig::CONNECT_RETRY_INTERVAL_DEFAULT,
        password: None,
        multihop: false,
        families: FamilySet::BOTH,
    }
}

/// The two ends of the connection, as speaker `number` sees them.
pub fn ends(number: u8) -> Connected {
    Connected {
        local: ([192, 0, 2, number], 179).into(),
        remote: ([192, 0, 2, 3 - number], 179).into(),
        next_hops: LocalNextHops {
            ipv4: Some([192, 0, 2, number].into()),
            ipv6: Some([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(number)].into()),
            ipv6_link_local: None,
        },
    }
}

/// Counts what is printed into it and keeps nothing.
#[derive(Debug, Default)]
pub struct Nowhere(pub usize);

impl Write for Nowhere {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// A peer that has dialled and waits for an OPEN; what it says and does is checked.
#[derive(Debug)]
pub struct Speaker {
    /// The machine.
    pub peer: Peer,
    /// Its connection.
    pub id: ConnectionId,
    /// The time it is.
    pub now: Instant,
    /// Why the attempt or the session ended.
    pub ended: Option<DownReason>,
    /// The connection was closed, with or without last words.
    pub closed: Option<Option<Notification>>,
}

impl Speaker {
    /// TCP is up, OPEN is sent.
    pub fn connected(number: u8, config: PeerConfig) -> Self {
        let now = Instant::ZERO;
        let mut peer = Peer::new(now, config, 1, 0);
        peer.handle(now, Event::Tick);
        let Some(Action::Connect(id)) = peer.poll_action() else { panic!("it does not dial") };
        peer.handle(now, Event::Connected(id, ends(number)));
        Self { peer, id, now, ended: None, closed: None }
    }

    /// Bytes arrive, cut in two, a little later.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Action> {
        let (front, back) = bytes.split_at(bytes.len() / 3);
        let mut actions = Vec::new();
        for part in [front, back] {
            self.now = self.now + Duration::from_millis(1);
            self.peer.handle(self.now, Event::Received(self.id, part));
            actions.append(&mut self.act());
        }
        actions
    }

    /// Carries out what the peer wants; returns what concerns routes.
    pub fn act(&mut self) -> Vec<Action> {
        let mut others = Vec::new();
        while let Some(action) = self.peer.poll_action() {
            match action {
                Action::Close(id, last_words) => {
                    assert_eq!(id, self.id);
                    assert!(self.closed.is_none(), "closed twice");
                    self.closed = Some(last_words.map(|bytes| last_notification(&bytes)));
                }
                Action::Down(reason) | Action::AttemptFailed(reason) => {
                    assert!(self.ended.is_none(), "it ended twice");
                    self.ended = Some(reason);
                }
                Action::Connect(_) => panic!("it dials while it is connected"),
                other => others.push(other),
            }
        }
        others
    }

    /// Everything it wants to say now.
    pub fn transmit(&mut self) -> BytesMut {
        let mut bytes = BytesMut::new();
        loop {
            let before = bytes.len();
            self.peer.poll_transmit(self.now, self.id, before + ROOM_BYTES, &mut bytes);
            if bytes.len() == before {
                break;
            }
        }
        assert!(!self.peer.wants_to_transmit(self.id), "it wants to send and does not");
        bytes
    }

    /// What became of it: never in between.
    pub fn outcome(&self) -> Outcome {
        match (&self.closed, &self.ended) {
            (None, None) => Outcome::accepted(self.peer.state().name()),
            (Some(Some(sent)), Some(DownReason::Sent { notification, .. })) => {
                assert_eq!((sent.code, sent.subcode), (notification.code, notification.subcode));
                let answer = Answer::Notification(sent.code, sent.subcode);
                Outcome { answer, code: 0, what: self.peer.state().name() }
            }
            // A NOTIFICATION is never answered (RFC 4271 §6.4).
            (Some(None), Some(DownReason::Received(_))) => Outcome::accepted("NOTIFICATION"),
            (closed, ended) => panic!("closed {closed:?}, ended {ended:?}"),
        }
    }

    /// Prints everything there is to print about it.
    pub fn print(&self) {
        let mut nowhere = Nowhere::default();
        let view = self.peer.view(self.now);
        write!(nowhere, "{view:?} {:?}", self.peer).expect("counting never fails");
        if let Some(reason) = &self.ended {
            write!(nowhere, "{reason} {reason:?} {:?}", reason.cause()).expect("as above");
        }
        if let Some(session) = &view.session {
            for capability in &session.capabilities_received {
                write!(nowhere, "{capability}").expect("as above");
            }
        }
        assert!(nowhere.0 > 100);
    }
}

/// Last words are one NOTIFICATION and nothing else.
fn last_notification(bytes: &[u8]) -> Notification {
    let mut framing = Framing::default();
    framing.push(bytes);
    let message = framing.next_message().expect("our own message").expect("a whole one");
    assert_eq!(message.kind, MessageType::Notification);
    assert_eq!(framing.next_message(), Ok(None));
    let notification = Notification::parse(&message.body);
    assert_sendable(&notification);
    notification
}

/// Bytes from a neighbour that was just connected: it becomes a session, or it is told why not.
pub fn handshake(input: &[u8]) -> Outcome {
    let mut speaker = Speaker::connected(1, config(1, 65_001, 65_002));
    let opening = speaker.transmit();
    assert_eq!(opening.get(18), Some(&MessageType::Open.code()));
    let _routes = speaker.receive(input);
    let outcome = speaker.outcome();
    let is_over = speaker.closed.is_some();
    let state = speaker.peer.state();
    assert_eq!(is_over, state < SessionState::OpenSent, "{state:?}");
    // Whatever it waits for, it does not wait for ever.
    assert!(speaker.peer.next_deadline().is_some() || state == SessionState::Established);
    let _answer = speaker.transmit();
    speaker.print();
    // What a closed connection still brings is not heard.
    speaker.peer.handle(speaker.now, Event::Received(speaker.id, input));
    if is_over {
        assert!(speaker.peer.poll_action().is_none());
    }
    outcome
}
