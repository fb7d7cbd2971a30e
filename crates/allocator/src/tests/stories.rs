//! One story for each rule.

use super::*;

#[test]
fn the_lowest_free_address_is_given_in_name_order() {
    let mut world = World::with([pool("a", &["192.0.2.10-192.0.2.12"])]);
    world.add(service("zoo")).add(service("ant"));
    assert_eq!(world.got("ant"), "192.0.2.10");
    assert_eq!(world.got("zoo"), "192.0.2.11");
    world.add(service("bee"));
    assert_eq!(world.got("bee"), "192.0.2.12");
    assert_eq!(world.got("zoo"), "192.0.2.11");
}

#[test]
fn ranges_are_used_in_the_order_written_and_pools_by_name() {
    let mut world = World::with([
        pool("b", &["198.51.100.1-198.51.100.1"]),
        pool("a", &["192.0.2.9-192.0.2.9", "192.0.2.1-192.0.2.1"]),
    ]);
    world.add(service("1")).add(service("2")).add(service("3")).add(service("4"));
    assert_eq!(world.got("1"), "192.0.2.9");
    assert_eq!(world.got("2"), "192.0.2.1");
    assert_eq!(world.got("3"), "198.51.100.1");
    assert_eq!(world.got("4"), "no available IPs: no pool has a free IPv4 address (tried a, b)");
}

#[test]
fn a_pool_that_is_not_automatic_serves_only_those_who_name_it() {
    let mut manual = pool("manual", &["192.0.2.0/30"]);
    manual.auto_assign = false;
    let mut world = World::with([manual]);
    world.add(service("any")).add(from_pool("named", "manual"));
    world.add(asking_for("exact", &["192.0.2.2"])).add(from_pool("lost", "nowhere"));
    assert!(world.got("any").contains("every IPAddressPool has autoAssign: false; request"));
    assert_eq!(world.got("named"), "192.0.2.0");
    assert_eq!(world.got("exact"), "192.0.2.2");
    let unknown = "unknown pool \"nowhere\": there is no IPAddressPool of that name";
    assert_eq!(world.got("lost"), unknown);
}

#[test]
fn reserved_addresses_are_given_only_to_those_who_ask() {
    let mut part = pool("a", &["192.0.2.0/29"]);
    part.reserved = vec!["192.0.2.0/30".parse().unwrap(), "192.0.2.5-192.0.2.6".parse().unwrap()];
    let mut world = World::with([part]);
    world.add(service("1")).add(service("2")).add(service("3"));
    world.add(asking_for("vip", &["192.0.2.1"]));
    assert_eq!(world.got("1"), "192.0.2.4");
    assert_eq!(world.got("2"), "192.0.2.7");
    assert_eq!(world.got("3"), "no available IPs: no pool has a free IPv4 address (tried a)");
    assert_eq!(world.got("vip"), "192.0.2.1");
}

#[test]
fn buggy_addresses_are_avoided_in_ipv4_only() {
    let mut careful = pool("a", &["192.0.2.254-192.0.3.1", "2001:db8::/64"]);
    careful.avoid_buggy_addresses = true;
    let mut world = World::with([careful]);
    world.add(service("1")).add(service("2")).add(asking_for("exact", &["192.0.3.0"]));
    world.add(wanting("six", FamilyPolicy::Single(V6)));
    assert_eq!(world.got("1"), "192.0.2.254");
    assert_eq!(world.got("2"), "192.0.3.1");
    assert_eq!(world.got("six"), "2001:db8::");
    let avoided = "\"192.0.3.0\" is not allowed in config: pool a has avoidBuggyIPs: true";
    assert_eq!(world.got("exact"), avoided);
}

#[test]
fn a_request_that_cannot_be_met_says_why() {
    let mut world = World::with([
        pool("a", &["192.0.2.0/30", "2001:db8::/64"]),
        pool("b", &["198.51.100.0/30"]),
    ]);
    world.add(asking_for("nowhere", &["203.0.113.1"])).add(asking_for("six", &["2001:db8::1"]));
    world.add(Service {
        requested_pools: vec!["b".to_owned()],
        ..asking_for("mixed", &["192.0.2.1"])
    });
    world.add(asking_for("twice", &["192.0.2.1", "192.0.2.2"]));
    world.add(Service {
        families: FamilyPolicy::RequireDual(V4),
        ..asking_for("half", &["192.0.2.1"])
    });
    world.add(asking_for("owner", &["192.0.2.3"])).add(asking_for("second", &["192.0.2.3"]));
    let nowhere = "\"203.0.113.1\" is not allowed in config: it is in no IPAddressPool";
    assert_eq!(world.got("nowhere"), nowhere);
    assert_eq!(
        world.got("six"),
        "requested loadBalancer IP(s) 2001:db8::1 does not match the ipFamily of the service: it \
         wants one IPv4 address"
    );
    assert_eq!(
        world.got("mixed"),
        "requested loadBalancer IP(s) \"192.0.2.1\" not compatible with requested address pool b: \
         the address is in pool a"
    );
    assert!(world.got("twice").contains("does not match the ipFamily"));
    assert!(world.got("half").contains("it wants one address of each family"));
    assert_eq!(
        world.got("second"),
        "can't change sharing key for \"default/second\", address also in use by default/owner: \
         192.0.2.3, and the two services do not have the same sharing key"
    );
}

#[test]
fn whoever_names_an_address_comes_before_those_who_take_any() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("a-any")).add(asking_for("b-exact", &["192.0.2.0"]));
    assert_eq!(world.got("b-exact"), "192.0.2.0");
    assert_eq!(world.got("a-any"), "192.0.2.1");
}

#[test]
fn a_healthy_service_never_moves_because_of_another() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("zoo"));
    assert_eq!(world.got("zoo"), "192.0.2.0");
    world.add(service("ant")).add(asking_for("bee", &["192.0.2.0"]));
    assert_eq!(world.got("ant"), "192.0.2.1");
    assert!(world.got("bee").contains("also in use by default/zoo"));
    assert_eq!(world.got("zoo"), "192.0.2.0");
}

#[test]
fn services_with_one_key_share_an_address_unless_their_ports_meet() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(sharing("http", 80)).add(sharing("https", 443)).add(sharing("other-http", 80));
    world.add(service("alone"));
    assert_eq!(world.got("http"), "192.0.2.1");
    assert_eq!(world.got("https"), "192.0.2.1");
    assert_eq!(world.got("other-http"), "192.0.2.2");
    assert_eq!(world.got("alone"), "192.0.2.0");
    world.add(Service { requested_addresses: vec![ip("192.0.2.1")], ..sharing("third-http", 80) });
    let taken = "port TCP/80 is already in use on \"192.0.2.1\": by default/http";
    assert_eq!(world.got("third-http"), taken);
}

#[test]
fn the_lowest_address_with_room_is_shared_whatever_is_taken_before_it() {
    let with = |called, port, address: &str| Service {
        requested_addresses: vec![ip(address)],
        ..sharing(called, port)
    };
    let mut world = World::with([pool("a", &["192.0.2.0/28"])]);
    world.add(with("a", 80, "192.0.2.0")).add(with("b", 80, "192.0.2.1"));
    world.add(with("c", 443, "192.0.2.2")).add(with("d", 80, "192.0.2.3"));
    world.add(with("e", 443, "192.0.2.4"));
    assert_eq!(world.got("e"), "192.0.2.4");
    let ports = [80, 443].map(|port| ServicePort { protocol: "TCP".to_owned(), port });
    world.add(Service { ports: ports.to_vec(), ..sharing("both", 0) });
    assert_eq!(world.got("both"), "192.0.2.5");
    world.add(sharing("f", 80)).add(sharing("g", 80)).add(sharing("h", 80));
    assert_eq!([world.got("f"), world.got("g")], ["192.0.2.2", "192.0.2.4"]);
    assert_eq!(world.got("h"), "192.0.2.6");
    // Capacity released by others is found, too.
    world.remove("b").remove("both");
    world.add(sharing("i", 443)).add(sharing("j", 53));
    assert_eq!([world.got("i"), world.got("j")], ["192.0.2.0", "192.0.2.0"]);
    world.add(Service { traffic_policy: TrafficPolicy::Local, ..sharing("local", 1) });
    assert_eq!(world.got("local"), "192.0.2.7", "with another backend");
}

#[test]
fn an_empty_sharing_key_shares_with_nobody() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    let empty =
        |called, port| Service { sharing_key: Some(String::new()), ..sharing(called, port) };
    world.add(empty("one", 80)).add(empty("two", 443));
    assert_eq!(world.got("one"), "192.0.2.0");
    assert_eq!(world.got("two"), "192.0.2.1");
}

#[test]
fn with_local_policy_those_who_share_need_the_same_endpoints() {
    let local = |called, port, selector: &str| Service {
        traffic_policy: TrafficPolicy::Local,
        selector: selector.to_owned(),
        requested_addresses: vec![ip("192.0.2.0")],
        ..sharing(called, port)
    };
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(local("one", 1, "app=x")).add(local("two", 2, "app=x")).add(local("zed", 3, "app=y"));
    assert_eq!(world.got("one"), "192.0.2.0");
    assert_eq!(world.got("two"), "192.0.2.0");
    assert!(world.got("zed").contains("the same selector"), "{}", world.got("zed"));
}

#[test]
fn whoever_changes_its_ports_makes_way_even_if_it_is_older() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(sharing("a-old", 80)).add(sharing("b-young", 443));
    assert_eq!(world.got("b-young"), "192.0.2.0");
    world.add(sharing("a-old", 443));
    assert_eq!(world.got("a-old"), "192.0.2.1");
    assert_eq!(world.got("b-young"), "192.0.2.0");
}

#[test]
fn two_who_swap_their_ports_stay_together() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(sharing("a", 80)).add(sharing("b", 443)).converge();
    world.add(sharing("a", 443)).add(sharing("b", 80));
    assert_eq!(world.got("a"), "192.0.2.0");
    assert_eq!(world.got("b"), "192.0.2.0");
}

#[test]
fn the_only_user_of_an_address_may_change_its_key_in_place() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(sharing("a", 80)).converge();
    world.add(Service { sharing_key: Some("new".to_owned()), ..sharing("a", 80) });
    assert_eq!(world.got("a"), "192.0.2.0");
    world.add(Service { sharing_key: Some("new".to_owned()), ..sharing("b", 81) });
    assert_eq!(world.got("b"), "192.0.2.0");
}

#[test]
fn a_changed_request_moves_the_service_or_leaves_it_with_nothing() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"]), pool("b", &["198.51.100.0/30"])]);
    world.add(service("x"));
    assert_eq!(world.got("x"), "192.0.2.0");
    world.add(from_pool("x", "b"));
    assert_eq!(world.got("x"), "198.51.100.0");
    world.add(asking_for("x", &["192.0.2.3"]));
    assert_eq!(world.got("x"), "192.0.2.3");
    world.add(asking_for("x", &["203.0.113.1"]));
    assert!(world.got("x").contains("is in no IPAddressPool"));
    world.add(asking_for("y", &["192.0.2.3"])).told();
    assert_eq!(world.got("y"), "192.0.2.3");
}

#[test]
fn two_services_may_swap_the_addresses_they_ask_for() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(asking_for("x", &["192.0.2.1"])).add(asking_for("y", &["192.0.2.2"])).converge();
    world.add(asking_for("x", &["192.0.2.2"])).add(asking_for("y", &["192.0.2.1"]));
    let text = "address 192.0.2.2 was released by default/y, and its withdrawal has not been sent \
                to every neighbor yet";
    assert_eq!(world.got("x"), text);
    world.told();
    assert_eq!(world.got("x"), "192.0.2.2");
    assert_eq!(world.got("y"), "192.0.2.1");
}

#[test]
fn a_request_that_is_withdrawn_leaves_the_address_where_it_is() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(asking_for("x", &["192.0.2.2"])).converge();
    world.add(service("x"));
    assert_eq!(world.got("x"), "192.0.2.2");
}

#[test]
fn an_address_that_no_pool_holds_any_more_is_given_up_for_another() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("x")).converge();
    world.pool(pool("a", &["198.51.100.0/30"]));
    assert_eq!(world.got("x"), "198.51.100.0");
    world.remove_pools();
    world.pool(pool("renamed", &["198.51.100.0/24"]));
    let outcome = world.converge().remove(&name("x")).unwrap();
    assert_eq!(outcome.addresses, [ip("198.51.100.0")]);
    assert_eq!(outcome.pool.as_deref(), Some("renamed"));
}

#[test]
fn without_any_pool_addresses_stay_but_are_not_announced() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("x")).add(service("y")).converge();
    world.remove_pools();
    world.restart();
    world.remove("y");
    world.add(service("z"));
    let outcomes = world.converge();
    let outcome = &outcomes[&name("x")];
    assert_eq!(outcome.addresses, [ip("192.0.2.0")]);
    assert_eq!(outcome.pool.as_deref(), Some("a"));
    assert_eq!(outcome.reason, Some(Reason::NoPools));
    assert!(outcomes[&name("z")].is_pending());
    world.pool(pool("a", &["192.0.2.0/30"]));
    let outcome = world.converge().remove(&name("x")).unwrap();
    assert_eq!(outcome.addresses, [ip("192.0.2.0")]);
    assert_eq!(outcome.reason, None);
}

#[test]
fn a_deleted_service_makes_room_once_neighbours_know() {
    let mut world = World::with([pool("a", &["192.0.2.0/32"])]);
    world.add(service("x")).add(service("y"));
    let full = "no available IPs: no pool has a free IPv4 address (tried a)";
    assert_eq!(world.got("y"), full);
    world.remove("x");
    assert_eq!(world.got("y"), full);
    world.told();
    assert_eq!(world.got("y"), "192.0.2.0");
}

#[test]
fn only_services_of_our_class_are_served() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    let classed = Service { load_balancer_class: Some("x".to_owned()), ..service("classed") };
    world.add(classed).add(service("plain"));
    assert_eq!(world.converge().into_keys().collect::<Vec<_>>(), [name("plain")]);
    let outcomes = from_scratch(&world.index, Some("x"));
    assert_eq!(outcomes.into_keys().collect::<Vec<_>>(), [name("classed")]);
}

#[test]
fn dual_stack_takes_both_from_one_pool_if_any_has_both() {
    let mut world = World::with([
        pool("a", &["192.0.2.0/30"]),
        pool("b", &["198.51.100.0/30", "2001:db8::/64"]),
    ]);
    world.add(wanting("x", FamilyPolicy::RequireDual(V6)));
    let outcome = world.converge().remove(&name("x")).unwrap();
    assert_eq!(
        outcome.addresses,
        [ip("198.51.100.0"), ip("2001:db8::")],
        "in the order of MetalLB"
    );
    assert_eq!(outcome.pool.as_deref(), Some("b"));
}

#[test]
fn dual_stack_takes_each_family_from_a_pool_of_its_own_only_if_it_names_both() {
    let mut world = World::with([pool("four", &["192.0.2.0/30"]), pool("six", &["2001:db8::/64"])]);
    world.add(wanting("x", FamilyPolicy::RequireDual(V4)));
    let text = "no available IPs: an IPv4 and an IPv6 address of one pool are needed, and the pools \
                that may be used (four, six) each hold only one family; to have them from two pools, \
                name both in the annotation fairway.dev/address-pools";
    assert_eq!(world.got("x"), text);
    for pools in [["four", "six"], ["six", "four"]] {
        world.add(from_two("x", pools, FamilyPolicy::RequireDual(V4)));
        let outcome = world.converge().remove(&name("x")).unwrap();
        assert_eq!(outcome.addresses, [ip("192.0.2.0"), ip("2001:db8::")]);
        assert_eq!(outcome.pool.as_deref(), Some("four,six"));
        assert_eq!(outcome.reason, None);
    }
    world.add(from_two("lost", ["four", "none"], FamilyPolicy::PreferDual(V4)));
    assert!(world.got("lost").starts_with("unknown pool \"none\""), "{}", world.got("lost"));
    world.add(wanting("x", FamilyPolicy::RequireDual(V4)));
    assert_eq!(world.got("x"), text, "the wish is gone, and so are the addresses");
}

#[test]
fn two_requested_addresses_are_of_one_pool_unless_both_pools_are_named() {
    let mut world = World::with([pool("four", &["192.0.2.0/30"]), pool("six", &["2001:db8::/64"])]);
    let asking = |service| Service {
        requested_addresses: vec![ip("2001:db8::1"), ip("192.0.2.1")],
        ..service
    };
    world.add(asking(wanting("x", FamilyPolicy::RequireDual(V4))));
    let text = "[\"2001:db8::1\" \"192.0.2.1\"] is not allowed in config: the first is in pool six, \
                the second in pool four; both must be in one pool, unless the annotation \
                fairway.dev/address-pools names both pools";
    assert_eq!(world.got("x"), text);
    world.add(asking(from_two("x", ["four", "six"], FamilyPolicy::RequireDual(V4))));
    assert_eq!(world.got("x"), "2001:db8::1 | 192.0.2.1");
}

#[test]
fn require_dual_waits_for_the_family_that_each_pool_lacks() {
    let small = |called, four: &str, six: &str| pool(called, &[four, six]);
    let mut world = World::with([
        small("a", "192.0.2.0/32", "2001:db8:a::/128"),
        small("b", "192.0.2.1/32", "2001:db8:b::/128"),
    ]);
    let six = |called, address| Service {
        families: FamilyPolicy::Single(V6),
        ..asking_for(called, &[address])
    };
    world.add(asking_for("a4", &["192.0.2.0"])).add(six("b6", "2001:db8:b::")).converge();
    world.add(wanting("x", FamilyPolicy::RequireDual(V4)));
    assert!(world.got("x").contains("no free address of one family is left"));
    world.remove("b6").converge();
    world.told();
    assert_eq!(world.got("x"), "192.0.2.1 | 2001:db8:b::");
    world.add(wanting("y", FamilyPolicy::RequireDual(V4))).converge();
    world.remove("a4").converge();
    world.told();
    assert_eq!(world.got("y"), "192.0.2.0 | 2001:db8:a::");
}

#[test]
fn prefer_dual_takes_what_there_is_and_the_rest_when_its_pool_has_it() {
    let mut world = World::with([pool("four", &["192.0.2.0/30"])]);
    world.add(wanting("x", FamilyPolicy::PreferDual(V6)));
    let text = "192.0.2.0 | PreferDualStack got only an IPv4 address: no available IPs: pool four \
                holds no IPv6 addresses";
    assert_eq!(world.got("x"), text);
    world.pool(pool("six", &["2001:db8::/64"]));
    assert_eq!(world.got("x"), text);
    world.add(from_two("x", ["four", "six"], FamilyPolicy::PreferDual(V6)));
    assert_eq!(world.got("x"), "192.0.2.0 | 2001:db8::");
    world.add(wanting("x", FamilyPolicy::PreferDual(V6)));
    world.pool(pool("four", &["192.0.2.0/30", "2001:db8:4::/64"]));
    // Of the two that it has, the first one stays.
    assert_eq!(world.got("x"), "192.0.2.0 | 2001:db8:4::");
}

#[test]
fn prefer_dual_keeps_its_one_address_when_its_pool_stops_being_automatic() {
    let mut world = World::with([pool("four", &["192.0.2.0/30"])]);
    world.add(wanting("x", FamilyPolicy::PreferDual(V4))).converge();
    world.pool(Pool { auto_assign: false, ..pool("four", &["192.0.2.0/30"]) });
    assert!(world.got("x").starts_with("192.0.2.0 | "), "{}", world.got("x"));
}

#[test]
fn require_dual_has_both_or_none() {
    let mut world = World::with([pool("four", &["192.0.2.0/32"])]);
    world.add(service("x")).converge();
    world.add(service("a-later")).add(wanting("x", FamilyPolicy::RequireDual(V4)));
    let text = "no available IPs: pool four holds no IPv6 addresses";
    assert_eq!(world.got("x"), text);
    world.told();
    assert_eq!(world.got("x"), text);
    assert_eq!(world.got("a-later"), "192.0.2.0");
}

#[test]
fn a_service_that_gives_up_dual_stack_keeps_the_other_address() {
    let mut world = World::with([pool("a", &["192.0.2.0/30", "2001:db8::/64"])]);
    world.add(service("0-first")).add(wanting("x", FamilyPolicy::RequireDual(V4))).converge();
    world.remove("0-first");
    world.add(wanting("x", FamilyPolicy::Single(V4)));
    assert_eq!(world.got("x"), "192.0.2.1");
}

#[test]
fn prefer_dual_may_name_one_address_and_is_told_so_every_time() {
    let mut world = World::with([pool("a", &["192.0.2.0/30", "2001:db8::/64"])]);
    let families = FamilyPolicy::PreferDual(V4);
    world.add(Service { families, ..asking_for("x", &["2001:db8::7"]) });
    let text = "2001:db8::7 | PreferDualStack got only 2001:db8::7: no address of the other \
                family is requested";
    assert_eq!(world.got("x"), text);
    assert_eq!(world.got("x"), text);
}

#[test]
fn a_restart_changes_nothing_and_keeps_the_order_of_age() {
    let mut world = World::with([pool("a", &["192.0.2.0/29"])]);
    world.add(service("m")).converge();
    world.add(service("b")).add(service("z")).converge();
    let before = world.converge();
    let assignments = world.allocator.memory().assignments;
    let names: Vec<_> = assignments.iter().map(|(name, _)| name.name.as_str()).collect();
    assert_eq!(names, ["m", "b", "z"]);
    world.restart();
    assert_eq!(world.converge(), before);
    assert_eq!(world.allocator.memory().assignments, assignments);
}

#[test]
fn what_moves_no_address_need_not_be_kept_again() {
    let mut world = World::with([pool("a", &["192.0.2.0/30"])]);
    world.add(service("a")).add(service("b")).converge();
    let mut is_kept_again = |change: fn(&mut World) -> &mut World| {
        change(&mut world);
        let changes = std::mem::take(&mut world.changes);
        world.allocator.converge(world.now, &world.index, &changes);
        !world.allocator.memory_change().is_empty()
    };
    assert!(!is_kept_again(|world| world));
    assert!(!is_kept_again(|world| world.add(Service { selector: "b".into(), ..service("a") })));
    assert!(is_kept_again(|world| world.remove("b")));
    assert!(is_kept_again(World::told));
    assert!(!is_kept_again(|world| world.wait(59)));
    assert!(is_kept_again(|world| world.wait(1)), "its former holder is not needed any more");
    assert!(is_kept_again(|world| world.add(service("c"))));
}

#[test]
fn of_two_restored_services_on_one_address_the_older_keeps_it() {
    let assigned = || Assignment { pool: "a".to_owned(), addresses: vec![ip("192.0.2.3")] };
    let mut world = World::with([pool("a", &["192.0.2.0/29"])]);
    world.add(service("a")).add(service("z"));
    let assignments = vec![(name("z"), assigned()), (name("a"), assigned())];
    world.allocator = Allocator::restore(None, Memory { assignments, ..Memory::default() });
    assert_eq!(world.got("z"), "192.0.2.3");
    assert_eq!(world.got("a"), "192.0.2.0");
    world.remove("z").add(asking_for("b", &["192.0.2.3"]));
    assert!(world.got("b").contains("was released by default/z"), "{}", world.got("b"));
    world.told();
    assert_eq!(world.got("b"), "192.0.2.3");
}

#[test]
fn a_pool_of_any_size_is_searched_at_once() {
    let mut world = World::with([pool("a", &["10.0.0.0/8", "2001:db8::/64"])]);
    for number in 0..20_000 {
        world.add(wanting(&format!("{number:05}"), FamilyPolicy::RequireDual(V4)));
    }
    let outcomes = world.converge();
    let last = &outcomes[&name("19999")];
    assert_eq!(last.addresses, [ip("10.0.78.31"), ip("2001:db8::4e1f")]);
}

#[test]
fn many_with_one_key_and_one_port_cost_no_more_than_others() {
    let mut world = World::with([pool("a", &["10.0.0.0/8"])]);
    for number in 0..10_000 {
        world.add(sharing(&format!("{number:05}"), 80));
    }
    world.add(sharing("other", 443));
    let outcomes = world.converge();
    assert_eq!(outcomes[&name("09999")].addresses, [ip("10.0.39.15")]);
    assert_eq!(outcomes[&name("other")].addresses, [ip("10.0.0.0")]);
}
