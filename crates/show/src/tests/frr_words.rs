//! The commands that exist only in FRR: parts of summaries, parts of tables, counts.

use super::lab::Lab;
use super::*;

const IPV4: AddressFamily = AddressFamily::Ipv4Unicast;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn carrying(text: &str, is_large: bool, is_exact: bool) -> ShowCommand {
    let filter = TableFilter::Community { text: text.to_owned(), is_large, is_exact };
    ShowCommand::BgpFiltered { family: IPV4, filter }
}

#[test]
fn a_family_by_its_full_name_has_no_layer_of_its_own() {
    let lab = Lab::new();
    let of = |families| json(&lab, &summary_of(families, SummaryFilter::Everybody));
    let all = of(SummaryFamilies::All);
    assert_eq!(keys(&all), ["ipv4Unicast", "ipv6Unicast"]);
    let by_name = of(SummaryFamilies::OneByName(IPV4));
    assert_eq!(keys(&by_name), ["ipv4Unicast"]);
    assert_eq!(of(SummaryFamilies::One(IPV4)), all["ipv4Unicast"]);
    assert_eq!(by_name["ipv4Unicast"], all["ipv4Unicast"]);
}

#[test]
fn failed_neighbors_are_listed_with_the_reason_and_established_ones_apart() {
    let lab = Lab::new();
    let of = |filter| json(&lab, &summary_of(SummaryFamilies::One(IPV4), filter));
    let all = of(SummaryFilter::Everybody);
    let (failed, established) = (of(SummaryFilter::Failed), of(SummaryFilter::Established));
    let count = failed["failedPeers"].as_u64().unwrap();
    assert_eq!(keys(&failed["peers"]).len() as u64, count);
    let total = keys(&failed["peers"]).len() + keys(&established["peers"]).len();
    assert_eq!(keys(&all["peers"]).len(), total);
    for (_, peer) in failed["peers"].as_object().unwrap() {
        assert!(peer["lastResetDueTo"].is_string() && peer["lastResetCode"].is_number());
        assert!(peer.get("remoteAs").is_none());
    }
    for (_, peer) in established["peers"].as_object().unwrap() {
        assert_eq!(peer["state"], "Established");
    }
}

#[test]
fn a_family_where_all_is_well_says_so() {
    let mut lab = Lab::new();
    lab.bgp.peers.retain(|peer| peer.state.name() == "Established");
    let command = summary_of(SummaryFamilies::One(IPV4), SummaryFilter::Failed);
    let failed = json(&lab, &command);
    assert_eq!(keys(&failed), ["failedPeersCount", "dynamicPeers", "totalPeers"]);
    assert!(text(&lab, &command).unwrap().contains("% No failed BGP neighbors found"));
}

#[test]
fn a_community_selects_paths_and_leaves_the_totals() {
    let lab = Lab::new();
    for filter in [carrying("65001:100", false, false), carrying("65001:1:10", true, true)] {
        let table = json(&lab, &filter);
        assert_eq!(keys(&table["routes"]), ["203.0.113.10/32", "203.0.113.11/32"]);
        assert_eq!(table["totalPaths"], 3);
    }
    // Each has no-export beside it.
    for filter in [carrying("65001:100", false, true), carrying("65001:999", false, false)] {
        let table = json(&lab, &filter);
        assert_eq!((&table["totalRoutes"], &table["totalPaths"]), (&0.into(), &3.into()));
        assert_eq!(text(&lab, &filter).unwrap(), "");
    }
    let malformed = carrying("65001:99999", false, false);
    let error = text(&lab, &malformed).unwrap_err();
    assert_eq!(error.to_string(), "% Community malformed: 65001:99999");
}

#[test]
fn routes_of_one_family_are_shown_alone() {
    let lab = Lab::new();
    let of = |peer: &str, family, routes| {
        json(&lab, &ShowCommand::BgpPeerRoutes { peer: peer.to_owned(), family, routes })
    };
    let ipv6 = Some(AddressFamily::Ipv6Unicast);
    let none = of("10.1.1.2", ipv6, PeerRoutes::Advertised);
    assert_eq!(none["warning"], "No such neighbor or address family");
    let advertised = of("10.1.1.2", Some(IPV4), PeerRoutes::Advertised);
    assert!(advertised["totalPrefixCounter"].as_u64().unwrap() > 0);
    let filtered = of("10.1.1.2", Some(IPV4), PeerRoutes::Filtered);
    assert_eq!(filtered["warning"], "Inbound soft reconfiguration not enabled");
}

#[test]
fn details_are_those_of_each_entry() {
    let lab = Lab::new();
    let all = json(&lab, &ShowCommand::BgpUnicastDetail { family: IPV4 });
    for (prefix, paths) in all["routes"].as_object().unwrap() {
        let one = lab::table_ipv4(Some(prefix));
        assert_eq!(*paths, json(&lab, &one)["paths"]);
        let details = text(&lab, &ShowCommand::BgpUnicastDetail { family: IPV4 }).unwrap();
        assert!(details.contains(&text(&lab, &one).unwrap()));
    }
    assert_eq!(all["totalRoutes"], 2);
}

#[test]
fn without_bfd_there_is_nobody_to_show() {
    let lab = Lab::new();
    let brief = ShowCommand::BfdPeers { detail: BfdDetail::Brief };
    assert_eq!(json(&lab, &brief), Value::Array(Vec::new()));
    let heads = text(&lab, &brief).unwrap();
    assert!(heads.starts_with("Session count: 0\nSessionId  LocalAddress   "), "{heads}");
    let peer = ShowCommand::BfdPeer { peer: "10.1.1.77".to_owned(), detail: BfdDetail::Full };
    let error = text(&lab, &peer).unwrap_err();
    assert_eq!(error.to_string(), "% Unable to find 'peer 10.1.1.77'");
}
