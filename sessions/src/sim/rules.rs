//! What must hold of a speaker after every single step, whatever the network does to it.

use std::collections::BTreeSet;

use super::router::Router;
use crate::backend::SessionState;
use crate::bgp::ConnectionId;
use crate::types::PeerConfig;
use crate::wire::{
    Framing, MESSAGE_LENGTH_BYTES_MAX, MessageType, Notification, Open, Update, UpdateContext,
};

/// The order in which one connection may speak.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Speech {
    opened: bool,
    confirmed: bool,
    over: bool,
}

impl Speech {
    /// Reads back what is about to be written: whole messages that a neighbour understands, OPEN
    /// first and once, nothing after a NOTIFICATION.
    pub(super) fn check(&mut self, bytes: &[u8], config: &PeerConfig) {
        let mut framing = Framing::default();
        framing.push(bytes);
        let mut length = 0;
        while let Some(message) = framing.next_message().expect("what is sent can be framed") {
            assert!(!self.over, "{:?} after a NOTIFICATION", message.kind);
            let whole = message.body.len() + 19;
            assert!(whole <= MESSAGE_LENGTH_BYTES_MAX, "{whole} bytes in one message");
            length += whole;
            match message.kind {
                MessageType::Open => {
                    let open = Open::parse(&message.body).expect("our OPEN can be read");
                    assert!(!self.opened, "OPEN twice");
                    assert_eq!(open.encode()[19..], message.body, "OPEN parses back");
                    self.opened = true;
                }
                MessageType::Keepalive => {
                    assert!(self.opened, "KEEPALIVE before OPEN");
                    self.confirmed = true;
                }
                MessageType::Notification => {
                    let notification = Notification::parse(&message.body);
                    assert_eq!(notification.encode()[19..], message.body, "it parses back");
                    self.over = true;
                }
                MessageType::Update => {
                    assert!(self.confirmed, "UPDATE before KEEPALIVE");
                    let context = UpdateContext::new(config.kind());
                    let update = Update::parse(&message.body, context).expect("UPDATE is read");
                    assert!(update.faults.is_empty(), "{:?}", update.faults);
                }
                MessageType::RouteRefresh => assert!(self.confirmed, "REFRESH before KEEPALIVE"),
            }
        }
        assert_eq!(length, bytes.len(), "only whole messages are handed out");
    }

    /// Last words: one NOTIFICATION, or nothing.
    pub(super) fn check_last_words(&mut self, bytes: &[u8], config: &PeerConfig) {
        self.check(bytes, config);
        if bytes.is_empty() {
            return; // It leaves without a word, and what is on its way still arrives.
        }
        assert!(self.over, "last words are a NOTIFICATION");
        let one = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
        assert_eq!(one, bytes.len(), "and nothing but one");
    }
}

/// The slots of a peer: at most two connections, one when the session is up; the peer knows of
/// each socket there is, and of no other.
pub(super) fn check_slots(router: &Router) {
    let connections = router.peer.connections();
    assert!(connections.len() <= 2, "{connections:?}");
    let is_up =
        |(_, state, _): &&(ConnectionId, SessionState, bool)| *state == SessionState::Established;
    if connections.iter().any(|it| is_up(&it)) {
        assert_eq!(connections.len(), 1, "an Established session is alone: {connections:?}");
    }
    let of_tcp = |up: bool| {
        let connections =
            connections.iter().filter(move |(_, _, is_connected)| *is_connected == up);
        connections.map(|(id, ..)| *id).collect::<BTreeSet<_>>()
    };
    assert_eq!(of_tcp(true), router.wires.keys().copied().collect(), "sockets and slots");
    assert_eq!(of_tcp(false), router.dialling, "dials and slots");
}
