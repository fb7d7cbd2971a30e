//! With which attributes do our own routes leave?

use super::*;

fn route(prefix: &str, attributes: RouteAttributes) -> DesiredRoute {
    DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::default(),
        attributes: Arc::new(attributes),
    }
}

fn next_hops() -> LocalNextHops {
    LocalNextHops {
        ipv4: Some([192, 0, 2, 1].into()),
        ipv6: Some("2001:db8::1".parse().unwrap()),
        ipv6_link_local: None,
    }
}

/// Towards an external peer, or towards one in our own AS.
fn exporter(kind: PeerKind) -> Exporter {
    let mut config = PeerConfig::example(1);
    if kind == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    Exporter::new(&config, FamilySet::BOTH, next_hops())
}

//= RFC 4271 §5.1.5 MUST NOT: LOCAL_PREF is sent to external peers.
//+ RFC 4271 §5.1.5: LOCAL_PREF is sent to internal peers.
//= RFC 4760 §3 MUST: MP_REACH_NLRI to an internal peer comes with LOCAL_PREF.
#[test]
fn local_pref_stays_inside_the_as() {
    for prefix in ["198.51.100.1/32", "2001:db8:1::1/128"] {
        for (given, sent) in [(None, 100), (Some(0), 0), (Some(250), 250)] {
            let attributes = RouteAttributes { local_pref: given, ..Default::default() };
            let route = route(prefix, attributes);
            let external = exporter(PeerKind::External).originate(&route).unwrap();
            assert_eq!(external.local_pref, None);
            let internal = exporter(PeerKind::Internal).originate(&route).unwrap();
            assert_eq!(internal.local_pref, Some(sent));
        }
    }
}

//+ RFC 4271 §5.1.2: the originator is the only AS in the path that an external peer is told.
//+ RFC 4271 §5.1.2: an internal peer is told our own routes with an empty AS_PATH.
//= RFC 4271 §5.1.3 MUST NOT: our own route is told with an address of the peer as next hop.
#[test]
fn our_routes_begin_with_us_and_lead_to_us() {
    let route = route("198.51.100.1/32", RouteAttributes::default());
    let external = exporter(PeerKind::External).originate(&route).unwrap();
    assert_eq!(external.as_path, AsPath::sequence(vec![65_001]));
    let internal = exporter(PeerKind::Internal).originate(&route).unwrap();
    assert_eq!(internal.as_path, AsPath::default());
    for attributes in [external, internal] {
        assert_eq!(attributes.next_hop, NextHop::Ipv4([192, 0, 2, 1].into()));
    }
}

//= RFC 9774 §3 MUST NOT: a route of ours is told with an AS_SET in its path.
#[test]
fn our_paths_are_sequences() {
    let route = route("198.51.100.1/32", RouteAttributes::default());
    for kind in [PeerKind::External, PeerKind::Internal] {
        let exported = exporter(kind).originate(&route).unwrap();
        let sets = exported.as_path.0.iter();
        let is_set = |it: &&AsPathSegment| matches!(it, AsPathSegment::Set(_));
        assert_eq!(sets.filter(is_set).count(), 0);
    }
}

#[test]
fn a_route_that_a_session_cannot_carry_is_held_back_with_its_reason() {
    let ipv6 = route("2001:db8:1::1/128", RouteAttributes::default());
    let config = PeerConfig::example(1);
    let ipv4_only = FamilySet::only(AddressFamily::Ipv4Unicast);
    let refused = Exporter::new(&config, ipv4_only, next_hops()).originate(&ipv6);
    assert_eq!(refused, Err(Ineligible::Family(AddressFamily::Ipv6Unicast)));
    let nowhere = LocalNextHops { ipv6: None, ..next_hops() };
    let refused = Exporter::new(&config, FamilySet::BOTH, nowhere).originate(&ipv6);
    assert_eq!(refused, Err(Ineligible::NextHop(AddressFamily::Ipv6Unicast)));
}

#[test]
fn communities_go_to_both_kinds_of_peers() {
    let communities = vec![Community(0x0001_0002), Community(0xFFFF_FF01)];
    let attributes = RouteAttributes { communities: communities.clone(), ..Default::default() };
    let route = route("198.51.100.1/32", attributes);
    for kind in [PeerKind::External, PeerKind::Internal] {
        assert_eq!(exporter(kind).originate(&route).unwrap().communities, communities);
    }
}
