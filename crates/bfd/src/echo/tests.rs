use std::collections::VecDeque;

use super::*;

const NAME: u32 = 0x0102_0304;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

/// Active from the start, every 50 ms, with a multiplier of 3.
fn active(rng: &mut Rng) -> Echo {
    let mut echo = Echo::default();
    echo.set(at(0), Some(ms(50)), NonZeroU8::new(3).unwrap(), rng);
    echo
}

#[test]
fn an_echo_packet_has_these_bytes() {
    let packet = EchoPacket { discriminator: NAME, sequence: 5, nonce: 6, sent_at: at(7) };
    let bytes = [1, 24, 0, 0, 1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0x1B, 0x58];
    assert_eq!(packet.encode(), bytes);
    assert_eq!(EchoPacket::decode(&bytes), Some(packet));
    assert_eq!(EchoPacket::decode(&bytes[..23]), None);
    assert_eq!(EchoPacket::decode(&[bytes.as_slice(), &[0]].concat()), None);
    let mut rng = Rng::seeded(1);
    for _ in 0..10_000 {
        let mut random = bytes;
        random[..8].copy_from_slice(&rng.next_u64().to_be_bytes());
        random[16..].copy_from_slice(&rng.next_u64().to_be_bytes());
        assert_eq!(EchoPacket::decode(&random), None);
        random[..4].copy_from_slice(&bytes[..4]);
        assert_eq!(EchoPacket::decode(&random).unwrap().encode(), random);
    }
}

#[test]
fn who_never_returns_one_is_asked_each_second_and_costs_nothing() {
    let mut rng = Rng::seeded(2);
    let mut echo = active(&mut rng);
    let mut sent = 0;
    for now in (0..60_000).map(at) {
        sent += usize::from(echo.transmit(now, NAME, &mut rng).is_some());
        assert_eq!(echo.detect(now, false), Detection::Pending);
    }
    assert!((60..=81).contains(&sent), "{sent}");
    assert!(!echo.is_proven());
}

//= RFC 5880 §6.8.5 MUST: enough echo packets that do not arrive mean that the session is down.
//= RFC 5880 §6.8.8 MUST: there is a means to detect missing echo packets.
#[test]
fn once_they_came_back_they_must_go_on() {
    let mut rng = Rng::seeded(3);
    let mut echo = active(&mut rng);
    let first = echo.transmit(at(0), NAME, &mut rng).unwrap();
    echo.receive(at(2), &first).unwrap();
    assert!(echo.is_proven() && echo.interval() == Some(ms(50)));
    assert_eq!(echo.due_at(), Some(at(50)), "at the full rate now");
    assert_eq!(echo.detection_at(), Some(at(154)), "after the round trip of the first");
    let second = echo.transmit(at(50), NAME, &mut rng).unwrap();
    echo.receive(at(53), &second).unwrap();
    assert_eq!(echo.detect(at(202), false), Detection::Pending);
    assert_eq!(echo.detect(at(203), false), Detection::Failed);
    let round_trip = RoundTrip { min: ms(2), average: ms(2) + ms(1) / 2, max: ms(3) };
    assert_eq!(echo.round_trip(), Some(round_trip));
}

#[test]
fn a_way_that_takes_longer_than_three_intervals_is_none_that_fails() {
    let mut rng = Rng::seeded(8);
    let mut echo = active(&mut rng);
    let mut on_the_way = VecDeque::new();
    for now in (0..20_000).map(at) {
        on_the_way.extend(echo.transmit(now, NAME, &mut rng));
        // A round trip of 200 ms, and an interval of 50.
        while let Some(packet) = on_the_way.pop_front_if(|it| now.since(it.sent_at) >= ms(200)) {
            echo.receive(now, &packet).unwrap();
        }
        assert_eq!(echo.detect(now, false), Detection::Pending, "{now:?}");
    }
}

#[test]
fn of_packets_at_another_rate_none_is_missing_yet() {
    for (before, after) in [(1_000, 50), (300, 50), (50, 1_000)] {
        for changed_at in 2..before {
            let mut rng = Rng::seeded(changed_at);
            let mut echo = Echo::default();
            let three = NonZeroU8::new(3).unwrap();
            echo.set(at(0), Some(ms(before)), three, &mut rng);
            let first = echo.transmit(at(0), NAME, &mut rng).unwrap();
            echo.receive(at(2), &first).unwrap();
            echo.set(at(changed_at), Some(ms(after)), three, &mut rng);
            let mut last = None;
            for now in (changed_at..changed_at + 3 * after).map(at) {
                assert_eq!(echo.detect(now, false), Detection::Pending, "{before} {after} {now:?}");
                if let Some(packet) = echo.transmit(now, NAME, &mut rng) {
                    last = Some(packet);
                }
            }
            let gone_at = at(changed_at) + ms(3 * after + 2);
            assert!(last.is_some() && echo.detect(gone_at, false) == Detection::Failed);
        }
    }
}

#[test]
fn a_detection_is_put_off_once_when_we_were_late() {
    let mut rng = Rng::seeded(4);
    let mut echo = active(&mut rng);
    let first = echo.transmit(at(0), NAME, &mut rng).unwrap();
    echo.receive(at(2), &first).unwrap();
    assert_eq!(echo.detect(at(400), true), Detection::PutOff);
    assert_eq!(echo.detect(at(449), true), Detection::Pending);
    assert_eq!(echo.detect(at(450), true), Detection::Failed);
}

#[test]
fn only_what_was_sent_comes_back_and_each_once() {
    let mut rng = Rng::seeded(5);
    let mut echo = active(&mut rng);
    let first = echo.transmit(at(0), NAME, &mut rng).unwrap();
    let second = echo.transmit(at(1_000), NAME, &mut rng).unwrap();
    let forged = EchoPacket { nonce: first.nonce ^ 1, ..second };
    let unsent = EchoPacket { sequence: 3, ..second };
    let early = EchoPacket { sent_at: at(1_003), ..second };
    for wrong in [forged, unsent, early] {
        assert_eq!(echo.receive(at(1_002), &wrong), Err(Dropped::Echo));
    }
    assert_eq!(echo.receive(at(1_002), &second), Ok(()));
    assert_eq!(echo.receive(at(1_002), &second), Err(Dropped::Echo), "again");
    assert_eq!(echo.receive(at(1_002), &first), Err(Dropped::Echo), "older");
    echo.set(at(1_100), None, NonZeroU8::MIN, &mut rng);
    let third = EchoPacket { sequence: 3, sent_at: at(1_050), ..second };
    assert_eq!(echo.receive(at(1_101), &third), Err(Dropped::Echo), "it is over");
}

//= RFC 5880 §6.8.9 MUST: echo packets are sent no more often than the other end takes them.
#[test]
fn they_keep_their_distance_less_jitter() {
    let mut rng = Rng::seeded(6);
    let mut echo = active(&mut rng);
    let first = echo.transmit(at(0), NAME, &mut rng).unwrap();
    echo.receive(at(1), &first).unwrap();
    let (mut now, mut last) = (at(50), at(0));
    for _ in 0..1_000 {
        let packet = echo.transmit(now, NAME, &mut rng).unwrap();
        assert!(now.since(last) >= ms(50) * 3 / 4 && now.since(last) <= ms(50));
        echo.receive(now + ms(1), &packet).unwrap();
        last = now;
        now = echo.due_at().unwrap();
    }
}
