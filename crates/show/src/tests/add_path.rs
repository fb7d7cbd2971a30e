//! Several paths to a prefix, as FRR 8.4 shows them.

use fairway_ground::PathId;
use fairway_seam::capability::{AddPathOffer, Capability};
use serde_json::json;

use super::lab::{self, Lab};
use super::{json as shown, neighbors, text};

fn offer(afi: u16, receive: bool, send: bool) -> AddPathOffer {
    let family = fairway_seam::capability::AddressFamilyPair { afi, safi: 1 };
    AddPathOffer { family, receive, send }
}

fn lab(ours: Vec<AddPathOffer>, theirs: Vec<AddPathOffer>) -> Lab {
    let mut lab = Lab::new();
    let session = lab.router_one().session.as_mut().unwrap();
    session.capabilities_sent.push(Capability::AddPath(ours));
    session.capabilities_received.push(Capability::AddPath(theirs));
    lab
}

#[test]
fn who_offered_several_paths_is_told_by_family_and_direction() {
    let lab = lab(
        vec![offer(1, true, true), offer(2, true, false)],
        vec![offer(1, true, false), offer(2, false, true)],
    );
    let capabilities = &shown(&lab, &neighbors("10.1.1.2"))["10.1.1.2"]["neighborCapabilities"];
    let expected = json!({
        "ipv4Unicast": {"txAdvertised": true, "rxAdvertisedAndReceived": true},
        "ipv6Unicast": {"txReceived": true, "rxAdvertised": true},
    });
    assert_eq!(capabilities["addPath"].to_string(), expected.to_string());
    let lines = "    4 Byte AS: advertised and received
    AddPath:
      IPv4 Unicast: TX advertised
      IPv4 Unicast: RX advertised and received
      IPv6 Unicast: TX received
      IPv6 Unicast: RX advertised
    Route refresh";
    let shown = text(&lab, &neighbors("10.1.1.2")).unwrap();
    assert!(shown.contains(lines), "{shown}");
}

#[test]
fn an_offer_for_a_family_that_nobody_here_knows_is_shown_byte_for_byte() {
    let lab = lab(vec![offer(1, true, false)], vec![offer(25, true, true)]);
    let shown = text(&lab, &neighbors("10.1.1.2")).unwrap();
    assert!(shown.contains("    AddPath:\n      IPv4 Unicast: RX advertised\n"), "{shown}");
    assert!(shown.contains("    Unknown capability 69: received (00190103)\n"), "{shown}");
}

#[test]
fn several_paths_that_a_neighbor_was_told_are_all_shown() {
    let mut lab = Lab::new();
    let advertised = &mut lab.router_one().advertised;
    advertised[0].path_id = PathId::new(1);
    let mut second = advertised[0].clone();
    second.path_id = PathId::new(2);
    let prefix = second.prefix.to_string();
    advertised.insert(1, second);
    let routes = shown(&lab, &super::advertised("10.1.1.2"));
    let entry = &routes["advertisedRoutes"][&prefix];
    assert_eq!(entry["pathId"], 1);
    assert_eq!(entry["otherPaths"].as_array().unwrap().len(), 1);
    assert_eq!(entry["otherPaths"][0]["pathId"], 2);
    assert_eq!(entry["otherPaths"][0]["network"], prefix);
    let rows = text(&lab, &super::advertised("10.1.1.2")).unwrap();
    assert_eq!(rows.matches(&prefix).count(), 2, "{rows}");
}

#[test]
fn a_path_is_shown_with_the_identifier_it_came_with() {
    let mut lab = super::learned::lab();
    let path = lab.bgp.learned[0].clone();
    let mut second = path.clone();
    second.path.path_id = PathId::new(7);
    lab.bgp.learned.insert(1, second);
    let wanted = lab::table_ipv4(Some("10.20.0.0/16"));
    let entry = shown(&lab, &wanted);
    let ids: Vec<_> =
        entry["paths"].as_array().unwrap().iter().map(|it| it.get("addpathRxId")).collect();
    assert_eq!(ids, [None, None, Some(&json!(7))]);
    let entry = text(&lab, &wanted).unwrap();
    assert!(entry.contains("Paths: (3 available, best #1, table default)"), "{entry}");
    assert!(entry.ends_with("not best (AS Path)\n      AddPath ID: RX 7\n"), "{entry}");
    let table = text(&lab, &lab::table_ipv4(None)).unwrap();
    assert!(table.contains("Displayed  4 routes and 6 total paths"), "{table}");
}
