//! FRR 10's mgmtd loses changes when another connection to it closes, and hands its lists to zebra.

use super::*;

const LIST: &str = "ip prefix-list EXTRA permit 10.0.0.0/8";

fn with_list() -> String {
    format!("{}! ConfigMap x/y\n{LIST}\n", text(&[(1, "a")]))
}

fn has_list(model: &Model) -> bool {
    model.lines().contains(&LIST.to_owned())
}

fn mgmtd(world: &mut World) -> &mut Model {
    world.mgmtd.as_mut().expect("mgmtd")
}

/// A world in which the list is in force.
fn listed() -> World {
    let mut world = World::new();
    world.mgmtd = Some(Model::default());
    world.want(1, &with_list());
    world.pass(Duration::from_secs(5));
    assert!(has_list(mgmtd(&mut world)) && has_list(&world.bgpd));
    assert_eq!(world.application.faults(), Vec::<String>::new());
    assert_eq!(world.application.in_force(), Some(1));
    world
}

#[test]
fn zebra_is_not_told_to_remove_what_mgmtd_gave_it() {
    let mut world = listed();
    let said = world.said_at.len();
    world.pass(LOOK_INTERVAL * 3);
    assert_eq!(world.said_at.len(), said, "nothing is left to say");
    world.want(2, &text(&[(1, "a")]));
    world.pass(Duration::from_secs(5));
    assert!(!has_list(mgmtd(&mut world)) && !has_list(&world.bgpd));
    assert_eq!(world.application.faults(), Vec::<String>::new());
    assert_eq!(world.application.in_force(), Some(2));
    assert_eq!(world.refused_removals, []);
}

#[test]
fn an_addition_that_mgmtd_lost_is_sent_again() {
    for lost in 1..5 {
        let mut world = World::new();
        (world.mgmtd, world.mgmtd_loses) = (Some(Model::default()), lost);
        world.want(1, &with_list());
        world.pass(Duration::from_secs(5));
        assert!(has_list(mgmtd(&mut world)), "{lost} lost");
        assert_eq!(world.application.in_force(), Some(1), "{lost} lost");
    }
}

#[test]
fn a_removal_that_mgmtd_lost_is_sent_again() {
    for lost in 1..5 {
        let mut world = listed();
        world.mgmtd_loses = lost;
        world.want(2, &text(&[(1, "a")]));
        world.pass(Duration::from_secs(5));
        assert!(!has_list(mgmtd(&mut world)), "{lost} lost");
        assert_eq!(world.application.faults(), Vec::<String>::new(), "{lost} lost");
        assert_eq!(world.application.in_force(), Some(2), "{lost} lost");
        let left = world.bgpd.lines().into_iter().filter(|it| it.contains("EXTRA"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new(), "{lost} lost");
    }
}

/// The line stays ours, and is said.
#[test]
fn a_removal_that_mgmtd_never_takes_is_a_fault() {
    let mut world = listed();
    let said = world.said_at.len();
    world.mgmtd_loses = u8::MAX;
    world.want(2, &text(&[(1, "a")]));
    world.pass(Duration::from_secs(8));
    let faults = world.application.faults();
    assert!(faults.iter().any(|it| it.contains("FRR's mgmtd does not apply")), "{faults:?}");
    assert_eq!(world.application.withdrawn(), Some(2), "no route is left");
    let attempts = world.said_at.len() - said;
    assert!(attempts < 15, "{attempts} attempts");
    assert!(world.bgpd.lines().iter().any(|it| it.contains("mgmtd: ip prefix-list EXTRA")));
    // It is tried once with each look, and comes into force once mgmtd takes it.
    world.pass(LOOK_INTERVAL * 6);
    assert!(world.said_at.len() - said - attempts <= 7, "{:?}", world.said_at);
    assert_eq!(world.application.faults(), faults);
    world.mgmtd_loses = 0;
    world.pass(LOOK_INTERVAL * 2);
    assert!(!has_list(mgmtd(&mut world)));
    assert_eq!(world.application.faults(), Vec::<String>::new());
    assert_eq!(world.application.in_force(), Some(2));
}

/// Another client's lock costs no attempt, however long it is held, and holds up no other daemon.
#[test]
fn a_locked_mgmtd_is_waited_for() {
    for (is_there, seconds) in [(false, 1), (false, 60), (true, 1), (true, 60)] {
        let mut world = if is_there { listed() } else { World::new() };
        world.mgmtd.get_or_insert_default();
        let until = world.now + Duration::from_secs(seconds);
        world.mgmtd_is_locked_until = until;
        match is_there {
            true => world.want(2, &text(&[(1, "b")])),
            false => world.want(2, &with_list().replace("description a", "description b")),
        }
        world.pass(Duration::from_millis(900));
        assert!(world.has_in_router("neighbor 10.0.0.1 description b"), "bgpd is not held up");
        assert_eq!(has_list(mgmtd(&mut world)), is_there);
        assert_eq!(world.application.in_force(), is_there.then_some(1));
        if seconds > 10 {
            world.pass(Duration::from_secs(10));
            let faults = world.application.faults();
            assert!(
                faults.iter().any(|it| it.contains("mgmtd is locked by another")),
                "{faults:?}"
            );
        }
        world.pass((until + Duration::from_secs(3)).saturating_sub(world.now));
        assert_eq!(has_list(mgmtd(&mut world)), !is_there, "{seconds} s");
        assert_eq!(world.application.faults(), Vec::<String>::new());
        assert_eq!(world.application.in_force(), Some(2));
        assert!(world.said_at.len() < 100, "{} attempts", world.said_at.len());
    }
}

#[test]
fn what_zebra_keeps_although_mgmtd_removed_it_goes_from_there_too() {
    for missed in 1..=3 {
        let mut world = listed();
        world.zebra_misses = missed;
        world.want(2, &text(&[(1, "a")]));
        world.pass(Duration::from_secs(20));
        assert!(!has_list(mgmtd(&mut world)), "{missed} missed");
        assert_eq!(world.zebra, Configuration::default(), "{missed} missed");
        assert!(!world.bgpd.lines().iter().any(|it| it.contains("EXTRA")), "the record is clean");
        assert_eq!(world.application.faults(), Vec::<String>::new());
        assert_eq!(world.application.in_force(), Some(2));
    }
}

/// The line stays ours, and is said.
#[test]
fn what_zebra_never_lets_go_is_a_fault() {
    let mut world = listed();
    let said = world.said_at.len();
    world.zebra_misses = u8::MAX;
    world.want(2, &text(&[(1, "a")]));
    world.pass(LOOK_INTERVAL * 10);
    let faults = world.application.faults();
    assert!(faults.iter().any(|it| it.contains("zebra still has `ip prefix-list")), "{faults:?}");
    assert!(world.said_at.len() - said < 45, "{:?}", world.said_at);
    assert!(world.bgpd.lines().iter().any(|it| it.contains("mgmtd: ip prefix-list EXTRA")));
    world.zebra_misses = 0;
    world.pass(LOOK_INTERVAL * 2);
    assert_eq!(world.zebra, Configuration::default());
    assert_eq!(world.application.faults(), Vec::<String>::new());
    assert_eq!(world.application.in_force(), Some(2));
}
