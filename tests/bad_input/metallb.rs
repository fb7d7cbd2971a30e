//! MetalLB's kinds as its API server returns them, and the rules inside one object that only they
//! have.

use fairway_ground::{AddressFamily, HoldTime};
use fairway_model::{FamilyPolicy, Object, Peer, Service};
use fairway_resources::{Resolution, parse_value};

use super::{
    SOUND_PEER, advertisement, beside_good, check, indent, manifest, one_fault, peer, pool,
};

/// The output of `kubectl get -o json` for every kind, with all fields that the API server writes.
const DUMP: &str = include_str!("dump.json");

#[test]
fn what_kubectl_shows_of_every_kind_reads_without_a_fault() {
    let resolution = beside_good("dump", DUMP);
    let faults: Vec<_> = resolution.findings.iter().filter(|it| it.is_fault()).collect();
    assert_eq!(faults, [] as [&fairway_resources::Finding; 0]);
    let read: Vec<_> = resolution.objects.iter().map(|object| object.key().kind).collect();
    for kind in fairway_model::Kind::ALL {
        assert!(read.contains(&kind), "{kind} in {read:?}");
    }
    // ServiceL2Status, ServiceBGPStatus, ConfigurationState, BGPSessionState.
    assert_eq!(resolution.skipped, 4);
}

#[test]
fn a_value_of_the_api_server_reads_as_the_file_of_kubectl_does() {
    let resolution = beside_good("dump", DUMP);
    let mut read = 0;
    let list: serde_json::Value = serde_json::from_str(DUMP).unwrap();
    for item in list["items"].as_array().unwrap() {
        let parsed = parse_value(item);
        assert!(!parsed.is_broken(), "{:?}", parsed.findings);
        let Some(object) = parsed.object else { continue };
        read += 1;
        assert!(resolution.objects.contains(&object), "{object:?}");
    }
    assert_eq!(read, resolution.objects.len() - 6);
}

fn old_peer(spec: &str) -> String {
    manifest("metallb.io/v1beta1", "BGPPeer", &format!("spec:\n{}", indent(spec)))
}

#[track_caller]
fn the_peer(resolution: &Resolution) -> &Peer {
    let mut peers = resolution.objects.iter().filter_map(|object| match object {
        Object::Peer(peer) if peer.name.name == "new" => Some(peer),
        _ => None,
    });
    peers.next().unwrap_or_else(|| panic!("{:#?}", resolution.findings))
}

#[test]
fn timers_that_v1beta1_leaves_out_are_zero_as_metallb_converts_them() {
    let resolution = beside_good("old", &old_peer(SOUND_PEER));
    let [version, zero, off] = resolution.findings.as_slice() else {
        panic!("{:#?}", resolution.findings)
    };
    assert!(resolution.findings.iter().all(|finding| !finding.is_fault()));
    check("old", version, 1, "apiVersion", "use metallb.io/v1beta2");
    check("old", zero, 5, "spec.holdTime", "in metallb.io/v1beta1 means 0s");
    check("old", off, 5, "spec.holdTime", "never detected");
    let peer = the_peer(&resolution);
    assert_eq!((peer.hold_time, peer.keepalive_interval), (HoldTime::OFF, None));
    assert_eq!(peer.port, 179);
}

#[test]
fn what_v1beta1_says_is_what_v1beta2_would_say() {
    let spec = format!(
        "{SOUND_PEER}sourceAddress: 192.0.2.8\npeerPort: 1179\nholdTime: 9s\nkeepaliveTime: 2s\n\
         routerID: 192.0.2.7\nnodeSelectors: [{{matchLabels: {{a: b}}, matchExpressions: [{{key: c, \
         operator: In, values: [d]}}]}}]\npassword: x\nebgpMultiHop: true"
    );
    let old = beside_good("old", &old_peer(&spec));
    let new = beside_good("new", &peer(&spec));
    assert_eq!(the_peer(&old), the_peer(&new));
    let zero = "peerPort: 0\npassword: ''\nrouterID: ''\nsourceAddress: ''\nbfdProfile: ''\n\
                holdTime: 90s\nkeepaliveTime: 30s";
    let old = beside_good("zero", &old_peer(&format!("{SOUND_PEER}{zero}")));
    let new = beside_good("new", &peer(&format!("{SOUND_PEER}holdTime: 90s\nkeepaliveTime: 30s")));
    assert_eq!(the_peer(&old), the_peer(&new));
}

#[test]
fn port_0_that_an_api_server_stored_as_v1beta1_reads_as_179_in_v1beta2() {
    let spec = format!("{SOUND_PEER}peerPort: 0");
    let stored = peer(&spec).replace("metadata:\n", "metadata:\n  uid: 6b1f\n");
    assert_eq!(the_peer(&beside_good("stored", &stored)).port, 179);
    one_fault("written", &peer(&spec), 9, "spec.peerPort", "0 is not allowed");
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_peers_of_v1beta1_are_told() {
    let with = |more: &str| old_peer(&format!("{SOUND_PEER}{more}"));
    for (what, text, line, field, says) in [
        ("newer field", with("vrf: red"), 9, "spec.vrf", "expected one of myASN, peerASN"),
        ("newer AS", with("dynamicASN: external"), 9, "spec.dynamicASN", "is not a known field"),
        ("ours", with("passive: true"), 9, "spec.passive", "is not a known field"),
        ("port", with("peerPort: 16385"), 9, "spec.peerPort", "from 1 to 16384"),
        ("no AS", old_peer("myASN: 1\npeerAddress: 192.0.2.9"), 5, "spec.peerASN", "is missing"),
        ("AS 0", old_peer("myASN: 1\npeerASN: 0\npeerAddress: 192.0.2.9"), 7, "spec.peerASN", "0 is not allowed"),
        ("no address", old_peer("myASN: 1\npeerASN: 2"), 5, "spec.peerAddress", "is missing"),
        ("keepalive alone", with("keepaliveTime: 10s"), 9, "spec.keepaliveTime", "more than the hold time of 0 s"),
        ("hold time", with("holdTime: 2s"), 9, "spec.holdTime", "3 to 65535"),
        ("selectors", with("nodeSelectors:\n- {matchLabels: {a: b}}\n- {matchLabels: {a: b}}"), 11, "spec.nodeSelectors[1]", "entry [0]"),
        ("values", with("nodeSelectors:\n- matchExpressions: [{key: a, operator: NotIn, values: []}]"), 10, "spec.nodeSelectors[0].matchExpressions[0].values", "one value or more"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

fn layer2(spec: &str) -> String {
    manifest("metallb.io/v1beta1", "L2Advertisement", &format!("spec:\n{}", indent(spec)))
}

fn profile(spec: &str) -> String {
    manifest("metallb.io/v1beta1", "BFDProfile", &format!("spec:\n{}", indent(spec)))
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_profiles_and_layer_2_advertisements_are_told() {
    let preferred = |entry: &str| layer2(&format!("preferredNodeSelectors:\n- {entry}"));
    for (what, text, line, field, says) in [
        ("fast", profile("receiveInterval: 9"), 6, "spec.receiveInterval", "from 10 to 60000"),
        ("slow", profile("transmitInterval: 60001"), 6, "spec.transmitInterval", "from 10 to 60000"),
        ("echo", profile("echoInterval: 0"), 6, "spec.echoInterval", "from 10 to 60000"),
        ("one packet", profile("detectMultiplier: 1"), 6, "spec.detectMultiplier", "from 2 to 255"),
        ("no TTL", profile("minimumTtl: 0"), 6, "spec.minimumTtl", "from 1 to 254"),
        ("TTL 255", profile("minimumTtl: 255"), 6, "spec.minimumTtl", "from 1 to 254"),
        ("echo mode", profile("echoMode: 1"), 6, "spec.echoMode", "true or false"),
        ("authentication", profile("authentication: {type: md5, keyID: 1, secret: {name: a, key: b}}"), 6, "spec.authentication.type", "sha1 or meticulous-sha1"),
        ("unknown", profile("receiveIntervall: 300"), 6, "spec.receiveIntervall", "receiveInterval?"),
        ("pool twice", layer2("ipAddressPools: [public, public]"), 6, "spec.ipAddressPools[1]", "twice"),
        ("selectors", layer2("serviceSelectors: [{}, {}]"), 6, "spec.serviceSelectors[1]", "entry [0]"),
        ("no weight", preferred("preference: {matchLabels: {a: b}}"), 7, "spec.preferredNodeSelectors[0].weight", "is missing"),
        ("weight 0", preferred("{weight: 0, preference: {}}"), 7, "spec.preferredNodeSelectors[0].weight", "from 1 to 100"),
        ("weight 101", preferred("{weight: 101, preference: {}}"), 7, "spec.preferredNodeSelectors[0].weight", "from 1 to 100"),
        ("no preference", preferred("weight: 5"), 7, "spec.preferredNodeSelectors[0].preference", "is missing"),
        ("field", layer2("aggregationLength: 32"), 6, "spec.aggregationLength", "is not a known field"),
    ] {
        one_fault(what, &text, line, field, says);
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn faulty_allocations_are_told() {
    let with = |more: &str| pool(&format!("addresses: [10.0.0.0/24]\nserviceAllocation:\n{}", indent(more)));
    let path = |rest: &str| format!("spec.serviceAllocation.{rest}");
    for (what, text, line, field, says) in [
        ("namespace twice", with("namespaces: [a, b, a]"), 8, "namespaces[2]", "twice"),
        ("selector twice", with("namespaceSelectors:\n- matchExpressions: [{key: a, operator: In, values: [x, y]}]\n- matchExpressions: [{key: a, operator: In, values: [y, x]}]"), 10, "namespaceSelectors[1]", "entry [0]"),
        ("services twice", with("serviceSelectors: [{matchLabels: {a: b}}, {matchLabels: {a: b}}]"), 8, "serviceSelectors[1]", "entry [0]"),
        ("priority", with("priority: first"), 8, "priority", "is text; expected a number"),
        ("unknown", with("namespace: [a]"), 8, "namespace", "namespaces?"),
    ] {
        one_fault(what, &text, line, &path(field), says);
    }
}

#[test]
fn what_metallb_accepts_is_accepted() {
    for (what, text) in [
        (
            "everything",
            advertisement("aggregationLength: 32\naggregationLengthV6: 128\nlocalPref: 0"),
        ),
        (
            "lengths of selected services",
            advertisement(
                "aggregationLength: 32\naggregationLengthV6: 128\nserviceSelectors: [{matchLabels: {a: b}}]",
            ),
        ),
        ("spaces", pool("addresses: [' 10.0.0.1 - 10.0.0.9 ']")),
        ("kept for all", pool("addresses: [10.0.0.0/24]\nserviceAllocation: {}")),
        ("before all", pool("addresses: [10.0.0.0/24]\nserviceAllocation: {priority: -1}")),
        ("interfaces", layer2("interfaces: [eth0, eth0]")),
        ("no spec", manifest("metallb.io/v1beta1", "L2Advertisement", "")),
        ("empty", profile("echoMode: false")),
    ] {
        let resolution = beside_good(what, &text);
        assert!(!resolution.has_faults(), "{what}: {:#?}", resolution.findings);
        assert_eq!(resolution.objects.len(), 7, "{what}");
    }
}

fn service(annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: new\n  annotations: {{{annotations}}}\n\
         spec:\n  type: LoadBalancer\n{}",
        indent(spec)
    )
}

#[track_caller]
fn the_service(text: &str) -> Service {
    let resolution = beside_good("service", text);
    let mut services = resolution.objects.iter().filter_map(|object| match object {
        Object::Service(service) if service.name.name == "new" => Some((**service).clone()),
        _ => None,
    });
    services.next().unwrap_or_else(|| panic!("{:#?}", resolution.findings))
}

#[test]
fn families_are_those_that_the_cluster_gave() {
    use AddressFamily::{Ipv4Unicast, Ipv6Unicast};
    for (spec, expected) in [
        ("clusterIPs: ['fd00::1']", FamilyPolicy::Single(Ipv6Unicast)),
        ("clusterIP: 'fd00::1'", FamilyPolicy::Single(Ipv6Unicast)),
        ("clusterIP: None\nclusterIPs: [None]", FamilyPolicy::Single(Ipv4Unicast)),
        ("clusterIPs: ['fd00::1', 10.0.0.1]", FamilyPolicy::RequireDual(Ipv6Unicast)),
        (
            "clusterIPs: ['fd00::1', 10.0.0.1]\nipFamilyPolicy: PreferDualStack",
            FamilyPolicy::PreferDual(Ipv6Unicast),
        ),
        // The cluster has one family.
        (
            "clusterIPs: [10.0.0.1]\nipFamilyPolicy: PreferDualStack",
            FamilyPolicy::Single(Ipv4Unicast),
        ),
        ("ipFamilyPolicy: PreferDualStack", FamilyPolicy::PreferDual(Ipv4Unicast)),
    ] {
        assert_eq!(the_service(&service("", spec)).families, expected, "{spec}");
    }
}

#[rustfmt::skip] // One line for each input.
#[test]
fn addresses_asked_for_are_of_exactly_the_families_of_the_service() {
    let wants = |addresses: &str| format!("metallb.io/loadBalancerIPs: '{addresses}'");
    let asked = "metadata.annotations[metallb.io/loadBalancerIPs]";
    for (what, text, says) in [
        ("IPv4 of IPv6", service(&wants("192.0.2.1"), "clusterIPs: ['fd00::1']"), "single family \
          of the Service, IPv6"),
        ("two of one", service(&wants("192.0.2.1,2001:db8::1"), "clusterIPs: [10.0.0.1]"), "single \
          family of the Service, IPv4"),
        ("one of two", service(&wants("192.0.2.1"), "clusterIPs: [10.0.0.1, 'fd00::1']\nipFamilyPolicy: PreferDualStack"), "has one of each family"),
        ("one of one", service(&wants("2001:db8::1"), "clusterIPs: [10.0.0.1]\nipFamilyPolicy: \
          PreferDualStack"), "single family of the Service, IPv4"),
    ] {
        one_fault(what, &text, 5, asked, says);
    }
    let both = service(&wants("192.0.2.1,2001:db8::1"), "clusterIPs: [10.0.0.1, 'fd00::1']\nipFamilyPolicy: PreferDualStack");
    assert_eq!(the_service(&both).requested_addresses.len(), 2);
}

#[test]
fn a_sharing_key_that_is_empty_is_still_there() {
    let key = |annotations: &str| the_service(&service(annotations, "")).sharing_key;
    assert_eq!(key(""), None);
    assert_eq!(key("metallb.io/allow-shared-ip: ''").as_deref(), Some(""));
    assert_eq!(key("metallb.universe.tf/allow-shared-ip: k").as_deref(), Some("k"));
}

#[test]
fn an_endpoint_without_addresses_counts_for_nothing() {
    let text = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: new\n  \
                labels: {kubernetes.io/service-name: web}\naddressType: IPv4\nendpoints:\n- \
                addresses: [10.1.0.1]\n  conditions: {ready: false, serving: true, terminating: \
                true}\n- addresses: []\n- addresses: [10.1.0.3]\n  conditions: {ready: false}\n- \
                addresses: [10.1.0.4]\n";
    let resolution = beside_good("slice", text);
    let [warning] = resolution.findings.as_slice() else { panic!("{:#?}", resolution.findings) };
    check("slice", warning, 10, "endpoints[1].addresses", "is ignored");
    let usable: Vec<bool> = resolution
        .objects
        .iter()
        .flat_map(|object| match object {
            Object::EndpointSlice(slice) => slice.endpoints.iter().map(|it| it.usable).collect(),
            _ => Vec::new(),
        })
        .collect();
    assert_eq!(usable, [true, false, true]);
}
