//! The files at the beginning of a trial: one object of each kind, in use, and what no trial may
//! affect: the sessions `inside` and `outside`, and the Service `steady`.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::cache;
use crate::stage::Scene;

/// The label that excludes a node from announcing.
pub(crate) const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// The mark that drains it.
pub(crate) const DRAIN: &str = "metallb.io/drain";

thread_local! {
    static PORTS: Cell<(u16, u16, u16)> = const { Cell::new((0, 0, 0)) };
}

/// The ports of the node, the router and the RPKI cache, set before any scene is made.
pub(crate) fn set_ports(node: u16, router: u16, cache: u16) {
    PORTS.set((node, router, cache));
}

/// The port on which the node listens for neighbours of a range.
pub(crate) fn node_port() -> u16 {
    PORTS.get().0
}

/// The port of the RPKI cache.
pub(crate) fn cache_port() -> u16 {
    PORTS.get().2
}

/// The port of the router.
pub(crate) fn router_port() -> u16 {
    PORTS.get().1
}

/// An object of a kind that consists of its `spec`.
pub(crate) fn object(kind: &str, name: &str, spec: Value) -> Value {
    let version = match kind {
        "BGPPeer" => "metallb.io/v1beta2",
        "Service" => "v1",
        "BGPConfiguration" => "fairway.dev/v1beta1",
        _ => "metallb.io/v1beta1",
    };
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

/// A BGPConfiguration whose nodes ask the RPKI cache, and tell a BMP station that is away.
pub(crate) fn configuration() -> Value {
    let server = json!({"address": cache::ADDRESS, "port": cache_port()});
    // Nothing listens there.
    let station = json!({"address": "127.0.0.6", "port": 9});
    let spec = json!({"rpki": {"servers": [server]}, "bmp": {"stations": [station]}});
    object("BGPConfiguration", "trial", spec)
}

/// A pool with these addresses.
pub(crate) fn pool(name: &str, addresses: &[&str]) -> Value {
    object("IPAddressPool", name, json!({"addresses": addresses}))
}

/// An advertisement of one pool.
pub(crate) fn advertisement(name: &str, pool: &str) -> Value {
    object("BGPAdvertisement", name, json!({"ipAddressPools": [pool]}))
}

/// A Service with one port.
pub(crate) fn service(name: &str) -> Value {
    let ports = json!([{"port": 80, "protocol": "TCP"}]);
    object("Service", name, json!({"type": "LoadBalancer", "ports": ports}))
}

/// A slice of the Service `trial` with one endpoint, which is ready and on `node`.
pub(crate) fn slice(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": "default",
            "labels": {"kubernetes.io/service-name": "trial"},
        },
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.1.0.1"], "nodeName": node, "conditions": {"ready": true}},
        ],
    })
}

/// A Secret for `passwordSecret`.
pub(crate) fn secret(name: &str, password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
        "metadata": {"name": name, "namespace": "default"}, "stringData": {"password": password},
    })
}

/// Lines for FRR only.
pub(crate) fn extras(lines: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "bgpextras", "namespace": "default"}, "data": {"extras": lines},
    })
}

/// The node's peer on session `name`, between addresses that end so.
fn peer(name: &str, asn: u32, ours: u8, theirs: u8) -> Value {
    object(
        "BGPPeer",
        name,
        json!({
            "myASN": 65001, "peerASN": asn, "peerAddress": format!("127.0.0.{theirs}"),
            "sourceAddress": format!("127.0.0.{ours}"), "peerPort": PORTS.get().1,
            "connectTime": "1s",
        }),
    )
}

/// The router's peer on session `name`, which is passive and accepts all routes.
fn their_peer(name: &str, asn: u32, ours: u8, theirs: u8) -> Value {
    let mut spec = json!({
        "myASN": asn, "peerASN": 65001, "peerAddress": format!("127.0.0.{ours}"),
        "sourceAddress": format!("127.0.0.{theirs}"), "passive": true,
        "routerID": format!("192.0.2.{theirs}"), "connectTime": "1s",
        "dualStackAddressFamily": true, "toReceive": {"allowed": {"mode": "all"}},
    });
    if asn != 65001 {
        // So that next hops are accepted as they are.
        spec["ebgpMultiHop"] = json!(true);
    }
    object("BGPPeer", name, spec)
}

/// The scene that all trials share.
pub(crate) fn common() -> Scene {
    let mut inside = peer("inside", 65001, 12, 2);
    let mut outside = peer("outside", 65002, 13, 3);
    for peer in [&mut inside, &mut outside] {
        peer["spec"]["routerID"] = json!("192.0.2.1");
        peer["spec"]["dualStackAddressFamily"] = json!(true);
        peer["spec"]["toAdvertise"] = json!({"nextHop": {"ipv6": "2001:db8::1"}});
    }
    outside["spec"]["toReceive"] = json!({"allowed": {"mode": "all"}});
    let theirs = json!({
        "prefixes": ["192.0.2.0/24", "198.51.100.0/24"], "peers": ["outside", "trial"],
    });
    let mut steady = service("steady");
    steady["metadata"]["annotations"] = json!({"metallb.io/address-pool": "steady"});
    let mut steady_pool = pool("steady", &["10.8.0.0/24"]);
    steady_pool["spec"]["autoAssign"] = json!(false);
    let aliases = json!({"communities": [{"name": "green", "value": "65001:1"}]});
    let mut advertised = advertisement("trial", "trial");
    advertised["spec"]["communities"] = json!(["green"]);
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "labels": {"team": "a"}},
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node-a", "labels": {"kubernetes.io/hostname": "node-a"}},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.14"}]},
    });
    Scene::from(
        [
            ("their-inside", their_peer("inside", 65001, 12, 2)),
            ("their-outside", their_peer("outside", 65002, 13, 3)),
            ("their-trial", their_peer("trial", 65003, 14, 4)),
            ("their-routes", object("BGPAdvertisement", "theirs", theirs)),
            ("inside", inside),
            ("outside", outside),
            ("peer", peer("trial", 65003, 14, 4)),
            ("steady", steady),
            ("steady-pool", steady_pool),
            ("steady-advertisement", advertisement("steady", "steady")),
            ("pool", pool("trial", &["10.9.0.0/24", "2001:db8:9::/120"])),
            ("advertisement", advertised),
            ("bfd-profile", object("BFDProfile", "trial", json!({}))),
            ("layer2", object("L2Advertisement", "trial", json!({}))),
            ("namespace", namespace),
            ("community", object("Community", "trial", aliases)),
            ("bgp-configuration", configuration()),
            ("service", service("trial")),
            ("slice", slice("trial", "node-a")),
            ("node", node),
        ]
        .map(|(name, object)| (name.to_owned(), object)),
    )
}
