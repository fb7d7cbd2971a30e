//! Which objects are there before any Service? Namespaces, Nodes, Pods of the daemons, peers, pools and advertisements, as users write
//! them.

use serde_json::{Value, json};

use crate::node::{FIRST_NODE, NODE_AS, NODES, addresses};
use crate::stage::ROUTERS;
use lab::metallb::Mode;

/// Where the objects of both are.
pub(crate) const SYSTEM: &str = lab::metallb::SYSTEM;
/// Namespaces with Services.
pub(crate) const NAMESPACES: [&str; 3] = ["shop", "bank", "lab"];

/// An object; without a namespace where that is empty.
pub(crate) fn object(version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    merge(&mut object, rest);
    object
}

/// Puts what is in `more` into `object`, which has objects where `more` has them.
pub(crate) fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

fn of_metallb(kind: &str, name: &str, spec: Value) -> Value {
    let version = if kind == "BGPPeer" { "metallb.io/v1beta2" } else { "metallb.io/v1beta1" };
    object(version, kind, SYSTEM, name, json!({ "spec": spec }))
}

/// What is there before the definitions of MetalLB's kinds.
pub(crate) fn furniture() -> Vec<Value> {
    let mut all = vec![object("v1", "Namespace", "", SYSTEM, json!({}))];
    for name in NAMESPACES {
        let labels = json!({ "metadata": { "labels": { "team": name } } });
        all.push(object("v1", "Namespace", "", name, labels));
    }
    all
}

/// As kubelets register them.
pub(crate) fn nodes() -> Vec<Value> {
    let node = |(name, number): (&&str, u8)| {
        let labels = json!({ "kubernetes.io/hostname": name, "rack": if number == FIRST_NODE { "r1" } else { "r2" } });
        object("v1", "Node", "", name, json!({ "metadata": { "labels": labels } }))
    };
    NODES.iter().zip(FIRST_NODE..).map(node).collect()
}

/// What a kubelet writes into the status of a Node.
pub(crate) fn status_of_node(number: u8) -> Value {
    let addresses = addresses(number).map(|it| json!({ "type": "InternalIP", "address": it }));
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "KubeletReady" }]);
    json!({ "status": { "addresses": addresses, "conditions": ready } })
}

/// The Pods that daemons are told to be, and read.
pub(crate) fn pods() -> Vec<Value> {
    let pod = |name: &str, node: &str, component: &str| {
        let labels = json!({ "app": "metallb", "component": component });
        let container = json!({ "name": component, "image": "none" });
        object(
            "v1",
            "Pod",
            SYSTEM,
            name,
            json!({
                "metadata": { "labels": labels }, "spec": { "nodeName": node, "containers": [container] },
            }),
        )
    };
    let speakers = NODES.iter().map(|node| pod(&format!("speaker-{node}"), node, "speaker"));
    speakers.chain([pod("controller", NODES[0], "controller")]).collect()
}

/// Peers, pools, communities and advertisements.
pub(crate) fn configuration(mode: Mode) -> Vec<Value> {
    [peers(mode), pools(mode), advertisements(mode)].concat()
}

/// In native mode MetalLB refuses all objects where one has a keepaliveTime, a large community, or an IPv6 range that is
/// announced over BGP.
pub(crate) fn peers(mode: Mode) -> Vec<Value> {
    let mut all = Vec::new();
    for router in ROUTERS {
        let [ipv4, ipv6] = addresses(router.number);
        let peer = |name: &str, address: &str| {
            let mut spec = json!({
                "myASN": NODE_AS, "peerASN": router.asn, "peerAddress": address, "holdTime": "9s",
            });
            if mode == Mode::Frr {
                merge(&mut spec, json!({ "keepaliveTime": "3s" }));
            }
            of_metallb("BGPPeer", name, spec)
        };
        all.push(peer(router.name, &ipv4));
        if mode == Mode::Frr {
            all.push(peer(&format!("{}-6", router.name), &ipv6));
        }
    }
    all
}

fn pools(mode: Mode) -> Vec<Value> {
    let is_for_mode = |it: &&str| mode == Mode::Frr || !it.contains(':');
    let pool = |name: &str, addresses: &[&str], more: Value| {
        let addresses: Vec<&str> = addresses.iter().copied().filter(is_for_mode).collect();
        let mut spec = json!({ "addresses": addresses });
        merge(&mut spec, more);
        of_metallb("IPAddressPool", name, spec)
    };
    let not_by_itself = || json!({ "autoAssign": false });
    let for_some = |allocation: Value| json!({ "serviceAllocation": allocation });
    vec![
        pool("main", &["192.0.2.0/25", "2001:db8:1::/112"], json!({})),
        pool("dual", &["198.51.100.0/26", "2001:db8:2::100-2001:db8:2::1ff"], not_by_itself()),
        pool("only-6", &["2001:db8:3::/120", "198.18.3.0/24"], not_by_itself()),
        pool("range", &["203.0.113.10-203.0.113.29"], not_by_itself()),
        pool("tiny", &["203.0.113.64/31"], not_by_itself()),
        pool(
            "careful",
            &["203.0.113.128/28"],
            json!({ "autoAssign": false, "avoidBuggyIPs": true }),
        ),
        pool(
            "of-bank",
            &["198.18.0.0/24"],
            for_some(json!({ "priority": 10, "namespaces": ["bank"] })),
        ),
        pool(
            "of-lab",
            &["198.18.1.0/24"],
            for_some(json!({
                "priority": 20, "namespaceSelectors": [{ "matchLabels": { "team": "lab" } }],
            })),
        ),
        pool(
            "gold",
            &["198.18.2.0/24"],
            for_some(json!({
                "priority": 1, "serviceSelectors": [{ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["gold"] }] }],
            })),
        ),
        pool("aggregated", &["198.18.16.0/22"], not_by_itself()),
        pool("silent", &["198.18.32.0/24"], not_by_itself()),
    ]
}

fn advertisements(mode: Mode) -> Vec<Value> {
    let big = if mode == Mode::Frr { "large:65001:1:2" } else { "65001:12" };
    let advertise = |name: &str, pools: &[&str], more: Value| {
        let mut spec = json!({ "ipAddressPools": pools });
        merge(&mut spec, more);
        of_metallb("BGPAdvertisement", name, spec)
    };
    let racks = |rack: &str| json!([{ "matchLabels": { "rack": rack } }]);
    vec![
        of_metallb(
            "Community",
            "aliases",
            json!({ "communities": [
            { "name": "web", "value": "65001:80" }, { "name": "big", "value": big },
        ] }),
        ),
        advertise("plain", &["main", "dual", "only-6", "tiny", "careful"], json!({})),
        advertise(
            "marked",
            &["range", "gold"],
            json!({ "communities": ["web", "65535:65281", "big"], "localPref": 150 }),
        ),
        advertise("for-one", &["of-bank"], json!({ "peers": ["external"], "localPref": 90 })),
        advertise("of-rack", &["of-lab"], json!({ "nodeSelectors": racks("r1") })),
        advertise(
            "whole",
            &["aggregated"],
            json!({ "aggregationLength": 24, "communities": ["65001:24"] }),
        ),
        advertise(
            "single",
            &["aggregated"],
            json!({ "aggregationLength": 32, "peers": ["internal"] }),
        ),
    ]
}
