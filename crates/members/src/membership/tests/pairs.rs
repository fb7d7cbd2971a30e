//! Stories of one or two members, heartbeat by heartbeat.

use std::ops::Range;

use super::*;
use crate::membership::view::NAMESAKE_FOR;
use crate::membership::{HEAL_INTERVAL, JOIN_LIMIT};

/// The moment of a heartbeat.
fn at(tick: u64) -> Instant {
    Instant::from_micros(1_000_000) + Duration::from_millis(100 * tick)
}

/// Two members hear each other at each of these heartbeats; those of the second.
fn talk(ours: &mut Membership, other: &mut Membership, ticks: Range<u64>) -> Vec<Heartbeat> {
    let mut sent = Vec::new();
    for now in ticks.map(at) {
        let (from_us, from_other) = (ours.tick(now), other.tick(now));
        from_us.iter().for_each(|it| {
            other.receive(now, it);
        });
        from_other.iter().for_each(|it| {
            ours.receive(now, it);
        });
        sent.extend(from_other);
    }
    sent
}

/// This member hears these heartbeats, one at each moment from `from` on.
fn hears(
    ours: &mut Membership,
    from: u64,
    heartbeats: &[Heartbeat],
    check: impl Fn(&Membership, u64),
) {
    for (tick, heartbeat) in (from..).zip(heartbeats) {
        ours.tick(at(tick));
        ours.receive(at(tick), heartbeat);
        check(ours, tick);
    }
}

#[test]
fn a_reverted_machine_is_heard_again_and_a_forgotten_one_is_not_replayed() {
    let mut ours = Membership::new(at(0), settings_of("a", 1, Some(1)));
    let mut other = Membership::new(at(0), settings_of("b", 1, Some(1)));
    talk(&mut ours, &mut other, 0..1_000);
    // Its memory is that of an earlier moment, and its clock goes on.
    let mut reverted = Membership::new(at(0), settings_of("b", 1, Some(1)));
    let kept = talk(&mut ours, &mut reverted, 1_000..1_030);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    assert_eq!(reverted.owners().map(|it| it.len()), Some(2));
    // Gone for good; what was recorded of it makes nobody alive, however long ago that was.
    ours.tick(at(2_000));
    ours.tick(at(40_000));
    assert!(ours.view().is_empty(), "it was forgotten");
    hears(&mut ours, 40_001, &kept, |ours, tick| {
        assert!(!ours.owners().unwrap_or_default().contains("b"), "tick {tick}");
    });
}

#[test]
fn a_new_process_of_a_member_may_have_announced_before() {
    let mut ours = Membership::new(at(0), settings_of("a", 1, Some(1)));
    let mut other = Membership::new(at(0), settings_of("b", 1, Some(1)));
    talk(&mut ours, &mut other, 0..20);
    ours.take_healed(at(20));
    assert!(!ours.take_healed(at(20) + HEAL_INTERVAL));
    // At once, so that nobody takes it for dead.
    let mut other = Membership::new(at(20), settings_of("b", 2, Some(1)));
    talk(&mut ours, &mut other, 20..40);
    assert!(ours.take_healed(at(100)), "nobody else can tell of it");
}

#[test]
fn a_machine_that_owns_nothing_may_not_answer() {
    let now = Instant::from_micros(1_000_000);
    let mut ours = Membership::new(now, settings_of("a", 1, Some(1)));
    ours.tick(now);
    assert!(ours.answers_until() <= now, "what its responder owns is of another time");
    let later = now + JOIN_LIMIT;
    ours.tick(later);
    assert_eq!(ours.owners(), None, "it did not run");
    ours.tick(later + Duration::from_millis(200));
    let later = later + Duration::from_millis(400);
    ours.tick(later);
    assert!(ours.owners().is_some() && ours.answers_until() > later);
    ours.set_able(later, false);
    assert!(ours.answers_until() <= later);
}

#[test]
fn a_member_that_began_again_counts_once_it_hears_us() {
    let mut ours = Membership::new(at(0), settings_of("a", 1, Some(1)));
    let mut other = Membership::new(at(0), settings_of("b", 1, Some(1)));
    talk(&mut ours, &mut other, 0..20);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    let mut other = Membership::new(at(20), settings_of("b", 2, Some(1)));
    let alone: Vec<Heartbeat> = (20..70).filter_map(|tick| other.tick(at(tick))).collect();
    hears(&mut ours, 20, &alone, |ours, tick| {
        assert!(!ours.owners().unwrap_or_default().contains("b"), "it hears nothing, tick {tick}");
    });
    assert_eq!(ours.deaf(at(70)), BTreeSet::from(["b"]));
    assert_eq!(ours.deaf(at(35)), BTreeSet::new(), "it may take a while");
}

#[test]
fn two_machines_of_one_name_are_told_apart() {
    let now = Instant::from_micros(1_000_000);
    let mut ours = Membership::new(now, settings_of("a", 1, None));
    let own = ours.tick(now).unwrap();
    ours.receive(now, &own);
    assert!(!ours.has_namesake(now), "it hears itself");
    let clone = Settings { instance: 2, ..settings_of("a", 1, None) };
    ours.receive(now, &Membership::new(now, clone).tick(now).unwrap());
    assert!(ours.has_namesake(now));
    assert!(!ours.has_namesake(now + NAMESAKE_FOR));
}

#[test]
fn a_replay_of_heartbeats_makes_nobody_alive() {
    let mut ours = Membership::new(at(0), settings_of("a", 5, Some(1)));
    let mut other = Membership::new(at(0), settings_of("b", 5, Some(1)));
    let kept = talk(&mut ours, &mut other, 0..40);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    // The other one has ended.
    hears(&mut ours, 40, &kept, |ours, tick| {
        let owners = ours.owners().unwrap_or_default();
        assert!(tick < 45 || !owners.contains("b"), "repeated within the same process");
    });
    // Our process is another one now, and what was recorded of the other one is sent again.
    let mut restarted = Membership::new(at(600), settings_of("a", 6, Some(1)));
    hears(&mut restarted, 600, &kept, |restarted, tick| {
        assert!(!restarted.owners().unwrap_or_default().contains("b"), "tick {tick}");
    });
    assert_eq!(restarted.owners().map(|it| it.len()), Some(1), "it has waited, and is alone");
}

#[test]
fn a_machine_that_does_not_know_the_others_yet_waits_for_them() {
    let now = Instant::from_micros(1_000_000);
    let settings = settings_of("a", 1, None);
    let mut ours = Membership::new(now, settings.clone());
    ours.tick(now);
    assert_eq!(ours.owners(), None, "the nodes of its cluster are not listed yet");
    ours.expect(2);
    ours.tick(now + Duration::from_millis(100));
    assert_eq!(ours.owners(), None, "and none of them was heard");
    let mut alone = Membership::new(now, Settings { expected: Some(0), ..settings });
    alone.tick(now);
    assert_eq!(alone.owners().map(|it| it.len()), Some(1));
}

#[test]
fn a_machine_whose_clock_went_back_is_heard_again() {
    let mut ours = Membership::new(at(0), settings_of("a", 1_000, Some(1)));
    let mut other = Membership::new(at(0), settings_of("b", 1_000, Some(1)));
    talk(&mut ours, &mut other, 0..20);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    let mut restarted = Membership::new(at(40), settings_of("b", 7, Some(1)));
    talk(&mut ours, &mut restarted, 40..60);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    assert_eq!(restarted.owners().map(|it| it.len()), Some(2));
}
