//! What does a test apply? Objects as a user writes them, and those that a kubelet and the endpoint
//! controller write, as JSON. Used by every case.

use serde_json::{Value, json};

/// Where our own objects live.
pub(crate) const SYSTEM: &str = "metallb-system";

/// An object in a namespace; none for what has no namespace.
pub(crate) fn object(version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": version, "kind": kind, "metadata": { "name": name },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    merge(&mut object, rest);
    object
}

/// An object of MetalLB's kinds, in the version that is stored.
pub(crate) fn ours(kind: &str, name: &str, spec: Value) -> Value {
    let version = if kind == "BGPPeer" { "metallb.io/v1beta2" } else { "metallb.io/v1beta1" };
    object(version, kind, SYSTEM, name, json!({ "spec": spec }))
}

pub(crate) fn pool(name: &str, addresses: &[&str]) -> Value {
    ours("IPAddressPool", name, json!({ "addresses": addresses }))
}

/// Announces these pools, with these fields beside.
pub(crate) fn advertisement(name: &str, pools: &[&str], fields: Value) -> Value {
    let mut spec = json!({ "ipAddressPools": pools });
    merge(&mut spec, fields);
    ours("BGPAdvertisement", name, spec)
}

/// A Service of type LoadBalancer with these fields of `spec` beside.
pub(crate) fn service(namespace: &str, name: &str, fields: Value) -> Value {
    let mut spec = json!({
        "type": "LoadBalancer",
        // There are 2,768 of these ports, and bigger clusters.
        "allocateLoadBalancerNodePorts": false,
        "selector": { "app": name },
        "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080 }],
    });
    merge(&mut spec, fields);
    object("v1", "Service", namespace, name, json!({ "spec": spec }))
}

/// The same, which asks for an address of its own.
pub(crate) fn service_at(namespace: &str, name: &str, address: &str, fields: Value) -> Value {
    let mut service = service(namespace, name, fields);
    service["metadata"]["annotations"] = json!({ "metallb.io/loadBalancerIPs": address });
    service
}

/// The endpoints of a Service: one on each of these nodes, and whether it is ready.
pub(crate) fn slice(namespace: &str, service: &str, endpoints: &[(&str, bool)]) -> Value {
    let endpoints: Vec<Value> = endpoints
        .iter()
        .enumerate()
        .map(|(number, (node, is_ready))| {
            json!({
                "addresses": [format!("10.244.0.{}", number + 1)],
                "conditions": { "ready": is_ready, "serving": is_ready, "terminating": false },
                "nodeName": node,
            })
        })
        .collect();
    let rest = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": service } },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
        "endpoints": endpoints,
    });
    object("discovery.k8s.io/v1", "EndpointSlice", namespace, &format!("{service}-1"), rest)
}

/// A Node as a kubelet registers it.
pub(crate) fn node(name: &str, addresses: &[&str]) -> Value {
    let addresses: Vec<Value> =
        addresses.iter().map(|it| json!({ "type": "InternalIP", "address": it })).collect();
    let labels = json!({ "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" });
    let rest = json!({
        "metadata": { "labels": labels },
        "status": {
            "addresses": addresses,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    });
    object("v1", "Node", "", name, rest)
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
