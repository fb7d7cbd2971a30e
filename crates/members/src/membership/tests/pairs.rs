//! Stories of one or two members, heartbeat by heartbeat.

use super::*;
use crate::membership::view::NAMESAKE_FOR;
use crate::membership::{HEAL_INTERVAL, JOIN_LIMIT};

#[test]
fn a_reverted_machine_is_heard_again_and_a_forgotten_one_is_not_replayed() {
    let now = Instant::from_micros(1_000_000);
    let mut ours = Membership::new(now, settings_of("a", 1, Some(1)));
    let mut other = Membership::new(now, settings_of("b", 1, Some(1)));
    let mut kept = Vec::new();
    let mut talk = |ours: &mut Membership, other: &mut Membership, from: u64, to: u64| {
        for tick in from..to {
            let now = now + Duration::from_millis(100 * tick);
            let (from_us, from_other) = (ours.tick(now), other.tick(now));
            from_us.iter().for_each(|it| {
                other.receive(now, it);
            });
            from_other.iter().for_each(|it| {
                ours.receive(now, it);
            });
            kept.extend(from_other);
        }
    };
    talk(&mut ours, &mut other, 0, 1_000);
    // Its memory is that of an earlier moment, and its clock goes on.
    let mut reverted = Membership::new(now, settings_of("b", 1, Some(1)));
    talk(&mut ours, &mut reverted, 1_000, 1_030);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    assert_eq!(reverted.owners().map(|it| it.len()), Some(2));
    // Gone for good; what was recorded of it makes nobody alive, however long ago that was.
    ours.tick(now + Duration::from_secs(200));
    let later = now + Duration::from_secs(4_000);
    for (tick, heartbeat) in (0_u64..).zip(&kept[kept.len() - 20..]) {
        let now = later + Duration::from_millis(100 * tick);
        ours.tick(now);
        assert!(tick > 0 || ours.view().is_empty(), "it was forgotten");
        ours.receive(now, heartbeat);
        assert!(!ours.owners().unwrap_or_default().contains("b"), "tick {tick}");
    }
}

#[test]
fn a_new_process_of_a_member_may_have_announced_before() {
    let now = Instant::from_micros(1_000_000);
    let mut ours = Membership::new(now, settings_of("a", 1, Some(1)));
    let mut other = Membership::new(now, settings_of("b", 1, Some(1)));
    for tick in 0..40_u64 {
        let now = now + Duration::from_millis(100 * tick);
        if tick == 20 {
            // At once, so that nobody takes it for dead.
            ours.take_healed(now);
            assert!(!ours.take_healed(now + HEAL_INTERVAL));
            other = Membership::new(now, settings_of("b", 2, Some(1)));
        }
        ours.tick(now).iter().for_each(|it| {
            other.receive(now, it);
        });
        other.tick(now).iter().for_each(|it| {
            ours.receive(now, it);
        });
    }
    assert!(ours.take_healed(now + Duration::from_secs(10)), "nobody else can tell of it");
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
    let now = Instant::from_micros(1_000_000);
    let mut ours = Membership::new(now, settings_of("a", 1, Some(1)));
    let mut other = Membership::new(now, settings_of("b", 1, Some(1)));
    for tick in 0..20_u64 {
        let now = now + Duration::from_millis(100 * tick);
        ours.tick(now).iter().for_each(|it| {
            other.receive(now, it);
        });
        other.tick(now).iter().for_each(|it| {
            ours.receive(now, it);
        });
    }
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    let again = now + Duration::from_secs(2);
    let mut other = Membership::new(again, settings_of("b", 2, Some(1)));
    for tick in 0..50_u64 {
        let now = again + Duration::from_millis(100 * tick);
        ours.tick(now);
        other.tick(now).iter().for_each(|it| {
            ours.receive(now, it);
        });
        assert!(!ours.owners().unwrap_or_default().contains("b"), "it hears nothing, tick {tick}");
    }
    assert_eq!(ours.deaf(again + Duration::from_secs(5)), BTreeSet::from(["b"]));
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
    let now = Instant::from_micros(1_000_000);
    let settings = |name: &str| settings_of(name, 5, Some(1));
    let mut ours = Membership::new(now, settings("a"));
    let mut other = Membership::new(now, settings("b"));
    let mut kept = Vec::new();
    for tick in 0..40_u64 {
        let now = now + Duration::from_millis(100 * tick);
        let (from_us, from_other) = (ours.tick(now), other.tick(now));
        from_us.iter().for_each(|it| {
            other.receive(now, it);
        });
        from_other.iter().for_each(|it| {
            ours.receive(now, it);
        });
        kept.extend(from_other);
    }
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    // The other one has ended.
    for tick in 40..50_u64 {
        let now = now + Duration::from_millis(100 * tick);
        ours.tick(now);
        kept.iter().for_each(|it| {
            ours.receive(now, it);
        });
    }
    assert_eq!(ours.owners().map(|it| it.len()), Some(1), "repeated within the same process");
    // Our process is another one now, and the other machine is gone; somebody sends what he has recorded.
    let later = now + Duration::from_secs(60);
    let mut restarted = Membership::new(later, Settings { incarnation: 6, ..settings("a") });
    for (tick, heartbeat) in (0_u64..).zip(&kept) {
        let now = later + Duration::from_millis(100 * tick);
        restarted.tick(now);
        restarted.receive(now, heartbeat);
        let owners = restarted.owners().unwrap_or_default();
        assert!(!owners.contains("b"), "tick {tick}");
    }
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
    let now = Instant::from_micros(1_000_000);
    let settings = |name: &str, incarnation| settings_of(name, incarnation, Some(1));
    let mut ours = Membership::new(now, settings("a", 1_000));
    let mut other = Membership::new(now, settings("b", 1_000));
    let talk = |ours: &mut Membership, other: &mut Membership, from: u64, to: u64| {
        for tick in from..to {
            let now = now + Duration::from_millis(100 * tick);
            let (from_us, from_other) = (ours.tick(now), other.tick(now));
            from_us.iter().for_each(|it| {
                other.receive(now, it);
            });
            from_other.iter().for_each(|it| {
                ours.receive(now, it);
            });
        }
    };
    talk(&mut ours, &mut other, 0, 20);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    let later = now + Duration::from_millis(100 * 40);
    let mut restarted = Membership::new(later, settings("b", 7));
    talk(&mut ours, &mut restarted, 40, 60);
    assert_eq!(ours.owners().map(|it| it.len()), Some(2));
    assert_eq!(restarted.owners().map(|it| it.len()), Some(2));
}
