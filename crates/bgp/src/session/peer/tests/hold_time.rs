//! Two hold times become one (RFC 4271 §4.2, §4.4, §6.5): what is agreed on, how often a KEEPALIVE
//! goes out, when silence ends the session.

use super::scripted::Scripted;
use super::*;
use fairway_seam::SessionState as S;

const HOLD_TIMES: [u16; 6] = [0, 3, 9, 90, 180, 65_535];

fn hold(seconds: u16) -> HoldTime {
    HoldTime::from_seconds(u64::from(seconds)).unwrap()
}

/// An Established session of a peer that offers `ours` with a neighbour that offers `theirs`.
fn session(ours: u16, theirs: u16) -> (Scripted, ConnectionId) {
    let config = PeerConfig { hold_time: hold(ours), ..config(65001, 65002, 1) };
    let mut scripted = Scripted::new(config);
    let id = scripted.accept();
    let open = Open { hold_time: hold(theirs), ..Open::parse(&open_of(65002)[19..]).unwrap() };
    for message in [open.encode(), keepalive()] {
        scripted.receive(id, &message);
    }
    assert_eq!(scripted.peer.state(), S::Established);
    scripted.said();
    (scripted, id)
}

//+ RFC 4271 §4.2: the smaller of the two hold times is used.
//= RFC 4271 §8.2.2 MUST: with a hold time of zero neither the hold timer nor KeepaliveTimer runs in Established.
#[test]
fn every_pair_agrees_on_the_smaller_and_zero_turns_both_timers_off() {
    for ours in HOLD_TIMES {
        for theirs in HOLD_TIMES {
            let (scripted, _) = session(ours, theirs);
            let agreed = ours.min(theirs);
            let view = scripted.peer.view(scripted.now, ViewScope::SESSIONS).session.unwrap();
            assert_eq!(view.hold_time_seconds, agreed, "{ours} and {theirs}");
            let third = (agreed > 0).then(|| seconds(u64::from(agreed)) / 3);
            assert_eq!(view.keepalive_interval, third, "{ours} and {theirs}");
            let timers = if agreed > 0 { "hold keepalive send" } else { "" };
            assert_eq!(scripted.timers(), timers, "{ours} and {theirs}");
        }
    }
}

//= RFC 4271 §8.2.2 MUST: the hold timer and KeepaliveTimer start with the negotiated values.
//+ RFC 4271 §6.5: silence for the hold time is answered with Hold Timer Expired, 4/0, and the end.
#[test]
fn silence_ends_every_pair_after_exactly_the_hold_time() {
    for ours in HOLD_TIMES {
        for theirs in HOLD_TIMES.into_iter().filter(|theirs| ours.min(*theirs) > 0) {
            let (mut scripted, _) = session(ours, theirs);
            scripted.expire("hold");
            let expected = seconds(u64::from(ours.min(theirs)));
            assert_eq!(scripted.now.since(Instant::ZERO), expected, "{ours} and {theirs}");
            assert_eq!(scripted.said(), "4/0");
            assert_eq!(scripted.peer.state(), S::Idle);
        }
    }
}

//+ RFC 4271 §8.2.2: the hold timer and KeepaliveTimer start with the negotiated values.
//+ RFC 4271 §10: KEEPALIVEs come at a third of the hold time.
//+ RFC 4271 §10: KeepaliveTimer has jitter.
#[test]
fn keepalives_keep_to_a_third_of_the_hold_time_with_jitter() {
    for ours in HOLD_TIMES.into_iter().filter(|ours| *ours > 0) {
        let (mut scripted, id) = session(ours, 65_535);
        let third = seconds(u64::from(ours)) / 3;
        for _ in 0..50 {
            let before = scripted.now;
            scripted.expire("keepalive");
            let gap = scripted.now.since(before);
            assert!(gap >= third * 3 / 4 && gap <= third, "{ours}: {gap:?}");
            assert_eq!(scripted.said(), "KEEPALIVE");
            scripted.receive(id, &keepalive());
        }
    }
}

//+ RFC 4271 §8.2.2: with a hold time of zero neither the hold timer nor KeepaliveTimer runs in Established.
#[test]
fn without_a_hold_time_a_session_lives_on_nothing() {
    let (mut scripted, _) = session(0, 90);
    scripted.now = scripted.now + seconds(365 * 24 * 3600);
    scripted.handle(Event::Tick);
    assert_eq!((scripted.peer.state(), scripted.said().as_str()), (S::Established, ""));
}

//= RFC 4271 §8.2.2 MUST: an UPDATE in Established restarts the hold timer.
//+ RFC 4271 §8.2.2: a KEEPALIVE in Established restarts the hold timer.
#[test]
fn keepalives_and_updates_restart_the_hold_timer_and_nothing_else_does() {
    let update = framed(MessageType::Update, &[0; 4]).unwrap();
    let refresh = framed(MessageType::RouteRefresh, &[0, 1, 0, 1]).unwrap();
    // A message that has not arrived in full does not count.
    let half = keepalive().slice(..10);
    for (message, restarts) in
        [(keepalive(), true), (update, true), (refresh, false), (half, false)]
    {
        let (mut scripted, id) = session(9, 9);
        scripted.now = scripted.now + seconds(2);
        scripted.receive(id, &message);
        scripted.expire("hold");
        let lived = scripted.now.since(Instant::ZERO);
        assert_eq!(lived, seconds(if restarts { 11 } else { 9 }), "{message:?}");
    }
}

//= RFC 4271 §8.2.2 MUST: KEEPALIVE in OpenConfirm restarts the hold timer and leads to Established.
#[test]
fn the_keepalive_that_confirms_restarts_the_hold_timer() {
    let mut scripted = Scripted::new(PeerConfig { hold_time: hold(9), ..config(65001, 65002, 1) });
    let id = scripted.accept();
    scripted.receive(id, &open_of(65002));
    scripted.now = scripted.now + seconds(2);
    scripted.receive(id, &keepalive());
    assert_eq!(scripted.peer.state(), S::Established);
    scripted.expire("hold");
    assert_eq!(scripted.now.since(Instant::ZERO), seconds(2 + 9));
}
