//! CiliumLoadBalancerIPPool and CiliumL2AnnouncementPolicy: addresses of Services, and who answers for them.
//!
//! Answers an IPAddressPool and an L2Advertisement. Knows no peer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::json;

use super::advertisement::is_by_labels;
use super::peer_config::Afi;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::selector::{
    NAME_LABEL, NAMESPACE_LABEL, Operator, Selection, Selector, any_of, selection,
};
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// A pool that was written.
pub(super) struct Pool {
    pub(super) name: String,
    /// Those of the source.
    pub(super) labels: BTreeMap<String, String>,
    /// The longest prefix of each family; a range counts as one address.
    longest: BTreeMap<Afi, u64>,
}

impl Pool {
    pub(super) fn longest(&self, afi: Afi) -> Option<u64> {
        self.longest.get(&afi).copied()
    }
}

pub(super) fn pool(object: &SourceObject, work: &mut Work) -> Option<Pool> {
    let source = object.spec();
    let mut spec = Fields::default();
    let mut longest = BTreeMap::new();
    let is_whole = source.text("allowFirstLastIPs").as_deref() != Some("No");
    let mut addresses = Vec::new();
    // `cidrs` is the name in older releases.
    for block in source.sections("blocks").into_iter().chain(source.sections("cidrs")) {
        let Some((text, first, length)) = addresses_of(&block, is_whole) else { continue };
        let longest = longest.entry(Afi::of(first)).or_insert(length);
        *longest = length.max(*longest);
        addresses.push(text);
    }
    if addresses.is_empty() {
        source.note_here("is left out: it has no addresses");
        source.settle();
        return None;
    }
    spec.set("addresses", json!(addresses));
    if source.is_set("disabled") {
        spec.set("autoAssign", json!(false));
        source.note(
            "disabled",
            "is autoAssign: false: a Service still gets an address that it requests",
        );
    }
    match selection(&source, "serviceSelector") {
        Selection::Missing => {}
        Selection::Selector(selector) => match allocation(selector) {
            Some(allocation) => {
                spec.set("serviceAllocation", allocation.some());
            }
            None => {
                let why = "selects Services in a way that IPAddressPools cannot: by namespace with another operator than In, or \
                           by name; the pool is left out";
                source.untranslated("serviceSelector", why);
                source.settle();
                return None;
            }
        },
        Selection::Untranslated => {
            source.settle();
            return None;
        }
    }
    let name = work.pool(object.name(), spec);
    Some(Pool { name, labels: object.labels(), longest })
}

/// The text of a block, its first address, and the length of the longest prefix in it.
fn addresses_of(block: &Section<'_>, is_whole: bool) -> Option<(String, IpAddr, u64)> {
    let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    if let Some(text) = block.text("cidr") {
        let Ok(network) = text.parse::<IpNet>() else {
            block.untranslated(
                "cidr",
                "is not a prefix as in 192.0.2.0/24: its addresses are left out",
            );
            return None;
        };
        let network = network.trunc();
        let first = network.addr();
        let length = u64::from(network.prefix_len());
        if is_whole || length + 1 >= bits(first) {
            return Some((network.to_string(), first, length));
        }
        let (after, before) = inside(network);
        return Some((format!("{after}-{before}"), first, bits(first)));
    }
    let start = block.text("start").and_then(|it| it.parse::<IpAddr>().ok());
    let stop = block.text("stop");
    let Some(start) = start else {
        block.untranslated_here("has neither a cidr nor an address as start: it is left out");
        return None;
    };
    match stop.map(|it| it.parse::<IpAddr>()) {
        None => Some((IpNet::from(start).to_string(), start, bits(start))),
        Some(Ok(stop)) if stop.is_ipv4() == start.is_ipv4() && start <= stop => {
            Some((format!("{start}-{stop}"), start, bits(start)))
        }
        Some(_) => {
            block.untranslated_here("is no range from start to stop: it is left out");
            None
        }
    }
}

/// The second address of the network, and the last but one.
fn inside(network: IpNet) -> (IpAddr, IpAddr) {
    match network {
        IpNet::V4(it) => {
            let (first, last) = (it.network().to_bits(), it.broadcast().to_bits());
            let address = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
            (address(first.saturating_add(1)), address(last.saturating_sub(1)))
        }
        IpNet::V6(it) => {
            let (first, last) = (it.network().to_bits(), it.broadcast().to_bits());
            let address = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
            (address(first.saturating_add(1)), address(last.saturating_sub(1)))
        }
    }
}

/// The Services that a pool is for.
fn allocation(mut selector: Selector) -> Option<Fields> {
    let mut namespaces: Option<Vec<String>> = None;
    let mut narrow = |names: &[String]| {
        let both =
            |all: &Vec<String>| all.iter().filter(|it| names.contains(it)).cloned().collect();
        namespaces = Some(namespaces.as_ref().map_or_else(|| names.to_vec(), both));
    };
    if let Some(name) = selector.labels.remove(NAMESPACE_LABEL) {
        narrow(&[name]);
    }
    let is_about_namespace = |key: &str| key == NAMESPACE_LABEL;
    for it in selector.conditions.iter().filter(|it| is_about_namespace(&it.key)) {
        match it.operator {
            Operator::In => narrow(&it.values),
            // Every Service has a namespace.
            Operator::Exists => {}
            Operator::NotIn | Operator::DoesNotExist => return None,
        }
    }
    selector.conditions.retain(|it| !is_about_namespace(&it.key));
    let is_empty = namespaces.as_ref().is_some_and(Vec::is_empty);
    if is_empty || selector.keys().any(|it| it == NAME_LABEL) {
        return None;
    }
    let mut spec = Fields::default();
    spec.set("namespaces", namespaces.map(|it| json!(it)));
    spec.set("serviceSelectors", any_of(&[selector]));
    Some(spec)
}

/// A policy as an L2Advertisement.
pub(super) fn layer2(object: &SourceObject, work: &mut Work) {
    if let Some(spec) = layer2_advertisement(&object.spec()) {
        work.layer2_advertisement(object.name(), spec);
    } else {
        object.spec().settle();
    }
}

fn layer2_advertisement(source: &Section<'_>) -> Option<Fields> {
    let mut spec = Fields::default();
    if source.is_set("externalIPs") {
        source.untranslated(
            "externalIPs",
            "Fairway answers for addresses of Services of type LoadBalancer only",
        );
    }
    if !source.is_set("loadBalancerIPs") {
        source.note_here("is left out: it announces no addresses of load balancers");
        return None;
    }
    match selection(source, "nodeSelector") {
        Selection::Missing => {}
        Selection::Selector(selector) => {
            spec.set("nodeSelectors", any_of(&[selector]));
        }
        Selection::Untranslated => return None,
    }
    match selection(source, "serviceSelector") {
        Selection::Missing => {}
        Selection::Selector(selector) => {
            if !is_by_labels(source, "serviceSelector", &selector) {
                return None;
            }
            spec.set("serviceSelectors", any_of(&[selector]));
        }
        Selection::Untranslated => return None,
    }
    let given = source.texts("interfaces");
    let mut interfaces: Vec<String> = Vec::new();
    for (position, expression) in &given {
        match exact_name(expression) {
            Some(name) => interfaces.push(name),
            None => source.untranslated_at(
                "interfaces",
                *position,
                "is a regular expression, and Fairway has names of interfaces: list them in interfaces of the L2Advertisement",
            ),
        }
    }
    if !given.is_empty() && interfaces.is_empty() {
        // Without interfaces all would answer.
        return None;
    }
    interfaces.dedup();
    spec.set("interfaces", (!interfaces.is_empty()).then(|| json!(interfaces)));
    Some(spec)
}

/// The name of an interface that an expression matches, and no other one.
fn exact_name(expression: &str) -> Option<String> {
    let name = expression.strip_prefix('^').unwrap_or(expression);
    let name = name.strip_suffix('$').unwrap_or(name);
    let name = name.replace("\\.", "\u{0}");
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '@' | '\u{0}');
    (!name.is_empty() && name.chars().all(is_plain)).then(|| name.replace('\u{0}', "."))
}
