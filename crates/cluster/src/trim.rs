//! What is kept of a received object.
//!
//! Returns the object without the fields that nothing here reads: a Node lists its images, a slice the
//! addresses of its pods, and every object its managed fields. Of ten thousand objects that is most of the
//! memory. Decides nothing; the edge with the connection to the API server calls it.

use fairway_model::Kind;
use serde::de::Deserializer;
use serde_json::Value;

use super::kept::{Kept, written};
use super::object_text::ListedObject;

/// Whose objects they are: what is kept of each kind.
#[derive(Debug, Clone, Copy)]
pub struct Trim(fn(Kind) -> &'static Kept);

impl Trim {
    /// What controllers and speakers read.
    pub const ROUTING: Self = Self(of_routing);
    /// What the service proxy reads.
    pub const PROXY: Self = Self(of_proxy);

    /// The object without the fields that are not read.
    pub fn object(self, kind: Kind, object: &Value) -> Value {
        let kept = written((self.0)(kind), None, object).map(|it| it.text.value());
        // A value can be written.
        kept.unwrap_or_default()
    }

    /// The same of an object of a list, as it is read; with its `kind` and this `apiVersion`, which lists leave out.
    ///
    /// # Errors
    /// The text is no JSON.
    pub fn listed<'de, D: Deserializer<'de>>(
        self,
        kind: Kind,
        api_version: &str,
        object: D,
    ) -> Result<ListedObject, D::Error> {
        written((self.0)(kind), Some((kind, api_version)), object)
    }
}

/// The annotation in which kubectl repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

const ALL: &Kept = &Kept::All;
const NOTHING: &Kept = &Kept::Nothing;
const NAME: (&str, &Kept) = ("name", &Kept::Name);
const NAMESPACE: (&str, &Kept) = ("namespace", &Kept::Namespace);
const API_VERSION: (&str, &Kept) = ("apiVersion", ALL);
const KIND: (&str, &Kept) = ("kind", ALL);
const ANNOTATIONS: (&str, &Kept) = ("annotations", &Kept::Without(&[(LAST_APPLIED, NOTHING)]));
const METADATA: (&str, &Kept) = (
    "metadata",
    &Kept::Without(&[
        NAME,
        NAMESPACE,
        ANNOTATIONS,
        ("managedFields", NOTHING),
        ("ownerReferences", NOTHING),
        ("creationTimestamp", NOTHING),
        ("generation", NOTHING),
    ]),
);
/// They show which of two configuration objects changed last.
const METADATA_OF_OURS: (&str, &Kept) =
    ("metadata", &Kept::Without(&[NAME, NAMESPACE, ANNOTATIONS]));
const METADATA_OF_SLICE: (&str, &Kept) = (
    "metadata",
    &Kept::Fields(&[
        NAME,
        NAMESPACE,
        ("uid", ALL),
        ("resourceVersion", ALL),
        ("labels", &Kept::Fields(&[(SERVICE_NAME, ALL)])),
    ]),
);
const SERVICE_SPEC: &Kept = &Kept::Fields(&[
    ("type", ALL),
    ("ports", &Kept::Each(&Kept::Fields(&[("port", ALL), ("protocol", ALL)]))),
    ("selector", ALL),
    ("externalTrafficPolicy", ALL),
    ("ipFamilies", ALL),
    ("ipFamilyPolicy", ALL),
    ("clusterIP", ALL),
    ("clusterIPs", ALL),
    ("loadBalancerIP", ALL),
    ("loadBalancerClass", ALL),
]);
const PROXIED_PORT: &Kept =
    &Kept::Fields(&[("name", ALL), ("port", ALL), ("protocol", ALL), ("nodePort", ALL)]);
const PROXIED_SERVICE_SPEC: &Kept = &Kept::Fields(&[
    ("type", ALL),
    ("ports", &Kept::Each(PROXIED_PORT)),
    ("clusterIP", ALL),
    ("clusterIPs", ALL),
    ("externalIPs", ALL),
    ("externalTrafficPolicy", ALL),
    ("internalTrafficPolicy", ALL),
    ("sessionAffinity", ALL),
    ("sessionAffinityConfig", ALL),
    ("loadBalancerSourceRanges", ALL),
    ("healthCheckNodePort", ALL),
    ("externalName", ALL),
]);
const ENDPOINT: &Kept = &Kept::Fields(&[
    // Only the presence of an address counts.
    ("addresses", &Kept::First),
    ("conditions", &Kept::Fields(&[("ready", ALL), ("serving", ALL)])),
    ("nodeName", ALL),
]);
const PROXIED_ENDPOINT: &Kept =
    &Kept::Fields(&[("addresses", ALL), ("conditions", ALL), ("nodeName", ALL), ("hints", ALL)]);
const NODE_STATUS: &Kept = &Kept::Fields(&[
    ("addresses", ALL),
    // The kubelet writes the time of each of its reports into them.
    ("conditions", &Kept::Conditions(&["NetworkUnavailable", "Ready"])),
]);

fn of_routing(kind: Kind) -> &'static Kept {
    match kind {
        Kind::Service => &Kept::Without(&[METADATA, ("spec", SERVICE_SPEC)]),
        Kind::EndpointSlice => &Kept::Fields(&[
            API_VERSION,
            KIND,
            METADATA_OF_SLICE,
            ("addressType", ALL),
            ("endpoints", &Kept::Each(ENDPOINT)),
        ]),
        Kind::Node => &Kept::Fields(&[
            API_VERSION,
            KIND,
            METADATA,
            ("spec", &Kept::Fields(&[("podCIDR", ALL), ("podCIDRs", ALL), ("taints", ALL)])),
            ("status", NODE_STATUS),
        ]),
        Kind::Namespace => &Kept::Fields(&[API_VERSION, KIND, METADATA]),
        Kind::ConfigMap => &Kept::Fields(&[
            API_VERSION,
            KIND,
            METADATA,
            ("data", &Kept::Fields(&[("extras", ALL)])),
        ]),
        Kind::Secret => &Kept::Without(&[METADATA]),
        Kind::BgpPeer
        | Kind::BfdProfile
        | Kind::IpAddressPool
        | Kind::BgpAdvertisement
        | Kind::Layer2Advertisement
        | Kind::Community
        | Kind::BgpConfiguration => &Kept::Without(&[METADATA_OF_OURS]),
    }
}

fn of_proxy(kind: Kind) -> &'static Kept {
    match kind {
        Kind::EndpointSlice => &Kept::Fields(&[
            API_VERSION,
            KIND,
            METADATA,
            ("addressType", ALL),
            ("endpoints", &Kept::Each(PROXIED_ENDPOINT)),
            ("ports", ALL),
        ]),
        Kind::Service => &Kept::Without(&[
            METADATA,
            ("spec", PROXIED_SERVICE_SPEC),
            ("status", &Kept::Fields(&[("loadBalancer", ALL)])),
        ]),
        _ => of_routing(kind),
    }
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
            let trimmed = Trim::ROUTING.object(kind, &object);
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
            let trimmed = Trim::PROXY.object(kind, &object);
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
        assert_eq!(Trim::ROUTING.object(Kind::ConfigMap, &object), kept);
    }

    #[test]
    fn who_wrote_what_of_our_own_kinds_stays() {
        let pool = json!({"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}});
        assert_eq!(Trim::ROUTING.object(Kind::IpAddressPool, &pool), pool);
        let service = json!({"metadata": {"name": "a"}});
        assert_eq!(Trim::ROUTING.object(Kind::Service, &pool), service);
    }

    #[test]
    fn what_is_no_object_stays_what_it_is() {
        for odd in [json!(null), json!([1]), json!({"metadata": 1, "endpoints": {"a": 1}})] {
            assert_eq!(Trim::ROUTING.object(Kind::EndpointSlice, &odd), odd);
        }
    }
}
