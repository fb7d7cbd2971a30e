//! Which attributes do routes have on a node that is being drained?

use super::*;

fn exporter(kind: PeerKind, drain: DrainState) -> Plain {
    let mut config = PeerConfig { pass_on: PrefixFilter::Everything, ..PeerConfig::example(1) };
    if kind == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    Plain::new(&config, FamilySet::BOTH, next_hops, drain)
}

fn prefix() -> Prefix {
    "203.0.113.0/24".parse().unwrap()
}

/// A route of ours with these communities.
fn ours(communities: &[Community]) -> DesiredRoute {
    let communities = communities.to_vec();
    let chosen = RouteAttributes { local_pref: Some(200), communities, ..Default::default() };
    DesiredRoute { prefix: prefix(), peers: Arc::default(), attributes: Arc::new(chosen) }
}

const LEAVING: Community = Community::GRACEFUL_SHUTDOWN;

//= RFC 8326 §4 SHOULD: the LOCAL_PREF of paths that are about to go is below that of all others: 0.
//= RFC 8326 §4.3 SHOULD: the operator can have neighbours told with GRACEFUL_SHUTDOWN what is about to come.
#[test]
fn before_they_go_routes_say_so_and_ask_to_be_the_last_choice() {
    let (low, high) = (Community(7), Community::NO_EXPORT);
    let route = ours(&[low, high]);
    for (kind, local_pref) in [(PeerKind::External, None), (PeerKind::Internal, Some(0))] {
        let left = exporter(kind, DrainState::Draining).originate(&route).unwrap();
        assert_eq!(left.communities, [low, LEAVING, high], "sorted");
        assert_eq!(left.local_pref, local_pref);
        let stayed = exporter(kind, DrainState::InService).originate(&route).unwrap();
        let otherwise = PathAttributes {
            communities: vec![low, high].into(),
            local_pref: local_pref.and(Some(200)),
            ..(*left).clone()
        };
        assert_eq!(*stayed, otherwise, "nothing else differs");
    }
}

#[test]
fn what_passes_through_a_node_that_leaves_is_the_last_choice_too() {
    for (from, to) in [
        (PeerKind::External, PeerKind::External),
        (PeerKind::External, PeerKind::Internal),
        (PeerKind::Internal, PeerKind::External),
    ] {
        // As a neighbour sent them: unsorted.
        let said = vec![Community(0xFFFF_0001), Community(9)];
        let path = with(heard(from), |it| it.communities = said.into());
        let left = exporter(to, DrainState::Draining).pass_on(prefix(), &path).unwrap().unwrap();
        assert_eq!(left.communities, [Community(9), LEAVING, Community(0xFFFF_0001)]);
        assert_eq!(left.local_pref, (to == PeerKind::Internal).then_some(0));
    }
}

#[test]
fn who_says_already_that_it_leaves_does_not_say_it_twice() {
    let mut draining = exporter(PeerKind::External, DrainState::Draining);
    let left = draining.originate(&ours(&[LEAVING])).unwrap();
    assert_eq!(left.communities, [LEAVING]);
    let path = with(heard(PeerKind::Internal), |it| it.communities = vec![LEAVING].into());
    let left = draining.pass_on(prefix(), &path).unwrap().unwrap();
    assert_eq!(left.communities, [LEAVING]);
}

#[test]
fn a_drained_node_announces_nothing_and_says_why_of_its_own_routes() {
    for kind in [PeerKind::External, PeerKind::Internal] {
        let mut drained = exporter(kind, DrainState::Drained);
        assert_eq!(drained.originate(&ours(&[])), Err(Ineligible::Drained));
        assert_eq!(drained.pass_on(prefix(), &heard(PeerKind::External)), Ok(None));
    }
}
