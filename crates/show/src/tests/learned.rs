//! Learned routes, in text and JSON, beside what FRR 8.4 prints in the same state. Ours: the best path is the
//! first, the others carry the step at which they lost, and uninterpreted attributes are shown byte for byte.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{
    AddressFamily, AsPath, Asn, ExtendedCommunity, ImportPolicy, LinkBandwidth, MaximumPrefixes,
    NextHop, PathId, PeerKey, PeerKind, PrefixFilter, RouterId,
};
use fairway_seam::{
    DecisionStep, LastMalformed, LastReset, LearnedRoute, MalformedCounters, Origin, Path,
    PathAttributes, PathSource, PeerRoute, Refusal, RefusedRoute, RefusedRoutes, ResetCause,
    SessionState, UnknownAttribute,
};
use serde_json::{Value, json};

use super::super::{PeerRoutes, ShowCommand, ShowError, TableFilter};
use super::lab::{self, Lab};
use super::shapes::assert_shape;
use super::texts::HEAD;
use super::{json as shown, neighbors, text};

/// The attributes of a route from router one (AS 65010), router two (AS 65020) or the internal router three.
fn heard(router: u8, as_path: &[u32], change: impl FnOnce(&mut PathAttributes)) -> Path {
    let (key, kind, remote_asn) = match router {
        1 => ("10.1.1.2", PeerKind::External, 65010),
        2 => ("10.1.2.2", PeerKind::External, 65020),
        _ => ("10.1.3.2", PeerKind::Internal, 65001),
    };
    let IpAddr::V4(next_hop) = lab::address(key) else { panic!("{key} is IPv4") };
    let as_path = AsPath::sequence(as_path.to_vec());
    let mut attributes = PathAttributes::originated(as_path, NextHop::Ipv4(next_hop));
    change(&mut attributes);
    let source = PathSource {
        key: PeerKey::from(lab::address(key)),
        address: lab::address(key),
        kind,
        remote_asn: Asn::new(remote_asn).unwrap(),
        router_id: RouterId::new(0x0A00_0001 + u32::from(router)).unwrap(),
        is_client: false,
    };
    Path { source: Arc::new(source), path_id: PathId::NONE, attributes: Arc::new(attributes) }
}

fn learned(prefix: &str, path: Path, lost_at: Option<DecisionStep>) -> LearnedRoute {
    LearnedRoute {
        prefix: lab::prefix(prefix),
        path,
        lost_at,
        stale: false,
        origin_validation: None,
    }
}

/// The lab of FRR's capture with its received routes, and a route of the own AS.
pub(super) fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.bgp.routes.clear();
    let long = [65010, 65010, 65500, 65500];
    let origin = |it: &mut PathAttributes| it.origin = Origin::Incomplete;
    lab.bgp.learned = vec![
        learned("10.20.0.0/16", heard(1, &long, |_| {}), Some(DecisionStep::AsPathLength)),
        learned("10.20.0.0/16", heard(2, &[65020], |it| it.med = Some(5)), None),
        learned("10.40.0.0/16", heard(2, &[65020], origin), None),
        learned("10.50.0.0/16", heard(3, &[], |it| it.local_pref = Some(100)), None),
        learned("198.51.100.128/25", heard(1, &[65010], adorn), None),
    ];
    lab
}

fn adorn(attributes: &mut PathAttributes) {
    attributes.communities = ["65010:100", "65010:200"].map(|it| it.parse().unwrap()).into();
    attributes.large_communities = ["65010:1:2", "65010:7:9"].map(|it| it.parse().unwrap()).into();
    let gigabit = LinkBandwidth { bits_per_second: 1_000_000_000 };
    attributes.extended_communities =
        vec![ExtendedCommunity([0, 2, 0xFD, 0xF2, 0, 0, 0, 77]), gigabit.community(65_010, true)]
            .into();
    attributes.only_to_customer = Some(65_010);
    attributes.unknown =
        vec![UnknownAttribute { flags: 0xe0, code: 99, value: b"\xca\xfe".to_vec() }].into();
}

fn received(peer: &str) -> ShowCommand {
    ShowCommand::BgpPeerRoutes {
        peer: peer.to_owned(),
        family: None,
        routes: super::PeerRoutes::Received,
    }
}

#[test]
fn a_table_of_learned_paths_has_the_columns_of_frr() {
    let rows = "\
*> 10.20.0.0/16     10.1.2.2                 5             0 65020 i
*                   10.1.1.2                               0 65010 65010 65500 65500 i
*> 10.40.0.0/16     10.1.2.2                               0 65020 ?
*>i10.50.0.0/16     10.1.3.2                      100      0 i
*> 198.51.100.128/25
                    10.1.1.2                               0 65010 i

Displayed  4 routes and 5 total paths
";
    assert_eq!(text(&lab(), &lab::table_ipv4(None)).unwrap(), format!("{HEAD}{rows}"));
}

#[test]
fn an_internal_path_that_lost_is_marked_as_both() {
    let mut lab = lab();
    let internal = heard(3, &[65010], |it| it.local_pref = Some(100));
    lab.bgp.learned = vec![
        learned("10.50.0.0/16", heard(1, &[65010], |_| {}), None),
        learned("10.50.0.0/16", internal, Some(DecisionStep::PeerKind)),
    ];
    let shown = text(&lab, &lab::table_ipv4(None)).unwrap();
    let rows = "\
*> 10.50.0.0/16     10.1.1.2                               0 65010 i
* i                 10.1.3.2                      100      0 65010 i
";
    assert!(shown.contains(rows), "{shown}");
    let entry = text(&lab, &lab::table_ipv4(Some("10.50.0.0/16"))).unwrap();
    assert!(entry.contains("localpref 100, valid, internal, not best (Peer Type)\n"), "{entry}");
    assert!(entry.contains("valid, external, best (Peer Type)\n"), "{entry}");
}

#[test]
fn a_table_of_learned_paths_has_the_keys_of_frr() {
    let table = shown(&lab(), &lab::table_ipv4(None));
    let paths = &table["routes"]["10.20.0.0/16"];
    assert_shape(
        &paths[0],
        "valid:b bestpath:b selectionReason:s pathFrom:s prefix:s prefixLen:n network:s \
         version:n metric:n weight:n peerId:s path:s origin:s nexthops:a",
    );
    assert_eq!(paths[0]["selectionReason"], "AS Path");
    assert_eq!((&paths[0]["peerId"], &paths[0]["path"]), (&json!("10.1.2.2"), &json!("65020")));
    assert_shape(
        &paths[1],
        "valid:b pathFrom:s prefix:s prefixLen:n network:s version:n weight:n peerId:s path:s \
         origin:s nexthops:a",
    );
    assert_shape(&paths[1]["nexthops"][0], "ip:s afi:s used:b");
    let only = &table["routes"]["10.40.0.0/16"][0];
    assert_eq!(only["selectionReason"], "First path received");
    assert_eq!((&only["origin"], &only["weight"]), (&json!("incomplete"), &json!(0)));
    let internal = &table["routes"]["10.50.0.0/16"][0];
    assert_eq!((&internal["pathFrom"], &internal["locPrf"]), (&json!("internal"), &json!(100)));
    assert_eq!(internal["path"], "");
}

#[test]
fn a_prefix_selects_what_is_inside_it_and_an_expression_what_came_that_way() {
    const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;
    let lab = lab();
    let of = |filter| shown(&lab, &ShowCommand::BgpFiltered { family: IPV4, filter });
    let paths = |filter| -> Vec<String> {
        let table = of(filter);
        let routes = table["routes"].as_object().unwrap().iter();
        let rows = routes.flat_map(|(prefix, paths)| {
            let paths = paths.as_array().unwrap().iter();
            paths.map(move |path| format!("{prefix} {}", path["path"].as_str().unwrap()))
        });
        rows.collect()
    };
    let inside = |text: &str| paths(TableFilter::LongerPrefixes(text.to_owned()));
    let matching = |text: &str| paths(TableFilter::AsPath(text.to_owned()));
    assert_eq!(inside("198.51.100.7/24"), ["198.51.100.128/25 65010"], "host bits are no matter");
    assert_eq!(inside("198.51.100.128/26"), [""; 0]);
    assert_eq!(inside("0.0.0.0/0").len(), 5);
    assert_eq!(matching("^$"), ["10.50.0.0/16 "]);
    assert_eq!(matching("_65500$"), ["10.20.0.0/16 65010 65010 65500 65500"]);
    assert_eq!(matching("^65020_"), ["10.20.0.0/16 65020", "10.40.0.0/16 65020"]);
    assert_eq!(matching("_6501_"), [""; 0]);
    let all = of(TableFilter::LongerPrefixes("10.50.0.0/16".to_owned()));
    assert_eq!(all["totalPaths"], 5, "of the whole table, as in FRR");
    let filter = TableFilter::LongerPrefixes("2001:db8::/32".to_owned());
    let error = text(&lab, &ShowCommand::BgpFiltered { family: IPV4, filter }).unwrap_err();
    assert!(matches!(error, ShowError::MalformedPrefix { .. }), "{error}");
}

#[test]
fn the_figures_of_a_table_are_those_of_frr() {
    let mut lab = lab();
    lab.bgp.learned.push(learned("10.20.1.0/24", heard(1, &[65010, 3320], |_| {}), None));
    let table = shown(&lab, &ShowCommand::BgpStatistics { family: AddressFamily::Ipv4Unicast });
    let expected = json!({ "ipv4Unicast": [{
        "instance": "VRF default",
        "totalAdvertisements": 6,
        "totalPrefixes": 5,
        "averagePrefixLength": 19.4,
        "unaggregateablePrefixes": 4,
        "maximumAggregateablePrefixes": 1,
        "bgpAggregateAdvertisements": 0,
        "addressSpaceAdvertised": 196_736.0,
        "%announced": 100.0 * 196_736.0 / 4_294_967_296.0,
        "/8equivalent": 0.011_726_379_394_531_25,
        "/24equivalent": 768.5,
        "advertisementsWithPaths": 6,
        "longestAsPath": 4,
        "averageAsPathLengthHops": 1.5,
        "largestAsPath": 18,
        "averageAsPathSizeBytes": 46.0 / 6.0,
        "highestPublicAsn": 3320,
        "prefixLength": [{"16": 3}, {"24": 1}, {"25": 1}],
    }] });
    assert_eq!(table, expected);
}

#[test]
fn an_entry_names_the_step_at_which_each_path_lost() {
    let expected = "\
BGP routing table entry for 10.20.0.0/16, version 10
Paths: (2 available, best #1, table default)
  Not advertised to any peer
  65020
    10.1.2.2 from 10.1.2.2 (10.0.0.3)
      Origin IGP, metric 5, valid, external, best (AS Path)
  65010 65010 65500 65500
    10.1.1.2 from 10.1.1.2 (10.0.0.2)
      Origin IGP, valid, external, not best (AS Path)
";
    let lab = lab();
    assert_eq!(text(&lab, &lab::table_ipv4(Some("10.20.0.0/16"))).unwrap(), expected);
    let entry = shown(&lab, &lab::table_ipv4(Some("10.20.0.0/16")));
    assert_shape(&entry, "prefix:s version:n paths:a");
    assert_shape(
        &entry["paths"][0],
        "aspath:o origin:s metric:n valid:b version:n bestpath:o -lastUpdate:o nexthops:a peer:o",
    );
    assert_eq!(
        entry["paths"][0]["bestpath"],
        json!({"overall": true, "selectionReason": "AS Path"})
    );
    let loser = &entry["paths"][1];
    assert_shape(
        loser,
        "aspath:o origin:s valid:b version:n +lostAt:s -lastUpdate:o nexthops:a peer:o",
    );
    assert_eq!(loser["lostAt"], "AS Path");
    let path = json!({
        "string": "65010 65010 65500 65500",
        "segments": [{"type": "as-sequence", "list": [65010, 65010, 65500, 65500]}],
        "length": 4,
    });
    assert_eq!(loser["aspath"].to_string(), path.to_string());
    assert_shape(&loser["nexthops"][0], "ip:s afi:s metric:n accessible:b used:b");
    let peer = json!({"peerId": "10.1.1.2", "routerId": "10.0.0.2", "type": "external"});
    assert_eq!(loser["peer"].to_string(), peer.to_string());
}

#[test]
fn an_internal_entry_is_local_and_has_its_preference() {
    let shown_text = text(&lab(), &lab::table_ipv4(Some("10.50.0.0/16"))).unwrap();
    let lines = "\
  Local
    10.1.3.2 from 10.1.3.2 (10.0.0.4)
      Origin IGP, localpref 100, valid, internal, best (First path received)
";
    assert!(shown_text.ends_with(lines), "{shown_text}");
    let entry = shown(&lab(), &lab::table_ipv4(Some("10.50.0.0/16")));
    let path = &entry["paths"][0];
    assert_eq!((&path["locPrf"], &path["peer"]["type"]), (&json!(100), &json!("internal")));
    assert_eq!(path["aspath"], json!({"string": "Local", "segments": [], "length": 0}));
}

#[test]
fn communities_and_what_is_not_interpreted_are_shown() {
    let prefix = "198.51.100.128/25";
    let shown_text = text(&lab(), &lab::table_ipv4(Some(prefix))).unwrap();
    let lines = "\
      Origin IGP, otc 65010, valid, external, best (First path received)
      Community: 65010:100 65010:200
      Extended Community: RT:65010:77 LB:65010:125000000 (1.000 Gbps)
      Large Community: 65010:1:2 65010:7:9
      Attribute 99, flags 0xe0, 2 bytes: cafe
";
    assert!(shown_text.ends_with(lines), "{shown_text}");
    let entry = shown(&lab(), &lab::table_ipv4(Some(prefix)));
    let path = &entry["paths"][0];
    assert_shape(
        path,
        "aspath:o origin:s valid:b version:n otc:n bestpath:o community:o \
         extendedCommunity:o largeCommunity:o +unknownAttributes:a -lastUpdate:o nexthops:a peer:o",
    );
    let list = json!({"string": "65010:1:2 65010:7:9", "list": ["65010:1:2", "65010:7:9"]});
    assert_eq!(path["largeCommunity"].to_string(), list.to_string());
    let unknown = json!({"code": 99, "flags": 224, "value": "cafe"});
    let extended = json!({"string": "RT:65010:77 LB:65010:125000000 (1.000 Gbps)"});
    assert_eq!(path["extendedCommunity"].to_string(), extended.to_string());
    assert_eq!(path["otc"], 65_010);
    assert_eq!(path["unknownAttributes"][0].to_string(), unknown.to_string());
}

/// Two refused routes of router one beside the accepted ones.
pub(super) fn with_refused() -> Lab {
    let mut lab = with_received();
    let route = |prefix: &str, as_path: &[u32], refusal| {
        let attributes = heard(1, as_path, |_| {}).attributes;
        let prefix = lab::prefix(prefix);
        let route = PeerRoute { prefix, path_id: PathId::NONE, attributes, stale: false };
        RefusedRoute { route, refusal }
    };
    let routes = vec![
        route("10.66.0.0/16", &[65010, 65001], Refusal::AsLoop),
        route("203.0.113.0/24", &[65010], Refusal::Policy),
    ];
    lab.router_one().refused = Some(RefusedRoutes { routes, has_more: false });
    lab
}

fn filtered() -> ShowCommand {
    let peer = "10.1.1.2".to_owned();
    ShowCommand::BgpPeerRoutes { peer, family: None, routes: PeerRoutes::Filtered }
}

#[test]
fn refused_routes_name_the_rule() {
    let mut lab = with_refused();
    let shown_text = text(&lab, &filtered()).unwrap();
    let lines = "\
   10.66.0.0/16     10.1.1.2                               0 65010 65001 i
   203.0.113.0/24   10.1.1.2                               0 65010 i

Total number of prefixes 2 (2 filtered)

Refused because
   10.66.0.0/16      our own AS is in the path
   203.0.113.0/24    toReceive does not allow the prefix
";
    assert!(shown_text.ends_with(lines), "{shown_text}");
    let routes = shown(&lab, &filtered());
    assert_eq!(routes["receivedRoutes"]["203.0.113.0/24"]["refusedBecause"], "policy");
    assert_eq!(
        (&routes["totalPrefixCounter"], &routes["filteredPrefixCounter"]),
        (&json!(2), &json!(2))
    );
    let all = shown(&lab, &received("10.1.1.2"));
    assert_eq!((&all["totalPrefixCounter"], &all["filteredPrefixCounter"]), (&json!(4), &json!(2)));
    let prefixes: Vec<_> = all["receivedRoutes"].as_object().unwrap().keys().collect();
    assert!(prefixes.is_sorted(), "{prefixes:?}");
    lab.router_one().refused.as_mut().unwrap().has_more = true;
    assert!(text(&lab, &filtered()).unwrap().contains("more were refused"));
    for (name, line) in [(None, "rule 3"), (Some("bogons"), "rule 3 (bogons)")] {
        let rule = Refusal::Rule { place: 2, name: name.map(Into::into) };
        lab.router_one().refused.as_mut().unwrap().routes[1].refusal = rule;
        let line = format!("203.0.113.0/24    {line} of toReceive rejects it\n");
        assert!(text(&lab, &filtered()).unwrap().contains(&line));
        let route = &shown(&lab, &filtered())["receivedRoutes"]["203.0.113.0/24"];
        assert_eq!(route["refusedBecause"], "rule");
        assert_eq!(route["refusedByRule"]["number"], 3);
        assert_eq!(route["refusedByRule"].get("name").and_then(Value::as_str), name);
    }
    assert_eq!(shown(&lab, &filtered())["hasMoreRefused"], true);
}

#[test]
fn a_backend_that_keeps_no_refused_routes_says_so_as_frr_does() {
    let error = text(&with_received(), &filtered()).unwrap_err().to_string();
    assert_eq!(error, "% Inbound soft reconfiguration not enabled");
}

/// The accepted routes of router one.
fn with_received() -> Lab {
    let mut lab = lab();
    let router_one = PeerKey::from(lab::address("10.1.1.2"));
    let of_router = lab.bgp.learned.iter().filter(|it| it.path.source.key == router_one);
    let routes = of_router.map(|it| PeerRoute {
        prefix: it.prefix,
        path_id: it.path.path_id,
        attributes: Arc::clone(&it.path.attributes),
        stale: false,
    });
    lab.router_one().received = routes.collect();
    lab.router_one().prefixes_accepted.ipv4 = 2;
    lab
}

#[test]
fn received_routes_have_the_columns_and_keys_of_frr() {
    let lab = with_received();
    let rows = "\
*> 10.20.0.0/16     10.1.1.2                               0 65010 65010 65500 65500 i
*> 198.51.100.128/25
                    10.1.1.2                               0 65010 i

Total number of prefixes 2
";
    assert_eq!(text(&lab, &received("10.1.1.2")).unwrap(), format!("{HEAD}{rows}"));
    assert_eq!(text(&lab, &received("10.1.1.97")).unwrap(), "");
    let table = shown(&lab, &received("10.1.1.2"));
    assert_shape(
        &table,
        "bgpTableVersion:n bgpLocalRouterId:s defaultLocPrf:n localAS:n bgpStatusCodes:o \
         bgpOriginCodes:o receivedRoutes:o totalPrefixCounter:n filteredPrefixCounter:n",
    );
    let routes = &table["receivedRoutes"];
    assert_shape(
        &routes["10.20.0.0/16"],
        "addrPrefix:s prefixLen:n network:s nextHop:s weight:n path:s bgpOriginCode:s \
         appliedStatusSymbols:o",
    );
    assert_eq!(routes["10.20.0.0/16"]["weight"], 0);
    assert_eq!(routes["10.20.0.0/16"]["appliedStatusSymbols"], json!({"*": true, ">": true}));
    assert_eq!(routes["198.51.100.128/25"]["community"]["list"][1], "65010:200");
    let nobody = shown(&lab, &received("10.1.1.77"));
    assert_eq!(nobody, json!({"warning": "No such neighbor in this view/vrf"}));
}

/// Router one announced one prefix more than it may.
fn exceeded() -> Lab {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    let maximum = Some(MaximumPrefixes { limit: 2, warn_percent: 75, attribute_bytes: None });
    peer.config.import =
        ImportPolicy { allowed: PrefixFilter::Everything, maximum, ..ImportPolicy::default() };
    (peer.state, peer.session) = (SessionState::Idle, None);
    peer.last_reset = Some(LastReset {
        ago: Duration::from_secs(4),
        cause: ResetCause::NotificationSent(6, 1),
        text: "more than 2 prefixes of IPv4 Unicast (toReceive.maxPrefixes)".to_owned(),
    });
    peer.next_connect_in = Some(Duration::from_secs(26));
    lab
}

#[test]
fn too_many_prefixes_are_named_as_frr_names_them() {
    let lab = exceeded();
    let summary = text(&lab, &super::summary()).unwrap();
    assert!(summary.contains("00:00:21 Idle (PfxCt)        0 router one over\n"), "{summary}");
    let peer = &shown(&lab, &super::summary())["ipv4Unicast"]["peers"]["10.1.1.2"];
    assert_eq!((&peer["state"], &peer["peerState"]), (&json!("Idle (PfxCt)"), &json!("PfxCt")));
    let peer = &shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"];
    assert_eq!(peer["bgpState"], "Idle");
    assert_eq!(peer["lastErrorCodeSubcode"], "0601");
    assert_eq!(peer["lastNotificationReason"], "Cease/Maximum Number of Prefixes Reached");
    assert_eq!(peer["lastResetDueTo"], "BGP Notification send");
    assert_eq!(peer["prefixesConfigExceedMax"], true);
    assert_eq!(peer["nextStartTimerDueInMsecs"], 26_000);
    assert_shape(
        &peer["addressFamilyInfo"]["ipv4Unicast"],
        "commAttriSentToNbr:s inboundPathPolicyConfig:b outboundPathPolicyConfig:b \
         acceptedPrefixCounter:n prefixAllowedMax:n prefixAllowedWarningThresh:n \
         +prefixesRefused:n",
    );
    let lines = text(&lab, &neighbors("10.1.1.2")).unwrap();
    for line in [
        "  Maximum prefixes allowed 2\n  Threshold for warning message 75%\n",
        "  Last reset 00:00:04,  Notification sent (Cease/Maximum Number of Prefixes Reached)\n",
        "  Peer had exceeded the max. no. of prefixes configured.\n",
        "Next start timer due in 26 seconds\n",
    ] {
        assert!(lines.contains(line), "{line}{lines}");
    }
}

#[test]
fn an_attempt_after_the_wait_is_no_longer_marked() {
    let mut lab = exceeded();
    lab.router_one().state = SessionState::OpenSent;
    let peer = &shown(&lab, &super::summary())["ipv4Unicast"]["peers"]["10.1.1.2"];
    assert_eq!((&peer["state"], &peer["peerState"]), (&json!("OpenSent"), &json!("OK")));
    let peer = &shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"];
    assert_eq!(peer.get("prefixesConfigExceedMax"), None);
    assert_eq!(peer["addressFamilyInfo"]["ipv4Unicast"]["prefixAllowedMax"], 2);
}

#[test]
fn refused_and_malformed_announcements_are_told_with_their_reasons() {
    let mut lab = Lab::new();
    let peer = lab.router_one();
    peer.refusals = vec![(Refusal::Policy, 4), (Refusal::AsLoop, 2)];
    peer.malformed = MalformedCounters { treated_as_withdraw: 1, ..MalformedCounters::default() };
    peer.last_malformed = Some(LastMalformed {
        ago: Duration::from_secs(61),
        text: "treated as withdrawal: attribute 1: 3 is no origin".to_owned(),
        body: vec![0x00, 0x00, 0xff],
    });
    let peer = &shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"];
    assert_eq!(peer["refusedPrefixes"].to_string(), r#"{"policy":4,"asLoop":2}"#);
    let counters = json!({"attributeDiscard": 0, "treatAsWithdraw": 1, "reset": 0});
    assert_eq!(peer["malformedUpdates"].to_string(), counters.to_string());
    let last: &Value = &peer["lastMalformedUpdate"];
    assert_shape(last, "agoMsec:n text:s bytes:s");
    assert_eq!((&last["agoMsec"], &last["bytes"]), (&json!(61_000), &json!("0000ff")));
    let lines = text(&lab, &neighbors("10.1.1.2")).unwrap();
    for line in [
        "  6 refused prefixes\n",
        "  Refused announcements: 4: toReceive does not allow the prefix\n",
        "  Refused announcements: 2: our own AS is in the path\n",
        "  Malformed updates: attribute discard 0, treat as withdraw 1, reset 0\n",
        "  Last malformed update 00:01:01 ago: treated as withdrawal: attribute 1: 3 is no origin\n    \
         3 bytes: 0000ff\n",
    ] {
        assert!(lines.contains(line), "{line}{lines}");
    }
}

#[test]
fn an_ipv6_path_has_a_global_and_a_link_local_next_hop_of_which_the_second_is_used() {
    let family = AddressFamily::Ipv6Unicast;
    let mut lab = Lab::new();
    let global = "2001:db8:1:1::2".parse().unwrap();
    let by_way_of = |link_local: Option<&str>| {
        let next_hop = NextHop::ipv6(global, link_local.and_then(|it| it.parse().ok()));
        learned("2001:db8:200::/48", heard(1, &[65010], |it| it.next_hop = next_hop), None)
    };
    let table = ShowCommand::BgpUnicast { family, prefix: None };
    let entry = ShowCommand::BgpUnicast { family, prefix: Some("2001:db8:200::/48".to_owned()) };

    lab.bgp.learned = vec![by_way_of(Some("fe80::2"))];
    let hops = shown(&lab, &table)["routes"]["2001:db8:200::/48"][0]["nexthops"].take();
    assert_shape(&hops[0], "ip:s afi:s scope:s");
    assert_shape(&hops[1], "ip:s afi:s scope:s used:b");
    assert_eq!((&hops[0]["ip"], &hops[1]["ip"]), (&json!("2001:db8:1:1::2"), &json!("fe80::2")));
    let hops = shown(&lab, &entry)["paths"][0]["nexthops"].take();
    assert_shape(&hops[0], "ip:s afi:s scope:s metric:n accessible:b");
    assert_shape(&hops[1], "ip:s afi:s scope:s accessible:b used:b");
    let lines = "    2001:db8:1:1::2 from 10.1.1.2 (10.0.0.2)\n    (fe80::2) (used)\n";
    assert!(text(&lab, &entry).unwrap().contains(lines));

    lab.bgp.learned = vec![by_way_of(None)];
    let hops = shown(&lab, &entry)["paths"][0]["nexthops"].take();
    assert_shape(&hops[0], "ip:s afi:s scope:s metric:n accessible:b used:b");
    assert_eq!(hops.as_array().unwrap().len(), 1);
}
