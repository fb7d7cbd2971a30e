//! Which peers are told what by which nodes, and what is done about filters and selectors of any size.

use std::fmt::Write as _;

use super::{calico, cilium, filter, frr, imported, notes, received, untranslated};
use crate::faults;

/// The objects of a kind in the result.
fn objects(text: &str, kind: &str) -> Vec<String> {
    let yaml = imported(text).yaml();
    assert_eq!(faults(&yaml), [""; 0], "{yaml}");
    let is_of_kind = |it: &&str| it.contains(&format!("\nkind: {kind}\n"));
    yaml.split("---").filter(is_of_kind).map(str::to_owned).collect()
}

/// Two racks of Cilium with one router, which the racks tell of Services with other labels.
fn racks(first: &str, second: &str) -> String {
    let rack = |number: u8, nodes: &str, select: &str| {
        format!(
            "---
apiVersion: cilium.io/v2
kind: CiliumBGPClusterConfig
metadata: {{name: c{number}}}
spec: {{{nodes}bgpInstances: [{{name: i, localASN: 64512, peers: [{{name: p, peerASN: 64513, peerAddress: 192.0.2.1, peerConfigRef: {{name: x{number}}}}}]}}]}}
---
apiVersion: cilium.io/v2
kind: CiliumBGPPeerConfig
metadata: {{name: x{number}}}
spec: {{families: [{{afi: ipv4, safi: unicast, advertisements: {{matchLabels: {{rack: {select}}}}}}}]}}
---
apiVersion: cilium.io/v2
kind: CiliumBGPAdvertisement
metadata: {{name: services{number}, labels: {{rack: r{number}}}}}
spec: {{advertisements: [{{advertisementType: Service, service: {{addresses: [LoadBalancerIP]}}, selector: {{matchLabels: {{rack: r{number}}}}}}}]}}
"
        )
    };
    rack(1, first, "r1") + &rack(2, second, "r2")
}

#[test]
fn racks_of_cilium_tell_a_router_only_of_their_own_services() {
    let nodes = |rack: &str| format!("nodeSelector: {{matchLabels: {{rack: {rack}}}}}, ");
    let text = racks(&nodes("r1"), &nodes("r2"));
    assert_eq!(untranslated(&text), [""; 0]);
    assert_eq!(objects(&text, "BGPPeer").len(), 1);
    let advertisements = objects(&text, "BGPAdvertisement");
    assert_eq!(advertisements.len(), 2, "{advertisements:?}");
    for (it, rack) in advertisements.iter().zip(["r1", "r2"]) {
        let nodes = format!(
            "  nodeSelectors:\n    - matchLabels:\n        rack: {rack}\n  peers:\n    - i-p\n"
        );
        assert!(it.contains(&nodes), "{it}");
    }
}

#[test]
fn nodes_that_may_be_of_both_racks_get_one_of_two_peers_that_are_told_other_things() {
    let by_rack = "nodeSelector: {matchLabels: {rack: r1}}, ";
    for other in ["", "nodeSelector: {matchLabels: {zone: z}}, ", by_rack] {
        let text = racks(by_rack, other);
        let named = untranslated(&text);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].contains("CiliumBGPClusterConfig/c2: "), "{named:?}");
        assert!(named[0].contains("with other settings or announcements"), "{named:?}");
        assert_eq!(objects(&text, "BGPAdvertisement").len(), 1);
    }
}

#[test]
fn conditions_that_contradict_each_other_keep_racks_apart() {
    let nodes = |condition: &str| {
        format!("nodeSelector: {{matchExpressions: [{{key: rack, {condition}}}]}}, ")
    };
    let is_one = "operator: In, values: [r1, r3]";
    for (other, is_apart) in [
        ("operator: In, values: [r2]", true),
        ("operator: In, values: [r2, r3]", false),
        ("operator: NotIn, values: [r1, r2, r3]", true),
        ("operator: NotIn, values: [r1]", false),
        ("operator: DoesNotExist", true),
        ("operator: Exists", false),
    ] {
        for (a, b) in [(is_one, other), (other, is_one)] {
            let named = untranslated(&racks(&nodes(a), &nodes(b)));
            assert_eq!(named.is_empty(), is_apart, "{a} {b}: {named:?}");
        }
    }
}

#[test]
fn two_policies_of_cilium_tell_a_router_what_each_of_them_says() {
    let policy = |rack: &str, export: &str| {
        format!(
            "---\napiVersion: cilium.io/v2alpha1\nkind: CiliumBGPPeeringPolicy\nmetadata: {{name: {rack}}}\nspec: {{nodeSelector: \
             {{matchLabels: {{rack: {rack}}}}}, virtualRouters: [{{localASN: 64512, {export}: true, neighbors: [{{peerASN: 64513, \
             peerAddress: 192.0.2.1/32}}]}}]}}\n"
        )
    };
    let pods = policy("r1", "exportPodCIDR");
    let text = pods.clone() + &policy("r2", "exportPodCIDR").replace("true", "false");
    assert_eq!(objects(&text, "BGPPeer").len(), 1);
    let advertisements = objects(&text, "BGPAdvertisement");
    assert_eq!(advertisements.len(), 1, "{advertisements:?}");
    let nodes = "  nodeSelectors:\n    - matchLabels:\n        rack: r1\n  peers:\n";
    assert!(advertisements[0].contains(nodes), "{advertisements:?}");
    assert_eq!(untranslated(&text), [""; 0]);
    // A policy without a translated peer says so.
    let lost = notes(&pods.replace("/32", "/24"));
    assert!(lost.iter().any(|it| it.contains("has none of its peers")), "{lost:?}");
}

/// A second BGPPeer to the same router.
fn second_peer(spec: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {{name: other}}\nspec: {{peerIP: 10.0.0.1, asNumber: \
         64513{spec}}}\n"
    )
}

#[test]
fn a_rack_of_calico_whose_filter_rejects_our_routes_announces_none() {
    let rejecting = filter("  exportV4: [{action: Reject}]\n");
    let more = second_peer(", nodeSelector: \"rack == 'b'\", filters: [f]") + &rejecting;
    let text = calico(", nodeSelector: \"rack == 'a'\"", &more);
    assert_eq!(untranslated(&text), [""; 0]);
    assert_eq!(objects(&text, "BGPPeer").len(), 1);
    let advertisements = objects(&text, "BGPAdvertisement");
    assert_eq!(advertisements.len(), 1, "{advertisements:?}");
    let nodes = "  nodeSelectors:\n    - matchLabels:\n        rack: a\n  peers:\n    - router\n";
    assert!(advertisements[0].contains(nodes), "{advertisements:?}");
    // For all nodes, nothing keeps the two apart.
    let named = untranslated(&calico("", &more));
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("BGPPeer/other: "), "{named:?}");
}

#[test]
fn racks_that_announce_the_same_need_no_selectors_and_name_the_peer_once() {
    let text =
        calico(", nodeSelector: \"rack == 'a'\"", &second_peer(", nodeSelector: \"rack == 'b'\""));
    let advertisements = objects(&text, "BGPAdvertisement");
    assert_eq!(advertisements.len(), 1, "{advertisements:?}");
    assert!(advertisements[0].ends_with("  peers:\n    - router\n"), "{advertisements:?}");
    assert!(!advertisements[0].contains("nodeSelectors"), "{advertisements:?}");
}

#[test]
fn an_advertisement_names_its_peers_also_where_they_are_all_of_the_text() {
    let foreign = frr("k", "", "").replace("10.0.0.1", "10.0.0.9");
    let text = calico("", &format!("---\n{foreign}"));
    assert_eq!(objects(&text, "BGPPeer").len(), 2);
    let advertisements = objects(&text, "BGPAdvertisement");
    assert_eq!(advertisements.len(), 1, "{advertisements:?}");
    assert!(advertisements[0].ends_with("  peers:\n    - router\n"), "{advertisements:?}");
}

#[test]
fn what_is_told_to_no_peer_of_the_text_is_left_out_and_named() {
    let text = calico("", "");
    let (without_peers, _) = text.split_once("---").unwrap();
    assert_eq!(objects(without_peers, "BGPAdvertisement"), [""; 0]);
    let named = untranslated(without_peers);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("spec.serviceExternalIPs[0]: 192.0.2.0/24 is left out"), "{named:?}");
    let lost = text.replace("peerIP: 10.0.0.1", "peerSelector: all()");
    assert_eq!(objects(&lost, "BGPAdvertisement"), [""; 0]);
    assert_eq!(untranslated(&lost).len(), 1);
    let said = notes(&lost);
    assert!(said.iter().any(|it| it.contains("192.0.2.0/24 is left out")), "{said:?}");
    let family =
        "  families: [{afi: ipv4, safi: unicast, advertisements: {matchLabels: {announce: no}}}]";
    let untold = cilium("192.0.2.1", family);
    assert_eq!(objects(&untold, "BGPAdvertisement"), [""; 0]);
    assert_eq!(notes(&untold).len(), 1);
}

#[test]
fn a_filter_of_thousands_of_rules_is_too_long_for_received_routes_and_read_to_its_end_for_ours() {
    let mut rules = String::new();
    for (direction, operator) in [("importV4", "In"), ("exportV4", "In")] {
        writeln!(rules, "  {direction}:").unwrap();
        for it in 0..3000 {
            let (high, low) = (it / 256, it % 256);
            writeln!(
                rules,
                "    - {{action: Reject, matchOperator: {operator}, cidr: 10.{high}.{low}.0/24}}"
            )
            .unwrap();
        }
    }
    let text = calico(", filters: [f]", &filter(&rules));
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("filters: are more than 64 rules"), "{named:?}");
    assert!(received(&text).ends_with("    rules:\n      - action: reject\n"));
    assert_eq!(objects(&text, "BGPAdvertisement").len(), 1);
    // Each of these is undecided about our routes, and leaves a scope inside another one.
    let negated = "    - {action: Reject, matchOperator: NotIn, cidr: 192.0.0.0/8}\n".repeat(3000);
    let undecided = "    - {action: Reject, communities: {values: ['1:1']}}\n".repeat(3000);
    let rules = format!("  importV4:\n{negated}  exportV4:\n{undecided}");
    let text = calico(", filters: [f]", &filter(&rules));
    assert_eq!(untranslated(&text).len(), 3001);
    assert_eq!(objects(&text, "BGPAdvertisement"), [""; 0]);
}

#[test]
fn a_selector_of_thousands_of_parts_is_read_in_no_time() {
    let joined =
        |part: fn(usize) -> String, by: &str| (0..20_000).map(part).collect::<Vec<_>>().join(by);
    for (selector, why) in [
        (joined(|it| format!("a == '{it}'"), " || "), "too many alternatives"),
        (joined(|it| format!("has(a{it})"), " && "), "too many conditions"),
    ] {
        let named = untranslated(&calico(&format!(", nodeSelector: \"{selector}\""), ""));
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].contains(why), "{named:?}");
    }
    let values = joined(|it| format!("'{it}'"), ", ");
    assert_eq!(
        untranslated(&calico(&format!(", nodeSelector: \"a in {{{values}}}\""), "")),
        [""; 0]
    );
    let same = joined(|_| "has(a)".to_owned(), " || ");
    assert_eq!(untranslated(&calico(&format!(", nodeSelector: \"{same}\""), "")), [""; 0]);
}

#[test]
fn a_filter_that_is_missing_beside_another_one_lets_nothing_through() {
    let rules = filter("  importV4: [{action: Accept}]\n  exportV4: [{action: Accept}]\n");
    for filters in ["[f, lost]", "[lost, f]"] {
        let text = calico(&format!(", filters: {filters}"), &rules);
        let named = untranslated(&text);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(
            named[0].contains("the text has no BGPFilter lost: nothing is accepted"),
            "{named:?}"
        );
        let expected = "    allowed:\n      mode: all\n    rules:\n      - action: reject\n";
        assert_eq!(received(&text), expected);
        assert_eq!(objects(&text, "BGPAdvertisement"), [""; 0]);
    }
}
