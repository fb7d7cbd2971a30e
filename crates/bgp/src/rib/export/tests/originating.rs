//! Which attributes do our own routes have?

use std::net::IpAddr;

use super::*;
use fairway_ground::LinkBandwidth;

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
        ..LocalNextHops::default()
    }
}

/// The next hops of an IPv4 and of an IPv6 route of ours.
fn told(chosen: ChosenNextHops, next_hops: LocalNextHops) -> [Result<NextHop, Ineligible>; 2] {
    let config = PeerConfig { next_hops: chosen, ..PeerConfig::example(1) };
    let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops, DrainState::InService);
    ["198.51.100.1/32", "2001:db8:1::1/128"]
        .map(|prefix| Ok(exporter.originate(&route(prefix, RouteAttributes::default()))?.next_hop))
}

#[test]
fn a_session_over_ipv6_tells_both_families_its_ipv6_next_hop_where_that_was_agreed_on() {
    let ipv6 = Ok(NextHop::ipv6("2001:db8::1".parse().unwrap(), None));
    let agreed = LocalNextHops { extended: true, over_ipv6: true, ..next_hops() };
    assert_eq!(told(ChosenNextHops::default(), agreed), [ipv6, ipv6]);
    let not_agreed = LocalNextHops { extended: false, ..agreed };
    let ipv4 = Ok(NextHop::Ipv4([192, 0, 2, 1].into()));
    assert_eq!(told(ChosenNextHops::default(), not_agreed), [ipv4, ipv6]);
}

#[test]
fn the_operators_next_hops_take_the_place_of_ours() {
    let address = "2001:db8::77".parse().unwrap();
    let chosen = ChosenNextHops { ipv4: Some([192, 0, 2, 77].into()), ipv6: Some(address) };
    let both = [Ok(NextHop::Ipv4([192, 0, 2, 77].into())), Ok(NextHop::ipv6(address, None))];
    assert_eq!(told(chosen, next_hops()), both);
    assert_eq!(told(chosen, LocalNextHops::default()), both);
}

/// One next hop for a whole rack, where one of the peers is that next hop.
//= RFC 4271 §5.1.3 MUST NOT: our own route is told with an address of the peer as next hop.
#[test]
fn no_neighbour_is_told_that_it_is_the_next_hop_itself() {
    let peer = PeerConfig::example(1).key.address().unwrap();
    let IpAddr::V4(address) = peer else { panic!("{peer} is an IPv4 address") };
    let chosen = ChosenNextHops { ipv4: Some(address), ipv6: None };
    let [ipv4, ipv6] = told(chosen, next_hops());
    assert_eq!(ipv4, Err(Ineligible::PeerAsNextHop(peer)));
    assert_eq!(ipv6, Ok(NextHop::ipv6("2001:db8::1".parse().unwrap(), None)));
}

/// For an external peer, or for one in our own AS.
fn exporter(kind: PeerKind) -> Plain {
    let mut config = PeerConfig::example(1);
    if kind == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    Plain::new(&config, FamilySet::BOTH, next_hops(), DrainState::InService)
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

/// `localASN`: the AS that the router has otherwise is not in the path (FRR's `no-prepend replace-as`).
#[test]
fn a_neighbour_knows_us_by_one_number_only() {
    let router_asn = Asn::new(64_999).unwrap();
    let config =
        PeerConfig { router_asn, pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops(), DrainState::InService);
    let route = route("198.51.100.1/32", RouteAttributes::default());
    assert_eq!(exporter.originate(&route).unwrap().as_path.to_string(), "65001");
    let path = heard(PeerKind::External);
    let told = exporter.pass_on("203.0.113.0/24".parse().unwrap(), &path).unwrap().unwrap();
    assert_eq!(told.as_path.to_string(), "65001 65009 7");
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
    let refused =
        Plain::new(&config, ipv4_only, next_hops(), DrainState::InService).originate(&ipv6);
    assert_eq!(refused, Err(Ineligible::Family(AddressFamily::Ipv6Unicast)));
    let nowhere = LocalNextHops { ipv6: None, ..next_hops() };
    let refused =
        Plain::new(&config, FamilySet::BOTH, nowhere, DrainState::InService).originate(&ipv6);
    assert_eq!(refused, Err(Ineligible::NextHop(AddressFamily::Ipv6Unicast)));
}

//= RFC 4271 §5.1.4 MAY: MULTI_EXIT_DISC is sent to external peers.
#[test]
fn the_metric_that_was_chosen_goes_to_both_kinds_of_peers() {
    for (med, prefix) in [(None, "198.51.100.1/32"), (Some(0), "198.51.100.1/32")] {
        let route = route(prefix, RouteAttributes { med, ..Default::default() });
        for kind in [PeerKind::External, PeerKind::Internal] {
            assert_eq!(exporter(kind).originate(&route).unwrap().med, med);
        }
    }
}

#[test]
fn a_path_is_made_longer_for_external_peers_only() {
    for (as_path_prepend, expected) in [(0, "65001"), (2, "65001 65001 65001")] {
        let attributes = RouteAttributes { as_path_prepend, ..Default::default() };
        let route = route("198.51.100.1/32", attributes);
        let path = |kind| exporter(kind).originate(&route).unwrap().as_path.to_string();
        assert_eq!(path(PeerKind::External), expected);
        assert_eq!(path(PeerKind::Internal), "");
    }
    let attributes = RouteAttributes { as_path_prepend: 16, ..Default::default() };
    let longest = exporter(PeerKind::External).originate(&route("198.51.100.1/32", attributes));
    assert_eq!(longest.unwrap().as_path.length(), 17);
}

/// Routers balance traffic by either form (FRR's `bgp bestpath bandwidth`), but only the transitive one is
/// sure to leave the AS.
#[test]
fn a_bandwidth_crosses_the_edge_of_the_as_in_its_transitive_form() {
    let gigabit = LinkBandwidth { bits_per_second: 1_000_000_000 };
    let attributes = RouteAttributes { link_bandwidth: Some(gigabit), ..Default::default() };
    let route = route("198.51.100.1/32", attributes);
    let communities = |kind| exporter(kind).originate(&route).unwrap().extended_communities.clone();
    assert_eq!(communities(PeerKind::External), [gigabit.community(65_001, true)]);
    assert_eq!(communities(PeerKind::Internal), [gigabit.community(65_001, false)]);
}

#[test]
fn what_we_sell_or_swap_is_marked_and_what_our_provider_gets_is_not() {
    let route = route("198.51.100.1/32", RouteAttributes::default());
    for (role, mark) in [
        (Role::Provider, Some(65_001)),
        (Role::Peer, Some(65_001)),
        (Role::Customer, None),
        (Role::RouteServerClient, None),
    ] {
        let config = PeerConfig { role: Some(role), ..PeerConfig::example(1) };
        let mut exporter = Plain::new(&config, FamilySet::BOTH, next_hops(), DrainState::InService);
        assert_eq!(exporter.originate(&route).unwrap().only_to_customer, mark, "{role}");
    }
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
