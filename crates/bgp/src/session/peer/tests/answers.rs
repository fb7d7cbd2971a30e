//! Faults that end a session, in every state that can answer them, and what the operator reads.

use super::scripted::{Scripted, words_of};
use super::*;
use crate::wire::Capability;
use fairway_seam::{ResetCause, SessionState as S};

fn header(length: u16, code: u8) -> Vec<u8> {
    [&[0xFF_u8; 16][..], &length.to_be_bytes(), &[code]].concat()
}

/// What a peer in `state` answers to `bytes`; empty when it goes on.
fn answer(config: PeerConfig, state: S, bytes: &[u8]) -> String {
    let mut scripted = Scripted::new(config);
    let id = scripted.accept();
    let count = usize::from(state > S::OpenSent) + usize::from(state > S::OpenConfirm);
    for message in [open_of(65002), keepalive()].iter().take(count) {
        scripted.receive(id, message);
    }
    assert_eq!(scripted.peer.state(), state);
    scripted.said();
    scripted.receive(id, bytes);
    let said = scripted.said();
    assert_eq!(said.is_empty(), scripted.peer.state() == state, "an answer closes the connection");
    assert_eq!(scripted.has_closed(id), !said.is_empty());
    said
}

fn plain() -> PeerConfig {
    config(65001, 65002, 1)
}

//+ RFC 4271 §6.1: a marker that is not all ones is answered with 1/1.
//+ RFC 4271 §6.1: an unknown type is answered with 1/3 and the type as data.
//+ RFC 4271 §6.1: a length below 19 or above 4096 is answered with 1/2.
//+ RFC 4271 §6.1: an OPEN shorter than 29 octets is answered with 1/2.
//+ RFC 4271 §6.1: an UPDATE shorter than 23 octets is answered with 1/2.
//+ RFC 4271 §6.1: a NOTIFICATION shorter than 21 octets is answered with 1/2.
//+ RFC 4271 §6.1: a KEEPALIVE of any length but 19 octets is answered with 1/2.
//+ RFC 4271 §6.1: the data of 1/2 is the length that was received.
//+ RFC 4271 §6: the data of a NOTIFICATION is empty where nothing is specified.
#[test]
fn header_faults_have_the_same_answer_in_every_state() {
    for state in [S::OpenSent, S::OpenConfirm, S::Established] {
        for byte in 0..16 {
            let mut broken = header(19, 4);
            broken[byte] = 0xFE;
            assert_eq!(answer(plain(), state, &broken), "1/1", "marker byte {byte} in {state:?}");
        }
        for code in (0..=255_u8).filter(|code| !(1..=5).contains(code)) {
            let expected = format!("1/3:{code:02x}");
            assert_eq!(answer(plain(), state, &header(19, code)), expected, "in {state:?}");
        }
        // All 65536 lengths are held against the framing itself; here the edges, in each state.
        let edges: BTreeSet<u16> = (0..=64).chain(4090..=4100).chain([32_768, 65_535]).collect();
        let kinds = [(1, 29..=4096), (2, 23..=4096), (3, 21..=4096), (4, 19..=19), (5, 19..=4096)];
        for (code, allowed) in kinds {
            for length in edges.iter().filter(|length| !allowed.contains(*length)) {
                let expected = format!("1/2:{length:04x}");
                let said = answer(plain(), state, &header(*length, code));
                assert_eq!(said, expected, "type {code} in {state:?}");
            }
        }
    }
}

#[test]
fn of_two_faults_in_a_header_the_first_field_decides() {
    let mut all_wrong = header(5, 99);
    all_wrong[0] = 0;
    assert_eq!(answer(plain(), S::OpenSent, &all_wrong), "1/1");
    assert_eq!(answer(plain(), S::OpenSent, &header(5, 99)), "1/2:0005");
}

/// An OPEN of AS 65002, hold time 90 s, identifier 0.0.0.9, changed by `change`.
fn open_with(change: impl Fn(&mut Vec<u8>), parameters: &[u8]) -> Bytes {
    let mut body = [&[4, 0xFD, 0xEA, 0, 90, 0, 0, 0, 9][..], parameters].concat();
    change(&mut body);
    framed(MessageType::Open, &body).unwrap()
}

//= RFC 4271 §6 MUST: the data of a NOTIFICATION is empty where nothing is specified.
//+ RFC 4271 §6.2: another version is answered with 2/1, and the data says 4.
//+ RFC 4271 §6.2: an AS that is not the one that was configured is answered with Bad Peer AS, 2/2.
//+ RFC 4271 §6.2: an unknown optional parameter is answered with 2/4.
//+ RFC 4271 §6.2: an optional parameter that is known and malformed is answered with 2/0.
//+ RFC 4271 §6.2: a hold time of one or two seconds is answered with 2/6.
//+ RFC 6286 §2.2: an identifier of zero is answered with Bad BGP Identifier, 2/3.
//+ RFC 6286 §2.2: our own identifier from an internal peer is answered with 2/3.
//+ RFC 6286 §2.2: our own identifier from an external peer is accepted.
#[test]
fn each_fault_of_an_open_has_its_subcode_and_data() {
    let as_it_is = |_: &mut Vec<u8>| {};
    let internal =
        || PeerConfig { router_id: RouterId::new(9).unwrap(), ..config(65002, 65002, 1) };
    let only_ipv6 =
        || PeerConfig { families: FamilySet::only(AddressFamily::Ipv6Unicast), ..plain() };
    let cases: &[(&str, PeerConfig, Bytes, &str)] = &[
        ("version 3", plain(), open_with(|body| body[0] = 3, &[0]), "2/1:0004"),
        ("version 5", plain(), open_with(|body| body[0] = 5, &[0]), "2/1:0004"),
        ("another AS", plain(), open_with(|body| body[2] = 0, &[0]), "2/2"),
        ("AS 0", plain(), open_with(|body| body[1..3].fill(0), &[0]), "2/2"),
        ("identifier 0", plain(), open_with(|body| body[8] = 0, &[0]), "2/3"),
        ("our own identifier on iBGP", internal(), open_with(as_it_is, &[0]), "2/3"),
        ("authentication, long gone", plain(), open_with(as_it_is, &[3, 1, 1, 0]), "2/4"),
        ("hold time 1 s", plain(), open_with(|body| body[4] = 1, &[0]), "2/6"),
        ("hold time 2 s", plain(), open_with(|body| body[4] = 2, &[0]), "2/6"),
        ("no family of ours", only_ipv6(), open_with(as_it_is, &[0]), "2/7:010400020001"),
        ("parameters overrun", plain(), open_with(as_it_is, &[9, 2, 0]), "2/0"),
        ("a parameter overruns", plain(), open_with(as_it_is, &[3, 2, 2, 1]), "2/0"),
        ("a capability overruns", plain(), open_with(as_it_is, &[4, 2, 2, 1, 9]), "2/0"),
        ("bytes behind the end", plain(), open_with(as_it_is, &[0, 2]), "2/0"),
        ("extended, cut short", plain(), open_with(as_it_is, &[255, 255]), "2/0"),
    ];
    for (what, config, open, expected) in cases {
        assert_eq!(answer(config.clone(), S::OpenSent, open), *expected, "{what}");
    }
    let equal_but_external = PeerConfig { router_id: RouterId::new(9).unwrap(), ..plain() };
    let mut scripted = Scripted::new(equal_but_external);
    let id = scripted.accept();
    scripted.receive(id, &open_with(as_it_is, &[0]));
    assert_eq!(scripted.peer.state(), S::OpenConfirm, "RFC 6286: only unique within an AS");
}

//+ RFC 6608 §4: a message that OpenSent does not allow is answered with 5/1.
//+ RFC 6608 §4: a message that OpenConfirm does not allow is answered with 5/2.
//+ RFC 6608 §4: a message that Established does not allow is answered with 5/3.
//+ RFC 6608 §4: the data of these NOTIFICATIONs is the type of the message.
//+ RFC 4271 §6.6: an unexpected message is a Finite State Machine Error, code 5.
#[test]
fn a_message_is_unexpected_in_every_state_that_does_not_wait_for_it() {
    let refresh = framed(MessageType::RouteRefresh, &[0, 1, 0, 1]).unwrap();
    let update = framed(MessageType::Update, &[0; 4]).unwrap();
    let open = open_of(65002);
    for (state, message, expected) in [
        (S::OpenSent, &keepalive(), "5/1:04"),
        (S::OpenSent, &update, "5/1:02"),
        (S::OpenSent, &refresh, "5/1:05"),
        (S::OpenConfirm, &open, "5/2:01"),
        (S::OpenConfirm, &update, "5/2:02"),
        (S::OpenConfirm, &refresh, "5/2:05"),
        (S::Established, &open, "5/3:01"),
    ] {
        assert_eq!(answer(plain(), state, message), expected, "{state:?}");
    }
}

#[test]
fn every_cease_is_named_with_its_text() {
    let text = b"\x0brack 4, U17";
    let hard_reset = [&[6, 2][..], text].concat();
    let cases: [(u8, &[u8], &str); 10] = [
        (1, &[0, 1, 1, 0, 0, 0, 100], "Cease/Maximum Number of Prefixes Reached (6/1)"),
        (2, text, "Cease/Administrative Shutdown (6/2): \"rack 4, U17\""),
        (3, &[], "Cease/Peer Unconfigured (6/3)"),
        (4, text, "Cease/Administrative Reset (6/4): \"rack 4, U17\""),
        (5, &[], "Cease/Connection Rejected (6/5)"),
        (6, &[], "Cease/Other Configuration Change (6/6)"),
        (7, &[], "Cease/Connection Collision Resolution (6/7)"),
        (8, &[], "Cease/Out of Resources (6/8)"),
        (9, &hard_reset, "Cease/Administrative Shutdown/Hard Reset (6/9): \"rack 4, U17\""),
        (10, &[], "Cease/BFD Down (6/10)"),
    ];
    for (subcode, data, expected) in cases {
        let (mut peer, id) = established();
        let body = [&[6, subcode][..], data].concat();
        let message = framed(MessageType::Notification, &body).unwrap();
        peer.handle(Instant::ZERO, Event::Received(id, &message));
        let (_, reason) = peer.last_reset.as_ref().unwrap();
        assert_eq!(reason.to_string(), format!("notification received: {expected}"));
        let has_text = expected.ends_with('"').then(|| "rack 4, U17".to_owned());
        assert_eq!(reason.cause(), ResetCause::NotificationReceived(6, subcode, has_text));
        let log = peer.actions.iter().filter(|action| matches!(action, Action::Down(_)));
        assert_eq!(log.count(), 1);
    }
}

//= RFC 4271 §6.4 SHOULD: a NOTIFICATION with codes that do not exist is shown to the operator.
#[test]
fn a_notification_of_no_known_code_is_shown_by_its_numbers() {
    let (mut peer, id) = established();
    let message = framed(MessageType::Notification, &[255, 254]).unwrap();
    peer.handle(Instant::ZERO, Event::Received(id, &message));
    let (_, reason) = peer.last_reset.as_ref().unwrap();
    assert_eq!(reason.to_string(), "notification received: Unknown Error (255/254)");
    assert_eq!(reason.cause(), ResetCause::NotificationReceived(255, 254, None));
}

#[test]
fn every_cease_that_we_send_says_what_it_was_sent_for() {
    for subcode in [2, 3, 4, 5, 6, 7, 8] {
        let mut scripted = Scripted::new(plain());
        let id = scripted.accept();
        for message in [open_of(65002), keepalive()] {
            scripted.receive(id, &message);
        }
        scripted.said();
        scripted.peer.stop(scripted.now, subcode, "a test");
        scripted.handle(Event::Tick);
        assert_eq!(scripted.said(), words_of(&Notification::cease(subcode)));
        let (_, reason) = scripted.peer.last_reset.as_ref().unwrap();
        assert_eq!(reason.cause(), ResetCause::NotificationSent(6, subcode));
    }
}

//= RFC 4271 §8.1.1 MUST: no NOTIFICATION is sent before OPEN.
#[test]
fn whoever_waits_for_our_open_gets_no_notification_before_it() {
    let delayed = PeerConfig { delay_open_time: Some(seconds(2)), ..plain() };
    let bad_as = Open { asn: 65099, ..Open::parse(&open_of(65002)[19..]).unwrap() };
    let bad_as = Open { capabilities: vec![Capability::FourOctetAs(65099)], ..bad_as }.encode();
    for bytes in [&bad_as[..], &keepalive(), &[0; 19]] {
        let mut scripted = Scripted::new(delayed.clone());
        let id = scripted.accept();
        scripted.receive(id, bytes);
        assert!(scripted.has_closed(id));
        assert_eq!(scripted.said(), "");
        assert_eq!(scripted.peer.messages.sent.notifications, 0);
        let (_, reason) = scripted.peer.last_attempt.as_ref().unwrap();
        assert!(matches!(reason, DownReason::Broken(_)), "nothing was sent: {reason}");
    }
}

#[test]
fn attempts_that_meet_nobody_do_not_hide_why_the_session_ended() {
    let mut scripted = Scripted::new(config(65001, 65002, 1));
    let id = scripted.dial_and_connect();
    for message in [open_of(65002), keepalive()] {
        scripted.receive(id, &message);
    }
    scripted.peer.reset(scripted.now);
    let cleared = ResetCause::NotificationSent(6, 4);
    let shown = |scripted: &Scripted| {
        scripted.peer.view(scripted.now, ViewScope::SESSIONS).last_reset.unwrap()
    };
    let before = shown(&scripted);
    assert_eq!(before.cause, cleared);
    let id = scripted.dial();
    scripted.handle(Event::ConnectFailed(id, "refused".to_owned()));
    let after = shown(&scripted);
    assert_eq!(after.cause, cleared);
    assert_eq!(after.text, format!("{}; since then: cannot connect: refused", before.text));
    scripted.expire("retry");
    let id = scripted.dial_and_connect();
    for message in [open_of(65002), keepalive()] {
        scripted.receive(id, &message);
    }
    assert_eq!(shown(&scripted).text, before.text, "its consequences are not reported again");
}
