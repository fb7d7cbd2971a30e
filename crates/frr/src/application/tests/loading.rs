//! Somebody else loads a configuration: bgpd starts no neighbor meanwhile, and routers come and go.

use super::*;

#[test]
fn a_load_that_was_cut_short_is_ended_and_one_at_work_is_not() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a")]));
    world.is_loading = true;
    for number in 0..10 {
        world.pass(Duration::from_secs(5));
        world
            .bgpd
            .say(&Step {
                context: [].into(),
                line: format!("ip prefix-list THEIRS seq {number} permit any").into(),
                origin: None,
                purpose: Purpose::Add,
            })
            .expect("a line");
    }
    assert!(world.is_loading, "it was at work");
    assert!(world.application.faults()[0].contains("starts no new neighbors"));
    world.pass(Duration::from_secs(15));
    assert!(world.is_loading);
    world.pass(Duration::from_secs(15));
    assert!(!world.is_loading);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.application.faults(), Vec::<String>::new());
}

#[test]
fn a_router_that_was_removed_comes_back_once_nobody_changes_anything() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a")]));
    world.pass(Duration::from_secs(5));
    let wanted = world.bgpd.lines();
    world.bgpd = Model::default();
    world.application.hint(world.now);
    world.pass(Duration::from_millis(400));
    assert_eq!(world.bgpd.lines(), Model::default().lines(), "somebody may put theirs there");
    world.pass(Duration::from_millis(600));
    assert_eq!(world.bgpd.lines(), wanted);
}

/// A line of ours enters the router that it is in, and so creates it where it was just removed.
#[test]
fn nothing_is_sent_while_somebody_removes_lines_one_after_another() {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a"), (2, "b")]));
    world.pass(Duration::from_secs(5));
    let wanted = world.bgpd.lines();
    world.bgpd = made(&text(&[(1, "a")]));
    let left = world.bgpd.lines();
    world.application.hint(world.now);
    world.pass(Duration::from_millis(400));
    assert_eq!(world.bgpd.lines(), left, "the router may be the next line");
    world.pass(Duration::from_millis(600));
    assert_eq!(world.bgpd.lines(), wanted);
}

#[test]
fn a_router_that_replaces_ours_is_not_refused() {
    for seconds in [1, 8] {
        let mut world = World::new();
        world.want(1, &text(&[(1, "a")]));
        world.pass(Duration::from_secs(5));
        world.bgpd = Model::default();
        world.is_loading = true;
        world.application.hint(world.now);
        for _ in 0..10 * seconds {
            world.pass(Duration::from_millis(100));
            assert_eq!(world.bgpd.lines(), Model::default().lines());
        }
        let theirs = Step {
            context: [].into(),
            line: "router bgp 9".into(),
            origin: None,
            purpose: Purpose::Add,
        };
        world.bgpd.say(&theirs).expect("a line");
        world.is_loading = false;
        world.application.hint(world.now);
        world.pass(Duration::from_secs(1));
        assert_eq!(world.application.site(), Some(Site::Beside));
        assert!(world.bgpd.lines().iter().any(|line| line.contains("router bgp 9")));
    }
}
