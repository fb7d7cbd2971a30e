//! User errors: every invalid input is reported with its line and field, and nothing that worked
//! before is lost.

// A table of inputs is long, and its helpers assert.
#![allow(clippy::panic, clippy::unwrap_used, clippy::too_many_lines)]

#[path = "bad_input/command.rs"]
mod command;
#[path = "bad_input/examples.rs"]
mod examples;
#[path = "bad_input/in_force.rs"]
mod in_force;
#[path = "bad_input/kinds.rs"]
mod kinds;
#[path = "bad_input/leaning.rs"]
mod leaning;
#[path = "bad_input/legal.rs"]
mod legal;
#[path = "bad_input/metallb.rs"]
mod metallb;
#[path = "bad_input/policies.rs"]
mod policies;
#[path = "bad_input/together.rs"]
mod together;

use fairway_model::{Object, ObjectKey};
use fairway_resources::{Catalog, Finding, Resolution};

/// A configuration without findings.
const GOOD: &str = concat!(
    include_str!("good.yaml"),
    "\
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: lb}
type: kubernetes.io/basic-auth
stringData: {password: secret}
"
);

fn good() -> (Catalog, Vec<ObjectKey>) {
    let mut catalog = Catalog::new();
    catalog.file_read("good.yaml", GOOD);
    let resolution = catalog.resolve();
    assert_eq!(resolution.findings, []);
    let keys: Vec<_> = resolution.objects.iter().map(Object::key).collect();
    assert_eq!(keys.len(), 6);
    (catalog, keys)
}

fn assert_all_in_force(resolution: &Resolution, keys: &[ObjectKey], what: &str) {
    let in_force: Vec<_> = resolution.objects.iter().map(Object::key).collect();
    for key in keys {
        assert!(in_force.contains(key), "{what}: {key} is gone");
    }
}

/// Reads `text` as a second file beside the good one.
fn beside_good(what: &str, text: &str) -> Resolution {
    let (mut catalog, keys) = good();
    catalog.file_read("bad.yaml", text);
    let resolution = catalog.resolve();
    assert_all_in_force(&resolution, &keys, what);
    resolution
}

/// Expects one fault, at this line and field, with this text.
#[track_caller]
fn one_fault(what: &str, text: &str, line: usize, field: &str, says: &str) -> Resolution {
    let resolution = beside_good(what, text);
    let faults: Vec<_> = resolution.findings.iter().filter(|it| it.is_fault()).collect();
    let [fault] = faults.as_slice() else { panic!("{what}: {faults:#?}") };
    check(what, fault, line, field, says);
    assert_eq!(resolution.objects.len(), 6, "{what}: an invalid object is in force");
    resolution
}

#[track_caller]
fn check(what: &str, finding: &Finding, line: usize, field: &str, says: &str) {
    assert_eq!(finding.file, "bad.yaml", "{what}: {finding}");
    assert_eq!(finding.line, Some(line), "{what}: {finding}");
    assert_eq!(finding.field.as_deref().unwrap_or_default(), field, "{what}: {finding}");
    assert!(finding.message.contains(says), "{what}: {finding}");
}

/// A peer with these `spec` lines, one field each, from line 6 on.
fn peer(spec: &str) -> String {
    manifest("metallb.io/v1beta2", "BGPPeer", &format!("spec:\n{}", indent(spec)))
}

fn pool(spec: &str) -> String {
    manifest("metallb.io/v1beta1", "IPAddressPool", &format!("spec:\n{}", indent(spec)))
}

fn advertisement(spec: &str) -> String {
    manifest("metallb.io/v1beta1", "BGPAdvertisement", &format!("spec:\n{}", indent(spec)))
}

fn community(value: &str) -> String {
    let spec = format!("communities:\n- name: other\n  value: {value}");
    manifest("metallb.io/v1beta1", "Community", &format!("spec:\n{}", indent(&spec)))
}

fn manifest(version: &str, kind: &str, rest: &str) -> String {
    format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: new\n{rest}\n")
}

fn indent(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

const SOUND_PEER: &str = "myASN: 64500\npeerASN: 64502\npeerAddress: 192.0.2.9\n";

#[rustfmt::skip] // One line for each input.
#[test]
fn text_that_is_no_resource_is_told() {
    for (what, text, line, field, says) in [
        ("not YAML", "a: [1, 2", 1, "", "YAML"),
        ("braces", "{{{ nonsense", 1, "", "key of a mapping"),
        ("prose", "hello", 1, "", "is not a resource"),
        ("a list", "- a\n- b\n", 1, "", "is not a resource"),
        ("tab", "kind: Service\nmetadata:\n\tname: x\n", 3, "", "tab"),
        ("tab behind a colon", "kind:\tService\n", 1, "", "a tab follows a colon"),
        ("open quote", "kind: 'Service\n", 1, "", "YAML"),
        ("missing kind", "apiVersion: v1\nmetadata: {name: x}\n", 1, "kind", "is missing"),
        ("missing both", "metadata: {name: x}\n", 1, "", "apiVersion and kind are missing"),
        ("unknown alias", "apiVersion: v1\nkind: *nobody\n", 2, "", "anchor"),
    ] {
        one_fault(what, text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn kinds_and_versions_that_do_not_exist_are_told() {
    let peer = |version| manifest(version, "BGPPeer", "spec: {}");
    for (what, text, line, field, says) in [
        ("wrong kind", manifest("metallb.io/v1beta1", "IPAdressPool", ""), 2, "kind", "IPAddressPool?"),
        ("odd kind", manifest("metallb.io/v1beta1", "Router", ""), 2, "kind", "expected one of"),
        ("wrong version", peer("metallb.io/v7"), 1, "apiVersion", "use metallb.io/v1beta2"),
        ("core version", manifest("v2", "Service", ""), 1, "apiVersion", "use v1"),
        ("no version", "kind: BGPPeer\nmetadata: {name: x}\n".to_owned(), 1, "apiVersion", "v1beta2"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn names_that_kubernetes_would_refuse_are_told() {
    for (what, metadata, line, field, says) in [
        ("missing name", "{labels: {a: b}}", 3, "metadata.name", "is missing"),
        ("no metadata", "null", 3, "metadata.name", "is missing"),
        ("capital", "\n  name: Upper", 4, "metadata.name", "lower-case"),
        ("number", "\n  name: 5", 4, "metadata.name", "in quotes"),
        ("namespace", "\n  name: x\n  namespace: a.b", 5, "metadata.namespace", "is not a namespace"),
        ("unknown", "\n  name: x\n  lables: {a: b}", 5, "metadata.lables", "labels?"),
        ("label", "\n  name: x\n  labels:\n    a: 1", 6, "metadata.labels.a", "in quotes"),
    ] {
        let text = format!(
            "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {metadata}\n\
             spec: {{addresses: [203.0.113.0/24]}}\n"
        );
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_peers_are_told() {
    let with = |more: &str| peer(&format!("{SOUND_PEER}{more}"));
    for (what, text, line, field, says) in [
        ("unknown field", with("peerPorts: 179"), 9, "spec.peerPorts", "did you mean peerPort?"),
        ("port 70000", with("peerPort: 70000"), 9, "spec.peerPort", "70000 is not allowed; expected a port from 1 to 16384"),
        ("port 0", with("peerPort: 0"), 9, "spec.peerPort", "0 is not allowed; expected a port from 1 to 16384"),
        ("port -1", with("peerPort: -1"), 9, "spec.peerPort", "1 to 16384"),
        ("huge port", with("peerPort: 99999999999999999999999"), 9, "spec.peerPort", "1 to 16384"),
        ("text port", with("peerPort: '179'"), 9, "spec.peerPort", "without quotes"),
        ("hold time 1s", with("holdTime: 1s"), 9, "spec.holdTime", "3 to 65535"),
        ("bare number", with("holdTime: 90"), 9, "spec.holdTime", "such as 90s"),
        ("no duration", with("holdTime: soon"), 9, "spec.holdTime", "such as 90s"),
        ("keepalive", with("holdTime: 9s\nkeepaliveTime: 10s"), 10, "spec.keepaliveTime", "more than the hold time"),
        ("connect", with("connectTime: 500ms"), 9, "spec.connectTime", "whole seconds"),
        ("long key", with(&format!("password: {}", "x".repeat(100))), 9, "spec.password", "100 bytes"),
        ("number key", with("password: 12345"), 9, "spec.password", "in quotes"),
        ("both keys", with("password: a\npasswordSecret: {name: key}"), 10, "spec.passwordSecret", "cannot both"),
        ("no secret", with("passwordSecret:\n  name: nobody"), 10, "spec.passwordSecret.name", "no usable Secret default/nobody"),
        ("source", with("sourceAddress: 2001:db8::1"), 9, "spec.sourceAddress", "family"),
        ("router ID", with("routerID: 2001:db8::1"), 9, "spec.routerID", "router ID"),
        ("multihop", peer("myASN: 1\npeerASN: 1\npeerAddress: 192.0.2.9\nebgpMultiHop: true"), 9, "spec.ebgpMultiHop", "eBGP only"),
        ("no boolean", with("ebgpMultiHop: maybe"), 9, "spec.ebgpMultiHop", "true or false"),
        ("ASN 0", peer("myASN: 64500\npeerASN: 0\npeerAddress: 192.0.2.9"), 7, "spec.peerASN", "1 to 4294967295"),
        ("ASN too large", peer("myASN: 4294967296\npeerASN: 1\npeerAddress: 192.0.2.9"), 6, "spec.myASN", "1 to 4294967295"),
        ("text ASN", peer("myASN: '64500'\npeerASN: 1\npeerAddress: 192.0.2.9"), 6, "spec.myASN", "without quotes"),
        ("no ASN", peer("peerASN: 1\npeerAddress: 192.0.2.9"), 5, "spec.myASN", "is missing"),
        ("no address", peer("myASN: 1\npeerASN: 2"), 5, "spec.peerAddress", "is missing"),
        ("no IP", peer("myASN: 1\npeerASN: 2\npeerAddress: tor.example"), 8, "spec.peerAddress", "192.0.2.1"),
        ("multicast", peer("myASN: 1\npeerASN: 2\npeerAddress: 224.0.0.1"), 8, "spec.peerAddress", "unicast"),
        ("link-local", peer("myASN: 1\npeerASN: 2\npeerAddress: fe80::1"), 8, "spec.peerAddress", "interface"),
        ("same address", peer("myASN: 1\npeerASN: 2\npeerAddress: 192.0.2.1"), 8, "spec.peerAddress", "BGPPeer/tor"),
        ("no spec", manifest("metallb.io/v1beta2", "BGPPeer", ""), 1, "spec", "is missing"),
        ("spec is text", manifest("metallb.io/v1beta2", "BGPPeer", "spec: x"), 5, "spec", "a mapping"),
        ("restart", with("enableGracefulRestart: 120s"), 9, "spec.enableGracefulRestart", "true or false"),
        ("restart time", with("enableGracefulRestart: true\ngracefulRestart:\n  restartTime: 5000s"), 11, "spec.gracefulRestart.restartTime", "5000s is not allowed; expected whole seconds from 1s to 4095s"),
        ("no restart time", with("enableGracefulRestart: true\ngracefulRestart: {restartTime: 0s}"), 10, "spec.gracefulRestart.restartTime", "0s is not allowed; expected whole seconds from 1s"),
        ("half a second", with("enableGracefulRestart: true\ngracefulRestart: {restartTime: 1500ms}"), 10, "spec.gracefulRestart.restartTime", "whole seconds"),
        ("bare restart time", with("enableGracefulRestart: true\ngracefulRestart: {restartTime: 120}"), 10, "spec.gracefulRestart.restartTime", "such as 90s"),
        ("stale time", with("enableGracefulRestart: true\ngracefulRestart:\n  longLivedStaleTime: 4661h"), 11, "spec.gracefulRestart.longLivedStaleTime", "16779600s is not allowed; expected whole seconds from 0s to 16777215s"),
        ("stale path", with("enableGracefulRestart: true\ngracefulRestart: {stalePathTime: 1m}"), 10, "spec.gracefulRestart.stalePathTime", "expected one of restartTime, longLivedStaleTime"),
        ("restart text", with("enableGracefulRestart: true\ngracefulRestart: 120s"), 10, "spec.gracefulRestart", "a mapping"),
        ("strict without BFD", with("bfdStrict: true"), 9, "spec.bfdStrict", "needs BFD; set spec.bfdProfile"),
        ("kernel", with("installRoutes: main"), 9, "spec.installRoutes", "true or false"),
        ("twice", with("peerASN: 64503"), 9, "spec.peerASN", "lines 7 and 9"),
        ("top field", format!("{}sepc: {{}}\n", peer(SOUND_PEER)), 10, "sepc", "spec?"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_selectors_are_told() {
    let with = |selector: &str| peer(&format!("{SOUND_PEER}nodeSelectors:\n{selector}"));
    let field = |rest: &str| format!("spec.nodeSelectors[{rest}");
    for (what, text, line, rest, says) in [
        ("duplicate", with("- matchLabels: {a: b}\n- matchLabels: {a: b}"), 11, "1]", "entry [0]"),
        ("operator", with("- matchExpressions:\n  - {key: a, operator: Is, values: [b]}"), 11, "0].matchExpressions[0].operator", "NotIn"),
        ("no values", with("- matchExpressions:\n  - {key: a, operator: In}"), 11, "0].matchExpressions[0].values", "is missing"),
        ("values", with("- matchExpressions:\n  - {key: a, operator: Exists, values: [b]}"), 11, "0].matchExpressions[0].values", "left out"),
        ("value twice", with("- matchExpressions:\n  - {key: a, operator: In, values: [b, b]}"), 11, "0].matchExpressions[0].values[1]", "twice"),
        ("unknown", with("- matchLabel: {a: b}"), 10, "0].matchLabel", "matchLabels?"),
        ("empty", with("- "), 10, "0]", "is empty"),
    ] {
        one_fault(what, &text, line, &field(rest), says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_pools_are_told() {
    for (what, spec, line, field, says) in [
        ("bad CIDR", "addresses:\n- 10.0.0.0/33", 7, "spec.addresses[0]", "at most 32"),
        ("reserved host bits", "addresses: [10.0.0.0/24]\nreserved:\n- 10.0.0.1/25", 8, "spec.reserved[0]", "10.0.0.0/25"),
        ("reversed", "addresses:\n- 10.0.0.9-10.0.0.1", 7, "spec.addresses[0]", "ends before"),
        ("two families", "addresses:\n- 10.0.0.9-2001:db8::1", 7, "spec.addresses[0]", "family"),
        ("one address", "addresses:\n- 10.0.0.9", 7, "spec.addresses[0]", "first-last"),
        ("none", "addresses: []", 6, "spec.addresses", "is empty; expected one prefix"),
        ("absent", "autoAssign: true", 5, "spec.addresses", "is missing"),
        ("no list", "addresses: 10.0.0.0/24", 6, "spec.addresses", "a list"),
        ("inside", "addresses:\n- 10.0.0.0/24\n- 10.0.0.7-10.0.0.8", 8, "spec.addresses[1]", "entry [0]"),
        ("between", "addresses:\n- 10.0.0.0/24\n- 198.51.100.7-198.51.100.8", 8, "spec.addresses[1]", "IPAddressPool/public"),
        ("switch", "addresses: [10.0.0.0/24]\nautoAssign: 'yes'", 7, "spec.autoAssign", "true or false"),
    ] {
        one_fault(what, &pool(spec), line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_advertisements_and_communities_are_told() {
    for (what, text, line, field, says) in [
        ("length 33", advertisement("aggregationLength: 33"), 6, "spec.aggregationLength", "1 to 32"),
        ("length 0", advertisement("aggregationLength: 0"), 6, "spec.aggregationLength", "1 to 32"),
        ("length 16", advertisement("aggregationLength: 16"), 6, "spec.aggregationLength", "IPAddressPool/public"),
        ("bad community", advertisement("communities:\n- 65536:1"), 7, "spec.communities[0]", "65001:100"),
        ("bad large", advertisement("communities:\n- large:1:2"), 7, "spec.communities[0]", "large:65001:1:2"),
        ("no alias", advertisement("communities:\n- 1:1\n- nobody"), 8, "spec.communities[1]", "is not defined"),
        ("twice", advertisement("communities: [1:1, 1:1]"), 6, "spec.communities[1]", "twice"),
        ("pool twice", advertisement("ipAddressPools: [public, public]"), 6, "spec.ipAddressPools[1]", "twice"),
        ("preference", advertisement("localPref: -1"), 6, "spec.localPref", "0 to 4294967295"),
        ("service selectors", advertisement("aggregationLength: 24\nserviceSelectors: [{matchLabels: {a: b}}]"), 7, "spec.serviceSelectors", "only with"),
        ("prefix", advertisement("prefixes: [10.0.0.1/8]"), 6, "spec.prefixes[0]", "10.0.0.0/8"),
        ("med", advertisement("med: 4294967296"), 6, "spec.med", "0 to 4294967295"),
        ("prepend", advertisement("asPathPrepend: 17"), 6, "spec.asPathPrepend", "0 to 16"),
        ("no prepend", advertisement("asPathPrepend: -1"), 6, "spec.asPathPrepend", "0 to 16"),
        ("bandwidth word", advertisement("linkBandwidth: much"), 6, "spec.linkBandwidth", "\"much\" is not allowed; expected auto, or bits per second"),
        ("bandwidth unit", advertisement("linkBandwidth: 10G"), 6, "spec.linkBandwidth", "expected auto, or bits per second"),
        ("no bandwidth", advertisement("linkBandwidth: 0"), 6, "spec.linkBandwidth", "from 1 to 1000000000000000"),
        ("huge bandwidth", advertisement("linkBandwidth: 1000000000000001"), 6, "spec.linkBandwidth", "from 1 to"),
        ("bad value", community("64500"), 8, "spec.communities[0].value", "in quotes"),
        ("bad text", community("a:b"), 8, "spec.communities[0].value", "65001:100"),
        ("same alias", community("1:1").replace("other", "customers"), 7, "spec.communities[0].name", "Community/names"),
        ("no name", community("1:1").replace("other", "'1:2'"), 7, "spec.communities[0].name", "another name"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_services_and_secrets_are_told() {
    let service = |annotation: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: new\n  annotations: {{{annotation}}}\n\
             spec:\n  type: LoadBalancer\n{}",
            indent(spec)
        )
    };
    let wants = |addresses: &str| format!("metallb.io/loadBalancerIPs: '{addresses}'");
    let asked = "metadata.annotations[metallb.io/loadBalancerIPs]";
    let secret =
        |data: &str| manifest("v1", "Secret", &format!("type: kubernetes.io/basic-auth\n{data}"));
    for (what, text, line, field, says) in [
        ("two of a family", service(&wants("192.0.2.1,192.0.2.2"), ""), 5, asked, "at most one of each"),
        ("three", service(&wants("192.0.2.1,2001:db8::1,2001:db8::2"), "ipFamilyPolicy: RequireDualStack"), 5, asked, "at most one of each"),
        ("no address", service(&wants("soon"), ""), 5, asked, "is not an IP address"),
        ("both", service(&wants("192.0.2.1"), "loadBalancerIP: 192.0.2.1"), 8, "spec.loadBalancerIP", "cannot both"),
        ("one of two", service(&wants("192.0.2.1"), "ipFamilyPolicy: RequireDualStack"), 5, asked, "one of each"),
        ("other family", service(&wants("192.0.2.1"), "ipFamilies: [IPv6]"), 5, asked, "IPv6"),
        ("families", service("", "ipFamilies: [IPv4, IPv6]\nipFamilyPolicy: SingleStack"), 8, "spec.ipFamilies", "SingleStack"),
        ("family word", service("", "ipFamilies:\n- IPv5"), 9, "spec.ipFamilies[0]", "IPv4 or IPv6"),
        ("policy word", service("", "externalTrafficPolicy: local"), 8, "spec.externalTrafficPolicy", "Cluster or Local"),
        ("type", manifest("v1", "Service", "spec:\n  type: Loadbalancer"), 6, "spec.type", "\"Loadbalancer\" is not allowed; expected ClusterIP, NodePort, LoadBalancer or ExternalName"),
        ("port", service("", "ports:\n- port: 0"), 9, "spec.ports[0].port", "1 to 65535"),
        ("base64", secret("data:\n  password: '!!'"), 7, "data.password", "base64"),
        ("no password", secret("data:\n  username: YQ=="), 6, "data.password", "is missing"),
        ("long", secret(&format!("stringData:\n  password: {}", "x".repeat(81))), 7, "stringData.password", "81 bytes"),
        ("empty", secret("stringData:\n  password: ''"), 7, "stringData.password", "is empty"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[test]
fn no_fault_repeats_a_password() {
    let canary = "7362514";
    for text in [
        peer(&format!("{SOUND_PEER}password: {canary}")),
        peer(&format!("{SOUND_PEER}password: '{}'", canary.repeat(20))),
        peer(&format!("{SOUND_PEER}passwordSecret: {canary}")),
        peer(&format!("{SOUND_PEER}passwordSecret: '{canary}'")),
        manifest("v1", "Secret", &format!("type: kubernetes.io/basic-auth\ndata: '{canary}'")),
        manifest(
            "v1",
            "Secret",
            &format!("type: kubernetes.io/basic-auth\ndata: {{password: {canary}}}"),
        ),
        manifest(
            "v1",
            "Secret",
            &format!("type: kubernetes.io/basic-auth\ndata: {{password: '{canary}'}}"),
        ),
    ] {
        let resolution = beside_good("password", &text);
        assert!(resolution.has_faults());
        assert!(resolution.findings.iter().all(|finding| !finding.to_string().contains(canary)));
    }
}

#[test]
fn a_hundred_faults_of_an_object_are_told() {
    for (text, field) in [
        (pool(&format!("addresses:\n{}", "- 10.0.0.0/8\n".repeat(300))), "spec.addresses[99]"),
        (
            advertisement(&format!("nodeSelectors:\n{}", "- {}\n".repeat(300))),
            "spec.nodeSelectors[99]",
        ),
        (pool(&format!("addresses:\n{}", "- x\n".repeat(300))), "spec.addresses[99]"),
    ] {
        let resolution = beside_good("many", &text);
        assert!(resolution.findings.iter().any(|it| it.field.as_deref() == Some(field)));
        let [.., last] = resolution.findings.as_slice() else { panic!() };
        assert_eq!(last.message, "has more than 100 faults; the rest is not shown");
        assert_eq!(resolution.findings.len(), 101, "{field}");
    }
}

#[test]
fn all_faults_of_an_object_are_told_at_once() {
    let text =
        peer("myASN: 0\npeerASN: x\npeerAddress: tor\nholdTime: 1s\ncolour: red\npeerPort: -1");
    let resolution = beside_good("many", &text);
    let found: Vec<_> =
        resolution.findings.iter().map(|it| (it.line, it.field.as_deref().unwrap())).collect();
    assert_eq!(
        found,
        [
            (Some(6), "spec.myASN"),
            (Some(7), "spec.peerASN"),
            (Some(8), "spec.peerAddress"),
            (Some(9), "spec.holdTime"),
            (Some(10), "spec.colour"),
            (Some(11), "spec.peerPort"),
        ]
    );
}

#[test]
fn hostile_files_are_told_and_cost_nothing() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..30 {
        let list = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let list = vec!["x: {y: z}"; 3000].join("\n- ");
    let faulty = advertisement(&format!("prefixes:\n- {list}"));
    for (what, text, says) in [
        ("bomb", bomb, "more than 1000000 values"),
        ("deep", "[".repeat(1_000_000), "levels deep"),
        ("cycle", "a: &a {b: *a}".to_owned(), "contains it"),
    ] {
        let resolution = beside_good(what, &text);
        let [fault] = resolution.findings.as_slice() else { panic!("{what}") };
        assert!(fault.message.contains(says), "{what}: {fault}");
    }
    assert_eq!(beside_good("many faults", &faulty).findings.len(), 101);
}

#[test]
fn a_finding_is_one_line_in_the_form_of_compilers() {
    let resolution = beside_good("form", &peer(&format!("{SOUND_PEER}peerPort: 70000")));
    assert_eq!(
        resolution.findings[0].to_string(),
        "bad.yaml:9: BGPPeer/new: spec.peerPort: 70000 is not allowed; expected a port from 1 to 16384"
    );
}
