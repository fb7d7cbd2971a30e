//! What facts make of a snapshot, and what its queries return.

use super::*;
use crate::route::{NextHop, RouteKind};
use crate::simulated::{address, link, neighbour, route};

fn machine(facts: impl IntoIterator<Item = Fact>) -> Machine {
    facts.into_iter().collect()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn vrf(index: u32, table: u32) -> Link {
    Link { kind: Some("vrf".to_owned()), vrf_table: Some(table), ..link(index) }
}

fn port_of(master: u32, index: u32) -> Link {
    Link { master: Some(master), ..link(index) }
}

#[test]
fn a_vrf_has_its_ports_and_its_device() {
    let bridge = Link { kind: Some("bridge".to_owned()), ..link(20) };
    let links = [link(1), vrf(10, 1010), port_of(10, 2), bridge, port_of(20, 3), port_of(99, 4)];
    let machine = machine(links.into_iter().map(Fact::Link));
    let vrf_of = |index| machine.vrf_of(index).map(|it| it.index);
    assert_eq!([vrf_of(2), vrf_of(10), vrf_of(1)], [Some(10), Some(10), None]);
    assert_eq!([vrf_of(3), vrf_of(4), vrf_of(77)], [None; 3], "a bridge is no VRF");
    let links_in = |vrf| machine.links_in(vrf).map(|it| it.index).collect::<Vec<_>>();
    assert_eq!(links_in(Some(10)), [2, 10]);
    assert_eq!(links_in(None), [1, 3, 4, 20]);
    assert!(
        machine.follows_table(254) && machine.follows_table(1010) && !machine.follows_table(255)
    );
}

#[test]
fn an_interface_is_found_by_each_of_its_names() {
    let long = Link { alternative_names: vec!["uplink".to_owned(), "eth2".to_owned()], ..link(1) };
    let machine = machine([long, link(2)].map(Fact::Link));
    let called = |name| machine.link_called(name).map(|it| it.index);
    assert_eq!([called("eth1"), called("uplink"), called("eth2")], [Some(1), Some(1), Some(2)]);
    assert_eq!(called("eth3"), None);
    assert_eq!(machine.link_named("uplink"), None);
}

#[test]
fn the_first_global_address_stays_when_others_come() {
    let old = Address { created_centiseconds: 5, ..address(1, "2001:db8::9/64") };
    let new = Address { created_centiseconds: 6, ..address(1, "2001:db8::1/64") };
    let second = Address { is_secondary_or_temporary: true, ..address(1, "10.0.0.2/24") };
    let facts = [
        second,
        address(1, "169.254.0.1/16"),
        address(1, "10.0.0.1/24"),
        address(1, "10.1.0.1/24"),
        new,
        address(1, "fe80::1/64"),
        old,
    ];
    let machine = machine(facts.map(Fact::Address));
    assert_eq!(machine.global_ipv4(1), Some(ip("10.0.0.1")));
    assert_eq!(machine.global_ipv6(1), Some(ip("2001:db8::9")));
    assert_eq!(machine.global_ipv4(2), None);
    let order: Vec<String> =
        machine.addresses_of(1).iter().map(|it| it.address.to_string()).collect();
    let expected = [
        "169.254.0.1",
        "10.0.0.1",
        "10.1.0.1",
        "10.0.0.2",
        "fe80::1",
        "2001:db8::9",
        "2001:db8::1",
    ];
    assert_eq!(order, expected);
}

#[test]
fn an_address_that_is_not_settled_is_not_offered_and_its_network_is_on_the_link() {
    let settled = address(1, "2001:db8::1/64");
    let unsettled = [
        Address { is_tentative: true, ..settled.clone() },
        Address { has_failed_detection: true, ..settled.clone() },
        Address { is_deprecated: true, ..settled.clone() },
        Address { is_secondary_or_temporary: true, ..settled.clone() },
    ];
    for address in unsettled {
        let machine = machine([Fact::Link(link(1)), Fact::Address(address.clone())]);
        assert_eq!(machine.global_ipv6(1), None, "{address:?}");
        assert!(machine.is_on_link(ip("2001:db8::9"), None), "{address:?}");
    }
    let fe80 = address(1, "fe80::1/64");
    let tentative = Address { is_tentative: true, ..address(1, "fe80::2/64") };
    let machine = machine([fe80, tentative, settled].map(Fact::Address));
    assert_eq!(machine.link_local(1).collect::<Vec<_>>(), ["fe80::1".parse::<Ipv6Addr>().unwrap()]);
}

#[test]
fn the_networks_of_a_vrf_are_its_own() {
    let tunnel = Address { peer: Some(ip("10.9.0.2")), ..address(1, "10.0.0.1/32") };
    let facts = [
        Fact::Link(link(1)),
        Fact::Link(vrf(10, 1010)),
        Fact::Link(port_of(10, 2)),
        Fact::Address(tunnel),
        Fact::Address(address(2, "10.7.0.1/24")),
    ];
    let machine = machine(facts);
    let on_link = |text, vrf| machine.is_on_link(ip(text), vrf);
    assert!(on_link("10.9.0.2", None) && !on_link("10.9.0.3", None) && !on_link("10.0.0.1", None));
    assert!(on_link("10.7.0.9", Some(10)) && !on_link("10.7.0.9", None));
}

#[test]
fn an_interface_takes_along_what_is_on_it() {
    let facts = [
        Fact::Link(link(1)),
        Fact::Link(link(2)),
        Fact::Address(address(1, "10.0.0.1/24")),
        Fact::Address(address(2, "10.0.1.1/24")),
        Fact::Neighbour(neighbour(1, "10.0.0.9")),
        Fact::Neighbour(neighbour(1, "fe80::9")),
        Fact::Neighbour(neighbour(2, "10.0.1.9")),
    ];
    let mut machine = machine(facts);
    let applied = machine.apply(&Fact::LinkGone(1));
    let gone = [Kind::Link, Kind::Address, Kind::Neighbour].into_iter().collect();
    assert_eq!((applied.changed, applied.unclear), (gone, Kind::Route.into()));
    assert_eq!(machine.addresses().map(|it| it.index).collect::<Vec<_>>(), [2]);
    assert_eq!(machine.neighbours().map(|it| it.index).collect::<Vec<_>>(), [2]);
    assert_eq!(machine.apply(&Fact::LinkGone(1)), Applied::default());
}

#[test]
fn what_is_said_twice_changes_nothing() {
    let facts = [
        Fact::Link(link(1)),
        Fact::Address(address(1, "10.0.0.1/24")),
        Fact::Route { route: route("203.0.113.0/24", 1, Some("10.0.0.9")), replaces: false },
        Fact::Neighbour(neighbour(1, "10.0.0.9")),
    ];
    let mut machine = machine(facts.clone());
    let before = machine.clone();
    for fact in &facts {
        assert_eq!(machine.apply(fact), Applied::default(), "{fact:?}");
    }
    assert_eq!(machine.differences(&before), Kinds::NONE);
    assert!(Arc::ptr_eq(&machine.links, &before.links), "readers share the table");
}

#[test]
fn a_route_takes_the_place_of_one_with_other_ways() {
    let old = route("203.0.113.0/24", 1, Some("10.0.0.9"));
    let new = route("203.0.113.0/24", 1, Some("10.0.0.8"));
    let metric = Route { metric: 5, ..old.clone() };
    let add = |route: &Route, replaces| Fact::Route { route: route.clone(), replaces };
    let mut machine = machine([add(&old, false), add(&metric, false)]);
    let applied = machine.apply(&add(&new, true));
    assert_eq!((applied.changed, applied.unclear), (Kind::Route.into(), Kinds::NONE));
    assert_eq!(machine.routes().collect::<Vec<_>>(), [&new, &metric]);
    // IPv4 keeps routes that were appended beside each other; no message tells which of them is replaced.
    assert_eq!(machine.apply(&add(&old, false)).unclear, Kinds::NONE);
    assert_eq!(machine.routes().count(), 3);
    let third = route("203.0.113.0/24", 1, Some("10.0.0.7"));
    assert_eq!(machine.apply(&add(&third, true)).unclear, Kind::Route.into());
    assert_eq!(machine.apply(&Fact::RouteGone(old)).unclear, Kind::Route.into());
    assert_eq!(machine.apply(&Fact::RouteGone(metric)).changed, Kind::Route.into());
}

#[test]
fn ways_that_ipv6_adds_to_a_route_are_looked_at_again() {
    let one = route("2001:db8::/32", 1, Some("fe80::1"));
    let mut both = one.clone();
    both.next_hops.push(NextHop { index: Some(2), gateway: None, weight: 1 });
    let mut machine = machine([Fact::Route { route: one.clone(), replaces: false }]);
    let applied = machine.apply(&Fact::Route { route: both.clone(), replaces: false });
    assert_eq!(applied.unclear, Kind::Route.into());
    assert_eq!(machine.routes().collect::<Vec<_>>(), [&both]);
    // One way that goes is reported as a route with this way.
    assert_eq!(machine.apply(&Fact::RouteGone(one)).unclear, Kind::Route.into());
    let blackhole = Route { kind: RouteKind::Blackhole, next_hops: Vec::new(), metric: 9, ..both };
    assert_eq!(
        machine.apply(&Fact::Route { route: blackhole, replaces: false }).unclear,
        Kinds::NONE
    );
}

#[test]
fn what_vanishes_without_a_message_is_known_to_be_unclear() {
    let mut machine = machine([Fact::Link(link(1)), Fact::Address(address(1, "10.0.0.1/24"))]);
    let no_carrier = Link { has_carrier: false, ..link(1) };
    assert_eq!(machine.apply(&Fact::Link(no_carrier)).unclear, Kinds::NONE);
    let down = Link { is_up: false, has_carrier: false, ..link(1) };
    assert_eq!(machine.apply(&Fact::Link(down)).unclear, Kind::Route.into());
    let gone = Fact::AddressGone(address(1, "10.0.0.1/24"));
    assert_eq!(machine.apply(&gone).unclear, Kind::Route.into());
    assert_eq!(machine.apply(&Fact::Link(vrf(10, 1010))).unclear, Kind::Route.into());
}

#[test]
fn a_table_that_is_full_says_that_it_is_only_a_part() {
    let mut machine = Machine::default();
    let nth = |number: u32| {
        Fact::Neighbour(neighbour(
            1,
            &format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255),
        ))
    };
    for number in 0..16_384 {
        machine.apply(&nth(number));
    }
    assert_eq!(machine.truncated(), Kinds::NONE);
    machine.apply(&nth(20_000));
    assert_eq!(
        (machine.truncated(), machine.neighbours().count()),
        (Kind::Neighbour.into(), 16_384)
    );
    // A known entry can still change and go.
    assert_eq!(
        machine.apply(&Fact::NeighbourGone(1, ip("10.0.0.7"))).changed,
        Kind::Neighbour.into()
    );
    assert_eq!(machine.truncated(), Kind::Neighbour.into(), "until the table is read again");
    machine.replace(Kind::Neighbour, Machine::default());
    assert_eq!(machine.truncated(), Kinds::NONE);
}

#[test]
fn addresses_are_counted_as_they_come_and_go() {
    let mut machine = machine([
        Fact::Link(link(1)),
        Fact::Address(address(1, "10.0.0.1/24")),
        Fact::Address(address(1, "10.0.0.1/16")),
        Fact::Address(address(1, "2001:db8::1/64")),
        Fact::Address(address(1, "2001:db8::1/48")),
        Fact::Address(address(2, "10.0.1.1/24")),
    ]);
    assert_eq!(machine.address_count, 4, "an IPv6 address is on an interface once");
    machine.apply(&Fact::AddressGone(address(1, "10.0.0.1/16")));
    machine.apply(&Fact::AddressGone(address(1, "10.0.0.1/8")));
    assert_eq!(machine.address_count, 3);
    machine.apply(&Fact::LinkGone(1));
    assert_eq!((machine.address_count, machine.addresses().count()), (1, 1));
}
