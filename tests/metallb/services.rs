//! Which Services are there? Each kind that people have, several times, with its endpoints.

use serde_json::{Value, json};

use crate::cluster::{merge, object};
use crate::node::NODES;

/// Where the addresses of a Service are wanted from.
const POOL: &str = "metallb.io/address-pool";
const ADDRESSES: &str = "metallb.io/loadBalancerIPs";
const SHARED: &str = "metallb.io/allow-shared-ip";

/// Groups of Services with fewer addresses than Services.
pub(crate) const SHORT_OF_ADDRESSES: [&str; 2] = ["shop/from-tiny", "shop/at-99-one-of-two"];

/// A Service, and what a cluster has with it.
struct Services {
    all: Vec<Value>,
}

/// Services and their endpoints.
pub(crate) fn all() -> Vec<Value> {
    let mut services = Services { all: Vec::new() };
    services.plain();
    services.of_pools();
    services.of_addresses();
    services.of_families();
    services.of_policies();
    services.without_an_address();
    services.all
}

impl Services {
    /// `fields` are those of the object.
    fn add(&mut self, namespace: &str, name: &str, nodes: &[&str], fields: Value) {
        let mut service = json!({ "spec": {
            "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
            "selector": { "app": name },
            "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080 }],
        } });
        merge(&mut service, fields);
        let endpoints: Vec<Value> = nodes
            .iter()
            .zip(1..)
            .map(|(node, number): (_, u8)| {
                json!({
                    "addresses": [format!("10.244.0.{number}")], "nodeName": node,
                    "conditions": { "ready": true, "serving": true, "terminating": false },
                })
            })
            .collect();
        let slice = json!({
            "metadata": { "labels": { "kubernetes.io/service-name": name } },
            "addressType": "IPv4", "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
            "endpoints": endpoints,
        });
        self.all.push(object("v1", "Service", namespace, name, service));
        self.all.push(object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            namespace,
            &format!("{name}-1"),
            slice,
        ));
    }

    /// With these annotations, and endpoints on all nodes.
    fn annotated(&mut self, name: &str, annotations: Value, fields: Value) {
        let mut all = json!({ "metadata": { "annotations": annotations } });
        merge(&mut all, fields);
        self.add("shop", name, &NODES, all);
    }

    fn plain(&mut self) {
        for number in 0..12 {
            self.add("shop", &format!("plain-{number}"), &NODES, json!({}));
            self.add("bank", &format!("plain-{number}"), &NODES[..1], json!({}));
        }
        for number in 0..6 {
            self.add("lab", &format!("plain-{number}"), &NODES, json!({}));
            let gold = json!({ "metadata": { "labels": { "tier": "gold" } } });
            self.add("shop", &format!("gold-{number}"), &NODES, gold);
        }
    }

    fn of_pools(&mut self) {
        for number in 0..4 {
            for pool in ["range", "careful", "aggregated", "silent"] {
                self.annotated(&format!("from-{pool}-{number}"), json!({ POOL: pool }), json!({}));
            }
        }
        let old = json!({ "metallb.universe.tf/address-pool": "range" });
        self.annotated("from-range-as-of-old", old, json!({}));
    }

    fn of_addresses(&mut self) {
        for number in 0..2 {
            let name = format!("at-99-one-of-two-{number}");
            self.annotated(&name, json!({ ADDRESSES: "192.0.2.99" }), json!({}));
        }
        self.annotated(
            "at-100-as-of-old",
            json!({ "metallb.universe.tf/loadBalancerIPs": "192.0.2.100" }),
            json!({}),
        );
        self.annotated(
            "at-101-by-the-field",
            json!({}),
            json!({ "spec": { "loadBalancerIP": "192.0.2.101" } }),
        );
        self.annotated("at-40-of-aggregated", json!({ ADDRESSES: "198.18.18.40" }), json!({}));
        for (number, port) in (0..4).zip(8_000..) {
            let shared = json!({ SHARED: "together", ADDRESSES: "192.0.2.110" });
            let ports = json!({ "spec": { "ports": [{ "name": "http", "port": port, "protocol": "TCP" }] } });
            self.annotated(&format!("shared-{number}"), shared, ports);
        }
    }

    fn of_families(&mut self) {
        let families = |policy: &str, families: &[&str]| json!({ "spec": { "ipFamilyPolicy": policy, "ipFamilies": families } });
        for number in 0..3 {
            let mut add =
                |name: &str, fields| self.annotated(&format!("{name}-{number}"), json!({}), fields);
            add("prefer-4", families("PreferDualStack", &["IPv4", "IPv6"]));
            add("prefer-6", families("PreferDualStack", &["IPv6", "IPv4"]));
            add("require", families("RequireDualStack", &["IPv4", "IPv6"]));
            add("single-6", families("SingleStack", &["IPv6"]));
        }
        self.annotated("only-6", json!({ POOL: "only-6" }), families("SingleStack", &["IPv6"]));
        self.annotated(
            "both-of-dual",
            json!({ POOL: "dual" }),
            families("RequireDualStack", &["IPv4", "IPv6"]),
        );
        let both = json!({ ADDRESSES: "198.51.100.9,2001:db8:2::109" });
        self.annotated("both-asked-for", both, families("RequireDualStack", &["IPv4", "IPv6"]));
    }

    fn of_policies(&mut self) {
        let local = || json!({ "spec": { "externalTrafficPolicy": "Local" } });
        self.add("shop", "local-on-b", &NODES[1..2], local());
        self.add("shop", "local-on-b-and-c", &NODES[1..], local());
        self.add("shop", "local-on-none", &[], local());
        self.add("shop", "no-endpoints", &[], json!({}));
        let on_whole = json!({ "metadata": { "annotations": { POOL: "aggregated" } } });
        let mut fields = local();
        merge(&mut fields, on_whole);
        self.add("shop", "local-on-c-aggregated", &NODES[2..], fields);
    }

    fn without_an_address(&mut self) {
        for number in 0..4 {
            self.annotated(&format!("from-tiny-{number}"), json!({ POOL: "tiny" }), json!({}));
        }
        self.annotated("from-nowhere", json!({ POOL: "nowhere" }), json!({}));
        self.annotated("at-an-address-of-nobody", json!({ ADDRESSES: "10.11.12.13" }), json!({}));
        self.annotated("at-no-address", json!({ ADDRESSES: "first" }), json!({}));
        self.annotated(
            "at-one-of-another-pool",
            json!({ POOL: "range", ADDRESSES: "192.0.2.98" }),
            json!({}),
        );
        self.annotated(
            "of-another-class",
            json!({}),
            json!({ "spec": { "loadBalancerClass": "example.com/other" } }),
        );
        self.annotated(
            "require-from-range",
            json!({ POOL: "range" }),
            json!({
                "spec": { "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"] },
            }),
        );
    }
}
