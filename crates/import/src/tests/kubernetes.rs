//! Cilium, Calico and frr-k8s.

mod announced;

use super::{compare, imported};

fn untranslated(text: &str) -> Vec<String> {
    imported(text).untranslated_lines().iter().map(ToString::to_string).collect()
}

fn notes(text: &str) -> Vec<String> {
    imported(text).notes().iter().map(ToString::to_string).collect()
}

/// A cluster of Cilium with one peer at `address`, whose config has `config`, and an advertisement of all Services.
fn cilium(address: &str, config: &str) -> String {
    format!(
        "apiVersion: cilium.io/v2
kind: CiliumBGPClusterConfig
metadata: {{name: c}}
spec: {{bgpInstances: [{{name: i, localASN: 64512, peers: [{{name: p, peerASN: 64513, peerAddress: '{address}', peerConfigRef: {{name: x}}}}]}}]}}
---
apiVersion: cilium.io/v2
kind: CiliumBGPPeerConfig
metadata: {{name: x}}
spec:
{config}
---
apiVersion: cilium.io/v2
kind: CiliumBGPAdvertisement
metadata: {{name: services, labels: {{announce: bgp}}}}
spec: {{advertisements: [{{advertisementType: Service, service: {{addresses: [LoadBalancerIP]}}, selector: {{}}}}]}}
"
    )
}

/// A BGPPeer of Calico, without a mesh, and more objects.
fn calico(spec: &str, more: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3
kind: BGPConfiguration
metadata: {{name: default}}
spec: {{nodeToNodeMeshEnabled: false, serviceExternalIPs: [{{cidr: 192.0.2.0/24}}]}}
---
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {{name: router}}
spec: {{peerIP: 10.0.0.1, asNumber: 64513{spec}}}
{more}"
    )
}

/// `---` and a BGPFilter `f`.
fn filter(rules: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {{name: f}}\nspec:\n{rules}"
    )
}

/// The part of the result after the last `toReceive:`.
fn received(text: &str) -> String {
    let yaml = imported(text).yaml();
    let (_, after) = yaml.rsplit_once("  toReceive:\n").unwrap();
    after.split("---").next().unwrap().to_owned()
}

#[test]
fn samples_of_cilium_come_to_what_is_written_beside_them() {
    for name in
        ["tor-pair", "default-gateway", "attributes", "peering-policy", "pools-and-layer2", "list"]
    {
        compare("cilium", name, "yaml");
    }
}

#[test]
fn samples_of_calico_come_to_what_is_written_beside_them() {
    for name in ["racks", "services", "filters", "route-reflectors", "nodes", "crds"] {
        compare("calico", name, "yaml");
    }
}

#[test]
fn samples_of_frr_k8s_come_to_what_is_written_beside_them() {
    for name in ["basic", "attributes", "merged", "vrf", "by-node", "unnumbered"] {
        compare("frr-k8s", name, "yaml");
    }
}

#[test]
fn a_cilium_peer_without_its_peer_config_is_named() {
    let text = "apiVersion: cilium.io/v2
kind: CiliumBGPClusterConfig
metadata: {name: c}
spec:
  bgpInstances:
    - name: i
      localASN: 64512
      peers:
        - name: p
          peerASN: 64513
          peerAddress: 192.0.2.1
          peerConfigRef:
            name: lost
";
    assert_eq!(
        untranslated(text),
        [
            "sample:13: CiliumBGPClusterConfig/c: spec.bgpInstances[0].peers[0].peerConfigRef.name: the text has no \
          CiliumBGPPeerConfig lost, so the peer is left out: add that object"
        ]
    );
    assert_eq!(imported(text).yaml(), "");
}

#[test]
fn an_advertisement_for_both_families_of_a_session_has_its_peer() {
    let family = |afi: &str| {
        format!(
            "    - {{afi: {afi}, safi: unicast, advertisements: {{matchLabels: {{announce: bgp}}}}}}\n"
        )
    };
    let both = format!("  families:\n{}{}", family("ipv4"), family("ipv6"));
    let expected = "\
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata:
  name: i-p
spec:
  myASN: 64512
  peerASN: 64513
  peerAddress: \"192.0.2.1\"
  dualStackAddressFamily: true
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata:
  name: services
spec:
  peers:
    - i-p
";
    let text = cilium("192.0.2.1", &both);
    assert_eq!(imported(&text).yaml(), expected);
    assert_eq!(untranslated(&text), [""; 0]);
}

#[test]
fn an_advertisement_for_one_family_of_two_is_not_announced_in_the_other() {
    let only = "  families:
    - {afi: ipv4, safi: unicast}
    - {afi: ipv6, safi: unicast, advertisements: {matchLabels: {announce: bgp}}}";
    let text = cilium("192.0.2.1", only);
    assert!(!imported(&text).yaml().contains("BGPAdvertisement"), "{}", imported(&text).yaml());
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(
        named[0]
            .contains("spec.families[1].advertisements: selects services for one address family"),
        "{named:?}"
    );
}

#[test]
fn an_aggregate_of_cilium_that_is_wider_than_a_pool_is_not_announced() {
    let family =
        "  families: [{afi: ipv4, safi: unicast, advertisements: {matchLabels: {announce: bgp}}}]";
    let text = cilium("192.0.2.1", family).replace(
        "addresses: [LoadBalancerIP]",
        "addresses: [LoadBalancerIP], aggregationLengthIPv4: 24",
    ) + "---\napiVersion: cilium.io/v2\nkind: CiliumLoadBalancerIPPool\nmetadata: {name: small}\nspec: {blocks: [{cidr: 198.51.100.0/28}]}\n";
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("24 is shorter than a block of pool small"), "{named:?}");
    assert!(!imported(&text).yaml().contains("BGPAdvertisement"));
}

#[test]
fn a_selector_by_namespace_announces_no_more_services_than_it_did() {
    let family =
        "  families: [{afi: ipv4, safi: unicast, advertisements: {matchLabels: {announce: bgp}}}]";
    let text = cilium("192.0.2.1", family)
        .replace("selector: {}", "selector: {matchLabels: {io.kubernetes.service.namespace: a}}");
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(
        named[0].contains("spec.advertisements[0].selector: selects Services by namespace or name"),
        "{named:?}"
    );
    assert!(!imported(&text).yaml().contains("BGPAdvertisement"));
}

#[test]
fn a_missing_secret_gets_a_placeholder_and_is_named() {
    let text = cilium("192.0.2.1", "  authSecretRef: lost");
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(
        named[0].contains("spec.authSecretRef: the text has no Secret lost with the key password"),
        "{named:?}"
    );
    assert!(imported(&text).yaml().contains("password: PUT-THE-PASSWORD-HERE"));
}

#[test]
fn no_password_is_in_a_message() {
    let text = cilium("192.0.2.1", "  authSecretRef: s")
        + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hush-hush}\n";
    let outcome = imported(&text);
    let messages: String =
        untranslated(&text).into_iter().chain(notes(&text)).collect::<Vec<_>>().join("\n");
    assert!(!messages.contains("hush-hush"), "{messages}");
    assert!(outcome.yaml().contains("stringData:\n  password: hush-hush"), "{}", outcome.yaml());
}

#[test]
fn a_misspelt_field_is_named_with_its_line() {
    let text = cilium("192.0.2.1", "  timers:\n    holdTime: 9");
    assert_eq!(
        untranslated(&text),
        [
            "sample:11: CiliumBGPPeerConfig/x: spec.timers.holdTime: is no field that is known here: check its name, and set by \
          hand what it does"
        ]
    );
}

#[test]
fn labels_and_status_are_not_named() {
    let text = "apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: r, labels: {a: b}, annotations: {c: d}, uid: x, creationTimestamp: null, managedFields: [{manager: kubectl}]}
spec: {peerIP: 10.0.0.1, asNumber: 64513, nextHopMode: null}
status: {conditions: [{type: Ready}]}
";
    assert_eq!(untranslated(text), [""; 0]);
}

#[test]
fn a_document_that_is_no_yaml_is_named_and_the_others_are_read() {
    let text = format!("{}---\nkind: [\n", calico("", ""));
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains(": YAML: "), "{named:?}");
    assert!(imported(&text).yaml().contains("peerAddress: \"10.0.0.1\""));
}

#[test]
fn the_mesh_of_calico_is_named_whether_it_is_written_or_the_default() {
    for spec in ["{nodeToNodeMeshEnabled: true}", "{asNumber: 64512}"] {
        let text = format!(
            "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {{name: default}}\nspec: {spec}\n"
        );
        let named = untranslated(&text);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(
            named[0]
                .starts_with("sample:4: BGPConfiguration/default: spec.nodeToNodeMeshEnabled: "),
            "{named:?}"
        );
    }
}

#[test]
fn what_is_not_in_a_range_is_rejected_and_what_is_goes_on() {
    let rules = filter(
        "  importV4:
    - {action: Reject, matchOperator: NotIn, cidr: 10.0.0.0/8}
    - {action: Reject, matchOperator: In, cidr: 10.9.0.0/16}
    - {action: Reject, matchOperator: In, cidr: 172.16.0.0/12}
",
    );
    let expected = "    allowed:
      mode: all
    rules:
      - match:
          prefixes:
            - prefix: \"10.9.0.0/16\"
              le: 32
        action: reject
      - match:
          prefixes:
            - prefix: \"10.0.0.0/8\"
              le: 32
        action: accept
      - action: reject
";
    assert_eq!(received(&calico(", filters: [f]", &rules)), expected);
}

#[test]
fn what_is_not_equal_to_a_prefix_is_accepted_and_the_rest_is_rejected() {
    let rules = filter(
        "  importV4:
    - {action: Accept, matchOperator: NotEqual, cidr: 0.0.0.0/0}
    - {action: Reject}
",
    );
    let expected = "    allowed:
      mode: all
    rules:
      - match:
          prefixes:
            - prefix: \"0.0.0.0/0\"
        action: reject
      - match:
          prefixes:
            - prefix: \"0.0.0.0/0\"
        action: accept
      - action: accept
";
    assert_eq!(received(&calico(", filters: [f]", &rules)), expected);
}

#[test]
fn an_accepting_rule_with_an_unknown_part_rejects() {
    let rules = filter(
        "  importV4:\n    - {action: Accept, cidr: 10.0.0.0/8, matchOperator: In, priority: 100}\n",
    );
    let text = calico(", filters: [f]", &rules);
    assert!(received(&text).contains("le: 32\n        action: reject"), "{}", received(&text));
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("spec.importV4[0].priority: "), "{named:?}");
}

#[test]
fn a_filter_that_rejects_our_routes_keeps_them_from_its_peer() {
    let rejecting =
        filter("  exportV4: [{action: Reject, cidr: 192.0.2.0/24, matchOperator: In}]\n");
    let passing =
        filter("  exportV4: [{action: Reject, cidr: 192.0.2.0/24, matchOperator: NotIn}]\n");
    let learned = filter("  exportV4: [{action: Reject, source: RemotePeers}]\n");
    for (rules, is_told) in [(rejecting, false), (passing, true), (learned, true)] {
        let text = calico(", filters: [f]", &rules);
        let yaml = imported(&text).yaml();
        assert_eq!(yaml.contains("kind: BGPAdvertisement"), is_told, "{rules}{yaml}");
        assert_eq!(untranslated(&text), [""; 0]);
    }
}

#[test]
fn a_filter_whose_verdict_depends_on_communities_keeps_our_routes_from_its_peer_and_is_named() {
    let rules = filter("  exportV4: [{action: Reject, communities: {values: ['65000:1']}}]\n");
    let text = calico(", filters: [f]", &rules);
    assert!(!imported(&text).yaml().contains("kind: BGPAdvertisement"));
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("BGPFilter/f: spec.exportV4[0].action: "), "{named:?}");
}

#[test]
fn selectors_of_calico_become_label_selectors() {
    let selectors = |text: &str| {
        let yaml = imported(&calico(&format!(", nodeSelector: \"{text}\""), "")).yaml();
        let (_, after) = yaml.split_once("  nodeSelectors:\n").unwrap_or_default();
        after.split("---").next().unwrap_or_default().to_owned()
    };
    assert_eq!(selectors("all()"), "");
    assert_eq!(
        selectors("a == 'x' && b != 'y'"),
        "    - matchLabels:\n        a: x\n      matchExpressions:\n        - key: b\n          operator: NotIn\n          values:\n            - \"y\"\n"
    );
    assert_eq!(
        selectors("(has(a) || a not in {'p'}) && !has(b.c/d)").matches("key: b.c/d").count(),
        2
    );
    for wrong in
        ["a contains 'x'", "a == x", "has(a", "has(a))", "!all()", "a == 'x", "global()", "&&", ""]
    {
        let text = calico(&format!(", nodeSelector: \"{wrong} \""), "");
        let named = untranslated(&text);
        assert_eq!(named.len(), 1, "{wrong}: {named:?}");
        assert!(!imported(&text).yaml().contains("kind: BGPPeer"), "{wrong}");
    }
}

#[test]
fn a_selector_of_thousands_of_parentheses_is_refused_without_a_crash() {
    let text = calico(&format!(", nodeSelector: \"{}\"", "(".repeat(100_000)), "");
    assert_eq!(untranslated(&text).len(), 1);
    let wide =
        (0..40).map(|it| format!("(has(a{it}) || has(b{it}))")).collect::<Vec<_>>().join(" && ");
    assert_eq!(untranslated(&calico(&format!(", nodeSelector: \"{wide}\""), "")).len(), 1);
}

#[test]
fn peers_that_differ_in_their_nodes_alone_are_one() {
    let other = "---\napiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {name: other}\nspec: {node: b, peerIP: 10.0.0.1, asNumber: 64513}\n";
    let yaml = imported(&calico(", node: a", other)).yaml();
    assert_eq!(yaml.matches("kind: BGPPeer").count(), 1, "{yaml}");
    assert_eq!(yaml.matches("kubernetes.io/hostname").count(), 2, "{yaml}");
    // One of them is for all nodes.
    let yaml = imported(&calico("", other)).yaml();
    assert_eq!(yaml.matches("kubernetes.io/hostname").count(), 0, "{yaml}");
}

/// An FRRConfiguration for the nodes with `zone: ZONE`, or all, with one neighbor.
fn frr(name: &str, zone: &str, neighbor: &str) -> String {
    let nodes = if zone.is_empty() {
        String::new()
    } else {
        format!("nodeSelector: {{matchLabels: {{zone: {zone}}}}}, ")
    };
    format!(
        "---\napiVersion: frrk8s.metallb.io/v1beta1\nkind: FRRConfiguration\nmetadata: {{name: {name}}}\nspec: {{{nodes}bgp: {{routers: \
         [{{asn: 64512, prefixes: [192.0.2.0/24], neighbors: [{{address: 10.0.0.1, asn: 64513{neighbor}}}]}}]}}}}\n"
    )
}

#[test]
fn a_neighbor_of_frr_k8s_is_told_nothing_without_being_allowed() {
    let yaml = imported(&frr("a", "", "")).yaml();
    assert!(!yaml.contains("BGPAdvertisement") && !yaml.contains("toReceive"), "{yaml}");
    let yaml = imported(&frr("a", "", ", toAdvertise: {allowed: {mode: filtered}}")).yaml();
    assert!(!yaml.contains("BGPAdvertisement"), "{yaml}");
}

#[test]
fn nodes_accept_no_more_than_their_own_configurations_allow() {
    let all = ", toReceive: {allowed: {mode: all}}";
    let some = ", toReceive: {allowed: {prefixes: [{prefix: 10.0.0.0/8}]}}";
    for (a, b, is_received) in [
        (frr("a", "", all), frr("b", "b", some), true),
        (frr("a", "", some), frr("b", "b", all), true),
        (frr("a", "a", all), frr("b", "b", some), false),
        (frr("a", "a", all), frr("b", "b", ""), false),
        (frr("a", "a", all), frr("b", "b", all), true),
        (frr("a", "a", ""), frr("b", "b", ""), false),
    ] {
        let text = a + &b;
        let yaml = imported(&text).yaml();
        assert_eq!(yaml.contains("toReceive"), is_received, "{text}{yaml}");
    }
    let text = frr("a", "", some) + &frr("b", "b", all);
    assert!(imported(&text).yaml().contains("mode: filtered"));
    let named = untranslated(&text);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(
        named[0].contains("FRRConfiguration/b: spec.bgp.routers[0].neighbors[0].toReceive: "),
        "{named:?}"
    );
}

#[test]
fn communities_of_two_configurations_are_on_one_route() {
    let with = |community: &str| {
        format!(
            ", toAdvertise: {{allowed: {{mode: all}}, withCommunity: [{{community: '{community}', prefixes: [192.0.2.0/24]}}]}}"
        )
    };
    let yaml = imported(&(frr("a", "", &with("65000:1")) + &frr("b", "", &with("65000:2")))).yaml();
    assert_eq!(yaml.matches("kind: BGPAdvertisement").count(), 1, "{yaml}");
    assert!(yaml.contains("communities:\n    - \"65000:1\"\n    - \"65000:2\""), "{yaml}");
}

#[test]
fn a_prefix_with_an_unknown_community_is_not_announced() {
    let text = frr(
        "a",
        "",
        ", toAdvertise: {allowed: {mode: all}, withCommunity: [{community: secret-sauce, prefixes: [192.0.2.0/24]}]}",
    );
    assert!(!imported(&text).yaml().contains("BGPAdvertisement"));
    assert_eq!(untranslated(&text).len(), 1);
}

/// Each occurrence of a mark is replaced by something that has another type, one at a time.
#[test]
fn values_of_any_type_come_to_an_end() {
    let changes = [
        (": {", ": [] # {"),
        ("[", "x # ["),
        (": \"", ": 1 # "),
        ("name:", "name: [] #"),
        ("/", "/9"),
    ];
    let folders = ["cilium", "calico", "frr-k8s"].map(super::folder);
    let entries = folders.iter().flat_map(|it| std::fs::read_dir(it).unwrap());
    let paths = entries.map(|it| it.unwrap().path());
    for path in paths.filter(|it| it.extension().is_some_and(|it| it == "yaml")) {
        let text = std::fs::read_to_string(path).unwrap();
        for (old, new) in changes {
            let parts: Vec<&str> = text.split(old).collect();
            for position in 1..parts.len() {
                let (before, after) = parts.split_at(position);
                let changed = format!("{}{new}{}", before.join(old), after.join(old));
                let outcome = crate::import("sample", &changed, Some(crate::Program::Kubernetes));
                assert!(outcome.is_some_and(|it| it.yaml() != changed));
            }
        }
    }
}
