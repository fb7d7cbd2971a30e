//! How plans come about: stories with a small cluster each.

mod announcing;
mod attributes;
mod bandwidth;
mod comparing;
mod data_path;
mod layer2;
mod peering;
mod updating;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_allocator::{Allocator, Outcomes, from_scratch};
use fairway_ground::{
    AddPath, AddressFamily, Asn, ChosenNextHops, HoldTime, ImportPolicy, Instant, Password,
    PeerKey, Prefix, PrefixFilter, Remote, RemoteAs,
};
use fairway_model::{
    BgpAdvertisement, Changes, ClusterIndex, Endpoint, EndpointSlice, FamilyPolicy, Kind,
    LabelSelector, Labels, Node, Object, ObjectName, Operator, Peer, PeerPassword, Pool,
    Requirement, Secret, Service, ServicePort, TrafficPolicy,
};

use super::*;

const OPTIONS: PlanOptions = PlanOptions {
    ignore_exclude_label: false,
    unsliced_services_are_served: true,
    attribute_defaults: AttributeDefaults { local_pref: None, med: None },
};
const V4: AddressFamily = AddressFamily::Ipv4Unicast;

fn name(name: &str) -> ObjectName {
    ObjectName::new("default", name)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn key(text: &str) -> PeerKey {
    PeerKey::from(ip(text))
}

fn labels(text: &str) -> Labels {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Selects objects with all these labels.
fn selecting(text: &str) -> Vec<LabelSelector> {
    let requirements = labels(text).into_iter().map(|(key, value)| Requirement {
        key,
        operator: Operator::In,
        values: BTreeSet::from([value]),
    });
    vec![LabelSelector { requirements: requirements.collect() }]
}

fn node(called: &str) -> Node {
    Node::assumed(called, vec![ip("192.0.2.250")])
}

fn peer(called: &str, address: &str) -> Peer {
    Peer {
        name: name(called),
        my_asn: Asn::new(65000).unwrap(),
        local_asn: None,
        remote_as: RemoteAs::Asn(Asn::new(65001).unwrap()),
        remote: Remote::Address(ip(address)),
        listen_limit: 100,
        vrf: None,
        passive: false,
        shutdown: None,
        port: 179,
        source_address: None,
        hold_time: HoldTime::DEFAULT,
        keepalive_interval: None,
        connect_interval: None,
        router_id: None,
        node_selectors: Vec::new(),
        password: PeerPassword::None,
        tcp_ao: Vec::new(),
        ebgp_multihop: false,
        ttl_security_hops: None,
        dual_stack: false,
        extended_next_hop: false,
        add_path: AddPath::default(),
        role: None,
        client: None,
        cluster_id: None,
        role_strict: false,
        graceful_restart: None,
        bfd_profile: None,
        bfd_strict: false,
        import: ImportPolicy::default(),
        pass_on: PrefixFilter::Nothing,
        pass_on_rules: Arc::default(),
        next_hops: ChosenNextHops::default(),
        install_routes: false,
    }
}

fn pool(called: &str, ranges: &[&str]) -> Pool {
    Pool {
        name: name(called),
        labels: labels(&format!("pool={called}")),
        ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        auto_assign: true,
        avoid_buggy_addresses: false,
        reserved: Vec::new(),
        allocation: None,
    }
}

fn service(called: &str) -> Service {
    Service {
        name: name(called),
        labels: labels(&format!("app={called}")),
        load_balancer_class: None,
        families: FamilyPolicy::Single(V4),
        requested_addresses: Vec::new(),
        requested_pools: Vec::new(),
        sharing_key: None,
        ports: vec![ServicePort { protocol: "TCP".to_owned(), port: 80 }],
        traffic_policy: TrafficPolicy::Cluster,
        selector: String::new(),
        status_addresses: Vec::new(),
        health_check: None,
    }
}

fn advertisement(called: &str) -> BgpAdvertisement {
    BgpAdvertisement {
        name: name(called),
        aggregation_length_ipv4: 32,
        aggregation_length_ipv6: 128,
        local_pref: None,
        med: None,
        as_path_prepend: 0,
        link_bandwidth: None,
        communities: BTreeSet::new(),
        pools: BTreeSet::new(),
        pool_selectors: Vec::new(),
        node_selectors: Vec::new(),
        service_selectors: Vec::new(),
        peers: BTreeSet::new(),
        prefixes: Vec::new(),
        pod_cidrs: false,
        pod_blocks: false,
        pod_block_pools: BTreeSet::new(),
        blackhole: false,
    }
}

/// Endpoints as `node` or, when not usable, `!node`; `-` is one without a node.
fn slice(called: &str, service: &str, endpoints: &str) -> EndpointSlice {
    let endpoints = endpoints.split_whitespace().map(|text| {
        let node = text.trim_start_matches('!');
        Endpoint { node: (node != "-").then(|| node.to_owned()), usable: !text.starts_with('!') }
    });
    EndpointSlice {
        name: name(called),
        service: name(service),
        family: Some(V4),
        endpoints: endpoints.collect(),
    }
}

fn secret(called: &str, password: &str) -> Secret {
    let password = Password::new(password).unwrap();
    Secret {
        name: name(called),
        values: BTreeMap::from([("password".to_owned(), password.clone())]),
        password: Some(password),
    }
}

/// A cluster with one router, one pool and one advertisement for all of it.
struct Cluster {
    index: ClusterIndex,
}

impl Cluster {
    fn small() -> Self {
        let mut cluster = Self::empty();
        cluster.peer(peer("tor", "192.0.2.1")).pool(pool("a", &["198.51.100.0/24"]));
        cluster.advertisement(advertisement("all"));
        cluster
    }

    fn empty() -> Self {
        Self { index: ClusterIndex::default() }
    }

    fn peer(&mut self, peer: Peer) -> &mut Self {
        self.add(Object::from(peer))
    }

    fn pool(&mut self, pool: Pool) -> &mut Self {
        self.add(Object::from(pool))
    }

    fn service(&mut self, service: Service) -> &mut Self {
        self.add(Object::from(service))
    }

    fn advertisement(&mut self, advertisement: BgpAdvertisement) -> &mut Self {
        self.add(Object::from(advertisement))
    }

    fn slice(&mut self, slice: EndpointSlice) -> &mut Self {
        self.add(Object::EndpointSlice(slice))
    }

    fn add(&mut self, object: Object) -> &mut Self {
        self.index.apply(object);
        self
    }

    fn outcomes(&self) -> Outcomes {
        from_scratch(&self.index, None)
    }

    fn plan(&self) -> NodePlan {
        self.plan_for(&node("n1"))
    }

    fn plan_for(&self, node: &Node) -> NodePlan {
        for_node(&self.index, &self.outcomes(), node, OPTIONS)
    }
}

/// Routes as text: `prefix > peers: localPref med prepend bandwidth communities`.
fn routes(plan: &NodePlan) -> Vec<String> {
    let text = plan.routes.iter().map(|route| {
        let peers: Vec<_> = route.peers.iter().map(ToString::to_string).collect();
        let attributes = &route.attributes;
        let mut words: Vec<_> = attributes.local_pref.iter().map(ToString::to_string).collect();
        words.extend(attributes.med.map(|med| format!("med {med}")));
        let prepend = Some(attributes.as_path_prepend).filter(|count| *count > 0);
        words.extend(prepend.map(|count| format!("prepend {count}")));
        let bandwidth = attributes.link_bandwidth;
        words.extend(bandwidth.map(|it| format!("{} bit/s", it.bits_per_second)));
        words.extend(attributes.communities.iter().map(ToString::to_string));
        words.extend(attributes.large_communities.iter().map(ToString::to_string));
        format!("{} > {}: {}", route.prefix, peers.join(" "), words.join(" "))
    });
    text.map(|text| text.trim_end_matches([' ', ':']).to_owned()).collect()
}

/// The words of all reasons why a Service is not announced.
fn why(plan: &NodePlan, service: &str) -> Vec<&'static str> {
    plan.services[&name(service)].reasons().map(Reason::word).collect()
}

fn names(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
