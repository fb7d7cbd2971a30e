//! The echo function of a session: when it is active, and how it affects the rest.

use super::*;
use crate::echo::EchoPacket;

fn willing() -> ControlPacket {
    ControlPacket { required_min_echo_rx_interval: 20_000, ..says(State::Up) }
}

fn with_echo() -> BfdSettings {
    BfdSettings { echo_interval: Some(ms(50)), ..settings(100, 100, 3) }
}

/// The echo packets that are sent at this time.
fn echoes(session: &mut Session, now: Instant) -> Vec<EchoPacket> {
    let mut packets = Vec::new();
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    while let Some(written) = session.poll_transmit(now, &mut bytes) {
        if written.echo {
            packets.push(EchoPacket::decode(&bytes[..written.length]).unwrap());
        }
    }
    packets
}

/// Up, and a first echo packet came back at 12 ms.
fn proven() -> Session {
    let mut session = up(with_echo());
    hear(&mut session, at(10), &willing());
    let packets = echoes(&mut session, at(10));
    session.receive_echo(at(12), at(12), &packets[0]).unwrap();
    session
}

//= RFC 5880 §6.8.9 MUST: no echo packets are sent while the session is not up.
//= RFC 5880 §6.8.9 MUST: none are sent unless the other end said how many it takes.
//= RFC 5880 §6.8.6 MUST: they cease when the other end takes none any more.
#[test]
fn echo_packets_are_sent_to_who_wants_them() {
    let mut session = up(with_echo());
    assert_eq!(echoes(&mut session, at(5)), []);
    hear(&mut session, at(10), &willing());
    assert_eq!(echoes(&mut session, at(10)).len(), 1);
    hear(&mut session, at(1_200), &says(State::Up));
    assert_eq!(echoes(&mut session, at(1_200)), []);
    hear(&mut session, at(1_300), &willing());
    hear(&mut session, at(1_300), &ControlPacket { state: State::Down, ..willing() });
    assert_eq!(echoes(&mut session, at(1_300)), []);
    let mut without = up(settings(100, 100, 3));
    hear(&mut without, at(10), &willing());
    assert_eq!(echoes(&mut without, at(10)), []);
}

//= RFC 5880 §6.8.16 MUST: switching a session off ends its echo packets.
#[test]
fn a_session_that_is_switched_off_sends_none() {
    let mut session = proven();
    session.disable(at(20));
    assert_eq!(echoes(&mut session, at(1_000)), []);
}

//= RFC 5883 §3 MUST NOT: the echo function is used over several hops.
#[test]
fn there_is_none_over_several_hops() {
    let name = NonZeroU32::new(US).unwrap();
    let mut session = Session::new(at(0), with_echo(), true, name, 1);
    settle(&mut session, at(0));
    hear(&mut session, at(10), &ControlPacket { poll: true, ..willing() });
    assert_eq!(session.echo_interval(), None);
    assert_eq!(sent(&mut session, at(10))[0].required_min_echo_rx_interval, 0);
    assert_eq!(session.loop_back(), Err(Dropped::Echo));
}

//= RFC 5880 §6.8.3 SHOULD: with the echo function active, control packets are wanted each second.
#[test]
fn control_packets_slow_down_when_echo_packets_come_back() {
    let mut session = up(with_echo());
    hear(&mut session, at(10), &willing());
    assert_eq!(session.negotiation.announced().receive, ms(100), "none came back yet");
    let mut session = proven();
    let packets = sent(&mut session, at(12));
    assert_eq!((packets[0].required_min_rx_interval, packets[0].poll), (1_000_000, true));
    assert_eq!(session.detection_time(), Some(ms(3_000)));
    // And back: the remote system must know first.
    hear(&mut session, at(20), &ControlPacket { is_final: true, ..willing() });
    hear(&mut session, at(30), &says(State::Up));
    assert_eq!(sent(&mut session, at(30))[0].required_min_rx_interval, 100_000);
    assert_eq!(session.detection_time(), Some(ms(3_000)));
    hear(&mut session, at(40), &ControlPacket { is_final: true, ..says(State::Up) });
    assert_eq!(session.detection_time(), Some(ms(300)));
}

#[test]
fn echo_packets_that_stop_coming_back_end_the_session() {
    let mut session = proven();
    live(&mut session, at(163));
    assert_eq!(session.state(), State::Up);
    live(&mut session, at(165));
    assert_eq!(session.state(), State::Down);
    let failed = |change| {
        matches!(change, BfdChange::Down { diagnostic: Diagnostic::ECHO_FUNCTION_FAILED, .. })
    };
    assert!(session.poll_event().is_some_and(failed));
}

/// Control packets came each second while echo packets monitored the path: that is not a timeout now.
#[test]
fn the_end_of_echo_packets_does_not_make_the_other_end_late() {
    let settled = || {
        let mut session = proven();
        sent(&mut session, at(12));
        hear(&mut session, at(13), &ControlPacket { is_final: true, ..willing() });
        session
    };
    let mut left = settled();
    left.disable(at(150));
    let farewells = live(&mut left, at(450));
    assert!(farewells.len() >= 3);
    assert!(farewells.iter().all(|(_, packet)| packet.your_discriminator == THEM));
    let mut failed = settled();
    let packets = live(&mut failed, at(2_000));
    assert_eq!(failed.state(), State::Down);
    assert!(packets.iter().all(|(_, packet)| packet.your_discriminator == THEM));
    let mut without = settled();
    without.configure(at(150), &settings(100, 100, 3));
    live(&mut without, at(1_000));
    assert_eq!(without.state(), State::Up);
}

#[test]
fn who_offers_and_returns_nothing_is_no_failure() {
    let mut session = up(with_echo());
    for now in (10..5_000).step_by(50).map(at) {
        live(&mut session, now);
        hear(&mut session, now, &willing());
    }
    assert_eq!(session.state(), State::Up);
    assert!(session.counters.echo_out >= 4 && session.counters.echo_in == 0);
}

#[test]
fn packets_of_the_other_end_are_returned_while_that_was_offered() {
    let mut session = up(with_echo());
    let offer = ControlPacket { poll: true, ..says(State::Up) };
    hear(&mut session, at(1), &offer);
    assert_eq!(sent(&mut session, at(1))[0].required_min_echo_rx_interval, 50_000);
    assert_eq!(session.loop_back(), Ok(()));
    hear(&mut session, at(2), &says(State::Down));
    assert_eq!(session.loop_back(), Err(Dropped::Echo));
    assert_eq!(up(settings(100, 100, 3)).loop_back(), Err(Dropped::Echo));
}
