use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fn multiplier(value: u8) -> NonZeroU8 {
    NonZeroU8::new(value).unwrap()
}

/// The minimum and maximum of many, in permille of the interval.
fn jitter(value: u8) -> (u128, u128) {
    let mut rng = Rng::seeded(11);
    let draws = (0..10_000).map(|_| jittered(&mut rng, ms(1_000), multiplier(value)).as_millis());
    draws.fold((u128::MAX, 0), |(least, most), it| (least.min(it), most.max(it)))
}

//= RFC 5880 §6.8.7 MUST: an interval is reduced by a random 0 to 25 %.
#[test]
fn jitter_takes_off_up_to_a_quarter() {
    assert_eq!(jitter(2), (750, 1_000));
    assert_eq!(jitter(255), (750, 1_000));
}

//= RFC 5880 §6.8.7 MUST: with a multiplier of 1 the interval is 75 to 90 % of that agreed.
#[test]
fn with_a_multiplier_of_one_a_packet_never_comes_late() {
    assert_eq!(jitter(1), (750, 900));
}

//= RFC 5880 §6.8.7 MUST: the interval is the larger of what we wish and what the other end takes.
//= RFC 5880 §6.8.7 MUST: nothing is sent periodically while the other end's Required Min RX is zero.
#[test]
fn the_slower_end_decides() {
    assert_eq!(transmit_interval(ms(50), ms(300)), Some(ms(300)));
    assert_eq!(transmit_interval(ms(300), ms(50)), Some(ms(300)));
    assert_eq!(transmit_interval(ms(300), Duration::ZERO), None);
}

//= RFC 5880 §6.8.4 MUST: the detection time is the remote multiplier times the agreed interval.
#[test]
fn the_detection_time_is_that_of_the_other_ends_multiplier() {
    assert_eq!(detection_time(multiplier(3), ms(300), ms(50)), ms(900));
    assert_eq!(detection_time(multiplier(5), ms(50), ms(300)), ms(1_500));
    // The maximum of the field does no harm.
    let most = Duration::from_micros(u32::MAX.into());
    assert_eq!(detection_time(multiplier(255), most, most), most * 255);
}

//= RFC 5880 §6.8.3 MUST: while not up, at most one packet a second is wished.
#[test]
fn a_session_that_is_not_up_is_slow() {
    assert_eq!(desired_transmit_interval(ms(50), false), ms(1_000));
    assert_eq!(desired_transmit_interval(ms(50), true), ms(50));
    assert_eq!(desired_transmit_interval(ms(3_000), false), ms(3_000));
}

fn intervals(transmit: u64, receive: u64) -> Intervals {
    Intervals { transmit: ms(transmit), receive: ms(receive) }
}

/// Up with 100 ms both ways, without a Poll.
fn up() -> Negotiation {
    Negotiation::new(intervals(100, 100))
}

//= RFC 5880 §6.8.3 MUST: a transmit interval that is increased while up counts after the Final.
//= RFC 5880 §6.8.3 MUST: a change of either interval begins a Poll Sequence.
#[test]
fn we_send_less_often_only_when_the_other_end_knows() {
    let mut negotiation = up();
    assert!(negotiation.want(at(0), intervals(300, 100), true, true));
    assert!(negotiation.is_polling());
    assert_eq!(negotiation.announced(), intervals(300, 100));
    assert_eq!(negotiation.in_force(), intervals(100, 100));
    negotiation.poll_sent(at(10));
    negotiation.answered(at(30));
    assert_eq!(negotiation.in_force(), intervals(300, 100));
    assert!(!negotiation.is_polling());
}

//= RFC 5880 §6.8.3 MUST: a receive interval that is reduced while up counts after the Final.
#[test]
fn we_expect_packets_more_often_only_when_the_other_end_knows() {
    let mut negotiation = up();
    negotiation.want(at(20), intervals(100, 20), true, true);
    assert_eq!(negotiation.in_force(), intervals(100, 100));
    negotiation.poll_sent(at(10));
    negotiation.answered(at(30));
    assert_eq!(negotiation.in_force(), intervals(100, 20));
}

//= RFC 5880 §6.8.3 MUST: all other changes count at once.
#[test]
fn the_other_way_round_changes_count_at_once() {
    let mut negotiation = up();
    negotiation.want(at(20), intervals(20, 300), true, true);
    assert_eq!(negotiation.in_force(), intervals(20, 300));
    assert!(negotiation.is_polling());
    let mut down = up();
    down.want(at(20), intervals(1_000, 20), false, true);
    assert_eq!(down.in_force(), intervals(1_000, 100), "it was asked to send every 100 ms");
    down.forget_question();
    assert_eq!(down.in_force(), intervals(1_000, 20), "the remote system is gone");
    let mut unheard = up();
    unheard.want(at(20), intervals(1_000, 20), false, false);
    assert_eq!(unheard.in_force(), intervals(1_000, 20));
    assert!(!unheard.is_polling(), "there is no remote system");
}

//= RFC 5880 §6.8.3 MUST: changes that need a Poll Sequence each are told apart.
#[test]
fn one_question_is_asked_after_the_other() {
    let mut negotiation = up();
    negotiation.want(at(0), intervals(300, 100), true, true);
    // The answer cannot be for this.
    negotiation.answered(at(5));
    assert!(negotiation.is_polling());
    negotiation.poll_sent(at(10));
    assert!(!negotiation.want(at(20), intervals(500, 50), true, true));
    assert_eq!(negotiation.announced(), intervals(300, 100), "one at a time");
    negotiation.answered(at(40));
    assert_eq!(negotiation.in_force(), intervals(300, 100));
    // Another Final may be in flight: the first answer took 30 ms.
    assert_eq!(negotiation.next_deadline(), Some(at(70)));
    assert!(!negotiation.expire(at(69), true));
    assert_eq!(negotiation.announced(), intervals(300, 100));
    assert!(negotiation.expire(at(70), true));
    assert_eq!(negotiation.announced(), intervals(500, 50));
    assert_eq!(negotiation.in_force(), intervals(300, 100));
    assert!(negotiation.is_polling());
}

#[test]
fn a_late_answer_to_an_earlier_question_is_none() {
    let mut negotiation = up();
    negotiation.ask();
    negotiation.poll_sent(at(10));
    negotiation.answered(at(40));
    negotiation.ask();
    negotiation.poll_sent(at(41));
    negotiation.answered(at(69));
    assert!(negotiation.is_polling());
    negotiation.answered(at(71));
    assert!(!negotiation.is_polling());
    assert_eq!(negotiation.next_deadline(), None, "there is nothing more to poll");
}

#[test]
fn an_interval_that_no_packet_can_say_is_the_longest_that_one_can() {
    assert_eq!(wire_micros(ms(1)), 1_000);
    assert_eq!(wire_micros(Duration::from_secs(5_000)), u32::MAX);
}
