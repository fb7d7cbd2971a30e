//! Both sides dial at once (RFC 4271 §6.8, RFC 6286 §2.3): which connection stays, whichever OPEN
//! comes first.

use super::scripted::Scripted;
use super::*;
use crate::wire::Capability;
use fairway_seam::SessionState as S;

fn speaker(asn: u32, router_id: u32) -> (Asn, RouterId) {
    (Asn::new(asn).unwrap(), RouterId::new(router_id).unwrap())
}

/// Whether our own dial is the one that stays when the neighbour's OPEN comes on it first, or on
/// the connection that the neighbour dialled.
fn our_dial_stays(ours: (Asn, RouterId), theirs: (Asn, RouterId), on_ours_first: bool) -> bool {
    let settings = config(ours.0.get(), theirs.0.get(), 1);
    stays_of(PeerConfig { router_id: ours.1, ..settings }, theirs, on_ours_first)
}

fn stays_of(settings: PeerConfig, theirs: (Asn, RouterId), on_ours_first: bool) -> bool {
    let mut scripted = Scripted::new(settings);
    let dialled = scripted.dial_and_connect();
    let accepted = scripted.accept();
    scripted.said();
    let open = Open {
        asn: theirs.0.get(),
        hold_time: HoldTime::DEFAULT,
        router_id: theirs.1,
        capabilities: vec![Capability::FourOctetAs(theirs.0.get())],
    };
    let first = if on_ours_first { dialled } else { accepted };
    scripted.receive(first, &open.encode());
    assert_ne!(scripted.has_closed(dialled), scripted.has_closed(accepted), "one of them stays");
    let said = scripted.said();
    let expected = if scripted.has_closed(first) { "6/7" } else { "6/7 KEEPALIVE" };
    assert_eq!(said, expected, "the loser is told, and only the loser");
    if scripted.has_closed(first) {
        // The other one was not held up.
        let second = if on_ours_first { accepted } else { dialled };
        scripted.receive(second, &open.encode());
    }
    assert_eq!(scripted.peer.state(), S::OpenConfirm);
    !scripted.has_closed(dialled)
}

//= RFC 4271 §6.8 MUST: the connection that the speaker with the higher identifier opened stays.
//= RFC 4271 §6.8 MUST: identifiers are compared as unsigned numbers of four octets.
//= RFC 4271 §6.8 MUST: the connection that loses is closed with Cease.
//= RFC 4486 §4 SHOULD: the connection that loses a collision is closed with 6/7.
//= RFC 6286 §2.3 MUST: of equal identifiers the connection that the larger AS opened stays.
//+ RFC 4271 §8.2.2: a second connection is followed until it has said OPEN.
#[test]
fn the_dial_of_the_larger_identifier_stays_and_of_the_larger_as_when_they_are_equal() {
    let cases = [
        // Identifiers are compared as numbers of four octets without a sign.
        (speaker(65001, 2), speaker(65002, 1), true),
        (speaker(65001, 1), speaker(65002, 2), false),
        (speaker(65001, 0x0100_0000), speaker(65002, 0xFF), true),
        (speaker(65001, 0x8000_0000), speaker(65002, 0x7FFF_FFFF), true),
        (speaker(65002, 1), speaker(65001, 2), false),
        (speaker(65001, 7), speaker(65002, 7), false),
        (speaker(65002, 7), speaker(65001, 7), true),
        (speaker(4_200_000_000, 7), speaker(65001, 7), true),
        (speaker(65001, 1), speaker(65001, 2), false),
    ];
    for (ours, theirs, expected) in cases {
        for on_ours_first in [true, false] {
            let stays = our_dial_stays(ours, theirs, on_ours_first);
            assert_eq!(stays, expected, "{ours:?} and {theirs:?}, on ours first: {on_ours_first}");
        }
    }
}

/// The AS is not known before the OPEN; what else the router is called does not matter.
#[test]
fn a_neighbour_whose_as_was_left_open_collides_like_any_other() {
    for (local_asn, expected) in [(65_003, true), (65_001, false)] {
        let settings = PeerConfig {
            remote_as: RemoteAs::External,
            router_asn: Asn::new(65_009).unwrap(),
            router_id: RouterId::new(7).unwrap(),
            ..config(local_asn, 65_002, 1)
        };
        for on_ours_first in [true, false] {
            let theirs = speaker(65_002, 7);
            assert_eq!(stays_of(settings.clone(), theirs, on_ours_first), expected, "{local_asn}");
        }
    }
}

//= RFC 4271 §6.8 MUST: a new connection is closed when the session is Established.
#[test]
fn an_established_session_wins_whatever_the_identifiers_say() {
    for router_id in [1, 200] {
        let settings =
            PeerConfig { router_id: RouterId::new(router_id).unwrap(), ..config(65001, 65002, 1) };
        let mut scripted = Scripted::new(settings);
        let first = scripted.dial_and_connect();
        for message in [open_of(65002), keepalive()] {
            scripted.receive(first, &message);
        }
        scripted.said();
        let second = scripted.accept();
        assert_eq!(scripted.said(), "6/7");
        assert!(scripted.has_closed(second) && !scripted.has_closed(first));
        assert_eq!(scripted.peer.state(), S::Established);
    }
}

#[test]
fn whoever_is_late_when_a_session_comes_up_is_told_so() {
    let mut scripted = Scripted::new(config(65001, 65002, 1));
    let first = scripted.dial_and_connect();
    scripted.receive(first, &open_of(65002));
    let late = scripted.accept();
    scripted.said();
    scripted.receive(first, &keepalive());
    assert!(scripted.said().starts_with("6/7"), "the late one");
    assert!(scripted.has_closed(late) && !scripted.has_closed(first));
    // Its own events come too late to matter.
    scripted.receive(late, &open_of(65002));
    scripted.handle(Event::Closed(late, None));
    assert_eq!(scripted.peer.state(), S::Established);
}

#[test]
fn a_dial_on_its_way_is_given_up_for_a_connection_that_is_up() {
    for router_id in [1, 200] {
        let settings =
            PeerConfig { router_id: RouterId::new(router_id).unwrap(), ..config(65001, 65002, 1) };
        let mut scripted = Scripted::new(settings);
        let dialled = scripted.dial();
        let accepted = scripted.accept();
        scripted.said();
        scripted.receive(accepted, &open_of(65002));
        assert!(scripted.has_closed(dialled) && !scripted.has_closed(accepted));
        assert_eq!(scripted.said(), "KEEPALIVE", "nothing is sent on the other");
        // The event that it came up after all comes too late.
        scripted.handle(Event::Connected(dialled, ends(1)));
        scripted.receive(accepted, &keepalive());
        assert_eq!(scripted.peer.state(), S::Established);
    }
}

fn restarting() -> PeerConfig {
    let graceful_restart = GracefulRestart::new(120, 0);
    PeerConfig { graceful_restart, ..config(65001, 65002, 1) }
}

/// A peer with graceful restart whose dial is up and unanswered when the neighbour's own connection has
/// brought everything that a session needs.
fn with_an_unanswered_dial() -> (Scripted, ConnectionId, ConnectionId) {
    let mut scripted = Scripted::new(restarting());
    let dialled = scripted.dial_and_connect();
    let accepted = scripted.accept();
    scripted.said();
    for message in [open_of(65002), keepalive()] {
        scripted.receive(accepted, &message);
    }
    assert_eq!(
        scripted.said(),
        "",
        "the neighbor would be Established before it has seen the dial"
    );
    assert_eq!(scripted.peer.state(), S::OpenSent);
    (scripted, dialled, accepted)
}

#[test]
fn with_graceful_restart_a_session_comes_up_when_the_neighbour_has_answered_our_dial() {
    let (mut scripted, dialled, accepted) = with_an_unanswered_dial();
    scripted.receive(dialled, &open_of(65002));
    assert_eq!(scripted.said(), "6/7 KEEPALIVE UPDATE", "the dial loses");
    assert!(scripted.has_closed(dialled) && !scripted.has_closed(accepted));
    assert_eq!(scripted.peer.state(), S::Established);
}

#[test]
fn a_dial_that_is_lost_or_never_answered_holds_a_session_up_for_a_second_at_most() {
    let (mut scripted, dialled, _) = with_an_unanswered_dial();
    scripted.handle(Event::Closed(dialled, None));
    assert_eq!(
        (scripted.said().as_str(), scripted.peer.state()),
        ("KEEPALIVE UPDATE", S::Established)
    );

    let (mut scripted, dialled, _) = with_an_unanswered_dial();
    let begin = scripted.now;
    scripted.expire("read");
    assert_eq!(scripted.now.since(begin), seconds(1));
    assert_eq!(
        (scripted.said().as_str(), scripted.peer.state()),
        ("6/7 KEEPALIVE UPDATE", S::Established)
    );
    assert!(scripted.has_closed(dialled));
}

#[test]
fn nothing_is_dialled_beside_a_connection_that_the_neighbour_has_agreed_to() {
    let mut scripted = Scripted::new(restarting());
    let accepted = scripted.accept();
    scripted.receive(accepted, &open_of(65002));
    assert_eq!(scripted.peer.state(), S::OpenConfirm);
    scripted.handle(Event::Tick);
    assert!(scripted.peer.outgoing.is_none(), "the dial that was due is not made");
    scripted.handle(Event::Closed(accepted, None));
    scripted.expire("idle");
    assert!(scripted.peer.outgoing.is_some(), "but after the connection has ended");
}
