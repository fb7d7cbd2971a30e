//! Messages of the kernel, and what is read out of them.

mod recorded;

use netlink_packet_core::{NLMSG_DONE, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, WirelessEvent};

use super::*;
use crate::simulated::{
    Random, address, address_message, bytes, event, link, link_message, neighbour,
    neighbour_message, route, route_message,
};

fn facts(datagram: &[u8]) -> Vec<Fact> {
    messages(datagram).filter_map(|message| message.unwrap().1).collect()
}

#[test]
fn a_link_is_read_with_its_kind_and_its_place() {
    let mut vrf = link(5);
    vrf.kind = Some("vrf".to_owned());
    vrf.vrf_table = Some(1010);
    let mut port = link(6);
    port.master = Some(5);
    port.alternative_names = vec!["uplink".to_owned(), "to-the-spine-switch-1".to_owned()];
    port.has_carrier = false;
    let mut hardware = link(7);
    hardware.kind = None;
    hardware.mac = None;
    for link in [vrf, port, hardware] {
        let datagram = event(RouteNetlinkMessage::NewLink(link_message(&link)), 0);
        assert_eq!(facts(&datagram), [Fact::Link(link.clone())]);
        let datagram = event(RouteNetlinkMessage::DelLink(link_message(&link)), 0);
        assert_eq!(facts(&datagram), [Fact::LinkGone(link.index)]);
    }
}

#[test]
fn a_bridge_port_that_leaves_is_no_deleted_link() {
    let mut message = link_message(&link(5));
    message.header.interface_family = AddressFamily::Bridge;
    for message in
        [RouteNetlinkMessage::NewLink(message.clone()), RouteNetlinkMessage::DelLink(message)]
    {
        assert_eq!(facts(&event(message, 0)), []);
    }
}

#[test]
fn an_event_of_a_wireless_driver_changes_no_link() {
    let mut message = link_message(&link(5));
    let wireless = WirelessEvent::parse(&[0_u8; 8][..]);
    let Ok(wireless) = wireless else {
        panic!("a wireless event is any bytes: {wireless:?}");
    };
    message.attributes =
        vec![LinkAttribute::IfName("wlan0".to_owned()), LinkAttribute::Wireless(wireless)];
    assert_eq!(facts(&event(RouteNetlinkMessage::NewLink(message), 0)), []);
}

#[test]
fn an_address_is_read_with_its_other_end_and_its_state() {
    let mut tunnel = address(3, "10.0.0.1/32");
    tunnel.peer = Some([10, 9, 0, 2].into());
    let mut tentative = address(3, "2001:db8::1/64");
    (tentative.is_tentative, tentative.created_centiseconds) = (true, 77);
    let mut failed = address(3, "fe80::1/64");
    (failed.has_failed_detection, failed.scope) = (true, 253);
    let mut temporary = address(3, "2001:db8::2/64");
    (temporary.is_secondary_or_temporary, temporary.is_deprecated) = (true, true);
    let mut ipv6_tunnel = address(3, "2001:db8::3/128");
    ipv6_tunnel.peer = "2001:db8::4".parse().ok();
    for address in [tunnel, tentative, failed, temporary, ipv6_tunnel] {
        let datagram = event(RouteNetlinkMessage::NewAddress(address_message(&address)), 0);
        assert_eq!(facts(&datagram), [Fact::Address(address.clone())]);
        let datagram = event(RouteNetlinkMessage::DelAddress(address_message(&address)), 0);
        assert_eq!(facts(&datagram), [Fact::AddressGone(address)]);
    }
}

#[test]
fn a_route_is_read_with_all_its_ways() {
    let mut several = route("203.0.113.0/24", 2, Some("10.0.0.1"));
    several.next_hops.push(NextHop {
        index: Some(3),
        gateway: "fe80::1".parse().ok(),
        weight: 256,
    });
    several.table = 100_000;
    several.metric = 20;
    several.source = "10.0.0.9".parse().ok();
    let mut dropped = route("2001:db8::/32", 1, None);
    (dropped.kind, dropped.next_hops) = (RouteKind::Blackhole, Vec::new());
    let default = route("0.0.0.0/0", 2, Some("10.0.0.1"));
    let other_family = route("198.51.100.0/24", 2, Some("fe80::1"));
    for route in [several, dropped, default, other_family] {
        for (flags, replaces) in [(0, false), (NLM_F_REPLACE, true)] {
            let datagram = event(RouteNetlinkMessage::NewRoute(route_message(&route)), flags);
            assert_eq!(facts(&datagram), [Fact::Route { route: route.clone(), replaces }]);
        }
        let datagram = event(RouteNetlinkMessage::DelRoute(route_message(&route)), 0);
        assert_eq!(facts(&datagram), [Fact::RouteGone(route)]);
    }
}

#[test]
fn own_addresses_and_clones_are_no_routes() {
    let mut local = route_message(&route("10.0.0.1/32", 1, None));
    local.header.kind = RouteType::Local;
    let mut clone = route_message(&route("2001:db8::1/128", 1, None));
    clone.header.flags = RouteFlags::Cloned;
    for message in [local, clone] {
        assert_eq!(facts(&event(RouteNetlinkMessage::NewRoute(message), 0)), []);
    }
}

#[test]
fn a_neighbour_is_read_while_it_is_known() {
    let mut router = neighbour(4, "fe80::9");
    router.is_router = true;
    let failed = Neighbour { mac: None, state: NeighbourState::Failed, ..neighbour(4, "10.0.0.9") };
    for neighbour in [router, failed] {
        let message = neighbour_message(&neighbour);
        let datagram = event(RouteNetlinkMessage::NewNeighbour(message.clone()), 0);
        assert_eq!(facts(&datagram), [Fact::Neighbour(neighbour.clone())]);
        let gone = [Fact::NeighbourGone(4, neighbour.address)];
        let datagram = event(RouteNetlinkMessage::DelNeighbour(message.clone()), 0);
        assert_eq!(facts(&datagram), gone);
        let mut unresolved = message;
        unresolved.header.state = KernelState::Incomplete;
        let datagram = event(RouteNetlinkMessage::NewNeighbour(unresolved), 0);
        assert_eq!(facts(&datagram), gone);
    }
    let mut of_a_bridge = neighbour_message(&neighbour(4, "10.0.0.9"));
    of_a_bridge.header.family = AddressFamily::Bridge;
    assert_eq!(facts(&event(RouteNetlinkMessage::NewNeighbour(of_a_bridge), 0)), []);
}

fn recorded(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn recorded_messages_are_read() {
    let link = Link {
        name: "e0".to_owned(),
        mac: Some([0x66, 0xf8, 0x82, 0x17, 0xa7, 0xad]),
        alternative_names: vec!["to-the-spine".to_owned()],
        ..link(3)
    };
    assert_eq!(facts(&recorded(recorded::LINK)), [Fact::Link(link)]);
    let address = Address {
        peer: "10.9.0.2".parse().ok(),
        created_centiseconds: 209_973,
        ..address(3, "10.0.0.1/32")
    };
    assert_eq!(facts(&recorded(recorded::ADDRESS)), [Fact::Address(address)]);
    let way = |index, gateway: Option<&str>, weight| NextHop {
        index: Some(index),
        gateway: gateway.map(|it| it.parse().unwrap()),
        weight,
    };
    let next_hops = vec![way(3, Some("10.9.0.2"), 3), way(2, None, 1)];
    let route = Route { protocol: 3, next_hops, ..route("203.0.113.0/24", 3, None) };
    assert_eq!(facts(&recorded(recorded::ROUTE)), [Fact::Route { route, replaces: false }]);
    let neighbour =
        Neighbour { state: NeighbourState::Permanent, is_router: true, ..neighbour(3, "fe80::9") };
    assert_eq!(facts(&recorded(recorded::NEIGHBOUR)), [Fact::Neighbour(neighbour)]);
}

#[test]
fn an_attribute_that_does_not_parse_costs_nothing_else() {
    let whole = recorded(recorded::ADDRESS);
    let mut message = whole.clone();
    // An MTU-like attribute of an unknown kind, and an address of five bytes.
    message.extend([8, 0, 0xEE, 0x3F, 1, 2, 3, 4, 9, 0, 2, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
    message[0] = u8::try_from(message.len()).unwrap();
    assert_eq!(facts(&message), facts(&whole));
    assert_eq!(facts(&message).len(), 1);
}

#[test]
fn a_datagram_that_is_cut_off_says_so() {
    let one = recorded(recorded::ADDRESS);
    let whole = one.repeat(2);
    assert_eq!(facts(&whole).len(), 2);
    for length in one.len() + 1..whole.len() {
        let read: Vec<_> = messages(&whole[..length]).collect();
        assert_eq!(read.len(), 2, "{length}");
        assert!(read[0].is_ok() && read[1].is_err(), "{length}");
    }
}

#[test]
fn the_end_and_the_refusal_of_a_list_are_read() {
    let mut done = vec![20, 0, 0, 0, 3, 0, 2, 0, 9, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(done[4], u8::try_from(NLMSG_DONE).unwrap());
    done.extend((-4_i32).to_ne_bytes());
    let envelope = Envelope { sequence: 9, port: 1, is_interrupted: false };
    let read: Vec<_> = messages(&done).map(Result::unwrap).collect();
    assert_eq!(read, [(envelope, Some(Fact::Done { code: -4 }))]);
    let mut refused = vec![36, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0];
    refused.extend((-16_i32).to_ne_bytes());
    refused.extend([0; 16]);
    assert_eq!(facts(&refused), [Fact::Refused { code: -16 }]);
    let noop = bytes(NetlinkPayload::Noop, 0, 9, 1);
    assert_eq!(facts(&noop), []);
}

/// Bytes that no kernel sends cost a fact, and nothing else.
#[test]
fn mutated_messages_are_read_without_a_panic() {
    let several = Route {
        next_hops: vec![NextHop { index: Some(2), gateway: None, weight: 1 }; 3],
        ..route("203.0.113.0/24", 2, Some("10.0.0.1"))
    };
    let vrf = Link { kind: Some("vrf".to_owned()), vrf_table: Some(9), ..link(3) };
    let named = Link { alternative_names: vec!["uplink".to_owned()], ..link(4) };
    let corpus = [
        event(RouteNetlinkMessage::NewLink(link_message(&vrf)), 0),
        event(RouteNetlinkMessage::NewLink(link_message(&named)), 0),
        event(RouteNetlinkMessage::NewAddress(address_message(&address(3, "2001:db8::1/64"))), 0),
        event(RouteNetlinkMessage::NewRoute(route_message(&several)), 0),
        event(RouteNetlinkMessage::NewRoute(route_message(&route("::/0", 2, Some("fe80::1")))), 0),
        event(RouteNetlinkMessage::NewNeighbour(neighbour_message(&neighbour(3, "fe80::9"))), 0),
    ];
    let mut random = Random(7);
    let mut without_fact = 0;
    for _ in 0..200_000 {
        let which = usize::try_from(random.below(6)).unwrap();
        let mut message = corpus[which].clone();
        for _ in 0..=random.below(4) {
            let length = u32::try_from(message.len()).unwrap();
            let place = usize::try_from(random.below(length)).unwrap();
            message[place] = match random.below(4) {
                0 => 0,
                1 => 255,
                2 => message[place].wrapping_add(1),
                _ => u8::try_from(random.below(256)).unwrap(),
            };
        }
        if random.one_in(4) {
            let length = u32::try_from(message.len()).unwrap();
            message.truncate(usize::try_from(random.below(length)).unwrap());
        }
        without_fact += u32::from(messages(&message).all(|it| !matches!(it, Ok((_, Some(_))))));
    }
    assert!(without_fact > 10_000, "{without_fact}");
}
