use fairway_ground::{Community, LargeCommunity};

use super::*;

fn peer(remote: Remote, vrf: Option<&str>) -> PeerKey {
    PeerKey { remote, vrf: vrf.map(|vrf| vrf.parse().unwrap()) }
}

fn neighbours() -> Arc<BTreeSet<PeerKey>> {
    Arc::new(BTreeSet::from([
        peer(Remote::Address("192.0.2.1".parse().unwrap()), None),
        peer(Remote::Address("fe80::1".parse().unwrap()), Some("blue")),
        peer(Remote::Interface("eth0".parse().unwrap()), None),
        peer(Remote::Range("198.51.100.0/24".parse().unwrap()), Some("red")),
    ]))
}

fn everything() -> RouteAttributes {
    RouteAttributes {
        local_pref: Some(0),
        communities: vec![Community(0x0001_0002), Community::NO_EXPORT],
        large_communities: vec![LargeCommunity { global: u32::MAX, local1: 0, local2: 7 }],
        med: Some(u32::MAX),
        as_path_prepend: 16,
        link_bandwidth: Some(LinkBandwidth { bits_per_second: u64::MAX }),
    }
}

fn route(
    prefix: &str,
    peers: &Arc<BTreeSet<PeerKey>>,
    attributes: &Arc<RouteAttributes>,
) -> DesiredRoute {
    let (peers, attributes) = (Arc::clone(peers), Arc::clone(attributes));
    DesiredRoute { prefix: prefix.parse().unwrap(), peers, attributes }
}

fn example() -> LastAnnounced {
    let (all, nobody) = (neighbours(), Arc::default());
    let (plain, full) = (Arc::default(), Arc::new(everything()));
    let routes = vec![
        route("203.0.113.1/32", &all, &full),
        route("2001:db8::/64", &all, &plain),
        route("203.0.113.2/32", &all, &full),
        route("203.0.113.2/32", &nobody, &plain),
    ];
    LastAnnounced { boot_id: Some("3a2f".to_owned()), routes }
}

fn sorted(mut announced: LastAnnounced) -> LastAnnounced {
    let key = |route: &DesiredRoute| (route.prefix, Arc::clone(&route.peers));
    announced.routes.sort_by_key(key);
    announced
}

#[test]
fn what_was_announced_is_read_as_it_was_written() {
    let announced = example();
    let read = decode(&encode(&announced)).unwrap();
    assert_eq!(sorted(read.clone()), sorted(announced));
    // Reading and writing again gives the same text.
    assert_eq!(encode(&read), encode(&decode(&encode(&read)).unwrap()));
    let nothing = LastAnnounced::default();
    assert_eq!(decode(&encode(&nothing)).unwrap(), nothing);
}

#[test]
fn the_format_is_the_documented_one() {
    let routes = vec![route("203.0.113.1/32", &neighbours(), &Arc::new(everything()))];
    let text = encode(&LastAnnounced { boot_id: None, routes });
    let compact: String = text.split_whitespace().collect();
    let expected = r#"{"version":1,"bootId":null,"groups":[{"peers":[{"address":"192.0.2.1"},
        {"address":"fe80::1","vrf":"blue"},{"interface":"eth0"},
        {"range":"198.51.100.0/24","vrf":"red"}],"attributes":{"localPref":0,
        "communities":["1:2","no-export"],"largeCommunities":["4294967295:0:7"],
        "med":4294967295,"asPathPrepend":16,
        "linkBandwidthBitsPerSecond":18446744073709551615},"prefixes":["203.0.113.1/32"]}]}"#;
    assert_eq!(compact, expected.split_whitespace().collect::<String>());
}

#[test]
fn a_thousand_prefixes_cost_little_more_than_their_text() {
    let (peers, attributes) = (neighbours(), Arc::new(everything()));
    let prefix = |number: u32| format!("10.0.{}.{}/32", number / 256, number % 256);
    let routes = (0..1000).map(|number| route(&prefix(number), &peers, &attributes));
    let announced = LastAnnounced { boot_id: None, routes: routes.collect() };
    let text = encode(&announced);
    assert!(text.len() < 32 * 1024, "{} bytes", text.len());
    let read = decode(&text).unwrap();
    assert_eq!(read.routes.len(), 1000);
    // Common parts are shared in memory as well.
    let first = &read.routes[0];
    assert!(read.routes.iter().all(|it| Arc::ptr_eq(&it.attributes, &first.attributes)));
}

#[test]
fn the_machine_has_forwarded_only_since_its_own_start() {
    let earlier = |now| example().into_earlier_run(now).forwarding;
    assert!(earlier(Some("3a2f")));
    assert!(!earlier(Some("77b0")));
    assert!(!earlier(None));
    let unknown = LastAnnounced { boot_id: None, ..example() };
    assert!(!unknown.into_earlier_run(None).forwarding);
}

#[test]
fn texts_of_the_wrong_shape_are_refused() {
    let file = |peer: &str, attributes: &str, prefix: &str| {
        format!(
            r#"{{"version":1,"bootId":null,"groups":[{{"peers":[{peer}],
            "attributes":{attributes},"prefixes":["{prefix}"]}}]}}"#
        )
    };
    let good = r#"{"address":"192.0.2.1"}"#;
    decode(&file(good, "{}", "10.0.0.0/8")).unwrap();
    for (peer, attributes, prefix) in [
        (r#"{"address":"192.0.2.256"}"#, "{}", "10.0.0.0/8"),
        (r#"{"address":"192.0.2.1","range":"10.0.0.0/8"}"#, "{}", "10.0.0.0/8"),
        (r#"{"interface":"a/b"}"#, "{}", "10.0.0.0/8"),
        (r#"{"vrf":"blue"}"#, "{}", "10.0.0.0/8"),
        (r#"{"address":"192.0.2.1","colour":"red"}"#, "{}", "10.0.0.0/8"),
        (good, r#"{"localPref":-1}"#, "10.0.0.0/8"),
        (good, r#"{"communities":["1:99999"]}"#, "10.0.0.0/8"),
        (good, r#"{"unknown":1}"#, "10.0.0.0/8"),
        (good, "{}", "10.0.0.0/33"),
    ] {
        assert!(decode(&file(peer, attributes, prefix)).is_err(), "{peer} {attributes} {prefix}");
    }
    let future = encode(&example()).replace("\"version\": 1", "\"version\": 2");
    let error = decode(&future).unwrap_err().to_string();
    assert_eq!(error, "format version 2 is not supported; this Fairway reads version 1");
}
