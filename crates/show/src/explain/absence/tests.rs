//! Broken set-ups by their evidence, and the cause that each is given first.

use std::num::NonZeroU8;
use std::time::Duration;

use fairway_ground::{Password, ShutdownMessage};

use super::*;
use crate::tests::lab::fresh;

const NOTHING: RejectedSegments =
    RejectedSegments { unsigned: 0, unexpectedly_signed: 0, badly_signed: 0, ttl_too_low: 0 };

/// A neighbour whose last attempt ended in this way.
fn ended(cause: ResetCause, text: &str) -> PeerView {
    let mut peer = fresh("10.1.1.2", 65010, "tor");
    let ago = Duration::from_secs(7);
    peer.last_reset = Some(LastReset { ago, cause, text: text.to_owned() });
    peer
}

/// One that TCP did not reach.
fn failed(why: &str) -> PeerView {
    ended(ResetCause::ConnectFailed, &format!("cannot connect: 10.1.1.2:179: {why}"))
}

fn sent(code: u8, subcode: u8, text: &str) -> PeerView {
    ended(ResetCause::NotificationSent(code, subcode), &format!("notification sent: {text}"))
}

fn received(code: u8, subcode: u8, text: Option<&str>) -> PeerView {
    let cause = ResetCause::NotificationReceived(code, subcode, text.map(str::to_owned));
    ended(cause, "notification received")
}

fn with_password(mut peer: PeerView) -> PeerView {
    peer.config.password = Some(Password::new("secret-of-the-lab").unwrap());
    peer
}

fn change(mut peer: PeerView, change: impl FnOnce(&mut PeerView)) -> PeerView {
    change(&mut peer);
    peer
}

const SILENT: &str = "no answer within 5 s";
const REFUSED: &str = "Connection refused (os error 111)";
const NO_HOST: &str = "No route to host (os error 113)";

/// A neighbour, what the kernel dropped, and the word and a part of the first cause.
type Case = (PeerView, RejectedSegments, &'static str, &'static str);

/// Attempts of which TCP has not become a connection.
fn attempts() -> Vec<Case> {
    let wrong = RejectedSegments { badly_signed: 3, ..NOTHING };
    let unsigned = RejectedSegments { unsigned: 3, ..NOTHING };
    let signed = RejectedSegments { unexpectedly_signed: 3, ..NOTHING };
    let far = RejectedSegments { ttl_too_low: 3, ..NOTHING };
    vec![
        (failed(REFUSED), NOTHING, "refused", "refuses TCP port 179"),
        (failed(NO_HOST), NOTHING, "unreachable", "no route to host"),
        (failed("Network is unreachable (os error 101)"), NOTHING, "noRoute", "has no route"),
        (failed("Connection timed out (os error 110)"), NOTHING, "silent", "a filter drops them"),
        (failed(SILENT), NOTHING, "silent", "a filter drops them"),
        (with_password(failed(SILENT)), NOTHING, "silent", "different passwords"),
        (with_password(failed(SILENT)), wrong, "password", "another TCP-MD5 password"),
        (with_password(failed(SILENT)), unsigned, "password", "sends without a TCP-MD5 signature"),
        (failed(SILENT), signed, "password", "signs with a TCP-MD5 password"),
        (failed(SILENT), far, "ttl", "TTL of 1"),
    ]
}

/// What one side or the other gave as the reason.
fn endings() -> Vec<Case> {
    vec![
        (
            sent(2, 2, "OPEN Message Error/Bad Peer AS (2/2): OPEN: AS 7"),
            NOTHING,
            "remoteAs",
            "(AS 65010): OPEN",
        ),
        (received(2, 2, None), NOTHING, "localAs", "refuses our AS 65001"),
        (sent(2, 3, "x"), NOTHING, "routerId", "BGP identifier"),
        (received(2, 3, None), NOTHING, "routerId", "our BGP identifier 10.0.0.1"),
        (received(2, 6, None), NOTHING, "holdTime", "our hold time of 9 s"),
        (sent(2, 11, "x"), NOTHING, "role", "does not match ours"),
        (sent(4, 0, "Hold Timer Expired"), NOTHING, "holdTimer", "was not heard"),
        (received(4, 0, None), NOTHING, "holdTimer", "did not hear us"),
        (sent(6, 1, "more than 10 prefixes"), NOTHING, "maximumPrefixes", "more than 10 prefixes"),
        (received(6, 1, None), NOTHING, "maximumPrefixes", "accepts no more routes"),
        (
            received(6, 2, Some("maintenance")),
            NOTHING,
            "shutdownThere",
            "operator: \"maintenance\"",
        ),
        (received(6, 3, None), NOTHING, "deconfigured", "no longer has this node"),
        (received(6, 5, None), NOTHING, "rejected", "rejects our connection"),
        (received(6, 7, None), NOTHING, "collision", "at the same time"),
        (received(6, 10, None), NOTHING, "bfd", "its BFD went down"),
        (received(3, 5, None), NOTHING, "refusedThere", "Attribute Length Error (3/5)"),
        (sent(3, 1, "x"), NOTHING, "protocolError", "does not permit"),
        (
            ended(
                ResetCause::PeerClosed,
                "connection lost: Connection reset by peer (os error 104)",
            ),
            NOTHING,
            "closed",
            "closes each connection without a reason",
        ),
        (
            ended(ResetCause::PeerClosed, "the neighbor closed the connection"),
            NOTHING,
            "closed",
            "does not expect",
        ),
        (
            change(ended(ResetCause::PeerClosed, "the neighbor closed"), |it| {
                it.connections_established = 1
            }),
            NOTHING,
            "closed",
            "went away without a reason",
        ),
    ]
}

/// What our own settings and what has not happened yet explain.
fn settings() -> Vec<Case> {
    let message = ShutdownMessage::new("moving racks").unwrap();
    vec![
        (
            change(failed(REFUSED), |it| it.config.shutdown = Some(message)),
            NOTHING,
            "shutdown",
            "by its BGPPeer: moving racks",
        ),
        (
            change(failed(REFUSED), |it| it.set_aside = Some("no TCP-AO".to_owned())),
            NOTHING,
            "setAside",
            "no TCP-AO",
        ),
        (change(failed(REFUSED), |it| it.waits_for_bfd = true), NOTHING, "bfd", "waits for BFD"),
        (
            change(fresh("10.1.1.2", 65010, "tor"), |it| it.config.passive = true),
            NOTHING,
            "passive",
            "has to connect",
        ),
        (fresh("10.1.1.2", 65010, "tor"), NOTHING, "starting", "is being connected"),
        (failed("TCP-MD5 key: EINVAL"), NOTHING, "attemptFailed", "TCP-MD5 key: EINVAL"),
    ]
}

#[test]
fn the_first_cause_is_the_one_that_the_evidence_names() {
    let cases = [attempts(), endings(), settings()].concat();
    for (peer, rejected, word, phrase) in cases {
        let causes = causes(&peer, rejected);
        let first = causes.first().unwrap_or_else(|| panic!("{word}: no cause"));
        assert_eq!(first.word, word, "{causes:?}");
        assert!(first.what.contains(phrase), "{phrase}: {causes:?}");
        let healthy = change(peer, |it| it.state = SessionState::Established);
        assert_eq!(super::causes(&healthy, rejected), [], "a session has no cause for its absence");
    }
}

#[test]
fn a_distance_is_a_second_thought_where_packets_with_a_ttl_of_1_are_sent() {
    let words =
        |peer: &PeerView| -> Vec<&str> { causes(peer, NOTHING).iter().map(|it| it.word).collect() };
    assert_eq!(words(&failed(SILENT)), ["silent", "ttl"]);
    assert_eq!(words(&failed(NO_HOST)), ["unreachable", "ttl"]);
    assert_eq!(words(&failed(REFUSED)), ["refused"], "packets arrive");
    assert_eq!(words(&change(failed(SILENT), |it| it.config.multihop = true)), ["silent"]);
    let near = change(failed(SILENT), |it| it.config.ttl_security_hops = NonZeroU8::new(1));
    assert!(causes(&near, NOTHING)[1].what.contains("the 1 hops of GTSM"));
}

#[test]
fn two_faults_are_both_named_and_the_one_that_comes_first_is_first() {
    let waits = change(failed(REFUSED), |it| it.waits_for_bfd = true);
    let words: Vec<_> = causes(&waits, NOTHING).iter().map(|it| it.word).collect();
    assert_eq!(words, ["bfd", "refused"]);
    let closed = change(failed(NO_HOST), |it| it.not_accepted = Some("nothing listens"));
    let words: Vec<_> = causes(&closed, NOTHING).iter().map(|it| it.word).collect();
    assert_eq!(words, ["unreachable", "ttl", "notAccepted"]);
}

#[test]
fn no_cause_shows_a_password() {
    let rejected = RejectedSegments { badly_signed: 1, ..NOTHING };
    for cause in causes(&with_password(failed(SILENT)), rejected) {
        assert!(!format!("{cause:?}").contains("secret-of-the-lab"), "{cause:?}");
    }
}

#[test]
fn a_session_whose_segments_do_not_arrive_says_so_and_whether_it_is_their_size() {
    let stalled = |has_later| {
        let stall = Stall { repetitions: 3, segments: 4, segment_bytes: 1448, has_later };
        change(fresh("10.1.1.2", 65010, "tor"), |it| {
            it.state = SessionState::Established;
            it.stall = Some(stall);
        })
    };
    for (has_later, word, phrase) in [
        (true, "mtu", "segments of 1448 bytes do not arrive there, and smaller ones do"),
        (
            false,
            "loss",
            "does not acknowledge what it is sent (4 waiting, the first repeated 3 times)",
        ),
    ] {
        let causes = causes(&stalled(has_later), NOTHING);
        assert_eq!(causes[0].word, word);
        assert!(causes[0].what.contains(phrase), "{causes:?}");
    }
}
