//! What do clients of a route reflector and of a route server receive?

use super::*;
use fairway_ground::ClusterId;

const PREFIX: &str = "203.0.113.0/24";

/// A neighbour of this kind, which is a client or not, and receives all.
fn neighbour(kind: PeerKind, client: Option<ClientKind>) -> PeerConfig {
    let mut config = PeerConfig {
        pass_on: PrefixFilter::Everything,
        client,
        cluster_id: "192.0.2.8".parse().ok(),
        ..PeerConfig::example(1)
    };
    if kind == PeerKind::Internal {
        config.remote_as = RemoteAs::Asn(config.local_asn);
    }
    config
}

fn exporter(config: &PeerConfig) -> Plain {
    let next_hops = LocalNextHops { ipv4: Some([192, 0, 2, 1].into()), ..Default::default() };
    Plain::new(config, FamilySet::BOTH, next_hops, DrainState::InService)
}

fn told(config: &PeerConfig, path: &Path) -> Option<Arc<PathAttributes>> {
    exporter(config).pass_on(PREFIX.parse().unwrap(), path).unwrap()
}

/// A path of an internal neighbour with the identifier 0.0.0.9.
fn inside(is_client: bool) -> Path {
    let mut path = heard(PeerKind::Internal);
    Arc::make_mut(&mut path.source).is_client = is_client;
    path
}

/// RFC 4456 §6.
#[test]
fn a_reflector_passes_routes_on_to_and_from_its_clients() {
    for (from, to, is_passed_on) in [
        (false, None, false),
        (true, None, true),
        (false, Some(ClientKind::Reflector), true),
        (true, Some(ClientKind::Reflector), true),
    ] {
        let told = told(&neighbour(PeerKind::Internal, to), &inside(from));
        assert_eq!(told.is_some(), is_passed_on, "{from} {to:?}");
    }
    // For other neighbours a client is like any other.
    let external = told(&neighbour(PeerKind::External, None), &inside(true)).unwrap();
    assert_eq!(external.as_path.to_string(), "65001 65009 7");
    assert_eq!(external.originator(), None);
}

//= RFC 4456 §8 MUST: a reflector puts its CLUSTER_ID in front of CLUSTER_LIST, or creates one.
//= RFC 4456 §8 SHOULD NOT: an ORIGINATOR_ID that exists is replaced.
//= RFC 4456 §10 SHOULD NOT: a reflector changes NEXT_HOP, AS_PATH, LOCAL_PREF or MED.
#[test]
fn a_reflected_route_names_who_brought_it_and_which_clusters_it_passed() {
    let client = neighbour(PeerKind::Internal, Some(ClientKind::Reflector));
    let path = inside(false);
    let first = told(&client, &path).unwrap();
    assert_eq!(first.originator(), Some([0, 0, 0, 9].into()));
    assert_eq!(first.clusters().collect::<Vec<_>>(), [Ipv4Addr::new(192, 0, 2, 8)]);
    let unknown = Default::default();
    assert_eq!(PathAttributes { unknown, ..(*first).clone() }, *path.attributes);

    // By another reflector, or by this one as another cluster.
    let again = with(path, |it| *it = (*first).clone());
    let own_cluster = PeerConfig { cluster_id: None, ..client };
    let second = told(&own_cluster, &again).unwrap();
    assert_eq!(second.originator(), Some([0, 0, 0, 9].into()));
    let own = ClusterId::from(own_cluster.router_id).address();
    assert_eq!(second.clusters().collect::<Vec<_>>(), [own, Ipv4Addr::new(192, 0, 2, 8)]);
}

/// Two neighbours may announce the same attributes: each is the originator of its own routes.
#[test]
fn attributes_that_are_shared_have_an_originator_each() {
    let mut exporter = exporter(&neighbour(PeerKind::Internal, Some(ClientKind::Reflector)));
    let one = inside(false);
    let mut other = one.clone();
    Arc::make_mut(&mut other.source).router_id = RouterId::new(10).unwrap();
    for (path, number) in [(&one, 9), (&other, 10), (&one, 9)] {
        let told = exporter.pass_on(PREFIX.parse().unwrap(), path).unwrap().unwrap();
        assert_eq!(told.originator(), Some([0, 0, 0, number].into()));
    }
}

//= RFC 7947 §2.2.1 MUST: NEXT_HOP is passed on unchanged to clients of a route server.
//= RFC 7947 §2.2.2.1 SHOULD NOT: a route server puts its AS into the path.
//= RFC 7947 §2.2.3 SHOULD: MULTI_EXIT_DISC is passed on unchanged to clients of a route server.
#[test]
fn a_client_of_a_route_server_is_told_what_another_one_said() {
    let client = neighbour(PeerKind::External, Some(ClientKind::RouteServer));
    let path = heard(PeerKind::External);
    assert_eq!(*told(&client, &path).unwrap(), *path.attributes);
    // What is of our AS comes from us.
    let own = told(&client, &heard(PeerKind::Internal)).unwrap();
    assert_eq!(own.as_path.to_string(), "65001 65009 7");
    assert_eq!(own.next_hop, NextHop::Ipv4([192, 0, 2, 1].into()));
    assert_eq!((own.med, own.local_pref), (None, None));
}

//= RFC 7947 §2.3.1 SHOULD: a client is told a route although a better one, which is not for it, hides it.
#[test]
fn a_client_of_a_route_server_is_told_the_best_of_what_is_for_it() {
    let mut routes = Routes::NONE;
    let best =
        with(heard(PeerKind::External), |it| it.communities = vec![Community::NO_EXPORT].into());
    let mut second = with(heard(PeerKind::External), |it| it.med = Some(60));
    Arc::make_mut(&mut second.source).key = PeerKey::from(IpAddr::from([192, 0, 2, 10]));
    for path in [best, second] {
        routes.learn(path.source.key, PathId::NONE, Some(path), Default::default());
    }
    let told = |client| {
        let mut exporter = exporter(&neighbour(PeerKind::External, client)).0;
        let prefix = PREFIX.parse().unwrap();
        let told = exporter.route(prefix, &routes).unwrap().cloned();
        told.map(|it| exporter.decode(prefix, &it).unwrap().med)
    };
    assert_eq!(told(None), None);
    assert_eq!(told(Some(ClientKind::RouteServer)), Some(Some(60)));
}
