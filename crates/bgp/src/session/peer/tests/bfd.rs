//! BFD states of the path, and what becomes of the session and its routes (RFC 5882, RFC 9384).

use super::helper::{Helper, IPV4, IPV6, Offer, helping};
use super::scripted::Scripted;
use super::*;
use crate::session::negotiate::our_open;
use fairway_ground::{BfdSettings, ListenRange, ShutdownMessage};
use fairway_seam::bfd::Diagnostic;
use fairway_seam::{DownCause, PeerBfd, ResetCause, StalePhase};

/// Nothing is received from the neighbour any more, and its BFD goes down with its BGP.
const LOST: Liveness = Liveness::Down {
    cause: DownCause::Failed,
    independent: false,
    diagnostic: Diagnostic::CONTROL_DETECTION_TIME_EXPIRED,
};

/// The same, of a neighbour that forwards and runs BFD without its BGP.
const BLACK_HOLE: Liveness = Liveness::Down {
    cause: DownCause::Failed,
    independent: true,
    diagnostic: Diagnostic::CONTROL_DETECTION_TIME_EXPIRED,
};

/// The neighbour took BFD down administratively, or signals that it is about to restart.
const ON_PURPOSE: Liveness = Liveness::Down {
    cause: DownCause::SwitchedOff,
    independent: false,
    diagnostic: Diagnostic::NEIGHBOR_SIGNALED_SESSION_DOWN,
};

/// Its BFD session is a new one.
const ANEW: Liveness = Liveness::Down {
    cause: DownCause::BeganAnew,
    independent: false,
    diagnostic: Diagnostic::NEIGHBOR_SIGNALED_SESSION_DOWN,
};

fn watched(strict: bool, config: PeerConfig) -> PeerConfig {
    PeerConfig {
        bfd: Some(PeerBfd { profile: "fast".to_owned(), settings: BfdSettings::default(), strict }),
        ..config
    }
}

fn peer(strict: bool) -> Scripted {
    Scripted::new(watched(strict, config(65001, 65002, 1)))
}

fn their_open() -> Vec<u8> {
    our_open(&config(65002, 65001, 2), crate::session::OwnRestart::default()).encode().to_vec()
}

fn come_up(scripted: &mut Scripted) -> ConnectionId {
    let id = scripted.accept();
    scripted.receive(id, &their_open());
    scripted.receive(id, &keepalive());
    assert_eq!(scripted.peer.state(), SessionState::Established);
    scripted.said();
    id
}

//= RFC 9384 §3 SHOULD: a session that BFD ends is ended with Cease and BFD Down.
//= RFC 5882 §10.2 SHOULD: the external session is torn down when BFD finds the path broken.
#[test]
fn a_path_that_breaks_ends_the_session_at_once_with_bfd_down() {
    let mut scripted = peer(false);
    let id = come_up(&mut scripted);
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.handle(Event::Bfd(LOST));
    assert!(scripted.has_closed(id));
    assert_eq!(scripted.said(), "6/10");
    let (at, reason) = scripted.peer.last_reset.clone().unwrap();
    assert_eq!((at, reason.cause()), (scripted.now, ResetCause::NotificationSent(6, 10)));
    let text = "notification sent: Cease/BFD Down (6/10): BFD: control detection time expired";
    assert_eq!(reason.to_string(), text);
    // Not strict: it is tried again after a while, whatever the state of BFD.
    assert_eq!(scripted.peer.state(), SessionState::Idle);
    scripted.expire("idle");
    assert_eq!(scripted.peer.state(), SessionState::Connect);
    assert_eq!(scripted.peer.view(scripted.now, ViewScope::SESSIONS).liveness, LOST);
}

//= RFC 5882 §4.2 MUST NOT: a BFD session that was never Up keeps a session from being established.
//= RFC 5882 §3.2 SHOULD NOT: AdminDown of the other end is taken as a failure.
#[test]
fn who_was_never_up_or_is_down_on_purpose_has_not_failed() {
    let mut scripted = peer(false);
    scripted.handle(Event::Bfd(LOST));
    let id = come_up(&mut scripted);
    scripted.handle(Event::Bfd(LOST));
    scripted.handle(Event::Bfd(Liveness::Unknown));
    scripted.handle(Event::Bfd(LOST));
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.handle(Event::Bfd(ON_PURPOSE));
    // It comes back from there, and is silent for a while before that.
    scripted.handle(Event::Bfd(LOST));
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.handle(Event::Bfd(ANEW));
    // Its path has changed, and the state of the new one is not known yet.
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.handle(Event::Bfd(Liveness::Unknown));
    scripted.handle(Event::Bfd(LOST));
    assert!(!scripted.has_closed(id));
    assert_eq!(scripted.peer.state(), SessionState::Established);
}

#[test]
fn an_attempt_that_has_come_as_far_as_open_ends_with_the_path_too() {
    let mut scripted = peer(false);
    scripted.handle(Event::Bfd(Liveness::Up));
    let id = scripted.dial_and_connect();
    scripted.said();
    scripted.handle(Event::Bfd(LOST));
    assert!(scripted.has_closed(id));
    assert_eq!(scripted.said(), "6/10");
    // A neighbour that is still being dialled is sent nothing, and the dial continues.
    scripted.expire("idle");
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.handle(Event::Bfd(LOST));
    assert_eq!(scripted.peer.state(), SessionState::Connect);
}

//= RFC 5882 §4.3.2.1 SHOULD NOT: a BFD session that fails during a restart aborts it.
#[test]
fn where_bfd_dies_with_bgp_a_failure_may_be_a_restart_and_routes_stay() {
    for offer in [Offer::new(), Offer::new().plain()] {
        let mut helper = helped(&offer);
        let all = helper.table();
        helper.handle(Event::Bfd(LOST));
        assert_eq!(helper.closed.last().unwrap().1, "6/10");
        assert_eq!(helper.table(), all);
        assert_eq!(helper.stale().map(|it| it.2), Some(StalePhase::Away));
        helper.handle(Event::Bfd(Liveness::Up));
        helper.connect(&offer);
        helper.say(&["10.0.0.0/8"]);
        helper.end_of_rib(IPV4);
        helper.end_of_rib(IPV6);
        assert_eq!((helper.table().as_str(), helper.stale()), ("10.0.0.0/8", None));
    }
}

//= RFC 5882 §4.3.1 SHOULD: a BFD session that does not share fate with the control plane and fails ends a restart that is under way, and the routes go.
//= RFC 4724 §4.2 MAY: stale routes are removed before the neighbour is back if it turns out that it does not forward.
#[test]
fn where_bfd_outlives_bgp_a_failure_means_that_nothing_is_forwarded() {
    let mut helper = helped(&Offer::new());
    helper.handle(Event::Bfd(BLACK_HOLE));
    assert_eq!((helper.table().as_str(), helper.stale()), ("", None));
    // The same while it restarts.
    let mut helper = helped(&Offer::new());
    helper.lose();
    assert!(!helper.table().is_empty());
    helper.handle(Event::Bfd(BLACK_HOLE));
    assert_eq!((helper.table().as_str(), helper.stale()), ("", None));
}

#[test]
fn without_graceful_restart_the_routes_go_whatever_dies_with_what() {
    let offer = Offer { restart: None, ..Offer::new() };
    for failure in [LOST, BLACK_HOLE] {
        let mut helper = helped(&offer);
        helper.handle(Event::Bfd(failure));
        assert_eq!((helper.table().as_str(), helper.stale()), ("", None));
    }
}

/// BFD of a neighbour that restarts restarts, too: its first packet, or the silence before it, ends our
/// BFD session when BGP is back already.
//+ RFC 5882 §4.3.2.1: a BFD session that fails during a restart aborts it.
#[test]
fn a_restart_that_bgp_has_seen_first_is_not_seen_again_by_bfd() {
    let mut helper = helped(&Offer::new());
    helper.lose();
    let id = helper.connect(&Offer::new());
    helper.handle(Event::Bfd(LOST));
    assert_eq!(helper.up, Some(id), "it is alive: it has just dialled");
    helper.handle(Event::Bfd(Liveness::Up));
    helper.end_of_rib(IPV4);
    helper.end_of_rib(IPV6);
    // Once the restart is over, a failure is one.
    helper.handle(Event::Bfd(LOST));
    assert_eq!(helper.up, None);
    assert_eq!(helper.closed.last().unwrap().1, "6/10");
}

/// BFD, too, is back, and has seen the path work since the neighbour came back.
#[test]
fn who_fails_again_while_it_says_its_routes_has_failed() {
    let mut helper = helped(&Offer::new());
    helper.handle(Event::Bfd(LOST));
    helper.connect(&Offer::new());
    assert_eq!(helper.stale().map(|it| it.2), Some(StalePhase::Back));
    helper.now = helper.now + Duration::from_secs(1);
    helper.handle(Event::Bfd(Liveness::Up));
    helper.now = helper.now + Duration::from_secs(1);
    helper.handle(Event::Bfd(LOST));
    assert_eq!(helper.up, None);
    assert_eq!(helper.closed.last().unwrap().1, "6/10");
}

fn helped(offer: &Offer) -> Helper {
    let mut helper = Helper::with_routes(offer);
    helper.peer.reconfigure(helper.now, watched(false, helping()));
    helper.handle(Event::Bfd(Liveness::Up));
    helper
}

#[test]
fn who_is_strict_neither_dials_nor_lets_in_before_bfd_is_up() {
    let mut scripted = peer(true);
    scripted.handle(Event::Tick);
    assert_eq!((scripted.peer.state(), scripted.timers().as_str()), (SessionState::Idle, ""));
    let id = scripted.accept();
    assert!(scripted.has_closed(id));
    assert_eq!(scripted.said(), "");
    let view = scripted.peer.view(scripted.now, ViewScope::SESSIONS);
    assert!(view.waits_for_bfd && view.next_connect_in.is_none());
    for silent in [LOST, ON_PURPOSE] {
        scripted.handle(Event::Bfd(silent));
        assert_eq!(scripted.timers(), "");
    }
    scripted.handle(Event::Bfd(Liveness::Up));
    assert!(!scripted.peer.view(scripted.now, ViewScope::SESSIONS).waits_for_bfd);
    scripted.dial_and_connect();
    assert_eq!(scripted.peer.state(), SessionState::OpenSent);
}

#[test]
fn who_is_strict_waits_for_bfd_again_after_each_failure() {
    let mut scripted = peer(true);
    scripted.handle(Event::Bfd(Liveness::Up));
    come_up(&mut scripted);
    scripted.handle(Event::Bfd(LOST));
    assert_eq!(scripted.said(), "6/10");
    assert_eq!((scripted.peer.state(), scripted.timers().as_str()), (SessionState::Idle, ""));
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.dial();
    // On purpose: the session stays, and there is no other before BFD is back.
    let id = come_up(&mut scripted);
    scripted.handle(Event::Bfd(ON_PURPOSE));
    assert_eq!(scripted.peer.state(), SessionState::Established);
    scripted.handle(Event::Closed(id, None));
    assert_eq!((scripted.peer.state(), scripted.timers().as_str()), (SessionState::Idle, ""));
}

#[test]
fn a_dial_that_is_put_off_is_not_hurried_by_bfd() {
    let mut scripted = peer(true);
    scripted.handle(Event::Bfd(Liveness::Up));
    let id = come_up(&mut scripted);
    scripted.handle(Event::Closed(id, None));
    let due = scripted.peer.next_deadline();
    assert!(due > Some(scripted.now));
    scripted.handle(Event::Bfd(LOST));
    scripted.handle(Event::Bfd(Liveness::Up));
    assert_eq!(scripted.peer.next_deadline(), due);
    scripted.expire("idle");
    assert_eq!(scripted.peer.state(), SessionState::Connect);
}

#[test]
fn what_was_shut_down_does_not_come_up_with_bfd() {
    let mut scripted = peer(true);
    let shutdown = ShutdownMessage::new("").ok();
    let off = PeerConfig { shutdown, ..scripted.peer.config().clone() };
    scripted.peer.reconfigure(scripted.now, off);
    scripted.handle(Event::Bfd(Liveness::Up));
    assert_eq!((scripted.peer.state(), scripted.timers().as_str()), (SessionState::Idle, ""));
    assert!(!scripted.peer.view(scripted.now, ViewScope::SESSIONS).waits_for_bfd);
}

#[test]
fn strictness_begins_and_ends_without_touching_a_session() {
    let mut scripted = peer(false);
    let strict = watched(true, config(65001, 65002, 1));
    let id = come_up(&mut scripted);
    scripted.peer.reconfigure(scripted.now, strict.clone());
    scripted.handle(Event::Bfd(LOST));
    assert_eq!(scripted.peer.state(), SessionState::Established);
    scripted.handle(Event::Closed(id, None));
    assert_eq!(scripted.timers(), "");
    scripted.peer.reconfigure(scripted.now, config(65001, 65002, 1));
    scripted.dial();
    scripted.peer.reconfigure(scripted.now, strict);
    scripted.listen();
    assert_eq!((scripted.peer.state(), scripted.timers().as_str()), (SessionState::Idle, ""));
}

/// Its BFD session lasts as long as it is known: if it were forgotten at once, it would never be Up.
#[test]
fn one_of_a_range_is_remembered_while_its_bfd_comes_up() {
    let listen_range = Some(ListenRange { prefix: "192.0.2.0/24".parse().unwrap(), limit: 1 });
    let member = PeerConfig { listen_range, passive: true, ..config(65001, 65002, 1) };
    let mut scripted = Scripted::new(watched(true, member));
    let id = scripted.accept();
    assert!(scripted.has_closed(id) && !scripted.peer.is_at_rest());
    scripted.expire("idle");
    assert!(scripted.peer.is_at_rest(), "it was not up in time");
    scripted.accept();
    scripted.handle(Event::Bfd(Liveness::Up));
    scripted.expire("idle");
    assert!(!scripted.peer.is_at_rest(), "it is alive, and will dial again");
    let id = come_up(&mut scripted);
    scripted.handle(Event::Closed(id, None));
    assert!(!scripted.peer.is_at_rest());
    scripted.handle(Event::Bfd(LOST));
    assert!(scripted.peer.is_at_rest());
}
