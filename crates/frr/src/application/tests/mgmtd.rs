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
    world.mgmtd_loses = u8::MAX;
    world.want(2, &text(&[(1, "a")]));
    world.pass(Duration::from_secs(5));
    let faults = world.application.faults();
    assert!(faults.iter().any(|it| it.contains("FRR's mgmtd does not apply")), "{faults:?}");
    assert_eq!(world.application.withdrawn(), Some(2), "no route is left");
    assert!(world.said_at.len() < 30, "{} attempts", world.said_at.len());
    assert!(world.bgpd.lines().iter().any(|it| it.contains("mgmtd: ip prefix-list EXTRA")));
}
