//! CiliumBGPPeeringPolicy: peers and what they are told in one object, as releases before 1.16 had it.
//!
//! Answers BGPPeers and BGPAdvertisements of each virtual router. Knows no other object but the pools.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::advertisement::{attributes, is_by_labels};
use super::peer_config::{graceful_restart, multihop, port, timers};
use super::pool::Pool;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::peers::{ToldRoutes, rival};
use crate::kubernetes::selector::{Selection, Selector, any_of, selection};
use crate::kubernetes::work::Work;
use crate::object::Fields;

pub(super) fn import(object: &SourceObject, pools: &[Pool], work: &mut Work) {
    let spec = object.spec();
    let nodes = match selection(&spec, "nodeSelector") {
        Selection::Missing => Vec::new(),
        Selection::Selector(selector) => vec![selector],
        // Without it the peers would be on all nodes.
        Selection::Untranslated => return object.skip(),
    };
    for router in spec.sections("virtualRouters") {
        virtual_router(&router, object.name(), &nodes, pools, work);
    }
}

/// Peers that are told the same.
struct Group<'a> {
    /// `advertisedPathAttributes` as written.
    written: Option<&'a Value>,
    attributes: Vec<Section<'a>>,
    told: Vec<ToldRoutes>,
}

fn virtual_router(
    router: &Section<'_>,
    name: &str,
    nodes: &[Selector],
    pools: &[Pool],
    work: &mut Work,
) {
    let Some(my_asn) = router.number("localASN").filter(|it| *it > 0) else {
        return router.untranslated_here("has no localASN: its peers are left out");
    };
    let mut groups: Vec<Group<'_>> = Vec::new();
    for section in router.sections("neighbors") {
        let written = section.get("advertisedPathAttributes");
        let of_router = ["exportPodCIDR", "serviceSelector", "serviceAdvertisements"];
        let announced = json!([of_router.map(|it| router.get(it)), written]);
        let instance = Instance { policy: name, my_asn, nodes, announced };
        let Some(told) = neighbour(&section, instance, work) else {
            section.settle();
            continue;
        };
        let attributes = section.sections("advertisedPathAttributes");
        match groups.iter_mut().find(|it| it.written == written) {
            Some(group) => {
                group.told.push(told);
                section.ignore(&["advertisedPathAttributes"]);
            }
            None => groups.push(Group { written, attributes, told: vec![told] }),
        }
    }
    router.untranslated(
        "podIPPoolSelector",
        "has no equal: for the blocks of Pods of Fairway's own addresses, set podBlocks of a BGPAdvertisement",
    );
    let exports_pods = router.is_set("exportPodCIDR");
    let services = services(router);
    if groups.is_empty() && (exports_pods || services.is_some()) {
        router.note_here("announces nothing in the result, which has none of its peers");
    }
    for group in &groups {
        if exports_pods && let Some(spec) = pods(group) {
            work.bgp_advertisement(&format!("{name}-pods"), spec, group.told.clone());
        }
        if let Some(services) = &services {
            for spec in advertisements(group, services, pools) {
                work.bgp_advertisement(name, spec, group.told.clone());
            }
        }
        for section in &group.attributes {
            if section.text("selectorType").as_deref() == Some("CiliumPodIPPool") {
                section.untranslated_here("is about pools of Pods, which have no equal");
            }
            section.ignore(&["selector", "communities", "localPreference"]);
        }
    }
}

/// What a neighbour has of its router.
struct Instance<'a> {
    policy: &'a str,
    my_asn: u64,
    nodes: &'a [Selector],
    /// The fields about what it is told, as written.
    announced: Value,
}

/// The BGPPeer of a neighbour.
fn neighbour(section: &Section<'_>, instance: Instance<'_>, work: &mut Work) -> Option<ToldRoutes> {
    let Instance { policy, my_asn, nodes, announced } = instance;
    let Some(peer_asn) = section.number("peerASN").filter(|it| *it > 0) else {
        section.untranslated_here("has no peerASN: the peer is left out");
        return None;
    };
    let address = section.text("peerAddress").unwrap_or_default();
    let network = address.parse::<IpNet>().ok();
    let Some(network) = network.filter(|it| it.prefix_len() == it.max_prefix_len()) else {
        section.untranslated(
            "peerAddress",
            "is not one address as in 192.0.2.1/32: the peer is left out",
        );
        return None;
    };
    let mut spec = Fields::default();
    spec.set("myASN", json!(my_asn)).set("peerASN", json!(peer_asn));
    spec.set("peerAddress", json!(network.addr().to_string()));
    port(section, &mut spec)?;
    timers(section, &mut spec);
    multihop(section, "eBGPMultihopTTL", my_asn != peer_asn, &mut spec);
    if let Some(secret) = section.text("authSecretRef") {
        let name = work.password(section, "authSecretRef", (&secret, "password"));
        spec.set("passwordSecret", json!({"name": name}));
    }
    if let Some(restart) = section.section("gracefulRestart") {
        graceful_restart(&restart, &mut spec);
    }
    let own = if network.addr().is_ipv4() { "ipv4" } else { "ipv6" };
    spec.set_if("dualStackAddressFamily", is_dual_stack(section, own)?);
    match work.peers.add(&format!("{policy}-{}", network.addr()), spec, nodes, announced) {
        Ok(told) => Some(told),
        Err(other) => {
            section.untranslated_here(rival(&other));
            None
        }
    }
}

/// Whether the session carries both families; nothing where it carries the other one alone.
fn is_dual_stack(section: &Section<'_>, own: &str) -> Option<bool> {
    let families = section.sections("families");
    let names: Vec<String> = families
        .iter()
        .filter_map(|family| {
            let safi = family.text("safi");
            let afi = family.text("afi")?;
            if safi.as_deref() != Some("unicast") || !["ipv4", "ipv6"].contains(&afi.as_str()) {
                family.untranslated_here("is no address family of Fairway");
                return None;
            }
            Some(afi)
        })
        .collect();
    if names.is_empty() {
        return Some(true);
    }
    if !names.iter().any(|it| it == own) {
        section.untranslated(
            "families",
            "leaves out the family of the address itself, which Fairway's session always carries: the peer is left out",
        );
        return None;
    }
    Some(names.iter().any(|it| it != own))
}

/// The Services whose addresses the router announces.
fn services(router: &Section<'_>) -> Option<Selector> {
    let mut has_addresses = !router.has("serviceAdvertisements");
    for (position, kind) in router.texts("serviceAdvertisements") {
        if kind == "LoadBalancerIP" {
            has_addresses = true;
        } else {
            let why = format!(
                "{kind} is not announced: Fairway announces addresses of Services of type LoadBalancer; for a \
                               whole range, set prefixes of a BGPAdvertisement"
            );
            router.untranslated_at("serviceAdvertisements", position, why);
        }
    }
    match selection(router, "serviceSelector") {
        Selection::Selector(selector) => (is_by_labels(router, "serviceSelector", &selector)
            && has_addresses)
            .then_some(selector),
        Selection::Missing | Selection::Untranslated => None,
    }
}

/// The advertisement of the networks of Pods.
fn pods(group: &Group<'_>) -> Option<Fields> {
    let mut spec = Fields::default();
    spec.set_if("podCIDRs", true);
    for section in of_type(group, "PodCIDR") {
        if section.has("selector") {
            let why = "attributes of the networks of some nodes: write a BGPAdvertisement with podCIDRs and nodeSelectors; none \
                       of them is announced";
            section.untranslated("selector", why);
            return None;
        }
        attributes(Some(section), &mut spec)?;
    }
    Some(spec)
}

/// The advertisements of Services: one for each set of attributes that pools have.
fn advertisements(group: &Group<'_>, services: &Selector, pools: &[Pool]) -> Vec<Fields> {
    let sections: Vec<&Section<'_>> = of_type(group, "CiliumLoadBalancerIPPool").collect();
    let base = |pools: Option<Value>| {
        let mut spec = Fields::default();
        spec.set("ipAddressPools", pools);
        spec.set("serviceSelectors", any_of(std::slice::from_ref(services)));
        spec
    };
    if sections.iter().all(|it| !it.has("selector")) {
        let mut spec = base(None);
        let is_complete = sections.iter().all(|it| attributes(Some(it), &mut spec).is_some());
        return if is_complete { vec![spec] } else { Vec::new() };
    }
    if pools.is_empty() {
        for section in sections {
            let why = "selects pools by label, and the text has none: add the objects CiliumLoadBalancerIPPool; no Service is \
                       announced";
            section.untranslated("selector", why);
        }
        return Vec::new();
    }
    let mut kinds: Vec<(Fields, Vec<&str>)> = Vec::new();
    for pool in pools {
        let mut set = Fields::default();
        let mut is_complete = true;
        for section in &sections {
            let applies = match selection(section, "selector") {
                Selection::Missing => true,
                Selection::Selector(selector) => selector.matches(&pool.labels),
                Selection::Untranslated => {
                    is_complete = false;
                    false
                }
            };
            is_complete &= !applies || attributes(Some(section), &mut set).is_some();
        }
        if !is_complete {
            continue;
        }
        match kinds.iter_mut().find(|(other, _)| *other == set) {
            Some((_, names)) => names.push(&pool.name),
            None => kinds.push((set, vec![&pool.name])),
        }
    }
    let with = |(set, names): (Fields, Vec<&str>)| {
        let mut spec = base(Some(json!(names)));
        spec.0.extend(set.0);
        spec
    };
    kinds.into_iter().map(with).collect()
}

fn of_type<'a>(group: &'a Group<'_>, kind: &str) -> impl Iterator<Item = &'a Section<'a>> {
    group.attributes.iter().filter(move |it| it.text("selectorType").as_deref() == Some(kind))
}
