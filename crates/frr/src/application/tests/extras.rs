//! Lines of the operator's ConfigMap: who takes them, what they replace, and what is left when they go.

use super::*;

const EXTRAS: &str = "! ConfigMap x/y\nrouter bgp 1\n bgp default local-preference 7\n";

/// A world in which we have a router, and extras with a value of their own.
fn with_extras(extras: &str) -> World {
    let mut world = World::new();
    world.want(1, &text(&[(1, "a")]));
    world.settle();
    let of_operator = "router bgp 1\n bgp default local-preference 5\n";
    world.bgpd.running.statements.extend(
        Model::with(of_operator).running.statements.into_iter().filter(|it| !it.context.is_empty()),
    );
    world.application.hint(world.now);
    world.pass(HINT_INTERVAL);
    world.want(2, &format!("{}{extras}", text(&[(1, "a")])));
    world.pass(INTERVAL * 2);
    world
}

#[test]
fn a_bad_line_of_the_extras_takes_no_other_along() {
    let mut world = World::new();
    let extras = |value: u8, bad: &str| {
        format!(
            "{}! ConfigMap x/bgpextras\nrouter bgp 1\n coalesce-time {value}\n {bad}\n bgp bestpath med\n",
            text(&[(1, "a")])
        )
    };
    let with =
        |value: u8| format!("{} coalesce-time {value}\n bgp bestpath med\n", text(&[(1, "a")]));
    world.want(1, &extras(1, "bad line"));
    world.pass(INTERVAL * 3);
    assert!(world.has(&with(1)), "{:?}", world.bgpd.running);
    let faults = world.application.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("a line is not in force in `router bgp 1`"), "{faults:?}");
    assert_eq!(world.application.in_force(), None);
    world.want(2, &extras(2, "bad line"));
    world.pass(INTERVAL * 3);
    assert!(world.has(&with(2)));
    // A rejected value leaves the earlier one.
    world.want(3, &extras(2, "coalesce-time bad"));
    world.pass(INTERVAL * 3);
    assert!(world.has(&with(2)), "{:?}", world.bgpd.running);
    assert!(world.application.faults()[0].contains("coalesce-time bad"));
    world.want(4, &format!("{} coalesce-time 3\n", text(&[(1, "a")])));
    world.pass(INTERVAL * 3);
    assert_eq!(world.application.faults(), Vec::<String>::new());
    assert_eq!(world.application.in_force(), Some(4));
}

#[test]
fn a_setting_of_the_extras_that_had_two_values_goes_with_them() {
    let mut world = World::new();
    let extras = |value: u8| {
        format!(
            "{}! ConfigMap x/bgpextras\nrouter bgp 1\n coalesce-time {value}\n",
            text(&[(1, "a")])
        )
    };
    world.want(1, &extras(1));
    world.pass(INTERVAL * 3);
    world.want(2, &extras(2));
    world.pass(INTERVAL * 3);
    assert!(world.has(&format!("{} coalesce-time 2\n", text(&[(1, "a")]))));
    world.want(3, &text(&[(1, "a")]));
    world.pass(INTERVAL * 3);
    assert!(world.has(&text(&[(1, "a")])), "{:?}", world.bgpd.lines());
    assert_eq!(world.application.in_force(), Some(3));
}

#[test]
fn extras_go_to_whoever_knows_them() {
    let text = "! router\nrouter bgp 1\n bgp router-id 1.1.1.1\nexit\n!\n! ConfigMap x/y\nip route 203.0.113.0/24 blackhole\ninterface cable\n description to the router\n!\n";
    let mut world = World::new();
    world.want(1, text);
    world.settle();
    assert!(world.bfdd.lines().contains(&"ip route 203.0.113.0/24 blackhole".to_owned()));
}

#[test]
fn what_extras_replace_comes_back_when_they_go() {
    let place = "router bgp 1 / bgp default local-preference";
    let mut world = with_extras(EXTRAS);
    assert!(world.bgpd.lines().contains(&format!("{place} 7")), "{:#?}", world.bgpd.lines());
    // Another process finds in FRR what this one has replaced.
    world.application = Application::new(Owner::default(), INTERVAL);
    world.want(3, &text(&[(1, "a")]));
    world.pass(INTERVAL * 4);
    let lines = world.bgpd.lines();
    assert!(lines.contains(&format!("{place} 5")), "{lines:#?}");
    assert!(!lines.iter().any(|it| it.contains("local-preference 7")), "{lines:#?}");
    assert_eq!(world.application.in_force(), Some(3));
}

#[test]
fn what_an_operator_has_already_stays_when_extras_go() {
    let mut world = with_extras(&EXTRAS.replace(" 7", " 5"));
    assert_eq!(world.application.in_force(), Some(2));
    world.want(3, &text(&[(1, "a")]));
    world.pass(INTERVAL * 4);
    let kept = "router bgp 1 / bgp default local-preference 5".to_owned();
    assert!(world.bgpd.lines().contains(&kept), "{:#?}", world.bgpd.lines());
}
