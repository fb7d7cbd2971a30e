//! How often we send, and how long a neighbour that does not read is tolerated.

use super::*;

//= RFC 9687 §5 MUST: a connection over which nothing could be sent for SendHoldTime is closed.
//= RFC 9687 §5 MAY: it is closed with Send Hold Timer Expired, 8/0.
//= RFC 9687 §6 SHOULD: the send hold timer runs without being asked for.
//= RFC 9687 §7 SHOULD: Send Hold Timer Expired is part of the operational state.
#[test]
fn a_neighbour_that_reads_nothing_runs_into_the_send_hold_timer() {
    let (mut peer, id) = established();
    // It goes on sending, but its socket never has room.
    let mut second = 0;
    while peer.state() == SessionState::Established {
        second += 1;
        let now = Instant::ZERO + seconds(second);
        peer.handle(now, Event::Received(id, &keepalive()));
        peer.handle(now, Event::Tick);
    }
    assert_eq!(second, 480);
    let (_, reason) = peer.last_reset.as_ref().unwrap();
    assert!(reason.to_string().starts_with("notification sent: Send Hold Timer Expired (8/0)"));
}

//= RFC 9687 §6 SHOULD: SendHoldTime is the larger of eight minutes and twice the hold time.
//= RFC 9687 §4.4 MUST: SendHoldTime is more than the hold time.
#[test]
fn a_long_hold_time_makes_the_send_hold_time_longer() {
    let (mut peer, id) = established_with(300);
    let mut minutes = 0;
    while peer.state() == SessionState::Established {
        minutes += 1;
        let now = Instant::ZERO + seconds(60 * minutes);
        peer.handle(now, Event::Received(id, &keepalive()));
        peer.handle(now, Event::Tick);
    }
    assert_eq!(minutes, 10);
}

//= RFC 9687 §4.3 MUST: every message that is sent restarts the send hold timer.
#[test]
fn who_takes_a_message_now_and_then_is_not_given_up() {
    let (mut peer, id) = established();
    for minute in 1..=120 {
        let now = Instant::ZERO + seconds(60 * minute);
        peer.handle(now, Event::Received(id, &keepalive()));
        peer.handle(now, Event::Tick);
        if minute % 7 == 0 {
            peer.poll_transmit(
                now,
                id,
                &LocRib::default(),
                &mut ExportGroups::default(),
                ROOM,
                &mut BytesMut::new(),
            );
        }
    }
    assert_eq!(peer.state(), SessionState::Established);
}

//= RFC 9687 §4.3 MUST: with a hold time of zero the send hold timer does not run.
#[test]
fn without_a_hold_time_a_neighbour_may_be_as_slow_as_it_likes() {
    let (mut peer, _) = established_with(0);
    assert_eq!(peer.next_deadline(), None);
    peer.handle(Instant::ZERO + seconds(24 * 3600), Event::Tick);
    assert_eq!(peer.state(), SessionState::Established);
}

//= RFC 4271 §4.4 MUST NOT: KEEPALIVEs are sent more than once in a second.
//= RFC 4271 §10 SHOULD: KeepaliveTimer has jitter.
#[test]
fn keepalives_have_jitter_and_a_second_between_them() {
    for (hold_time, most) in [(3, 3_600), (9, 1_600)] {
        let mut pair = Pair::ebgp();
        pair.sides[0].peer.config.hold_time = HoldTime::from_seconds(hold_time).unwrap();
        pair.run_for(seconds(3_600));
        pair.assert_up();
        let sent = pair.sides[0].peer.messages.sent.keepalives;
        // Without jitter it would be a third of the hold time, and one that confirms OPEN.
        let without = 3_600 / (hold_time / 3) + 1;
        assert!(sent <= most + 1 && (hold_time == 3 || sent > without), "{hold_time} s: {sent}");
    }
}
