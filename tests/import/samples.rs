//! What each node announces or answers for by each sample of `crates/import`, written by hand from the documentation that is named
//! above the rows: that of the project that the sample is for, never what Fairway printed. Where that project would tell a neighbor
//! more, the comment names the line of the sample about which `fairway import` says so. `objects` compares.

/// A sample, and what each node announces or answers for.
pub(crate) struct Sample {
    pub(crate) path: &'static str,
    /// The objects around it; none for a host that knows no others.
    pub(crate) cluster: &'static str,
    /// The lines about which the importer says that they are not translated, where they are about peers, routes or addresses.
    pub(crate) named: &'static [u32],
    pub(crate) rows: &'static [&'static str],
}

/// The folders of `crates/import/src/tests` with samples.
pub(crate) const FOLDERS: [&str; 4] = ["keepalived", "cilium", "calico", "frr-k8s"];

pub(crate) const SAMPLES: &[Sample] = &[
    // keepalived.conf(5): virtual_ipaddress and virtual_ipaddress_excluded, each on the interface of the instance or of `dev`.
    Sample {
        path: "keepalived/simple.conf",
        cluster: HOST,
        named: &[],
        rows: &["192.168.122.200 node-a eth0 (bound) default/vi-1"],
    },
    Sample {
        path: "keepalived/unicast.conf",
        cluster: HOST,
        named: &[],
        rows: &[
            "10.0.0.100 node-a ens192 (bound) default/web",
            "10.0.1.100 node-a ens224 (bound) default/web-ens224",
        ],
    },
    // The lines about checks, from 12 on, say when a host is no master; they are about no other address.
    Sample {
        path: "keepalived/checks.conf",
        cluster: HOST,
        named: &[],
        rows: &["192.168.200.18 node-a eth0 (bound) default/vi-1"],
    },
    // IPVS has no addresses of its own: clients reach it by that of the instance.
    Sample {
        path: "keepalived/lvs.conf",
        cluster: HOST,
        named: &[],
        rows: &["192.0.2.80 node-a eth0 (bound) default/vi-lvs"],
    },
    // PARAMETER SUBSTITUTION and CONDITIONAL CONFIGURATION: `$VIP` stands for its value, and lines of `@main` are for another host.
    // Line 25 is no address.
    Sample {
        path: "keepalived/shared-file.conf",
        cluster: HOST,
        named: &[21, 22, 25],
        rows: &["192.0.2.50 node-a eth0 (bound) default/vi-24"],
    },
    // `no_accept`: the host receives no packets to these addresses, so they are not bound. Not there: a link-local address
    // (line 26), 203.0.113.10 once more on eth1 (line 40), and an instance without interface (line 43).
    Sample {
        path: "keepalived/sync.conf",
        cluster: HOST,
        named: &[26, 40, 43],
        rows: &[
            "10.1.0.1 node-a eth1 default/inside",
            "203.0.113.10 node-a eth0 (bound) default/outside",
            "2001:db8:0:1::10 node-a eth0 (bound) default/outside-2",
        ],
    },
    // Cilium, "BGP Control Plane Resources": nodes that the selector takes announce their own PodCIDR, and each ingress address
    // of a Service as a host route, to each peer.
    Sample {
        path: "cilium/tor-pair.yaml",
        cluster: CLUSTER,
        named: &[],
        rows: &[
            "node-a: instance-65000-tor1 10.244.1.0/24 <none>",
            "node-a: instance-65000-tor1 192.0.2.0/32 <none> shop/web",
            "node-a: instance-65000-tor2 10.244.1.0/24 <none>",
            "node-a: instance-65000-tor2 192.0.2.0/32 <none> shop/web",
        ],
    },
    // The same page, "Community", "Local Preference" and "Prefix Aggregation": 198.51.100.0/28 is told for 198.51.100.10. no-export
    // is a well-known community, and 4259840100 is 65000 * 65536 + 100. An advertisement whose labels no peer selects is nobody's, and
    // the control plane has no peer. The Service's other two addresses (line 38) and pools of Pods (line 47) are named.
    Sample {
        path: "cilium/attributes.yaml",
        cluster: WORKER_AND_CONTROL_PLANE,
        named: &[38, 47],
        rows: &[
            "node-a: core-rr1 198.51.100.0/28 localPref 150, communities 64512:99 65000:100 no-export, \
             largeCommunities 64512:100:50 shop/web",
            "node-a: core-rr2 198.51.100.0/28 localPref 150, communities 64512:99 65000:100 no-export, \
             largeCommunities 64512:100:50 shop/web",
        ],
    },
    // The same page, "Auto-Discovery" and "Service Virtual IPs": without a nodeSelector all nodes; of the Services those with the
    // label. The peer of any AS (line 22) is named.
    Sample {
        path: "cilium/default-gateway.yaml",
        cluster: SERVICES_OF_ANOTHER_POOL,
        named: &[22],
        rows: &[
            "node-a: 65001-gateway 192.0.2.10/32 <none> shop/edge",
            "node-a: 65001-link 192.0.2.10/32 <none> shop/edge",
            "node-b: 65001-gateway 192.0.2.10/32 <none> shop/edge",
            "node-b: 65001-link 192.0.2.10/32 <none> shop/edge",
        ],
    },
    // The same page, "Address Families": "without matching advertisements, no prefix will be advertised". That is c, which has no
    // peer configuration. Cilium tells a the node's IPv4 PodCIDR, which line 24 is about.
    Sample {
        path: "cilium/list.yaml",
        cluster: ONE_NODE,
        named: &[14, 24],
        rows: &["node-a: main-a <none>", "node-a: main-c <none>"],
    },
    // Cilium, "BGP Peering Policy (Legacy)", "Advertised Path Attributes": those of a pool are for Services with an address of it, those
    // of PodCIDR for the node's own; another neighbor has none. ClusterIPs (line 11) are named.
    Sample {
        path: "cilium/peering-policy.yaml",
        cluster: RACK_WITH_THREE_SERVICES,
        named: &[11, 33],
        rows: &[
            "node-a: rack1-172.18.0.5 10.244.1.0/24 largeCommunities 64512:1:2",
            "node-a: rack1-172.18.0.5 203.0.113.1/32 localPref 200, communities 64512:200 shop/web",
            "node-a: rack1-172.18.0.5 203.0.113.17/32 <none> shop/mail",
            "node-a: rack1-fd00-10-2 10.244.1.0/24 <none>",
            "node-a: rack1-fd00-10-2 203.0.113.1/32 <none> shop/web",
            "node-a: rack1-fd00-10-2 203.0.113.17/32 <none> shop/mail",
        ],
    },
    // Cilium, "LoadBalancer IP Address Management" and "L2 Announcements": the pool is for blue Services of one namespace, without the
    // first address of a block; a worker answers on eth0. A blue Service of another namespace gets no address. The interfaces by
    // expression (lines 41 and 49) are named.
    Sample {
        path: "cilium/pools-and-layer2.yaml",
        cluster: TENANT,
        named: &[30, 41, 49],
        rows: &["10.0.10.1 node-a eth0 tenant-a/front"],
    },
    // Calico, "Advertise Kubernetes service IP addresses": all ranges as a whole; Fairway announces those of load balancers while a
    // Service has an address in them. "BGP configuration", prefixAdvertisements: communities for all routes inside of a prefix, so that
    // 198.51.100.0/24 has those of 198.51.0.0/16, and 172.217.3.0/24 has none of 172.217.3.0/28. An IPv4 session carries no IPv6
    // range. 192.0.2.64/26 is named (line 15).
    Sample {
        path: "calico/services.yaml",
        cluster: SERVICES_OF_TWO_RANGES,
        named: &[15],
        rows: &[
            "node-a: router 10.96.0.0/12 <none>",
            "node-a: router 104.244.42.129/32 <none>",
            "node-a: router 172.217.3.0/24 <none>",
            "node-a: router 198.51.100.0/24 communities 63400:120, largeCommunities 63400:300:100 shop/web",
            "node-a: router 203.0.113.0/25 <none> shop/mail",
        ],
    },
    // Calico, "BGP peer": without node and nodeSelector it is for all nodes. They tell it the blocks of the pool with a tunnel (line
    // 12), and nothing else: podCIDRs are not Calico's, and there is no range of Services.
    Sample {
        path: "calico/crds.yaml",
        cluster: CLUSTER,
        named: &[12, 26],
        rows: &["node-a: edge <none>", "node-b: edge <none>"],
    },
    // Calico, "BGP filter": the first rule that matches decides, so that router hears of 192.0.2.0/24 alone, from all nodes ("Advertise
    // Kubernetes service IP addresses"). What the filter of marked does to the path is named (line 41), and so is the filter
    // that lost refers to (line 61).
    Sample {
        path: "calico/filters.yaml",
        cluster: CLUSTER,
        named: &[41, 61],
        rows: &[
            "node-a: lost <none>",
            "node-a: marked <none>",
            "node-a: router 192.0.2.0/24 <none> shop/web",
            "node-b: lost <none>",
            "node-b: marked <none>",
            "node-b: router 192.0.2.0/24 <none> shop/web",
        ],
    },
    // Calico, "BGP peer": `node` is one node, without it or with all() all nodes. No pool and no range of Services is there, so nothing is
    // told. The peer of the third host is named (line 20).
    Sample {
        path: "calico/nodes.yaml",
        cluster: THREE_HOSTS,
        named: &[20],
        rows: &[
            "rack1-host1: everything <none>",
            "rack1-host1: rack1-host1 <none>",
            "rack1-host1: sealed <none>",
            "rack1-host2: everything <none>",
            "rack1-host2: rack1-host1 <none>",
            "rack1-host2: sealed <none>",
            "rack1-host3: everything <none>",
            "rack1-host3: sealed <none>",
        ],
    },
    // Calico, "Configure BGP peering": a node peers with the router of its rack. It announces blocks of the pools once it has given
    // a Pod an address of one, and files have none: `podBlocks` of crates/plan is tested there.
    Sample {
        path: "calico/racks.yaml",
        cluster: RACKS,
        named: &[32],
        rows: &["node-a: rack1-tor <none>", "node-b: rack2-tor <none>"],
    },
    // Calico, "Configure BGP peering", "Configure in-cluster route reflectors": spine is for nodes of either label. No pool and no range
    // is there. The mesh (line 5), AS 64513 of rr-1 (line 12), and nodes and Pods as peers (lines 19 and 24) are named.
    Sample {
        path: "calico/route-reflectors.yaml",
        cluster: REFLECTORS,
        named: &[5, 12, 19, 24],
        rows: &["rr-1: spine <none>", "spine-1: spine <none>"],
    },
    // frr-k8s, README, "how multiple configurations are merged": prefixes and what is allowed of all objects that take the node
    // are added up.
    Sample {
        path: "frr-k8s/merged.yaml",
        cluster: CLUSTER,
        named: &[53],
        rows: &[
            "node-a: 10.0.0.1 192.0.2.1/32 <none>",
            "node-a: 10.0.0.1 192.0.2.128/25 <none>",
            "node-a: 10.0.0.2 <none>",
            "node-b: 10.0.0.1 192.0.2.1/32 <none>",
        ],
    },
    // frr-k8s, API reference, Advertise: attributes are for the prefixes beside them; without toAdvertise nothing is told. With line
    // 28 frr-k8s refuses all.
    Sample {
        path: "frr-k8s/attributes.yaml",
        cluster: HOST,
        named: &[15, 28],
        rows: &[
            "node-a: 172.18.0.5 192.168.100.0/24 localPref 200, communities 64512:100, largeCommunities 64512:1:2",
            "node-a: 172.18.0.5 192.169.101.0/24 communities 64512:100",
            "node-a: 172.18.0.6 192.169.101.0/24 communities 64512:100",
            "node-a: 172.18.0.7 <none>",
        ],
    },
    Sample {
        path: "frr-k8s/basic.yaml",
        cluster: HOST,
        named: &[],
        rows: &["node-a: 172.30.0.3 192.168.100.0/24 <none>"],
    },
    // README, "Node selector": an object is for nodes with its labels. API reference, dualStackAddressFamily: without it a session has
    // the family of its address, so that the IPv6 prefix is told to nobody.
    Sample {
        path: "frr-k8s/by-node.yaml",
        cluster: ZONES,
        named: &[],
        rows: &["node-a: 10.0.0.1 192.0.2.0/26 <none>", "node-b: 10.0.0.1 192.0.2.64/26 <none>"],
    },
    // API reference, interface: "the neighbor will be enabled for both IPv4 and IPv6 address families", as with
    // dualStackAddressFamily. eth2 has no toAdvertise. With the neighbors of lines 29 and 30 frr-k8s refuses all.
    Sample {
        path: "frr-k8s/unnumbered.yaml",
        cluster: HOST,
        named: &[8, 14, 29, 30],
        rows: &[
            "node-a: 2001-db8-1 192.0.2.0/24 <none>",
            "node-a: 2001-db8-1 2001:db8:1::/48 <none>",
            "node-a: eth1 192.0.2.0/24 <none>",
            "node-a: eth1 2001:db8:1::/48 <none>",
            "node-a: eth2 <none>",
        ],
    },
    // README, "Configuring one (or multiple) routers": prefixes are those of the router of that VRF. That red imports the others, and
    // may tell one of them, is named (lines 21 and 29). With the BFD profile of line 26, which is not there, frr-k8s refuses all.
    Sample {
        path: "frr-k8s/vrf.yaml",
        cluster: HOST,
        named: &[21, 26, 29],
        rows: &[
            "node-a: 192.168.5.1 192.168.100.0/24 <none>",
            "node-a: red-192.168.5.1 192.168.101.0/24 <none>",
        ],
    },
];

/// A host that knows no others, and is called node-a.
const HOST: &str = "";

/// Two nodes, and a Service that has an endpoint on the first.
const CLUSTER: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {rack: rack0, gpu: "true"}}, spec: {podCIDRs: [10.244.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {rack: rack1}}, spec: {podCIDRs: [10.244.2.0/24]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
"#;

/// A Service with addresses of three kinds.
const WORKER_AND_CONTROL_PLANE: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}, spec: {podCIDRs: [10.244.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {node-role.kubernetes.io/control-plane: ""}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {metallb.io/loadBalancerIPs: 198.51.100.10}}
spec: {type: LoadBalancer, clusterIP: 10.96.0.10, externalIPs: [192.0.2.7], ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
"#;

/// Two Services, of which one has the label; another object has the pool.
const SERVICES_OF_ANOTHER_POOL: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b}}
---
{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: services}, spec: {addresses: [192.0.2.0/24]}}
---
apiVersion: v1
kind: Service
metadata: {name: edge, namespace: shop, labels: {tier: edge}, annotations: {metallb.io/loadBalancerIPs: 192.0.2.10}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: edge-1, namespace: shop, labels: {kubernetes.io/service-name: edge}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: inner, namespace: shop, labels: {tier: inner}, annotations: {metallb.io/loadBalancerIPs: 192.0.2.11}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: inner-1, namespace: shop, labels: {kubernetes.io/service-name: inner}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.6], nodeName: node-a, conditions: {ready: true}}]
"#;

/// Services with addresses of two ranges of load balancers.
const SERVICES_OF_TWO_RANGES: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: shop}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, annotations: {metallb.io/loadBalancerIPs: 198.51.100.8}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: mail, namespace: shop, annotations: {metallb.io/loadBalancerIPs: 203.0.113.9}}
spec: {type: LoadBalancer, ports: [{port: 25}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: mail-1, namespace: shop, labels: {kubernetes.io/service-name: mail}}
addressType: IPv4
ports: [{port: 25}]
endpoints: [{addresses: [10.244.1.6], nodeName: node-a, conditions: {ready: true}}]
"#;

const ONE_NODE: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}, spec: {podCIDRs: [10.244.1.0/24]}}
"#;

/// A node of the rack and another one; Services of both pools, and one without the label.
const RACK_WITH_THREE_SERVICES: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {bgp: rack1}}, spec: {podCIDRs: [10.244.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {bgp: rack2}}, spec: {podCIDRs: [10.244.2.0/24]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {announce: bgp}, annotations: {metallb.io/loadBalancerIPs: 203.0.113.1}}
spec: {type: LoadBalancer, clusterIP: 10.96.0.10, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: mail, namespace: shop, labels: {announce: bgp}, annotations: {metallb.io/loadBalancerIPs: 203.0.113.17}}
spec: {type: LoadBalancer, clusterIP: 10.96.0.11, ports: [{port: 25}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: mail-1, namespace: shop, labels: {kubernetes.io/service-name: mail}}
addressType: IPv4
ports: [{port: 25}]
endpoints: [{addresses: [10.244.1.6], nodeName: node-a, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: quiet, namespace: shop, annotations: {metallb.io/loadBalancerIPs: 203.0.113.18}}
spec: {type: LoadBalancer, clusterIP: 10.96.0.12, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: quiet-1, namespace: shop, labels: {kubernetes.io/service-name: quiet}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.7], nodeName: node-a, conditions: {ready: true}}]
"#;

/// Blue Services of two namespaces, and another one of the first.
const TENANT: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {node-role.kubernetes.io/control-plane: ""}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: tenant-a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: tenant-b}}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: tenant-a, labels: {color: blue}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: front-1, namespace: tenant-a, labels: {kubernetes.io/service-name: front}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.5], nodeName: node-a, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: back, namespace: tenant-a, labels: {color: red}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: back-1, namespace: tenant-a, labels: {kubernetes.io/service-name: back}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.6], nodeName: node-a, conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: tenant-b, labels: {color: blue}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: front-1, namespace: tenant-b, labels: {kubernetes.io/service-name: front}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.244.1.7], nodeName: node-a, conditions: {ready: true}}]
"#;

const THREE_HOSTS: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: rack1-host1, labels: {kubernetes.io/hostname: rack1-host1}}}
---
{apiVersion: v1, kind: Node, metadata: {name: rack1-host2, labels: {kubernetes.io/hostname: rack1-host2}}}
---
{apiVersion: v1, kind: Node, metadata: {name: rack1-host3, labels: {kubernetes.io/hostname: rack1-host3}}}
"#;

/// A node of each rack, and a drained one.
const RACKS: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {rack: rack-1}}, spec: {podCIDRs: [10.244.1.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {rack: rack-2b}}, spec: {podCIDRs: [10.244.2.0/24]}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-c, labels: {rack: rack-2, drained: ""}}, spec: {podCIDRs: [10.244.3.0/24]}}
"#;

const REFLECTORS: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a}}
---
{apiVersion: v1, kind: Node, metadata: {name: rr-1, labels: {route-reflector: ""}}}
---
{apiVersion: v1, kind: Node, metadata: {name: spine-1, labels: {role: spine}}}
"#;

/// A node of each zone, and one of none.
const ZONES: &str = r#"
---
{apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {zone: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {zone: b}}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-c}}
"#;
