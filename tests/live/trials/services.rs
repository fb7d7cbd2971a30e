//! Fields of Services, EndpointSlices, Nodes and Namespaces.

use fairway_model::Kind::{EndpointSlice, Namespace, Node, Service};
use fairway_resources::change::Part;
use serde_json::{Value, json};

use crate::trial::Trial;
use crate::{cache, scene};

const SHARES: &str = "it shares its address, and may no longer";
const OTHER_FAMILY: &str = "another family, or one more or less";
const WEIGHTED: &str = "`linkBandwidth: auto`, and the number of ready endpoints here changes";

pub(crate) fn all() -> Vec<Trial> {
    [services(), slices(), nodes(), marks(), pod_networks(), namespaces()].concat()
}

/// With a pool that is restricted to Services of namespaces with a label.
pub(crate) fn selected(trial: Trial) -> Trial {
    let selector = json!([{"matchLabels": {"team": "a"}}]);
    trial.with("pool", "spec.serviceAllocation.namespaceSelectors", selector)
}

fn namespaces() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(Namespace, path, before, after);
    let teams = || ("metadata.labels", json!({"team": "a"}), json!({"team": "b"}));
    let (labels, before, after) = teams();
    vec![
        selected(field("metadata.name", json!("default"), json!("other")))
            .when("`namespaceSelectors` of an IPAddressPool select it"),
        field("metadata.name", json!("default"), json!("other")),
        field("metadata.namespace", Value::Null, json!("other")),
        selected(field(labels, before.clone(), after.clone()))
            .when("`namespaceSelectors` of an IPAddressPool ask for them"),
        field(labels, before, after),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
    ]
}

/// With a Service that has the same address, on another port; from a range of their own, since a
/// Service that returns within the cool-down gets its former address.
fn shared(trial: Trial, range: &str) -> Trial {
    let trial = trial.with("pool", "spec.addresses", json!([range]));
    let mut other = scene::service("sharer");
    other["metadata"]["annotations"] = json!({"metallb.io/allow-shared-ip": "k"});
    other["spec"]["ports"][0]["port"] = json!(81);
    trial.object("sharer", Some(other.clone()), Some(other))
}

fn services() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(Service, path, before, after);
    let annotation =
        |key, before, after| Trial::key(Service, "metadata.annotations", key, before, after);
    let second = || Some(scene::pool("second", &["10.10.0.0/24"]));
    let third = || Some(scene::pool("third", &["10.13.7.0/24"]));
    // The RPKI cache listens there.
    let passing = format!("tcp://{}:{} interval=100ms", cache::ADDRESS, scene::cache_port());
    // Nobody listens there.
    let failing = "tcp://127.0.0.1:1 interval=100ms failures=1";
    let remote = |trial: Trial| trial.with("slice", "endpoints[].nodeName", json!("node-b"));
    vec![
        field("metadata.name", json!("trial"), json!("zebra")),
        field("metadata.namespace", json!("default"), json!("other")),
        field("metadata.labels", json!({"app": "a"}), json!({"app": "b"}))
            .when("`serviceSelectors` of a BGPAdvertisement asks for them")
            .with("advertisement", "spec.serviceSelectors", json!([{"matchLabels": {"app": "a"}}])),
        field("metadata.labels", json!({"app": "a"}), json!({"app": "b"})),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        annotation("metallb.io/loadBalancerIPs", json!("10.9.0.7"), json!("10.9.0.8")),
        annotation("metallb.io/address-pool", json!("trial"), json!("second"))
            .object("second", second(), second())
            .with("advertisement", "spec.ipAddressPools", json!(["trial", "second"])),
        annotation("fairway.dev/address-pools", json!("trial,third"), json!("second,third"))
            .object("second", second(), second())
            .object("third", third(), third())
            .with("advertisement", "spec.ipAddressPools", json!(["trial", "second"])),
        shared(
            annotation("metallb.io/allow-shared-ip", json!("k"), json!("l")).when(SHARES),
            "10.12.0.0/24",
        ),
        annotation("metallb.io/allow-shared-ip", json!("k"), json!("l")),
        annotation("fairway.dev/health-check", json!(passing), json!(failing))
            .when("the check fails on this machine"),
        annotation("fairway.dev/health-check", Value::Null, json!(passing)),
        field("spec.type", json!("LoadBalancer"), json!("ClusterIP")),
        field("spec.loadBalancerClass", Value::Null, json!("example.com/other")),
        field("spec.loadBalancerIP", json!("10.9.0.7"), json!("10.9.0.8")),
        field("spec.ipFamilies", json!(["IPv4"]), json!(["IPv6"])),
        field("spec.ipFamilyPolicy", json!("SingleStack"), json!("PreferDualStack")),
        field("spec.clusterIP", json!("10.1.0.1"), json!("2001:db8:1::1")).when(OTHER_FAMILY),
        field("spec.clusterIP", json!("10.1.0.1"), json!("10.1.0.2")),
        field("spec.clusterIPs", json!(["10.1.0.1"]), json!(["10.1.0.1", "2001:db8:1::1"]))
            .when(OTHER_FAMILY),
        field("spec.clusterIPs", json!(["10.1.0.1"]), json!(["10.1.0.2"])),
        field(
            "status.loadBalancer.ingress",
            json!([{"ip": "10.9.0.98"}]),
            json!([{"ip": "10.9.0.99"}]),
        )
        .line_of("status.loadBalancer.ingress[].ip"),
        remote(
            field("spec.externalTrafficPolicy", json!("Cluster"), json!("Local"))
                .when("no ready endpoint is on this node"),
        ),
        field("spec.externalTrafficPolicy", json!("Cluster"), json!("Local")),
        shared(field("spec.ports[].port", json!(80), json!(81)).when(SHARES), "10.13.0.0/24").with(
            "service",
            "metadata.annotations",
            json!({"metallb.io/allow-shared-ip": "k"}),
        ),
        field("spec.ports[].port", json!(80), json!(81)),
        field("spec.ports[].protocol", json!("TCP"), json!("UDP")),
        field("spec.selector", json!({"app": "a"}), json!({"app": "b"})),
        field("status", Value::Null, json!({"conditions": []})),
    ]
}

fn slices() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(EndpointSlice, path, before, after);
    let weighted = |trial: Trial| {
        let other = scene::slice("second", "node-a");
        trial.when(WEIGHTED).with("advertisement", "spec.linkBandwidth", json!("auto")).object(
            "second",
            Some(other.clone()),
            Some(other),
        )
    };
    let elsewhere = |trial: Trial| {
        let other = scene::slice("second", "node-b");
        trial.object("second", Some(other.clone()), Some(other))
    };
    let ready = "endpoints[].conditions.ready";
    let local = |trial: Trial| trial.with("service", "spec.externalTrafficPolicy", json!("Local"));
    vec![
        field("metadata.name", json!("trial"), json!("zebra")),
        local(elsewhere(field("metadata.namespace", json!("default"), json!("other")))),
        local(elsewhere(Trial::key(
            EndpointSlice,
            "metadata.labels",
            "kubernetes.io/service-name",
            json!("trial"),
            json!("steady"),
        ))),
        Trial::key(EndpointSlice, "metadata.labels", "a", json!("b"), json!("c"))
            .line_of("metadata.labels"),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        weighted(field("addressType", json!("IPv4"), json!("IPv6"))),
        field("addressType", json!("IPv4"), json!("IPv6")),
        local(field("endpoints[].nodeName", json!("node-a"), json!("node-b")))
            .when("`externalTrafficPolicy: Local`, and it is the last on this node or the first"),
        weighted(field("endpoints[].nodeName", json!("node-a"), json!("node-b"))),
        field("endpoints[].nodeName", json!("node-a"), json!("node-b")),
        field(ready, json!(true), json!(false)).when("it is the last one or the first"),
        weighted(field(ready, json!(true), json!(false))),
        elsewhere(field(ready, json!(true), json!(false))),
        field("endpoints[].conditions.serving", json!(true), json!(false))
            .when("it is not `ready`, and the last one or the first")
            .with("slice", ready, json!(false)),
        field("endpoints[].conditions.serving", json!(true), json!(false)),
        field("endpoints[].conditions.terminating", json!(false), json!(true)),
        field("endpoints[].addresses", json!(["10.1.0.1"]), json!([]))
            .when("to or from none, and it is the last ready one or the first"),
        field("endpoints[].addresses", json!(["10.1.0.1"]), json!(["10.1.0.2"])),
    ]
}

/// The values that drain a node.
fn marks() -> Vec<Trial> {
    let mark = |path| {
        let marked = Trial::key(Node, path, scene::DRAIN, Value::Null, json!("0s"));
        marked.when("the node first drains for its wait")
    };
    let taint = |path, key: &str, value: &str| {
        let taints = json!([{"key": key, "value": value, "effect": "NoSchedule"}]);
        Trial::of(Node, Part::Field(path)).with("node", "spec.taints", taints)
    };
    vec![
        mark("metadata.labels"),
        mark("metadata.annotations"),
        taint("spec.taints[].key", "a", "0s")
            .when("to or from `metallb.io/drain`; the node first drains for its wait")
            .set("node", "spec.taints[].key", json!("a"), json!(scene::DRAIN)),
        taint("spec.taints[].key", "a", "0s").set(
            "node",
            "spec.taints[].key",
            json!("a"),
            json!("b"),
        ),
        taint("spec.taints[].value", scene::DRAIN, "false")
            .when("of `metallb.io/drain`, to or from `false`; the node first drains for its wait")
            .set("node", "spec.taints[].value", json!("false"), json!("0s")),
        taint("spec.taints[].value", "a", "false").set(
            "node",
            "spec.taints[].value",
            json!("false"),
            json!("0s"),
        ),
    ]
}

/// Networks of Pods, with and without an advertisement of them.
fn pod_networks() -> Vec<Trial> {
    let (one, two) = ("10.244.0.0/24", "10.244.1.0/24");
    let announced = |trial: Trial| trial.with("advertisement", "spec.podCIDRs", json!(true));
    vec![
        announced(Trial::field(Node, "spec.podCIDRs", json!([one]), json!([two])))
            .when("a BGPAdvertisement has `podCIDRs: true`"),
        Trial::field(Node, "spec.podCIDRs", json!([one]), json!([two])),
        announced(Trial::field(Node, "spec.podCIDR", json!(one), json!(two)))
            .when("a BGPAdvertisement has `podCIDRs: true`, and the node has no `spec.podCIDRs`"),
        Trial::field(Node, "spec.podCIDR", json!(one), json!(two)),
    ]
}

fn nodes() -> Vec<Trial> {
    let field = |path, before, after| Trial::field(Node, path, before, after);
    let labels = |rack: &str| json!({"kubernetes.io/hostname": "node-a", "rack": rack});
    let selector = json!([{"matchLabels": {"rack": "one"}}]);
    let stable = |trial: Trial| trial.with("peer", "spec.routerID", json!("192.0.2.1"));
    let condition = |kind: &str| json!([{"type": kind, "status": "True"}]);
    let addresses = json!([
        {"type": "InternalIP", "address": "192.0.2.14"},
        {"type": "InternalIP", "address": "192.0.2.15"},
    ]);
    vec![
        stable(field("metadata.name", json!("node-a"), json!("node-b")))
            .when("it no longer applies to this node")
            .with("node", "status.conditions", condition("NetworkUnavailable")),
        field("metadata.namespace", Value::Null, json!("other")),
        Trial::key(Node, "metadata.labels", scene::EXCLUDED, Value::Null, json!("")),
        field("metadata.labels", labels("one"), labels("two"))
            .when("`nodeSelectors` of a BGPPeer asks for them")
            .with("peer", "spec.nodeSelectors", selector.clone()),
        field("metadata.labels", labels("one"), labels("two"))
            .when("`nodeSelectors` of a BGPAdvertisement asks for them")
            .with("advertisement", "spec.nodeSelectors", selector),
        field("metadata.labels", labels("one"), labels("two")),
        field("metadata.annotations", Value::Null, json!({"a": "b"})),
        Trial::of(Node, Part::Field("status.addresses[].type"))
            .when("another IPv4 address is the first `InternalIP`, and the peer has no `routerID`")
            .with("node", "status.addresses", addresses)
            .set("node", "status.addresses[].type", json!("InternalIP"), json!("ExternalIP")),
        stable(field("status.addresses[].type", json!("InternalIP"), json!("ExternalIP"))),
        field("status.addresses[].address", json!("192.0.2.14"), json!("192.0.2.16"))
            .when("it is the first `InternalIP` of IPv4, and the peer has no `routerID`"),
        stable(field("status.addresses[].address", json!("192.0.2.14"), json!("192.0.2.16"))),
        field("status.conditions[].type", json!("Ready"), json!("NetworkUnavailable"))
            .when("to or from `NetworkUnavailable`")
            .with("node", "status.conditions[].status", json!("True")),
        field("status.conditions[].type", json!("Ready"), json!("DiskPressure")).with(
            "node",
            "status.conditions[].status",
            json!("True"),
        ),
        field("status.conditions[].status", json!("False"), json!("True"))
            .when("of `NetworkUnavailable`")
            .with("node", "status.conditions[].type", json!("NetworkUnavailable")),
        field("status.conditions[].status", json!("False"), json!("True")).with(
            "node",
            "status.conditions[].type",
            json!("Ready"),
        ),
    ]
}
