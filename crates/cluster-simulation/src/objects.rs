//! The objects that the user of the box writes: a small world in which all features interact.
//!
//! Few names and few addresses, so that Services compete. Each object has numbered variants, so a
//! schedule is a list of numbers. Knows no time and no failure.

use fairway_model::Kind;
use fairway_model_api::Resource;
use serde_json::{Value, json};

/// The namespace of our kinds.
pub(crate) const SYSTEM: &str = "metallb-system";
/// How many Services there may be; the last two are in the namespace [`TEAM`].
pub(crate) const SERVICES: u8 = 8;
pub(crate) const POOLS: u8 = 3;
pub(crate) const ADVERTISEMENTS: u8 = 3;
pub(crate) const PEERS: u8 = 2;
const TEAM: &str = "team";
/// Variants of each kind.
pub(crate) const SERVICE_VARIANTS: u8 = 9;
pub(crate) const POOL_VARIANTS: u8 = 4;
pub(crate) const ADVERTISEMENT_VARIANTS: u8 = 3;
pub(crate) const LAYER2_VARIANTS: u8 = 3;
pub(crate) const PEER_VARIANTS: u8 = 4;
pub(crate) const SECRET_VARIANTS: u8 = 3;
pub(crate) const NODE_VARIANTS: u8 = 4;

/// An object by kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) namespace: &'static str,
    pub(crate) name: String,
}

/// The API resource of a kind.
pub(crate) fn resource(kind: Kind) -> Resource {
    match kind {
        Kind::BgpPeer => Resource::new("metallb.io", "v1beta2", "bgppeers"),
        Kind::BfdProfile => Resource::new("metallb.io", "v1beta1", "bfdprofiles"),
        Kind::IpAddressPool => Resource::new("metallb.io", "v1beta1", "ipaddresspools"),
        Kind::BgpAdvertisement => Resource::new("metallb.io", "v1beta1", "bgpadvertisements"),
        Kind::Layer2Advertisement => Resource::new("metallb.io", "v1beta1", "l2advertisements"),
        Kind::Community => Resource::new("metallb.io", "v1beta1", "communities"),
        Kind::BgpConfiguration => Resource::new("fairway.dev", "v1beta1", "bgpconfigurations"),
        Kind::EndpointSlice => Resource::new("discovery.k8s.io", "v1", "endpointslices"),
        Kind::Service => Resource::core("services"),
        Kind::Node => Resource::core("nodes"),
        Kind::Namespace => Resource::core("namespaces"),
        Kind::Secret => Resource::core("secrets"),
        Kind::ConfigMap => Resource::core("configmaps"),
    }
}

/// The Lease of the controllers.
pub(crate) fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "v1", "leases")
}

/// An object as it is sent: lists of Kubernetes' own kinds omit the type of their items.
pub(crate) fn with_type(kind: Kind, mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.entry("kind").or_insert_with(|| json!(kind.to_string()));
        fields.entry("apiVersion").or_insert_with(|| json!(resource(kind).api_version()));
    }
    object
}

fn object(place: &Place, spec: Value) -> Value {
    let metadata = json!({ "name": place.name, "namespace": place.namespace });
    with_type(place.kind, json!({ "metadata": metadata, "spec": spec }))
}

pub(crate) fn service_place(number: u8) -> Place {
    let namespace = if number + 2 >= SERVICES { TEAM } else { "default" };
    Place { kind: Kind::Service, namespace, name: format!("s{number}") }
}

pub(crate) fn service(number: u8, variant: u8) -> Value {
    let port = 80 + u16::from(number);
    let mut spec = json!({
        "type": "LoadBalancer",
        "selector": { "app": format!("s{number}") },
        "ports": [{ "port": port, "protocol": "TCP" }],
    });
    let mut annotations = json!({});
    match variant {
        1 => annotations = json!({ "metallb.io/address-pool": "p1" }),
        2 => annotations = json!({ "metallb.io/loadBalancerIPs": "192.0.2.3" }),
        3 => annotations = json!({ "metallb.io/allow-shared-ip": "key" }),
        4 => spec["externalTrafficPolicy"] = json!("Local"),
        5 => {
            spec["ipFamilyPolicy"] = json!("PreferDualStack");
            spec["ipFamilies"] = json!(["IPv4", "IPv6"]);
        }
        6 => spec["type"] = json!("ClusterIP"),
        7 => {
            annotations = json!({
                "metallb.io/allow-shared-ip": "key", "metallb.io/loadBalancerIPs": "192.0.2.2",
            });
        }
        8 => annotations = json!({ "metallb.io/loadBalancerIPs": "198.51.100.1" }),
        _ => {}
    }
    let mut service = object(&service_place(number), spec);
    service["metadata"]["annotations"] = annotations;
    service["metadata"]["labels"] =
        json!({ "tier": if number.is_multiple_of(2) { "front" } else { "back" } });
    service
}

pub(crate) fn slice_place(number: u8) -> Place {
    let service = service_place(number);
    Place { kind: Kind::EndpointSlice, name: format!("{}-x", service.name), ..service }
}

/// `nodes` is a set of bits: the nodes with a ready endpoint of the Service.
pub(crate) fn slice(number: u8, nodes: u8) -> Value {
    let on = (0..8_u8).filter(|node| nodes & (1 << node) != 0);
    let endpoints: Vec<Value> = on
        .map(|node| {
            json!({
                "addresses": [format!("10.1.{node}.{number}")], "nodeName": node_name(node.into()),
                "conditions": { "ready": true },
            })
        })
        .collect();
    let place = slice_place(number);
    let metadata = json!({
        "name": place.name, "namespace": place.namespace,
        "labels": { "kubernetes.io/service-name": format!("s{number}") },
    });
    let slice = json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints });
    with_type(Kind::EndpointSlice, slice)
}

pub(crate) fn pool_place(number: u8) -> Place {
    Place { kind: Kind::IpAddressPool, namespace: SYSTEM, name: format!("p{number}") }
}

pub(crate) fn pool(number: u8, variant: u8) -> Value {
    let spec = match (number, variant) {
        (0, 0) => json!({ "addresses": ["192.0.2.0-192.0.2.4"] }),
        (0, 1) => json!({ "addresses": ["192.0.2.0-192.0.2.9"] }),
        (0, _) => json!({ "addresses": ["192.0.2.2-192.0.2.6"], "avoidBuggyIPs": true }),
        (1, 0) => json!({ "addresses": ["198.51.100.0/30", "2001:db8::/126"] }),
        (1, 1) => json!({ "addresses": ["198.51.100.0/31"], "autoAssign": false }),
        (1, _) => json!({ "addresses": ["198.51.100.0/30"] }),
        (_, 0) => json!({
            "addresses": ["203.0.113.0/31"], "serviceAllocation": { "namespaces": [TEAM] },
        }),
        (_, 1) => json!({ "addresses": ["203.0.113.0/31"] }),
        // Overlaps p0: the later one is invalid.
        (_, 3) => json!({ "addresses": ["203.0.113.0/31", "192.0.2.4-192.0.2.5"] }),
        _ => json!({
            "addresses": ["203.0.113.0/31"],
            "serviceAllocation": {
                "priority": 5,
                "serviceSelectors": [{ "matchLabels": { "tier": "front" } }],
            },
        }),
    };
    object(&pool_place(number), spec)
}

pub(crate) fn advertisement_place(number: u8) -> Place {
    Place { kind: Kind::BgpAdvertisement, namespace: SYSTEM, name: format!("a{number}") }
}

pub(crate) fn advertisement(number: u8, variant: u8) -> Value {
    let spec = match (number, variant) {
        (0, 0) => json!({}),
        (0, 1) => json!({ "ipAddressPools": ["p0"] }),
        (0, _) => json!({ "peers": ["tor-0"] }),
        (1, 0) => json!({ "ipAddressPools": ["p1"], "communities": ["65000:1"] }),
        (1, 1) => json!({
            "ipAddressPools": ["p1", "p2"],
            "nodeSelectors": [{ "matchLabels": { "rack": "a" } }],
        }),
        (1, _) => json!({ "serviceSelectors": [{ "matchLabels": { "tier": "front" } }] }),
        (_, 0) => json!({ "ipAddressPools": ["none"], "prefixes": ["100.64.0.0/24"] }),
        _ => json!({ "ipAddressPools": ["none"], "prefixes": ["100.64.0.0/24", "100.64.1.0/24"] }),
    };
    object(&advertisement_place(number), spec)
}

pub(crate) fn layer2_place() -> Place {
    Place { kind: Kind::Layer2Advertisement, namespace: SYSTEM, name: "l0".to_owned() }
}

pub(crate) fn layer2(variant: u8) -> Value {
    let spec = match variant {
        0 => json!({}),
        1 => json!({ "nodeSelectors": [{ "matchLabels": { "rack": "a" } }] }),
        _ => json!({ "ipAddressPools": ["p0"], "interfaces": ["eth0"] }),
    };
    object(&layer2_place(), spec)
}

pub(crate) fn peer_place(number: u8) -> Place {
    Place { kind: Kind::BgpPeer, namespace: SYSTEM, name: format!("tor-{number}") }
}

pub(crate) fn peer(number: u8, variant: u8) -> Value {
    let mut spec = json!({
        "myASN": 64512, "peerASN": 64513, "peerAddress": format!("10.0.0.{}", 100 + number),
        "enableGracefulRestart": true,
    });
    match variant {
        1 => spec["nodeSelectors"] = json!([{ "matchLabels": { "rack": "a" } }]),
        2 => spec["holdTime"] = json!("30s"),
        3 => spec["passwordSecret"] = json!({ "name": secret_place().name }),
        _ => {}
    }
    object(&peer_place(number), spec)
}

pub(crate) fn secret_place() -> Place {
    Place { kind: Kind::Secret, namespace: SYSTEM, name: "key".to_owned() }
}

/// A key for sessions; the last variant is too long to be one.
pub(crate) fn secret(variant: u8) -> Value {
    let password = match variant {
        0 => "b25l",
        1 => "dHdv",
        _ => &"b25l".repeat(40),
    };
    let mut secret = object(&secret_place(), json!({}));
    secret["type"] = json!("kubernetes.io/basic-auth");
    secret["data"] = json!({ "password": password });
    secret
}

pub(crate) fn node_name(number: usize) -> String {
    format!("node-{number}")
}

pub(crate) fn node_place(number: u8) -> Place {
    Place { kind: Kind::Node, namespace: "", name: node_name(number.into()) }
}

pub(crate) fn node(number: u8, variant: u8) -> Value {
    let mut labels = json!({
        "kubernetes.io/hostname": node_name(number.into()),
        "rack": if number.is_multiple_of(2) { "a" } else { "b" },
    });
    match variant {
        1 => labels["node.kubernetes.io/exclude-from-external-load-balancers"] = json!(""),
        2 => labels["rack"] = json!("c"),
        _ => {}
    }
    let unavailable = if variant == 3 { "True" } else { "False" };
    with_type(
        Kind::Node,
        json!({
            "metadata": { "name": node_name(number.into()), "labels": labels },
            "status": {
                "addresses": [{ "type": "InternalIP", "address": format!("10.0.0.{}", 1 + number) }],
                "conditions": [{ "type": "NetworkUnavailable", "status": unavailable }],
            },
        }),
    )
}

/// The namespaces of the objects.
pub(crate) fn namespaces() -> [Value; 2] {
    [TEAM, SYSTEM]
        .map(|name| with_type(Kind::Namespace, json!({ "metadata": { "name": name }, "spec": {} })))
}
