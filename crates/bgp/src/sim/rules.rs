//! What must hold of a speaker after every single step, whatever the network does to it.

use std::collections::BTreeSet;

use super::process::Process;
use super::router::Router;
use crate::session::{ConnectionId, OwnRestart};
use crate::wire::{
    Capability, Framing, MESSAGE_LENGTH_BYTES_MAX, MessageType, Notification, Open, Update,
    UpdateContext,
};
use fairway_ground::{Instant, Prefix};
use fairway_seam::{PeerConfig, SessionState};

/// The order of messages on one connection.
#[derive(Debug, Default)]
pub(super) struct Speech {
    opened: bool,
    confirmed: bool,
    over: bool,
    /// The OPEN and the UPDATEs that were not checked yet for what they advertise about a restart.
    unchecked: Vec<Said>,
    /// What was announced and not withdrawn.
    told: BTreeSet<Prefix>,
}

#[derive(Debug)]
enum Said {
    Open(Open),
    Update(Update),
}

impl Speech {
    /// Parses what is about to be written: whole messages that a neighbour understands, OPEN first and
    /// once, nothing after a NOTIFICATION.
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
                    self.unchecked.push(Said::Open(open));
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
                    self.unchecked.push(Said::Update(update));
                }
                MessageType::RouteRefresh => assert!(self.confirmed, "REFRESH before KEEPALIVE"),
            }
        }
        assert_eq!(length, bytes.len(), "only whole messages are handed out");
    }

    /// Compares what was sent since with the process: nothing is withdrawn that is configured, and no
    /// End-of-RIB is sent before all routes were (RFC 4724 §4.1).
    pub(super) fn check_restart(&mut self, now: Instant, config: &PeerConfig, process: &Process) {
        for said in std::mem::take(&mut self.unchecked) {
            match said {
                Said::Open(open) => check_open(&open, config, process.own_restart(now)),
                Said::Update(update) => {
                    let is_excused = process.is_incomplete(now);
                    for nlri in update.withdrawn {
                        self.told.remove(&nlri.prefix);
                        let is_wanted = process.wanted.contains_key(&nlri.prefix);
                        assert!(!is_wanted || is_excused, "{nlri} is withdrawn");
                    }
                    let announced = update.announced.into_iter().flat_map(|it| it.prefixes);
                    self.told.extend(announced.map(|nlri| nlri.prefix));
                    let Some(family) = update.end_of_rib else { continue };
                    assert!(!process.is_waiting(now), "End-of-RIB, and the sources are not ready");
                    let of_family = process.wanted.keys().filter(|it| it.family() == family);
                    let missing: Vec<_> = of_family.filter(|it| !self.told.contains(it)).collect();
                    assert!(missing.is_empty() || is_excused, "End-of-RIB before {missing:?}");
                }
            }
        }
    }

    /// Last words: one NOTIFICATION, or nothing.
    pub(super) fn check_last_words(&mut self, bytes: &[u8], config: &PeerConfig) {
        self.check(bytes, config);
        if bytes.is_empty() {
            return; // It closes without a NOTIFICATION, and what is on its way still arrives.
        }
        assert!(self.over, "last words are a NOTIFICATION");
        let one = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
        assert_eq!(one, bytes.len(), "and nothing but one");
    }
}

/// R is set by a speaker that has just restarted, F by one that forwarded all the time.
fn check_open(open: &Open, config: &PeerConfig, own: OwnRestart) {
    let offer = open.capabilities.iter().find_map(|capability| match capability {
        Capability::GracefulRestart(offer) => Some(offer),
        _ => None,
    });
    let offer = offer.expect("End-of-RIB markers are promised at least");
    if config.graceful_restart.is_none() {
        assert!(offer.families.is_empty() && !offer.restarted, "{offer:?}");
        return;
    }
    // One that was delayed was made a while ago, and may set R for a moment too long.
    let is_late = config.delay_open_time.is_some();
    assert!(offer.restarted == own.restarted || offer.restarted && is_late, "{offer:?}: {own:?}");
    for kept in &offer.families {
        assert_eq!(kept.forwarding, own.forwarding, "{offer:?}");
    }
}

/// The slots of a peer: at most two connections, one when the session is up, unless the neighbour may
/// have restarted and dials again; the peer knows of each socket there is, and of no other.
pub(super) fn check_slots(router: &Router) {
    let connections = router.peer().connections();
    assert!(connections.len() <= 2, "{connections:?}");
    let is_up =
        |(_, state, _): &&(ConnectionId, SessionState, bool)| *state == SessionState::Established;
    let may_be_replaced = router.peer().config().graceful_restart.is_some();
    if connections.iter().any(|it| is_up(&it)) && !may_be_replaced {
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
