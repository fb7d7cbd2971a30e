//! A new connection from a neighbour that has a session: it has restarted, or it has not
//! (RFC 4724 §4.2).

use super::helper::{Helper, IPV4, Offer, helping};
use super::*;
use fairway_seam::StalePhase;

const ALL: &str = "10.0.0.0/8 11.0.0.0/8 2001:db8::/32";

fn settled() -> (Helper, ConnectionId) {
    let mut helper = Helper::with_routes(&Offer::new());
    helper.pass(5);
    let first = helper.up.unwrap();
    (helper, first)
}

//= RFC 4724 §4.2 MUST: another connection from a neighbour with the capability means that the old one is over.
#[test]
fn a_neighbour_that_restarts_faster_than_we_notice_is_let_in() {
    let (mut helper, first) = settled();
    helper.changes = 0;
    // Twice: which side dialled the session, and in which slot it is, does not matter.
    for connections in 1..=2 {
        let older = helper.up.unwrap();
        let second = helper.connect(&Offer::new());
        assert_eq!(helper.closed.last(), Some(&(older, String::new())), "without a NOTIFICATION");
        assert_ne!(first, second);
        assert_eq!((helper.table().as_str(), helper.changes), (ALL, 0));
        assert_eq!(helper.stale(), Some((2, 1, StalePhase::Back, 360)));
        assert_eq!(helper.view().connections_dropped, connections);
        helper.say(&["10.0.0.0/8", "11.0.0.0/8", "2001:db8::/32"]);
        helper.end_of_rib(IPV4);
        helper.pass(60);
        assert_eq!(helper.up, Some(second), "and neither side dials beside it");
    }
}

#[test]
fn until_its_open_is_good_the_old_session_goes_on() {
    let (mut helper, first) = settled();
    let stranger = Offer { asn: 65_009, ..Offer::new() };
    let rejected = helper.knock(&stranger);
    assert_eq!(helper.closed.pop().unwrap().0, rejected);
    let garbled = helper.peer.accept(helper.now, ends(1));
    helper.handle(Event::Received(garbled, &[0; 19]));
    assert_eq!(helper.closed.pop(), Some((garbled, "1/1".to_owned())));
    let silent = helper.peer.accept(helper.now, ends(1));
    let again = helper.peer.accept(helper.now, ends(1));
    helper.pass(40);
    assert_eq!(helper.closed, [(silent, String::new()), (again, "4/0".to_owned())]);
    let gone = helper.peer.accept(helper.now, ends(1));
    helper.handle(Event::Closed(gone, None));
    assert_eq!((helper.up, helper.table().as_str()), (Some(first), ALL));
    assert_eq!(helper.stale(), None);
    assert_eq!(helper.view().connections_dropped, 0);
    // The session ends beside it: the one that is on its way becomes the next.
    let next = helper.peer.accept(helper.now, ends(1));
    helper.lose();
    assert_eq!(helper.table(), ALL);
    helper.handle(Event::Received(next, &Offer::new().open()));
    helper.handle(Event::Received(next, &keepalive()));
    assert_eq!(helper.stale().map(|it| it.2), Some(StalePhase::Back));
}

#[test]
fn in_the_first_seconds_of_a_session_and_without_graceful_restart_it_is_a_collision() {
    let told = |helper: &mut Helper| {
        let id = helper.peer.accept(helper.now, ends(1));
        helper.settle();
        helper.closed.iter().any(|it| *it == (id, "6/7".to_owned()))
    };
    let mut helper = Helper::with_routes(&Offer::new());
    helper.pass(4);
    assert!(told(&mut helper));
    helper.pass(1);
    assert!(!told(&mut helper));
    let none = Offer { restart: None, ..Offer::new() };
    let markers = Offer::new().with(|it| it.families.clear());
    for offer in [none, markers] {
        let mut helper = Helper::with_routes(&offer);
        helper.pass(60);
        assert!(told(&mut helper));
    }
    let mut helper = Helper::new(PeerConfig { graceful_restart: None, ..helping() });
    helper.connect(&Offer::new());
    helper.pass(60);
    assert!(told(&mut helper));
}

#[test]
fn the_second_connection_that_says_nothing_after_its_open_costs_what_a_restart_costs() {
    let (mut helper, _) = settled();
    helper.knock(&Offer::new());
    assert_eq!(helper.up, None);
    assert_eq!(helper.stale(), Some((2, 1, StalePhase::Away, 120)));
    helper.pass(120);
    assert_eq!(helper.table(), "");
}
