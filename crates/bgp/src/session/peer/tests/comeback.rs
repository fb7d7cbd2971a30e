//! A process that has restarted: what its OPENs advertise, and when its End-of-RIB markers are sent.

use super::scripted::Scripted;
use super::*;
use crate::session::OwnRestart;
use crate::session::negotiate::our_open;
use crate::wire::{Capability, Framing, RestartOffer};
use fairway_ground::{GracefulRestart, PrefixFilter};

const RESTARTED: OwnRestart = OwnRestart { restarted: true, forwarding: true };

fn ours() -> PeerConfig {
    PeerConfig {
        graceful_restart: Some(GracefulRestart::default()),
        families: FamilySet::only(AddressFamily::Ipv4Unicast),
        ..config(65001, 65002, 1)
    }
}

fn theirs(own: OwnRestart) -> Vec<u8> {
    let config = PeerConfig { local_asn: Asn::new(65002).unwrap(), ..ours() };
    let config = PeerConfig { router_id: RouterId::new(2).unwrap(), ..config };
    our_open(&config, own).encode().to_vec()
}

/// A peer of a process that started at zero.
fn begun(own: OwnRestart, hold_until: Option<u64>) -> Scripted {
    let mut scripted = Scripted::new(ours());
    scripted.peer.restarted(own, hold_until.map(at));
    scripted
}

fn at(second: u64) -> Instant {
    Instant::ZERO + seconds(second)
}

/// The graceful restart capability of the OPEN that a new connection begins with, as bytes.
fn said_of_restarts(scripted: &mut Scripted) -> Vec<u8> {
    let id = scripted.peer.accept(scripted.now, ends(1));
    let mut bytes = BytesMut::new();
    scripted.peer.poll_transmit(
        scripted.now,
        id,
        &LocRib::default(),
        &mut ExportGroups::default(),
        ROOM,
        &mut bytes,
    );
    let mut framing = Framing::default();
    framing.push(&bytes);
    let open = framing.next_message().unwrap().unwrap();
    let position = open.body.windows(2).position(|it| it == [64, 6]).expect("it is offered");
    open.body[position..position + 8].to_vec()
}

/// Up, with all routes sent to the neighbour.
fn up(scripted: &mut Scripted) -> ConnectionId {
    let id = scripted.accept();
    scripted.receive(id, &theirs(OwnRestart::default()));
    scripted.receive(id, &keepalive());
    assert_eq!(scripted.peer.state(), SessionState::Established);
    id
}

/// What 120 s, IPv4 and these bits are on the wire (RFC 4724 §3, RFC 8538 §2).
fn capability(flags: u8, family_flags: u8) -> Vec<u8> {
    vec![64, 6, flags, 120, 0, 1, 1, family_flags]
}

const R: u8 = 0x80;
const N: u8 = 0x40;
const F: u8 = 0x80;

//= RFC 4724 §4.1 MUST: who has restarted sets the Restart State bit.
//= RFC 8538 §2 MUST: support for NOTIFICATIONs is said with the N bit.
#[test]
fn a_process_that_has_restarted_says_so_and_what_was_forwarded() {
    for (own, expected) in [
        (OwnRestart::default(), capability(N, 0)),
        (OwnRestart { restarted: true, forwarding: false }, capability(N | R, 0)),
        (RESTARTED, capability(N | R, F)),
    ] {
        assert_eq!(said_of_restarts(&mut begun(own, None)), expected, "{own:?}");
    }
}

//= RFC 4724 §4.2 MUST NOT: who has not restarted sets the Restart State bit.
#[test]
fn a_session_later_there_was_no_restart_and_everything_was_forwarded() {
    for own in [OwnRestart::default(), RESTARTED] {
        let mut scripted = begun(own, None);
        let id = up(&mut scripted);
        scripted.handle(Event::Closed(id, None));
        assert_eq!(said_of_restarts(&mut scripted), capability(N, F), "{own:?}");
    }
}

/// It has dropped our routes by then: what it is sent next has nothing to do with a restart.
#[test]
fn a_neighbour_that_has_given_up_is_told_of_no_restart() {
    let mut scripted = begun(RESTARTED, None);
    scripted.now = at(119);
    assert_eq!(said_of_restarts(&mut scripted), capability(N | R, F));
    scripted.now = at(120);
    assert_eq!(said_of_restarts(&mut scripted), capability(N, F));
}

/// An internal error is no restart of the process, and takes nothing away from one either.
#[test]
fn a_peer_that_begins_anew_after_a_fault_is_as_far_as_it_was() {
    let mut scripted = begun(RESTARTED, Some(60));
    let waiting = scripted.peer.after_panic(at(1), at(31), 7, 2);
    assert!(waiting.holds_end_of_rib());
    assert_eq!(waiting.own_restart(at(31)), RESTARTED);
    up(&mut scripted);
    let forwarding = OwnRestart { restarted: false, forwarding: true };
    assert_eq!(scripted.peer.after_panic(at(1), at(31), 7, 3).own_restart(at(31)), forwarding);
}

fn originate(scripted: &mut Scripted, prefixes: &[&str]) {
    let peers = Arc::new(BTreeSet::from([scripted.peer.config().route_key()]));
    let route = |prefix: &&str| DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::clone(&peers),
        attributes: Arc::default(),
    };
    let Scripted { peer, rib, .. } = scripted;
    rib.set(prefixes.iter().map(route).collect::<Vec<_>>());
    let changes = rib.take_changes();
    peer.announce_all(rib);
    peer.pass_on(rib, &mut ExportGroups::default(), &changes);
    scripted.listen();
}

/// For which families the markers were sent.
fn markers(scripted: &Scripted) -> bool {
    let view = scripted.peer.view(scripted.now, ViewScope::SESSIONS);
    view.session.is_some_and(|session| session.end_of_rib_sent.ipv4)
}

//= RFC 4724 §4.1 MUST: End-of-RIB follows the initial update, also where there is nothing to send.
#[test]
fn end_of_rib_comes_after_all_routes_when_the_sources_have_spoken() {
    let mut scripted = begun(RESTARTED, Some(60));
    let id = up(&mut scripted);
    originate(&mut scripted, &["203.0.113.1/32"]);
    assert_eq!(scripted.said(), "OPEN KEEPALIVE UPDATE", "the route, and no marker");
    assert!(!markers(&scripted) && !scripted.peer.wants_to_transmit(id));
    scripted.now = at(59);
    originate(&mut scripted, &["203.0.113.1/32", "203.0.113.2/32"]);
    assert_eq!(scripted.said(), "UPDATE");
    scripted.peer.sources_have_spoken();
    assert!(scripted.peer.wants_to_transmit(id));
    scripted.listen();
    assert_eq!(scripted.said(), "UPDATE");
    assert!(markers(&scripted) && !scripted.peer.holds_end_of_rib());
    // Nothing is left of the wait: the next session sends its marker at once.
    scripted.handle(Event::Closed(id, None));
    up(&mut scripted);
    assert!(markers(&scripted));
}

//= RFC 4724 §4.1 MUST: a timer bounds the time for which others are waited for.
#[test]
fn end_of_rib_does_not_wait_for_ever() {
    let mut scripted = begun(RESTARTED, Some(60));
    assert!(scripted.peer.next_deadline() <= Some(at(60)));
    up(&mut scripted);
    for second in 1..60 {
        scripted.now = at(second);
        scripted.handle(Event::Tick);
        scripted.receive(ConnectionId { incarnation: 0, number: 1 }, &keepalive());
    }
    assert!(!markers(&scripted));
    scripted.now = at(60);
    scripted.handle(Event::Tick);
    assert!(markers(&scripted) && !scripted.peer.holds_end_of_rib());
}

/// It waits for the first End-of-RIB (RFC 7313 §4), and neither is owed before.
#[test]
fn an_answer_to_a_refresh_does_not_overtake_end_of_rib() {
    let mut scripted = begun(RESTARTED, Some(60));
    let id = up(&mut scripted);
    originate(&mut scripted, &["203.0.113.1/32"]);
    scripted.said();
    scripted.peer.refresh_out().unwrap();
    assert!(!scripted.peer.wants_to_transmit(id));
    scripted.peer.sources_have_spoken();
    scripted.listen();
    assert_eq!(scripted.said(), "UPDATE ROUTE-REFRESH UPDATE ROUTE-REFRESH");
}

//= RFC 4724 §4.1 MUST: End-of-RIB of those that have restarted themselves, or do not send it, is not waited for.
#[test]
fn only_a_neighbour_whose_routes_may_still_come_is_waited_for() {
    let accepting = |change: fn(PeerConfig) -> PeerConfig| {
        let mut scripted = Scripted::new(change(ours()));
        let before = scripted.peer.owes_end_of_rib();
        up(&mut scripted);
        (scripted, before)
    };
    let (mut scripted, before) = accepting(|it| it);
    assert!(before && scripted.peer.owes_end_of_rib());
    let id = scripted.peer.established.as_ref().unwrap().connection;
    let marker = [&[0xFF; 16][..], &[0, 23, 2, 0, 0, 0, 0]].concat();
    scripted.receive(id, &marker);
    assert!(!scripted.peer.owes_end_of_rib());
    // A neighbour that restarts waits for us; two of them would wait for each other.
    let mut both = Scripted::new(ours());
    let id = both.accept();
    both.receive(id, &theirs(RESTARTED));
    both.receive(id, &keepalive());
    assert!(!both.peer.owes_end_of_rib());
    // A neighbour without the capability may never send a marker.
    let mut silent = Scripted::new(ours());
    let id = silent.accept();
    let mut open = Open::parse(&theirs(OwnRestart::default())[19..]).unwrap();
    open.capabilities.retain(|it| !matches!(it, Capability::GracefulRestart(RestartOffer { .. })));
    silent.receive(id, &open.encode());
    silent.receive(id, &keepalive());
    assert!(!silent.peer.owes_end_of_rib());
    let nothing_asked = |mut it: PeerConfig| {
        it.import.allowed = PrefixFilter::Nothing;
        it
    };
    assert!(!accepting(nothing_asked).0.peer.owes_end_of_rib());
    let off = |it| PeerConfig { graceful_restart: None, ..it };
    let (scripted, before) = accepting(off);
    assert!(!before && !scripted.peer.owes_end_of_rib());
}
