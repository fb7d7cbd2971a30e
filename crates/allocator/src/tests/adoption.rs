//! Addresses in a Service's status, and pools that are restricted to some Services.

use fairway_model::{LabelSelector, Namespace, Operator, Requirement, ServiceAllocation};

use super::*;

fn having(called: &str, addresses: &[&str]) -> Service {
    let status_addresses = addresses.iter().map(|text| ip(text)).collect();
    Service { status_addresses, ..service(called) }
}

fn in_namespace(namespace: &str, service: Service) -> Service {
    Service { name: ObjectName::new(namespace, &service.name.name), ..service }
}

fn label(key: &str) -> LabelSelector {
    let (key, values) = (key.to_owned(), BTreeSet::new());
    let requirement = Requirement { key, operator: Operator::Exists, values };
    LabelSelector { requirements: BTreeSet::from([requirement]) }
}

fn kept_for(pool: Pool, priority: i32, namespaces: &[&str]) -> Pool {
    let namespaces = namespaces.iter().map(|it| (*it).to_owned()).collect();
    let allocation = ServiceAllocation { priority, namespaces, ..ServiceAllocation::default() };
    Pool { allocation: Some(allocation), ..pool }
}

#[test]
fn addresses_in_the_status_are_taken_up_before_anything_is_given_out() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("0")).add(asking_for("1", &["192.0.2.1"]));
    world.add(having("x", &["192.0.2.0"])).add(having("y", &["192.0.2.1"]));
    assert_eq!(world.got("x"), "192.0.2.0");
    assert_eq!(world.got("y"), "192.0.2.1");
    assert_eq!(world.got("0"), "192.0.2.2");
    assert!(world.got("1").contains("also in use by default/y"), "{}", world.got("1"));
}

#[test]
fn an_assignment_of_ours_counts_more_than_a_status() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("old")).converge();
    world.add(having("old", &["192.0.2.3"])).add(having("young", &["192.0.2.0"]));
    assert_eq!(world.got("old"), "192.0.2.0");
    assert_eq!(world.got("young"), "192.0.2.1");
}

#[test]
fn of_two_with_one_address_in_their_status_the_first_by_name_keeps_it() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(having("b", &["192.0.2.3"])).add(having("a", &["192.0.2.3"]));
    assert_eq!(world.got("a"), "192.0.2.3");
    assert_eq!(world.got("b"), "192.0.2.0");
}

#[test]
fn what_a_status_says_stays_even_where_pools_give_nothing_by_themselves() {
    let mut manual = pool("a", &["192.0.2.0/30"]);
    manual.auto_assign = false;
    let mut part = pool("b", &["198.51.100.0/30"]);
    part.reserved = vec!["198.51.100.0/31".parse().unwrap()];
    part.avoid_buggy_addresses = true;
    let mut world = World::with([manual, part]);
    world.add(having("manual", &["192.0.2.1"])).add(having("reserved", &["198.51.100.1"]));
    world.add(having("avoided", &["198.51.100.0"])).add(having("gone", &["203.0.113.1"]));
    assert_eq!(world.got("manual"), "192.0.2.1");
    assert_eq!(world.got("reserved"), "198.51.100.1");
    assert_eq!(world.got("avoided"), "198.51.100.2");
    assert_eq!(world.got("gone"), "198.51.100.3");
}

#[test]
fn a_status_that_is_no_longer_asked_for_is_left() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"]), pool("b", &["198.51.100.0/30"])]);
    world
        .add(Service { requested_addresses: vec![ip("192.0.2.2")], ..having("x", &["192.0.2.1"]) });
    world.add(Service { requested_pools: vec!["b".to_owned()], ..having("y", &["192.0.2.3"]) });
    world.add(Service { families: FamilyPolicy::Single(V6), ..having("z", &["192.0.2.0"]) });
    assert_eq!(world.got("x"), "192.0.2.2");
    assert_eq!(world.got("y"), "198.51.100.0");
    assert!(world.got("z").contains("hold no IPv6 addresses"), "{}", world.got("z"));
}

#[test]
fn without_any_pool_a_status_is_believed() {
    let mut world = World::default();
    world.add(having("x", &["192.0.2.1"])).add(service("y"));
    let outcomes = world.converge();
    let outcome = &outcomes[&name("x")];
    assert_eq!(outcome.addresses, [ip("192.0.2.1")]);
    assert_eq!(outcome.pool, None);
    assert_eq!(outcome.reason, Some(Reason::NoPools));
    assert!(outcomes[&name("y")].is_pending());
    world.restart().pool(pool("a", &["192.0.2.0/30"]));
    assert_eq!(world.got("x"), "192.0.2.1");
    assert_eq!(world.got("y"), "192.0.2.0");
}

#[test]
fn prefer_dual_takes_up_one_address_and_is_given_the_other_of_the_same_pool() {
    let mut world = World::with([
        pool("a", &["198.51.100.0/30", "2001:db8:a::/64"]),
        pool("b", &["192.0.2.0/30", "2001:db8:b::/64"]),
        pool("c", &["203.0.113.0/30"]),
    ]);
    let prefer = FamilyPolicy::PreferDual(V6);
    world.add(Service { families: prefer, ..having("x", &["192.0.2.3"]) });
    world.add(Service { families: prefer, ..having("y", &["203.0.113.3"]) });
    assert_eq!(world.got("x"), "192.0.2.3 | 2001:db8:b::");
    let alone = "203.0.113.3 | PreferDualStack got only an IPv4 address: no available IPs: pool c \
                 holds no IPv6 addresses";
    assert_eq!(world.got("y"), alone, "a second pool adds nothing");
}

#[test]
fn prefer_dual_completes_from_its_pool_even_if_that_one_is_not_automatic() {
    let manual = Pool { auto_assign: false, ..pool("a", &["192.0.2.0/30", "2001:db8::/64"]) };
    let mut world = World::with([manual, pool("b", &["2001:db8:b::/64"])]);
    let families = FamilyPolicy::PreferDual(V4);
    world.add(Service { families, ..having("x", &["192.0.2.3"]) });
    assert_eq!(world.got("x"), "192.0.2.3 | 2001:db8::");
}

#[test]
fn of_a_status_from_two_pools_the_first_address_stays_and_the_pair_is_of_one_pool() {
    let mut world = World::with([
        pool("a", &["192.0.2.0/30"]),
        pool("b", &["2001:db8:b::/64"]),
        pool("c", &["198.51.100.0/30", "2001:db8:c::/64"]),
    ]);
    let both = ["192.0.2.3", "2001:db8:b::7"];
    let dual = |called, families| Service { families, ..having(called, &both) };
    world.add(dual("prefer", FamilyPolicy::PreferDual(V4)));
    let alone = "192.0.2.3 | PreferDualStack got only an IPv4 address: no available IPs: pool a \
                 holds no IPv6 addresses";
    assert_eq!(world.got("prefer"), alone);
    world.remove("prefer").told().add(dual("require", FamilyPolicy::RequireDual(V4)));
    assert_eq!(world.got("require"), "198.51.100.0 | 2001:db8:c::");
    let mut world = World::with([pool("a", &["192.0.2.0/30"]), pool("b", &["2001:db8:b::/64"])]);
    let requested_pools = vec!["a".to_owned(), "b".to_owned()];
    let named = dual("named", FamilyPolicy::PreferDual(V4));
    world.add(Service { requested_pools, ..named });
    assert_eq!(world.got("named"), "192.0.2.3 | 2001:db8:b::7");
}

#[test]
fn a_pair_whose_pool_is_split_keeps_one_address_and_says_why() {
    let mut world = World::with([pool("a", &["192.0.2.0/30", "2001:db8::/64"])]);
    world.add(wanting("prefer", FamilyPolicy::PreferDual(V4)));
    world.add(wanting("require", FamilyPolicy::RequireDual(V4))).converge();
    world.pool(pool("a", &["192.0.2.0/30"])).pool(pool("b", &["2001:db8::/64"]));
    let outcomes = world.converge();
    assert_eq!(outcomes[&name("prefer")].addresses, [ip("192.0.2.0")]);
    assert!(outcomes[&name("require")].is_pending());
    let why = world.allocator.given_up()[&name("prefer")].to_string();
    let text = "[\"192.0.2.0\" \"2001:db8::\"] is not allowed in config: the first is in pool a, the \
                second in pool b; both must be in one pool, unless the annotation \
                fairway.dev/address-pools names both pools";
    assert_eq!(why, text);
}

#[test]
fn kept_pools_come_first_by_priority_then_by_name_and_zero_is_last() {
    let one = |called: &str, number: u8| pool(called, &[&format!("192.0.2.{number}/32")]);
    let mut world = World::with([
        kept_for(one("zero", 0), 0, &["default"]),
        kept_for(one("b-two", 1), 2, &["default"]),
        kept_for(one("a-two", 2), 2, &[]),
        kept_for(one("one", 3), 1, &["default", "more"]),
        kept_for(one("other", 4), 1, &["other"]),
        one("an-open", 5),
    ]);
    for service in ["1", "2", "3", "4", "5", "6"].map(service) {
        world.add(service);
    }
    let outcomes = world.converge();
    let pools = outcomes.values().map(|it| it.pool.as_deref().unwrap_or("none"));
    assert_eq!(pools.collect::<Vec<_>>(), ["one", "a-two", "b-two", "zero", "an-open", "none"]);
    assert_eq!(
        world.got("6"),
        "no available IPs: no pool has a free IPv4 address (tried one, a-two, b-two, zero, an-open)"
    );
}

#[test]
fn a_pool_that_is_kept_for_others_gives_nothing_whatever_is_asked() {
    let mut world = World::with([kept_for(pool("a", &["192.0.2.0/30"]), 1, &["prod"])]);
    world.add(service("any")).add(from_pool("pool", "a")).add(asking_for("ip", &["192.0.2.1"]));
    world.add(having("had", &["192.0.2.2"]));
    let text = "no available IPs: every IPAddressPool has autoAssign: false, or a serviceAllocation \
                that does not match this Service";
    let named = "pool a not compatible for ip assignment: its serviceAllocation does not match this \
                 Service";
    assert_eq!(world.got("any"), text);
    assert_eq!(world.got("had"), text);
    assert_eq!(world.got("pool"), named);
    assert_eq!(world.got("ip"), named);
    world.add(in_namespace("prod", from_pool("pool", "a")));
    assert_eq!(world.converge()[&ObjectName::new("prod", "pool")].addresses, [ip("192.0.2.0")]);
}

#[test]
fn a_kept_pool_needs_both_a_namespace_and_a_service_that_match() {
    let mut kept = pool("kept", &["192.0.2.0/30"]);
    kept.allocation = Some(ServiceAllocation {
        priority: 1,
        namespace_selectors: vec![label("gold")],
        service_selectors: vec![label("web")],
        ..ServiceAllocation::default()
    });
    let mut world = World::with([kept, pool("open", &["198.51.100.0/24"])]);
    let labels = |key: &str| Labels::from([(key.to_owned(), String::new())]);
    let namespace = |key: &str| {
        Object::Namespace(Namespace { name: "default".to_owned(), labels: labels(key) })
    };
    world.add(Service { labels: labels("web"), ..service("web") }).add(service("plain"));
    assert_eq!(world.got("web"), "198.51.100.1");
    world.apply(namespace("gold"));
    assert_eq!(world.got("web"), "198.51.100.1", "a healthy Service does not move");
    world.add(Service { labels: labels("web"), ..service("new") }).add(service("other"));
    assert_eq!(world.got("new"), "192.0.2.0");
    assert_eq!(world.got("other"), "198.51.100.2");
    world.apply(namespace("silver"));
    assert_eq!(world.got("new"), "198.51.100.3", "its pool is no longer for it");
    let why = &world.allocator.given_up()[&name("new")];
    assert_eq!(*why, Reason::PoolNotForService("kept".to_owned()));
}

#[test]
fn a_changed_priority_moves_nobody() {
    let pools = |first, second| {
        [
            kept_for(pool("a", &["192.0.2.0/30"]), first, &[]),
            kept_for(pool("b", &["198.51.100.0/30"]), second, &[]),
        ]
    };
    let mut world = World::with(pools(1, 2));
    world.add(service("x"));
    assert_eq!(world.got("x"), "192.0.2.0");
    for pool in pools(2, 1) {
        world.pool(pool);
    }
    world.add(service("y"));
    assert_eq!(world.got("x"), "192.0.2.0");
    assert_eq!(world.got("y"), "198.51.100.0");
}

#[test]
fn prefer_dual_stays_in_the_pools_kept_for_it_and_require_dual_goes_where_both_are() {
    let pinned = kept_for(pool("pinned", &["192.0.2.0/30"]), 1, &[]);
    let mut world = World::with([pinned, pool("open", &["198.51.100.0/30", "2001:db8::/64"])]);
    world.add(wanting("prefer", FamilyPolicy::PreferDual(V6)));
    world.add(wanting("require", FamilyPolicy::RequireDual(V6)));
    assert!(world.got("prefer").starts_with("192.0.2.0 | PreferDualStack got only"));
    assert_eq!(world.got("require"), "198.51.100.0 | 2001:db8::");
}

#[test]
fn a_service_that_goes_to_another_class_gives_its_addresses_back() {
    let mut world = World::with([pool("a", &["192.0.2.0/32"])]);
    world.add(service("x")).add(service("y")).converge();
    world.add(Service { load_balancer_class: Some("other".to_owned()), ..service("x") });
    assert_eq!(world.converge().into_keys().collect::<Vec<_>>(), [name("y")]);
    world.told();
    assert_eq!(world.got("y"), "192.0.2.0");
}

#[test]
fn what_may_be_of_a_pool_that_nobody_can_read_is_kept_and_given_to_nobody() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    let unknown = |world: &mut World, pools: &[&str]| {
        let pools = pools.iter().map(|it| name(it)).collect();
        let changes = world.index.set_unknown_pools(pools);
        world.changes.absorb(changes);
    };
    unknown(&mut world, &["b"]);
    let of_b = "198.51.100.1";
    world.add(having("plain", &[of_b])).add(asking_for("new", &["198.51.100.2"]));
    world.add(Service {
        requested_addresses: vec![ip("198.51.100.3")],
        ..having("ip", &["198.51.100.3"])
    });
    world.add(Service {
        requested_pools: vec!["b".to_owned()],
        ..having("pool", &["198.51.100.4"])
    });
    world.add(Service {
        families: FamilyPolicy::PreferDual(V4),
        ..having("dual", &["198.51.100.5", "192.0.2.3"])
    });
    world.add(having("second", &[of_b])).add(service("any"));
    let text = |address: &str| {
        format!(
            "no valid IPAddressPool holds {address}; the address is kept, since it may be of b, \
             which is invalid and has no earlier valid version"
        )
    };
    assert_eq!(world.got("plain"), format!("{of_b} | {}", text(of_b)));
    assert_eq!(world.got("ip"), format!("198.51.100.3 | {}", text("198.51.100.3")));
    assert_eq!(world.got("pool"), format!("198.51.100.4 | {}", text("198.51.100.4")));
    assert!(world.converge()[&name("dual")].is_unchecked());
    assert_eq!(world.got("second"), "192.0.2.1", "one of two keeps it");
    assert_eq!(world.got("any"), "192.0.2.0");
    assert!(
        world.got("new").contains("is in no IPAddressPool"),
        "no new address of it is assigned"
    );
    // The pool is valid again, and holds some of them.
    unknown(&mut world, &[]);
    world.pool(pool("b", &["198.51.100.0-198.51.100.3"]));
    assert_eq!(world.got("plain"), of_b);
    assert_eq!(world.got("ip"), "198.51.100.3");
    assert_eq!(world.got("pool"), "198.51.100.0");
    assert_eq!(world.got("new"), "198.51.100.2");
    assert_eq!(world.got("any"), "192.0.2.0");
}
