//! The routes of a node as another program reads them.

use std::io::Cursor;
use std::sync::Arc;

use bgpkit_parser::BgpkitParser;
use bgpkit_parser::models::{MrtMessage, RibAfiEntries, TableDumpV2Message, TableDumpV2Type};
use fairway_ground::{AsPath, Asn, Community, LargeCommunity, PeerKey, PeerKind, RemoteAs};
use fairway_ground::{NextHop, PathId, RouterId};
use fairway_seam::{DecisionStep, DesiredRoute, Path, PathSource, PeerConfig, PeerView};
use fairway_seam::{RouteAttributes, UnknownAttribute};

use super::*;

const NOW: Stamp = Stamp { epoch_micros: 1_795_000_000_000_250 };

fn router_id(last: u8) -> RouterId {
    format!("10.255.0.{last}").parse().unwrap()
}

fn source(address: &str, last: u8) -> Arc<PathSource> {
    let address: std::net::IpAddr = address.parse().unwrap();
    Arc::new(PathSource {
        key: PeerKey::from(address),
        address,
        kind: PeerKind::External,
        remote_asn: Asn::new(4_200_000_000 + u32::from(last)).unwrap(),
        router_id: router_id(last),
        is_client: false,
    })
}

fn learned(prefix: &str, source: &Arc<PathSource>, next_hop: &str, path_id: u32) -> LearnedRoute {
    let next_hop = match next_hop.parse().unwrap() {
        std::net::IpAddr::V4(address) => NextHop::Ipv4(address),
        std::net::IpAddr::V6(address) => NextHop::ipv6(address, None),
    };
    let as_path = AsPath::sequence(vec![source.remote_asn.get(), 64_500]);
    let attributes = PathAttributes {
        med: Some(7),
        communities: vec![Community(65_001 << 16 | 9)].into(),
        large_communities: vec![LargeCommunity { global: 1, local1: 2, local2: 3 }].into(),
        unknown: vec![UnknownAttribute { flags: 0xE0, code: 99, value: vec![1; 300] }].into(),
        ..PathAttributes::originated(as_path, next_hop)
    };
    LearnedRoute {
        prefix: prefix.parse().unwrap(),
        path: Path {
            source: Arc::clone(source),
            path_id: PathId::new(path_id),
            attributes: Arc::new(attributes),
        },
        lost_at: (path_id > 1).then_some(DecisionStep::PathId),
        stale: false,
        origin_validation: None,
    }
}

fn own(prefix: &str) -> DesiredRoute {
    DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: Arc::default(),
        attributes: Arc::new(RouteAttributes { med: Some(5), ..RouteAttributes::default() }),
    }
}

fn view(learned: Vec<LearnedRoute>) -> BgpView {
    let local = Asn::new(65_001).unwrap();
    let peer = |address: &str| {
        let key = PeerKey::from(address.parse::<std::net::IpAddr>().unwrap());
        let remote = RemoteAs::Asn(Asn::new(64_999).unwrap());
        PeerView::idle(PeerConfig::new(key, local, remote, router_id(1)))
    };
    BgpView {
        peers: vec![peer("192.0.2.2"), peer("192.0.2.9"), peer("2001:db8::2")],
        routes: vec![own("10.0.0.0/24"), own("10.0.7.0/24"), own("2001:db8:7::/48")],
        learned,
        ..BgpView::default()
    }
}

fn read(view: &BgpView) -> (Vec<(std::net::IpAddr, u32)>, Vec<RibAfiEntries>) {
    let mut pieces = RibPieces::new(view, RibFormat::Mrt, NOW);
    let bytes: Vec<u8> = pieces.by_ref().flatten().collect();
    assert_eq!(pieces.left_out(), 0);
    let (mut peers, mut entries) = (Vec::new(), Vec::new());
    for record in BgpkitParser::from_reader(Cursor::new(bytes)).into_record_iter() {
        assert_eq!(record.common_header.timestamp, 1_795_000_000);
        match record.message {
            MrtMessage::TableDumpV2Message(TableDumpV2Message::PeerIndexTable(table)) => {
                assert_eq!(table.collector_bgp_id.to_string(), "10.255.0.1");
                for number in 0..u16::try_from(table.id_peer_map.len()).unwrap() {
                    let peer = &table.id_peer_map[&number];
                    peers.push((peer.peer_ip, peer.peer_asn.to_u32()));
                }
            }
            MrtMessage::TableDumpV2Message(TableDumpV2Message::RibAfi(it)) => entries.push(it),
            other => panic!("{other:?}"),
        }
    }
    (peers, entries)
}

/// What a reader sees of each path.
fn words(entries: &[RibAfiEntries]) -> Vec<String> {
    let each = entries.iter().flat_map(|it| {
        it.rib_entries.iter().map(move |entry| {
            let attributes = &entry.attributes;
            let path = attributes.as_path().map(ToString::to_string).unwrap_or_default();
            let reach = attributes.get_reachable_nlri().and_then(|it| it.next_hop);
            let next_hop = attributes.next_hop().or(reach.map(|it| it.addr()));
            let next_hop = next_hop.map(|it| it.to_string()).unwrap_or_default();
            format!("{} peer {} via {next_hop} by [{path}]", it.prefix, entry.peer_index)
        })
    });
    each.collect()
}

#[test]
fn another_parser_reads_own_and_learned_routes_with_their_neighbors() {
    let (near, far) = (source("192.0.2.2", 2), source("2001:db8::2", 3));
    let view = view(vec![
        learned("10.0.0.0/24", &near, "192.0.2.2", 0),
        learned("10.0.1.0/25", &far, "2001:db8::2", 0),
        learned("2001:db8:1::/48", &far, "2001:db8::2", 0),
    ]);
    let (peers, entries) = read(&view);
    let expected = [
        ("0.0.0.0", 0),
        ("192.0.2.2", 4_200_000_002),
        ("192.0.2.9", 64_999),
        ("2001:db8::2", 4_200_000_003),
    ];
    assert_eq!(peers, expected.map(|(address, asn)| (address.parse().unwrap(), asn)));
    assert_eq!(
        words(&entries),
        [
            "10.0.0.0/24 peer 0 via 0.0.0.0 by []",
            "10.0.0.0/24 peer 1 via 192.0.2.2 by [4200000002 64500]",
            "10.0.1.0/25 peer 3 via 2001:db8::2 by [4200000003 64500]",
            "10.0.7.0/24 peer 0 via 0.0.0.0 by []",
            "2001:db8:1::/48 peer 3 via 2001:db8::2 by [4200000003 64500]",
            "2001:db8:7::/48 peer 0 via :: by []",
        ]
    );
    let sequence: Vec<_> = entries.iter().map(|it| it.sequence_number).collect();
    assert_eq!(sequence, [0, 1, 2, 3, 4]);
    let learned = &entries[0].rib_entries[1].attributes;
    let communities: Vec<_> = learned.iter_communities().map(|it| it.to_string()).collect();
    assert_eq!(communities, ["65001:9", "1:2:3"]);
    let unknown = learned.get_attr(bgpkit_parser::models::AttrType::Unknown(99)).unwrap();
    assert!(unknown.is_extended() && unknown.is_partial());
}

/// RFC 8050 §4.1: several paths of a neighbor keep their identifiers.
#[test]
fn a_prefix_with_path_identifiers_has_a_record_of_its_own_kind() {
    let near = source("192.0.2.2", 2);
    let mut routes = Vec::new();
    for (prefix, next_hop) in [("10.0.0.0/24", "192.0.2.2"), ("2001:db8:1::/48", "2001:db8::2")] {
        routes.push(learned(prefix, &near, next_hop, 1));
        routes.push(learned(prefix, &near, next_hop, 8));
    }
    let (_, entries) = read(&view(routes));
    let kinds: Vec<_> = entries.iter().map(|it| it.rib_type).collect();
    assert_eq!(
        kinds,
        [
            TableDumpV2Type::RibIpv4UnicastAddPath,
            TableDumpV2Type::RibIpv4Unicast,
            TableDumpV2Type::RibIpv6UnicastAddPath,
            TableDumpV2Type::RibIpv6Unicast
        ]
    );
    let ids = |at: usize| entries[at].rib_entries.iter().map(|it| it.path_id).collect::<Vec<_>>();
    assert_eq!(ids(0), [Some(0), Some(1), Some(8)]);
    assert_eq!(ids(1), [None]);
    assert_eq!(ids(2), [Some(1), Some(8)]);
}

#[test]
fn json_has_a_line_for_each_path() {
    let near = source("192.0.2.2", 2);
    let view = view(vec![learned("10.0.0.0/24", &near, "192.0.2.2", 8)]);
    let bytes: Vec<u8> = RibPieces::new(&view, RibFormat::Json, NOW).flatten().collect();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value["peers"][1]["as"], 4_200_000_002_u32);
    assert_eq!(value["routes"].as_array().unwrap().len(), 4);
    let route = &value["routes"][1];
    assert_eq!((&route["prefix"], &route["peer"]), (&"10.0.0.0/24".into(), &1.into()));
    assert_eq!((&route["asPath"], &route["best"]), (&"4200000002 64500".into(), &false.into()));
    assert_eq!(route["communities"][0], "65001:9");
    assert_eq!(route["otherAttributes"][0]["code"], 99);
    let empty = BgpView::default();
    let bytes: Vec<u8> = RibPieces::new(&empty, RibFormat::Json, NOW).flatten().collect();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value["routes"], serde_json::json!([]));
}

/// What waits to be read is a piece, not the table.
#[test]
fn a_large_table_comes_in_pieces() {
    let near = source("192.0.2.2", 2);
    let prefix = |number: u32| format!("{}/32", Ipv4Addr::from(0x0A01_0000 + number));
    let routes = (0..4_000).map(|it| learned(&prefix(it), &near, "192.0.2.2", 0)).collect();
    let view = view(routes);
    for format in [RibFormat::Mrt, RibFormat::Json] {
        let lengths: Vec<_> = RibPieces::new(&view, format, NOW).map(|it| it.len()).collect();
        assert!(lengths.len() > 4, "{lengths:?}");
        assert!(lengths.iter().all(|it| *it < PIECE_BYTES + 2048), "{lengths:?}");
    }
    assert_eq!(read(&view).1.len(), 4_003);
}
