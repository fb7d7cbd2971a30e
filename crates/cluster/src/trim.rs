//! What is kept of a received object.
//!
//! Returns the object without the fields that nothing here reads: a Node lists its images, a slice the
//! addresses of its pods, and every object its managed fields. Of ten thousand objects that is most of the
//! memory. Decides nothing; the edge with the connection to the API server calls it.

use fairway_model::Kind;
use serde_json::{Map, Value};

/// The annotation in which kubectl repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The fields of the `spec` of a Service that are read.
const SERVICE_SPEC: &[&str] = &[
    "type",
    "ports",
    "selector",
    "externalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "clusterIP",
    "clusterIPs",
    "loadBalancerIP",
    "loadBalancerClass",
];
/// The fields of the `spec` of a Service that the service proxy reads.
const PROXIED_SERVICE_SPEC: &[&str] = &[
    "type",
    "ports",
    "clusterIP",
    "clusterIPs",
    "externalIPs",
    "externalTrafficPolicy",
    "internalTrafficPolicy",
    "sessionAffinity",
    "sessionAffinityConfig",
    "loadBalancerSourceRanges",
    "healthCheckNodePort",
    "externalName",
];
/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The conditions of a Node that affect a decision.
const NODE_CONDITIONS: [&str; 2] = ["NetworkUnavailable", "Ready"];

/// The object without the fields that are not read.
pub fn trimmed(kind: Kind, mut object: Value) -> Value {
    let Some(fields) = object.as_object_mut() else { return object };
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        trim_metadata(kind, metadata);
    }
    match kind {
        Kind::EndpointSlice => trim_slice(fields),
        Kind::Node => trim_node(fields),
        Kind::Namespace => keep(fields, &["apiVersion", "kind", "metadata"]),
        Kind::Service => trim_service(fields),
        Kind::ConfigMap => trim_config_map(fields),
        Kind::Secret
        | Kind::BgpPeer
        | Kind::BfdProfile
        | Kind::IpAddressPool
        | Kind::BgpAdvertisement
        | Kind::Layer2Advertisement
        | Kind::Community
        | Kind::BgpConfiguration => {}
    }
    object
}

/// The same, without the fields that the service proxy does not read.
pub fn trimmed_for_proxy(kind: Kind, mut object: Value) -> Value {
    let Some(fields) = object.as_object_mut() else { return object };
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        trim_metadata(kind, metadata);
    }
    match kind {
        Kind::EndpointSlice => trim_proxied_slice(fields),
        Kind::Node => trim_node(fields),
        Kind::Service => trim_proxied_service(fields),
        _ => {}
    }
    object
}

fn trim_proxied_service(fields: &mut Map<String, Value>) {
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        keep(spec, PROXIED_SERVICE_SPEC);
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            keep(port, &["name", "port", "protocol", "nodePort"]);
        }
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        keep(status, &["loadBalancer"]);
    }
}

fn trim_proxied_slice(fields: &mut Map<String, Value>) {
    keep(fields, &["apiVersion", "kind", "metadata", "addressType", "endpoints", "ports"]);
    let endpoints = fields.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        keep(endpoint, &["addresses", "conditions", "nodeName", "hints"]);
    }
}

fn trim_metadata(kind: Kind, metadata: &mut Map<String, Value>) {
    // They show which of two configuration objects changed last.
    if !kind.is_ours() {
        for field in ["managedFields", "ownerReferences", "creationTimestamp", "generation"] {
            metadata.shift_remove(field);
        }
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.shift_remove(LAST_APPLIED);
    }
}

fn trim_service(fields: &mut Map<String, Value>) {
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        keep(spec, SERVICE_SPEC);
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            keep(port, &["port", "protocol"]);
        }
    }
}

fn trim_slice(fields: &mut Map<String, Value>) {
    keep(fields, &["apiVersion", "kind", "metadata", "addressType", "endpoints"]);
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        keep(metadata, &["name", "namespace", "uid", "resourceVersion", "labels"]);
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            keep(labels, &[SERVICE_NAME]);
        }
    }
    let endpoints = fields.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        keep(endpoint, &["addresses", "conditions", "nodeName"]);
        if let Some(conditions) = endpoint.get_mut("conditions").and_then(Value::as_object_mut) {
            keep(conditions, &["ready", "serving"]);
        }
        // Only the presence of an address counts.
        if let Some(addresses) = endpoint.get_mut("addresses").and_then(Value::as_array_mut) {
            addresses.truncate(1);
            addresses.shrink_to_fit();
        }
    }
}

fn trim_config_map(fields: &mut Map<String, Value>) {
    keep(fields, &["apiVersion", "kind", "metadata", "data"]);
    if let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) {
        keep(data, &["extras"]);
    }
}

fn trim_node(fields: &mut Map<String, Value>) {
    keep(fields, &["apiVersion", "kind", "metadata", "spec", "status"]);
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        keep(spec, &["podCIDR", "podCIDRs", "taints"]);
    }
    let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) else { return };
    keep(status, &["addresses", "conditions"]);
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.retain(|it| {
            it.get("type").and_then(Value::as_str).is_some_and(|it| NODE_CONDITIONS.contains(&it))
        });
        // The kubelet writes the time of each of its reports into them.
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            keep(condition, &["type", "status"]);
        }
    }
}

/// In a new map, since one that has shrunk keeps its memory.
fn keep(fields: &mut Map<String, Value>, names: &[&str]) {
    let kept = std::mem::take(fields).into_iter();
    *fields = kept.filter(|(name, _)| names.contains(&name.as_str())).collect();
}

#[cfg(test)]
mod tests {
    use fairway_resources::{BackendKind, parse_value, parse_value_for};
    use serde_json::json;

    use super::*;

    /// Words of what nobody reads.
    const GONE: [&str; 8] = [
        "kubectl",
        "10.0.0.2",
        "zone",
        "targetRef",
        "images",
        "providerID",
        "DiskPressure",
        "reason",
    ];

    #[test]
    fn what_is_trimmed_reads_as_before() {
        let metadata = json!({
            "name": "a", "namespace": "b", "uid": "1", "resourceVersion": "7",
            "labels": {"kubernetes.io/service-name": "web"},
            "annotations": {LAST_APPLIED: "{}", "metallb.io/drain": "30s"},
            "managedFields": [{"manager": "kubectl"}],
        });
        let endpoint = json!({
            "addresses": ["10.0.0.1", "10.0.0.2"], "nodeName": "n", "conditions": {"ready": true},
            "targetRef": {"kind": "Pod"}, "zone": "z",
        });
        let objects = [
            (
                Kind::EndpointSlice,
                json!({
                    "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                    "metadata": metadata, "addressType": "IPv4", "endpoints": [endpoint],
                    "ports": [{"port": 80}],
                }),
            ),
            (
                Kind::Service,
                json!({
                    "apiVersion": "v1", "kind": "Service", "metadata": metadata,
                    "spec": {
                        "type": "LoadBalancer", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"],
                        "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30100, "protocol": "TCP"}],
                        "selector": {"app": "web"}, "externalTrafficPolicy": "Local",
                        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                        "loadBalancerIP": "192.0.2.7", "loadBalancerClass": "a/b",
                        "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                    },
                    "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7", "ipMode": "VIP"}]}},
                }),
            ),
            (
                Kind::Node,
                json!({
                    "apiVersion": "v1", "kind": "Node", "metadata": metadata,
                    "spec": {
                        "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "cloud://x",
                        "taints": [{"key": "k", "effect": "NoSchedule"}],
                    },
                    "status": {
                        "images": [{"names": ["x"]}],
                        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
                        "conditions": [
                            {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"},
                            {"type": "DiskPressure", "status": "True"},
                            {"type": "NetworkUnavailable", "status": "True"},
                        ],
                    },
                }),
            ),
        ];
        for (kind, object) in objects {
            let trimmed = trimmed(kind, object.clone());
            assert_eq!(parse_value(&trimmed), parse_value(&object), "{kind}");
            let text = trimmed.to_string();
            for gone in GONE {
                assert!(!text.contains(gone), "{kind} has {gone}: {text}");
            }
            assert!(text.contains("resourceVersion"), "{text}");
            assert_eq!(text.contains("30s"), kind != Kind::EndpointSlice, "{text}");
        }
    }

    #[test]
    fn what_is_trimmed_reads_as_before_to_the_proxy() {
        let metadata = json!({
            "name": "a", "namespace": "b", "uid": "1", "resourceVersion": "7",
            "labels": {"kubernetes.io/service-name": "web", "topology.kubernetes.io/zone": "z"},
            "annotations": {LAST_APPLIED: "{}", "fairway.dev/ipvs-scheduler": "mh"},
            "managedFields": [{"manager": "kubectl"}],
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
            "addressType": "IPv4", "ports": [{"name": "t", "port": 80, "appProtocol": "http"}],
            "endpoints": [{
                "addresses": ["10.0.0.1"], "nodeName": "n", "hints": {"forZones": [{"name": "z"}]},
                "conditions": {"ready": false, "serving": true, "terminating": true},
                "targetRef": {"kind": "Pod"},
            }],
        });
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {
                "type": "LoadBalancer", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"],
                "externalIPs": ["192.0.2.8"], "healthCheckNodePort": 31000,
                "ports": [{"name": "t", "port": 80, "targetPort": 8080, "nodePort": 30100}],
                "selector": {"app": "web"}, "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Local", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 7}},
            },
            "status": {
                "loadBalancer": {"ingress": [{"ip": "192.0.2.7", "ipMode": "VIP"}]},
                "conditions": [{"type": "DiskPressure"}],
            },
        });
        for (kind, object) in [(Kind::EndpointSlice, slice), (Kind::Service, service)] {
            let trimmed = trimmed_for_proxy(kind, object.clone());
            let parsed = |it: &Value| parse_value_for(BackendKind::Proxy, it);
            assert!(parsed(&object).object.is_some(), "{:?}", parsed(&object).findings);
            assert_eq!(parsed(&trimmed), parsed(&object), "{kind}");
            let text = trimmed.to_string();
            for gone in ["kubectl", "targetRef", "targetPort", "selector", "DiskPressure"] {
                assert!(!text.contains(gone), "{kind} has {gone}: {text}");
            }
        }
    }

    #[test]
    fn of_a_config_map_only_what_is_for_frr_stays() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "bgpextras", "namespace": "b", "managedFields": [{"manager": "x"}]},
            "data": {"extras": "log syslog", "others": "y"}, "binaryData": {"z": "AA=="},
        });
        let kept = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "bgpextras", "namespace": "b"}, "data": {"extras": "log syslog"},
        });
        assert_eq!(trimmed(Kind::ConfigMap, object), kept);
    }

    #[test]
    fn who_wrote_what_of_our_own_kinds_stays() {
        let pool = json!({"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}});
        assert_eq!(trimmed(Kind::IpAddressPool, pool.clone()), pool);
        let service = json!({"metadata": {"name": "a"}});
        assert_eq!(trimmed(Kind::Service, pool), service);
    }

    #[test]
    fn what_is_no_object_stays_what_it_is() {
        for odd in [json!(null), json!([1]), json!({"metadata": 1, "endpoints": {"a": 1}})] {
            assert_eq!(trimmed(Kind::EndpointSlice, odd.clone()), odd);
        }
    }
}
