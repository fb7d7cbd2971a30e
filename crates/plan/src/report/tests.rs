//! The effect of an edit on sessions and routes, setting by setting; whole outputs are in `docs/plan.md`.

use std::num::{NonZeroU8, NonZeroU32};
use std::time::Duration;

use fairway_allocator::{Outcome, Reason};
use fairway_ground::{
    Asn, BfdAuthentication, BfdAuthenticationKind, BfdSettings, FamilySet, GracefulRestart,
    Password, PeerKey, RemoteAs, RouterId, ShutdownMessage,
};
use fairway_model::ObjectName;
use fairway_seam::{DesiredRoute, PeerBfd, PeerConfig};

use super::super::{ClusterPlan, NodePlan};
use super::*;

fn peer(called: &str, address: &str) -> PeerConfig {
    let asn = |number| Asn::new(number).unwrap();
    let key = PeerKey::from(address.parse::<std::net::IpAddr>().unwrap());
    let router_id = RouterId::new(NonZeroU32::MIN.get()).unwrap();
    PeerConfig {
        name: called.to_owned(),
        ..PeerConfig::new(key, asn(64500), RemoteAs::Asn(asn(64501)), router_id)
    }
}

/// A plan of nodes that all have these peers, and announce these prefixes to them.
fn plan(nodes: &[&str], peers: &[PeerConfig], prefixes: &[&str]) -> ClusterPlan {
    let keys: std::collections::BTreeSet<_> = peers.iter().map(|peer| peer.key).collect();
    let route = |prefix: &&str| DesiredRoute {
        prefix: prefix.parse().unwrap(),
        peers: keys.clone().into(),
        attributes: std::sync::Arc::default(),
    };
    let node = NodePlan {
        peers: peers.to_vec(),
        routes: prefixes.iter().map(route).collect(),
        ..NodePlan::default()
    };
    let nodes = nodes.iter().map(|name| ((*name).to_owned(), node.clone())).collect();
    ClusterPlan { nodes, ..ClusterPlan::default() }
}

/// The reported effect of a change of one setting: the change, its fields and its effect.
fn fate(before: &PeerConfig, change: impl FnOnce(&mut PeerConfig)) -> [String; 3] {
    let mut after = before.clone();
    change(&mut after);
    let before = plan(&["n1"], std::slice::from_ref(before), &[]);
    let after = plan(&["n1"], &[after], &[]);
    let text = edit_text(&Edit::new(&before, &after));
    let line = text.lines().last().unwrap();
    let cells: Vec<_> = line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let [change, _, _, fields, _, effect] = cells[..] else { panic!("{text}") };
    [change, fields, effect].map(str::to_owned)
}

#[test]
fn a_reset_says_which_field_does_it_and_whether_routes_are_lost() {
    let plain = peer("tor", "192.0.2.1");
    let restarting = PeerConfig { graceful_restart: GracefulRestart::new(120, 0), ..plain.clone() };
    let port = |peer: &mut PeerConfig| peer.port = 1179;
    let lost = "routes are lost until the session is back (enableGracefulRestart is not set)";
    assert_eq!(fate(&plain, port), ["reset", "peerPort 179 -> 1179", lost]);
    let kept = "routes are kept, if the router has graceful restart enabled, too";
    assert_eq!(fate(&restarting, port), ["reset", "peerPort 179 -> 1179", kept]);
    let asn = |peer: &mut PeerConfig| peer.remote_as = RemoteAs::External;
    let until = "routes are lost until the router is configured with the new AS";
    assert_eq!(fate(&restarting, asn), ["reset", "dynamicASN 64501 -> external", until]);
    let mine = |peer: &mut PeerConfig| {
        peer.local_asn = Asn::new(64999).unwrap();
        peer.router_asn = peer.local_asn;
    };
    assert_eq!(fate(&restarting, mine), ["reset", "myASN 64500 -> 64999", until]);
    let off = |peer: &mut PeerConfig| peer.graceful_restart = None;
    let fields = "enableGracefulRestart true (120s) -> false";
    assert_eq!(fate(&restarting, off), ["reset", fields, lost]);
}

#[test]
fn the_first_line_counts_what_becomes_of_services() {
    let outcome = |addresses: &[&str]| Outcome {
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        pool: (!addresses.is_empty()).then(|| "a".to_owned()),
        reason: addresses.is_empty().then_some(Reason::NoAutomaticPool),
    };
    let plan = |outcome: Option<Outcome>| {
        let outcomes = outcome.map(|it| (ObjectName::new("default", "web"), it));
        ClusterPlan { outcomes: outcomes.into_iter().collect(), ..ClusterPlan::default() }
    };
    let (four, six) = ("192.0.2.1", "2001:db8::1");
    let first_line = |before: Option<&[&str]>, after: Option<&[&str]>| {
        let [before, after] = [before, after].map(|it| plan(it.map(outcome)));
        let text = edit_text(&Edit::new(&before, &after));
        text.lines().next().unwrap().to_owned()
    };
    for (before, after, says) in [
        (Some(&[four][..]), Some(&["192.0.2.2"][..]), "Services: 1 moved to other addresses"),
        (Some(&[four, six]), Some(&[four, "2001:db8::2"]), "Services: 1 moved to other addresses"),
        (Some(&[four]), Some(&[]), "Services: 1 left without an address"),
        (Some(&[]), Some(&[four]), "Services: 1 given an address"),
        (Some(&[four]), Some(&[four, six]), "Services: 1 given an address"),
        (Some(&[four, six]), Some(&[six]), "Services: 1 with one address fewer"),
        (Some(&[four, six]), Some(&[six, four]), "Services: unchanged"),
        (None, Some(&[four]), "Services: 1 new"),
        (Some(&[four]), None, "Services: 1 gone"),
    ] {
        assert_eq!(first_line(before, after), says, "{before:?} {after:?}");
    }
}

#[test]
fn keys_are_never_shown() {
    let plain = peer("tor", "192.0.2.1");
    let key = |text: &str| Some(Password::new(text).unwrap());
    let begins = fate(&plain, |peer| peer.password = key("s3cret"));
    let same = "routes are lost until the router is configured with the same keys";
    assert_eq!(begins, ["reset", "password", same]);
    let signed = PeerConfig { password: key("s3cret"), ..plain };
    let goes_on = "stays up, if the router gets the keys within the hold time";
    assert_eq!(fate(&signed, |peer| peer.password = key("other")), ["kept", "password", goes_on]);
}

#[test]
fn an_edit_of_bfd_says_what_is_other_and_no_key() {
    let profile = BfdSettings::default;
    let watched = |settings: BfdSettings| {
        Some(PeerBfd { profile: "fast".to_owned(), settings, strict: false })
    };
    let plain = PeerConfig { bfd: watched(profile()), ..peer("tor", "192.0.2.1") };
    let edit = |before: &PeerConfig, settings| fate(before, |peer| peer.bfd = watched(settings));
    let echo = Some(Duration::from_millis(50));
    let other = BfdSettings { echo_interval: echo, passive: true, ..profile() };
    let fields = "bfdProfile 300/300 ms x 3 -> 300/300 ms x 3, echo 50 ms, passive";
    assert_eq!(edit(&plain, other), ["kept", fields, "stays up"]);
    let signed = |id, key: &[u8]| BfdSettings {
        authentication: BfdAuthentication::new(BfdAuthenticationKind::Sha1, id, key).ok(),
        ..profile()
    };
    let goes_on = "stays up, if the router gets the BFD key within the detection time";
    let fields = "bfdProfile 300/300 ms x 3 -> 300/300 ms x 3, keyed-sha1 7";
    assert_eq!(edit(&plain, signed(7, b"s3cret")), ["kept", fields, goes_on]);
    let before = PeerConfig { bfd: watched(signed(7, b"s3cret")), ..plain.clone() };
    assert_eq!(edit(&before, signed(7, b"other")), ["kept", "bfdProfile", goes_on]);
    // A router may be in between only if the profile allows it.
    let near = |ttl| BfdSettings { minimum_ttl: NonZeroU8::new(ttl).unwrap(), ..profile() };
    let before = PeerConfig { bfd: watched(near(60)), ..plain };
    let fields = "bfdProfile 300/300 ms x 3, TTL 60 -> 300/300 ms x 3, TTL 64";
    assert_eq!(edit(&before, near(64)), ["kept", fields, "stays up"]);
    let before = PeerConfig { multihop: true, ..before };
    let goes_on = "stays up, if the router's multihop BFD packets arrive with the new TTL";
    assert_eq!(edit(&before, near(64)), ["kept", fields, goes_on]);
}

#[test]
fn a_shutdown_is_no_restart() {
    let message = ShutdownMessage::new("maintenance").unwrap();
    let [change, _, effect] = fate(&peer("tor", "192.0.2.1"), |peer| peer.shutdown = Some(message));
    let gone = "shut down; its routes are withdrawn until `shutdown` is removed";
    assert_eq!((change.as_str(), effect.as_str()), ("reset", gone));
}

#[test]
fn a_router_with_another_address_is_the_same_to_the_reader() {
    let before = plan(&["n1"], &[peer("tor", "192.0.2.1")], &[]);
    let after = plan(&["n1"], &[peer("tor", "192.0.2.9")], &[]);
    let text = edit_text(&Edit::new(&before, &after));
    let moved = text.matches("peerAddress 192.0.2.1 -> 192.0.2.9").count();
    assert_eq!(moved, 2, "added and removed:\n{text}");
    assert!(text.contains("Sessions: 1 added, 1 removed\n"), "{text}");
}

#[test]
fn only_routes_that_a_session_carries_are_shown() {
    let both = ["198.51.100.1/32", "2001:db8::1/128"];
    let single = peer("tor", "192.0.2.1");
    let dual = PeerConfig { families: FamilySet::BOTH, ..single.clone() };
    let before = plan(&["n1"], &[single], &both);
    assert!(!text(&before).contains("2001:db8::1"), "{}", text(&before));
    let after = plan(&["n1"], &[dual], &both);
    let json = edit_json(&Edit::new(&before, &after));
    let announced = json["routes"]["announced"].as_array().unwrap();
    let prefixes: Vec<_> = announced.iter().map(|it| it["prefix"].as_str().unwrap()).collect();
    assert_eq!(prefixes, ["2001:db8::1/128"]);
    assert_eq!(json["routes"]["withdrawn"], serde_json::json!([]));
    let field = &json["sessions"]["reset"][0]["fields"][0];
    let expected = serde_json::json!({ "field": "dualStackAddressFamily", "before": "false", "after": "true" });
    assert_eq!(*field, expected);
}

#[test]
fn nodes_and_routers_of_which_the_same_is_true_share_a_line() {
    let peers = [peer("a", "192.0.2.1"), peer("b", "192.0.2.2")];
    let names = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
    let before = plan(&names, &peers, &[]);
    let after = plan(&names, &peers, &["198.51.100.1/32"]);
    let text = edit_text(&Edit::new(&before, &after));
    let expected = "\
Services: unchanged
Sessions: unchanged
Routes: 16 announced

Routes
CHANGE      PREFIX            PEERS   NODES                           ATTRIBUTES   SERVICES
announced   198.51.100.1/32   a, b    n1, n2, n3, n4, n5 and 3 more   <none>       <none>
";
    assert_eq!(text, expected);
    let back = edit_json(&Edit::new(&after, &before));
    assert_eq!(back["routes"]["withdrawn"].as_array().unwrap().len(), 16, "one for each");
}

#[test]
fn a_node_that_goes_takes_its_routes_along() {
    let peers = [peer("a", "192.0.2.1")];
    let before = plan(&["n1", "n2"], &peers, &["198.51.100.1/32"]);
    let after = plan(&["n1"], &peers, &["198.51.100.1/32"]);
    let json = edit_json(&Edit::new(&before, &after));
    assert_eq!(json["routes"]["withdrawn"][0]["node"], "n2");
    assert_eq!(json["sessions"]["removed"][0]["node"], "n2");
    assert_eq!(edit_text(&Edit::new(&after, &after)), "Nothing changes.\n");
}
