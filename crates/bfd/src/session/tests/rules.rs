//! Requirements of RFC 5880 beyond the state machine.

use super::*;
use fairway_ground::{BfdAuthentication, BfdAuthenticationKind};

//= RFC 5880 §6.8.3 MUST: a session that is not up sends no more than one packet a second.
#[test]
fn a_session_that_is_not_up_sends_a_packet_a_second_less_jitter() {
    let mut session = session(settings(10, 10, 3));
    let packets = live(&mut session, at(100_000));
    for pair in packets.windows(2) {
        let gap = pair[1].0.since(pair[0].0);
        assert!(gap >= ms(750) && gap <= ms(1_000), "{gap:?}");
    }
    assert!((100..=134).contains(&packets.len()), "{}", packets.len());
    assert!(packets.iter().all(|(_, packet)| packet.desired_min_tx_interval == 1_000_000));
}

//= RFC 5880 §6.8.7 MUST: packets are sent no closer than agreed, less jitter.
#[test]
fn a_session_that_is_up_sends_as_often_as_the_slower_end_wishes() {
    let mut session = up(settings(20, 20, 3));
    hear(
        &mut session,
        at(1),
        &ControlPacket { detect_multiplier: multiplier(255), ..says(State::Up) },
    );
    let packets = live(&mut session, at(20_000));
    for pair in packets.windows(2) {
        let gap = pair[1].0.since(pair[0].0);
        assert!(gap >= ms(75) && gap <= ms(100), "{gap:?}");
    }
    assert!((200..=267).contains(&packets.len()), "{}", packets.len());
}

//= RFC 5880 §6.8.3 MUST: an interval that the other end reduced is honoured immediately.
#[test]
fn a_shorter_interval_counts_from_the_last_packet() {
    let mut session = up(settings(20, 20, 3));
    let slow = ControlPacket { required_min_rx_interval: 10_000_000, ..says(State::Up) };
    hear(&mut session, at(10), &slow);
    sent(&mut session, at(10));
    let before = session.schedule.sent_at.unwrap();
    assert!(session.schedule.due_at.unwrap() >= before + ms(7_500));
    let fast = ControlPacket { required_min_rx_interval: 100_000, ..says(State::Up) };
    hear(&mut session, at(40), &fast);
    let due_at = session.schedule.due_at.unwrap();
    assert!(due_at >= before + ms(75) && due_at <= before + ms(100));
    // If that has passed, it is due now.
    hear(&mut session, at(41), &slow);
    hear(&mut session, at(200), &fast);
    assert_eq!(sent(&mut session, at(200)).len(), 1);
}

//= RFC 5880 §6.8.7 MUST: nothing is sent periodically while Required Min RX of the other end is 0.
#[test]
fn who_wants_no_packets_gets_none_but_answers() {
    let mut session = up(settings(100, 100, 3));
    let hush = ControlPacket {
        required_min_rx_interval: 0,
        desired_min_tx_interval: 10_000_000,
        ..says(State::Up)
    };
    hear(&mut session, at(10), &hush);
    assert_eq!(live(&mut session, at(20_000)), []);
    hear(&mut session, at(20_000), &ControlPacket { poll: true, ..hush });
    let answers = sent(&mut session, at(20_000));
    assert_eq!(
        answers.iter().map(|it| (it.poll, it.is_final)).collect::<Vec<_>>(),
        [(false, true)]
    );
}

//= RFC 5880 §6.8.18 SHOULD: after a detection time of silence bfd.RemoteMinRxInterval is 1 again.
//= RFC 5880 §6.8.1 MUST: after a detection time of silence bfd.RemoteDiscr is zero.
#[test]
fn who_fell_silent_is_forgotten() {
    let mut session = up(settings(100, 100, 3));
    let hush = ControlPacket { required_min_rx_interval: 0, ..says(State::Up) };
    hear(&mut session, at(10), &hush);
    assert_eq!(live(&mut session, at(310)), []);
    let packets = live(&mut session, at(5_000));
    assert_eq!(packets[0].0, at(310), "a change is sent at once");
    assert!(packets.len() >= 4);
    assert!(packets.iter().all(|(_, packet)| packet.your_discriminator == 0));
    // Also for a session that is not up.
    let mut other = super::session(settings(100, 100, 3));
    hear(&mut other, at(0), &says(State::AdminDown));
    let known = |packets: &[(Instant, ControlPacket)]| packets[0].1.your_discriminator;
    assert_eq!(known(&live(&mut other, at(100))), THEM);
    live(&mut other, at(301));
    assert_eq!(known(&live(&mut other, at(3_000))), 0);
}

//= RFC 5880 §6.5 MUST: a Poll is answered at once with Final, and no packet has both bits.
//= RFC 5880 §6.8.7 MUST: that does not depend on the state or on any timer.
#[test]
fn a_poll_is_answered_at_once_in_every_state() {
    for state in [State::AdminDown, State::Down, State::Init, State::Up] {
        let mut session = session(settings(100, 100, 3));
        sent(&mut session, at(0));
        hear(&mut session, at(1), &ControlPacket { poll: true, ..says(state) });
        let packets = sent(&mut session, at(1));
        assert!(packets[0].is_final, "{state}");
        assert!(packets.iter().all(|packet| !(packet.poll && packet.is_final)), "{state}");
        assert_eq!(packets.iter().filter(|packet| packet.is_final).count(), 1);
        assert_eq!(session.poll_transmit(at(1), &mut [0; 52]), None);
    }
}

#[test]
fn a_flood_of_polls_is_one_question() {
    let mut session = up(settings(100, 100, 3));
    for _ in 0..10_000 {
        hear(&mut session, at(10), &ControlPacket { poll: true, ..says(State::Up) });
    }
    assert_eq!(sent(&mut session, at(10)).len(), 1);
    // And it does not prevent our own Poll.
    session.configure(at(11), &settings(200, 100, 3));
    let mut asked = 0;
    for now in (11..400).map(at) {
        hear(&mut session, now, &ControlPacket { poll: true, ..says(State::Up) });
        asked += sent(&mut session, now).iter().filter(|packet| packet.poll).count();
    }
    assert!((4..=7).contains(&asked), "{asked}");
}

#[test]
fn an_answer_is_no_question_and_does_not_put_one_off() {
    let mut session = up(settings(100, 100, 3));
    session.configure(at(10), &settings(100, 50, 3));
    hear(&mut session, at(10), &ControlPacket { poll: true, ..says(State::Up) });
    let bits = |packet: &ControlPacket| (packet.poll, packet.is_final);
    assert_eq!(sent(&mut session, at(10)).iter().map(bits).collect::<Vec<_>>(), [(false, true)]);
    let packets = live(&mut session, at(110));
    assert_eq!(packets.iter().map(|(_, it)| bits(it)).collect::<Vec<_>>(), [(true, false)]);
}

//= RFC 5880 §6.5 MUST: the Poll Sequence ends with a Final, and packets have the bit until then.
#[test]
fn a_question_is_asked_until_it_is_answered() {
    let mut session = up(settings(100, 100, 3));
    session.configure(at(10), &settings(100, 50, 3));
    let packets = sent(&mut session, at(10));
    assert_eq!(packets.iter().map(|it| it.poll).collect::<Vec<_>>(), [true]);
    assert_eq!(packets[0].required_min_rx_interval, 50_000);
    hear(&mut session, at(20), &says(State::Up));
    let packets = live(&mut session, at(300));
    assert!(packets.len() >= 2 && packets.iter().all(|(_, packet)| packet.poll));
    hear(&mut session, at(300), &ControlPacket { is_final: true, ..says(State::Up) });
    let packets = live(&mut session, at(500));
    assert!(!packets.is_empty() && packets.iter().all(|(_, packet)| !packet.poll));
}

//= RFC 5880 §6.8.12 MUST: another multiplier is said with the next packet, without a Poll.
#[test]
fn another_multiplier_is_said_and_not_asked() {
    let mut session = up(settings(100, 100, 3));
    session.configure(at(10), &settings(100, 100, 9));
    let packets = sent(&mut session, at(10));
    assert_eq!(packets.len(), 1);
    assert_eq!((packets[0].detect_multiplier, packets[0].poll), (multiplier(9), false));
}

//= RFC 5880 §6.1 MUST: a passive system says nothing before it has heard something.
//= RFC 5880 §6.8.7 MUST: a passive system sends nothing while bfd.RemoteDiscr is zero.
#[test]
fn a_passive_session_speaks_when_spoken_to() {
    let mut session = session(BfdSettings { passive: true, ..settings(100, 100, 3) });
    assert_eq!(live(&mut session, at(60_000)), []);
    assert_eq!(sent(&mut session, at(60_000)), []);
    hear(&mut session, at(60_000), &says(State::Down));
    assert_eq!(sent(&mut session, at(60_000)).len(), 1);
    let packets = live(&mut session, at(120_000));
    assert!(
        packets.iter().all(|(now, _)| *now <= at(60_300)),
        "silent again with the remote system"
    );
}

//= RFC 5880 §6.8.6 MUST: authentication is in use at both ends, or at none.
#[test]
fn who_signs_wants_signed_packets_and_who_does_not_wants_none() {
    let kind = BfdAuthenticationKind::MeticulousSha1;
    let key = BfdAuthentication::new(kind, 1, b"fairway").unwrap();
    let signs = BfdSettings { authentication: Some(key), ..settings(100, 100, 3) };
    let (mut plain, mut signing) = (session(settings(100, 100, 3)), session(signs.clone()));
    let missing = Dropped::AuthenticationPresence { expected: true };
    let packet = says(State::Down);
    let result = signing.receive(at(0), at(0), &packet, &packet.encode(0));
    assert_eq!((result, signing.state()), (Err(missing), State::Down));
    let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
    let written = signing.poll_transmit(at(0), &mut bytes).unwrap();
    let (packet, covered) = ControlPacket::decode(&bytes[..written.length]).unwrap();
    let unwanted = Dropped::AuthenticationPresence { expected: false };
    assert_eq!(plain.receive(at(0), at(0), &packet, covered), Err(unwanted));
    // The same key at the remote system.
    let mut other = session(signs);
    assert_eq!(other.receive(at(0), at(0), &packet, covered), Ok(()));
    assert_eq!(other.state(), State::Init);
    assert!(other.receive(at(0), at(0), &packet, covered).is_err(), "not accepted twice");
}

//= RFC 5880 §6.8.1 MUST: bfd.AuthSeqKnown is zero after twice the detection time without packets.
#[test]
fn who_was_silent_for_long_may_begin_at_another_number() {
    let kind = BfdAuthenticationKind::Sha1;
    let key = BfdAuthentication::new(kind, 1, b"fairway").unwrap();
    let signs = BfdSettings { authentication: Some(key), ..settings(100, 100, 3) };
    let packet = |seed| {
        let name = NonZeroU32::new(THEM).unwrap();
        let mut sender = Session::new(at(0), signs.clone(), false, name, seed);
        let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
        sender.poll_transmit(at(0), &mut bytes).unwrap();
        bytes
    };
    let mut session = session(signs.clone());
    let mut hear = |now, bytes: [u8; PACKET_LENGTH_BYTES_MAX]| {
        let (packet, covered) = ControlPacket::decode(&bytes).unwrap();
        session.expire(now, None);
        session.receive(now, now, &packet, covered)
    };
    // The remote system announces one second and a multiplier of 3: its detection time is 3 s.
    assert_eq!(hear(at(0), packet(1)), Ok(()));
    let out_of_order = |result| matches!(result, Err(Dropped::AuthenticationSequence { .. }));
    assert!(out_of_order(hear(at(5_999), packet(2))));
    assert_eq!(hear(at(6_000), packet(2)), Ok(()));
}

//= RFC 5880 §6.8.16 SHOULD: AdminDown is said for a detection time at least.
#[test]
fn a_farewell_is_repeated_so_that_a_lost_one_does_not_look_like_a_failure() {
    let mut session = up(settings(100, 100, 3));
    session.disable(at(10));
    let first = sent(&mut session, at(10));
    assert_eq!((first[0].state, first[0].diagnostic.bits()), (State::AdminDown, 7));
    assert_eq!(first[0].desired_min_tx_interval, 1_000_000);
    // The remote system detects our silence after 3 * 100 ms.
    let again = live(&mut session, at(310));
    assert!(again.len() >= 2, "{}", again.len());
    assert!(again.iter().all(|(_, packet)| packet.state == State::AdminDown));
    assert!(!session.is_closed(at(309)) && session.is_closed(at(310)));
    assert_eq!(session.poll_event(), None, "a change by the user is not reported to it");
}

#[test]
fn where_nobody_was_heard_nobody_is_told() {
    let mut lonely = session(settings(100, 100, 3));
    lonely.disable(at(10));
    assert!(lonely.is_closed(at(10)));
}

//= RFC 5880 §6.8.1 MUST: state is kept for a detection time after the last packet.
#[test]
fn who_comes_back_in_time_finds_its_session_as_it_was() {
    let mut session = up(settings(100, 100, 3));
    session.disable(at(10));
    session.enable(at(100));
    assert_eq!(session.state(), State::Down);
    assert!(!session.is_closed(at(100_000)));
    let packets = sent(&mut session, at(100));
    assert_eq!(packets[0].your_discriminator, THEM, "the remote discriminator is kept");
    // An endless detection time does not keep it for ever.
    let slow = ControlPacket {
        desired_min_tx_interval: u32::MAX,
        detect_multiplier: multiplier(255),
        ..says(State::Down)
    };
    hear(&mut session, at(200), &slow);
    session.disable(at(300));
    assert!(session.is_closed(at(300) + CLOSING_TIME_MAX));
}

//= RFC 7419 §3 SHOULD: whoever has one of the common intervals has all slower ones, too.
#[test]
fn every_common_interval_is_agreed_on_with_every_other() {
    let common = [3_300, 10_000, 20_000, 50_000, 100_000, 1_000_000].map(Duration::from_micros);
    for ours in common {
        for theirs in common {
            let both = |interval| BfdSettings {
                transmit_interval: interval,
                receive_interval: interval,
                ..BfdSettings::default()
            };
            let mut session = session(both(ours));
            let packet = ControlPacket {
                desired_min_tx_interval: timing::wire_micros(theirs),
                required_min_rx_interval: timing::wire_micros(theirs),
                ..says(State::Init)
            };
            hear(&mut session, at(0), &packet);
            assert_eq!(session.schedule.interval, Some(ours.max(theirs)));
            assert_eq!(session.detection_time(), Some(ours.max(theirs) * 3));
        }
    }
    // Less than the minimum would be a flood; zero would never end.
    let mut hasty = up(BfdSettings { transmit_interval: Duration::ZERO, ..settings(0, 0, 3) });
    let eager = ControlPacket { required_min_rx_interval: 1, ..says(State::Up) };
    hear(&mut hasty, at(1), &eager);
    assert_eq!(hasty.schedule.interval, Some(BfdSettings::INTERVAL_MIN));
}
