//! The remote system is in demand mode (RFC 5880 §6.6). We never use it ourselves.

use super::*;

fn demanding() -> Session {
    let mut session = up(settings(100, 100, 3));
    hear(&mut session, at(10), &demand());
    session
}

fn demand() -> ControlPacket {
    // Slow, so that its silence is not a timeout.
    ControlPacket { demand: true, desired_min_tx_interval: 60_000_000, ..says(State::Up) }
}

//= RFC 5880 §6.6 MUST: periodic packets stop while Demand mode is active at the other end.
//= RFC 5880 §6.8.7 MUST: packets are periodic again when it is not.
#[test]
fn who_demands_silence_gets_it_until_it_does_not() {
    let mut session = demanding();
    assert_eq!(live(&mut session, at(10_000)), []);
    hear(&mut session, at(10_000), &ControlPacket { demand: false, ..demand() });
    assert_eq!(sent(&mut session, at(10_000)).len(), 1);
    assert!(live(&mut session, at(11_000)).len() >= 10);
}

//= RFC 5880 §6.8.6 MUST: Demand mode is active only while both ends are Up.
#[test]
fn the_demand_bit_means_nothing_while_an_end_is_not_up() {
    let mut session = session(settings(100, 100, 3));
    hear(&mut session, at(0), &ControlPacket { demand: true, ..says(State::Down) });
    assert!(live(&mut session, at(10_000)).len() >= 10);
    let mut half = up(settings(100, 100, 3));
    hear(&mut half, at(10), &ControlPacket { state: State::Init, ..demand() });
    assert_eq!(half.state(), State::Up);
    assert!(live(&mut half, at(2_000)).len() >= 10);
}

//= RFC 5880 §6.6 MUST: in Demand mode other contents begin a Poll Sequence.
#[test]
fn news_is_asked_about_until_the_answer_comes() {
    let mut session = demanding();
    session.configure(at(20), &settings(100, 100, 9));
    let packets = live(&mut session, at(500));
    assert!(packets.len() >= 4 && packets.iter().all(|(_, packet)| packet.poll));
    hear(&mut session, at(500), &ControlPacket { is_final: true, ..demand() });
    assert_eq!(live(&mut session, at(10_000)), []);
}

#[test]
fn a_poll_is_answered_all_the_same() {
    let mut session = demanding();
    hear(&mut session, at(5_000), &ControlPacket { poll: true, ..demand() });
    assert!(sent(&mut session, at(5_000))[0].is_final);
    assert_eq!(live(&mut session, at(10_000)), []);
}

#[test]
fn silence_of_the_other_end_counts_as_ever() {
    let mut session = up(settings(100, 100, 3));
    hear(&mut session, at(10), &ControlPacket { demand: true, ..says(State::Up) });
    live(&mut session, at(309));
    assert_eq!(session.state(), State::Up);
    live(&mut session, at(311));
    assert_eq!(session.state(), State::Down);
}
