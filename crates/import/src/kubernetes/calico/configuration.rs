//! BGPConfiguration: what concerns all nodes.
//!
//! Answers the AS of the nodes, the ranges of Services that they announce, and the communities of routes. Knows no peer.

use std::collections::BTreeSet;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::filter::community;
use super::number::as_number;
use super::own_route::{Marking, OwnRoute, OwnRoutes};
use super::pool::Pool;
use super::range::Range;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// The AS of nodes without another.
const AS_DEFAULT: u32 = 64512;
const PORT: u64 = 179;

pub(super) struct Configuration<'a> {
    pub(super) my_asn: u32,
    pub(super) markings: Vec<Marking<'a>>,
}

impl Default for Configuration<'_> {
    fn default() -> Self {
        Self { my_asn: AS_DEFAULT, markings: Vec::new() }
    }
}

impl<'a> Configuration<'a> {
    pub(super) fn read(
        object: &'a SourceObject,
        pools: Vec<Pool>,
        own_routes: &mut OwnRoutes<'a>,
        work: &mut Work,
    ) -> Self {
        let spec = object.spec();
        let my_asn = spec.text("asNumber").and_then(|text| {
            let number = as_number(&text);
            if number.is_none() {
                spec.untranslated("asNumber", "is not an AS number: myASN is Calico's default");
            }
            number
        });
        mesh(&spec);
        settings(&spec);
        let names = aliases(object, work);
        let markings = spec.sections("prefixAdvertisements").into_iter().filter_map(|section| {
            let network = section.text("cidr").and_then(|it| it.parse::<IpNet>().ok());
            let Some(network) = network else {
                section.untranslated_here("has no prefix as in 192.0.2.0/24");
                return None;
            };
            let communities = marked(&section, &names);
            Some(Marking { section, network, communities })
        });
        let markings = markings.collect();
        load_balancers(&spec, pools, own_routes, work);
        for (field, name) in
            [("serviceClusterIPs", "cluster-ips"), ("serviceExternalIPs", "external-ips")]
        {
            ranges(&spec, field, name, own_routes);
        }
        let my_asn = my_asn.map_or(AS_DEFAULT, fairway_ground::Asn::get);
        Self { my_asn, markings }
    }
}

/// Every node peers with every other one, unless it is turned off.
fn mesh(spec: &Section<'_>) {
    let why = "has no equal: let the nodes peer with routers, or with some of them as route reflectors \
               (routeReflectorClient), before you turn the mesh off";
    if spec.has("nodeToNodeMeshEnabled") {
        if spec.flag("nodeToNodeMeshEnabled") == Some(true) {
            spec.untranslated("nodeToNodeMeshEnabled", format!("the mesh of all nodes {why}"));
        }
    } else {
        spec.missing(
            "nodeToNodeMeshEnabled",
            format!("is true by default, and the mesh of all nodes {why}"),
        );
    }
    for field in ["nodeMeshPassword", "nodeMeshMaxRestartTime"] {
        spec.untranslated(
            field,
            "is about the mesh of all nodes, which has no equal: set it in the BGPPeers",
        );
    }
}

/// Fields that are options of Fairway, or that it does without.
fn settings(spec: &Section<'_>) {
    spec.ignore(&["logSeverityScreen"]);
    if spec.number("listenPort").is_some_and(|it| it != PORT) {
        spec.note("listenPort", "is an option of the daemon: --bgp-listen ADDRESS:PORT");
    }
    if spec.text("bindMode").as_deref() == Some("NodeIP") {
        spec.note(
            "bindMode",
            "is an option of the daemon: --bgp-listen with the address of the node",
        );
    }
    if spec.has("ignoredInterfaces") {
        spec.ignore(&["ignoredInterfaces"]);
        spec.note(
            "ignoredInterfaces",
            "is not needed: Fairway announces no networks of interfaces",
        );
    }
    for field in ["localWorkloadPeeringIPV4", "localWorkloadPeeringIPV6"] {
        spec.untranslated(
            field,
            "is about sessions with Pods: write a BGPPeer with listenRange for their network",
        );
    }
    if spec.text("programClusterRoutes").is_some() {
        spec.note("programClusterRoutes", "is installRoutes of the BGPPeers");
    }
    for field in ["ipv4NormalRoutePriority", "ipv6NormalRoutePriority"] {
        if spec.number(field).is_some() {
            spec.note(field, "is fixed: routes that Fairway installs have metric 1790");
        }
    }
}

/// Writes the Community object; the names in it.
fn aliases(object: &SourceObject, work: &mut Work) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut communities: Vec<Value> = Vec::new();
    for section in object.spec().sections("communities") {
        let name = section.text("name").unwrap_or_default();
        match section.text("value").and_then(|it| community(&it)) {
            Some(value) if !name.is_empty() => {
                if names.insert(name.clone()) {
                    communities.push(json!({"name": name, "value": value}));
                }
            }
            _ => section
                .untranslated_here("is not a name with a community as in 65001:100 or 65001:1:2"),
        }
    }
    if !communities.is_empty() {
        let mut spec = Fields::default();
        spec.set("communities", Value::Array(communities));
        work.community(object.name(), spec);
    }
    names
}

/// The communities that routes get; nothing where one is unknown.
fn marked(section: &Section<'_>, names: &BTreeSet<String>) -> Option<Vec<String>> {
    let mut communities = Vec::new();
    for (position, text) in section.texts("communities") {
        let known = if names.contains(&text) { Some(text.clone()) } else { community(&text) };
        match known {
            Some(it) => communities.push(it),
            None => {
                let why = "is neither a community nor the name of one: routes inside of the prefix are not announced";
                section.untranslated_at("communities", position, why);
                return None;
            }
        }
    }
    Some(communities)
}

/// The ranges of load balancers, each with its pool.
fn load_balancers<'a>(
    spec: &Section<'a>,
    pools: Vec<Pool>,
    own_routes: &mut OwnRoutes<'a>,
    work: &mut Work,
) {
    let is_aggregated = spec.text("serviceLoadBalancerAggregation").as_deref() != Some("Disabled");
    let mut pools = pools;
    for section in spec.sections("serviceLoadBalancerIPs") {
        let Some(network) = section.text("cidr").and_then(|it| it.parse::<IpNet>().ok()) else {
            section.untranslated("cidr", "is not a prefix as in 192.0.2.0/24: it is not announced");
            continue;
        };
        let network = network.trunc();
        if let Some(pool) = pools.iter().find(|it| is_part(network, it.network)) {
            let why = format!(
                "is a part of pool {}, and Fairway announces whole pools: it is not announced; make it a pool of \
                               its own",
                pool.name
            );
            section.untranslated("cidr", why);
            continue;
        }
        if !pools.iter().any(|it| network.contains(&it.network)) {
            section.note(
                "cidr",
                "Calico only announces these addresses: where another program assigns them (MetalLB, for example), leave out \
                 the pool of the result and name that program's",
            );
            let mut fields = Fields::default();
            fields.set("addresses", json!([network.to_string()]));
            let name = work.pool("load-balancer-ips", fields);
            pools.push(Pool { name, network, is_exported: true });
        }
        for pool in pools.iter().filter(|it| it.is_exported && network.contains(&it.network)) {
            if is_aggregated && pool.network != network {
                section.note("cidr", format!("of it, the part of pool {} is announced", pool.name));
            }
            own_routes.add(of_pool(&section, pool, is_aggregated));
        }
    }
    if is_aggregated {
        spec.note(
            "serviceLoadBalancerIPs",
            "is announced while a Service has an address in it; for Services with externalTrafficPolicy: Local Calico announces \
             single addresses, too: for these, write a BGPAdvertisement with aggregationLength 32 and serviceSelectors",
        );
    }
}

/// Whether `inner` is less than `outer`.
fn is_part(inner: IpNet, outer: IpNet) -> bool {
    outer.contains(&inner) && outer != inner
}

/// The routes to the addresses of a pool.
fn of_pool<'a>(section: &Section<'a>, pool: &Pool, is_aggregated: bool) -> OwnRoute<'a> {
    let network = pool.network;
    let mut spec = Fields::default();
    spec.set("ipAddressPools", json!([pool.name]));
    let is_one_address = network.prefix_len() == network.max_prefix_len();
    if is_aggregated && !is_one_address {
        let field =
            if network.addr().is_ipv4() { "aggregationLength" } else { "aggregationLengthV6" };
        spec.set(field, json!(network.prefix_len()));
    }
    let range = if is_aggregated { Range::exactly(network) } else { Range::hosts(network) };
    let section = section.clone();
    OwnRoute { section, name: pool.name.clone(), spec, pod_pool: None, range }
}

/// Ranges of Services that every node announces as they are.
fn ranges<'a>(spec: &Section<'a>, field: &str, name: &str, own_routes: &mut OwnRoutes<'a>) {
    for section in spec.sections(field) {
        let Some(network) = section.text("cidr").and_then(|it| it.parse::<IpNet>().ok()) else {
            section.untranslated("cidr", "is not a prefix as in 192.0.2.0/24: it is not announced");
            continue;
        };
        let network = network.trunc();
        let mut fields = Fields::default();
        fields.set("prefixes", json!([network.to_string()]));
        let range = Range::exactly(network);
        let name = name.to_owned();
        own_routes.add(OwnRoute { section, name, spec: fields, pod_pool: None, range });
    }
    spec.note(
        field,
        "is announced by every node as a whole; for Services with externalTrafficPolicy: Local Calico announces single \
         addresses, too, and Fairway does not",
    );
}
