//! CiliumBGPAdvertisement: what peers are told.
//!
//! Answers a BGPAdvertisement for each entry. Knows which peers it is for only by their names.

use std::collections::BTreeMap;

use fairway_ground::{Community, LargeCommunity};
use serde_json::{Value, json};

use super::peer_config::Afi;
use super::pool::Pool;
use crate::kubernetes::field::{Section, SourceObject};
use crate::kubernetes::peers::ToldRoutes;
use crate::kubernetes::selector::{
    NAME_LABEL, NAMESPACE_LABEL, Selection, Selector, any_of, selection,
};
use crate::kubernetes::work::Work;
use crate::object::Fields;

/// An object, and the peers that it is for.
pub(super) struct Advertised<'a> {
    pub(super) object: &'a SourceObject,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) told: Vec<ToldRoutes>,
}

impl<'a> Advertised<'a> {
    pub(super) fn new(object: &'a SourceObject) -> Self {
        Self { object, labels: object.labels(), told: Vec::new() }
    }
}

/// Names of communities that Cilium knows, by number.
const WELL_KNOWN: [(&str, &str); 14] = [
    ("internet", "0:0"),
    ("planned-shut", "65535:0"),
    ("accept-own", "65535:1"),
    ("route-filter-translated-v4", "65535:2"),
    ("route-filter-v4", "65535:3"),
    ("route-filter-translated-v6", "65535:4"),
    ("route-filter-v6", "65535:5"),
    ("llgr-stale", "65535:6"),
    ("no-llgr", "65535:7"),
    ("blackhole", "65535:666"),
    ("no-export", "65535:65281"),
    ("no-advertise", "65535:65282"),
    ("no-export-subconfed", "65535:65283"),
    ("no-peer", "65535:65284"),
];

pub(super) fn import(it: Advertised<'_>, pools: &[Pool], work: &mut Work) {
    let Advertised { object, told, .. } = it;
    if told.is_empty() {
        object.spec().note_here("is left out: no peer of the result is told of it");
        return object.skip();
    }
    for section in object.spec().sections("advertisements") {
        match entry(&section, pools) {
            Some(spec) => work.bgp_advertisement(object.name(), spec, told.clone()),
            None => section.settle(),
        }
    }
}

/// The BGPAdvertisement of an entry, unless there is none that announces no more than it.
fn entry(section: &Section<'_>, pools: &[Pool]) -> Option<Fields> {
    let mut spec = Fields::default();
    match section.text("advertisementType").as_deref() {
        Some("Service") => service(section, pools, &mut spec)?,
        Some("PodCIDR") => {
            if section.has("selector") {
                let why = "selects no nodes in Cilium: remove it, or select nodes by nodeSelectors of the BGPAdvertisement";
                section.untranslated("selector", why);
                return None;
            }
            spec.set_if("podCIDRs", true);
        }
        kind => {
            let kind = kind.unwrap_or("this");
            section.untranslated(
                "advertisementType",
                format!(
                    "{kind} has no equal: for the blocks of Pods of Fairway's own addresses, set podBlocks of a \
                     BGPAdvertisement; for fixed prefixes, prefixes"
                ),
            );
            return None;
        }
    }
    attributes(section.section("attributes").as_ref(), &mut spec)?;
    Some(spec)
}

fn service(section: &Section<'_>, pools: &[Pool], spec: &mut Fields) -> Option<()> {
    let mut has_addresses = false;
    let options = section.section("service");
    for (position, kind) in options.iter().flat_map(|it| it.texts("addresses")) {
        if kind == "LoadBalancerIP" {
            has_addresses = true;
        } else if let Some(options) = &options {
            let why = format!(
                "{kind} is not announced: Fairway announces addresses of Services of type LoadBalancer; for a \
                               whole range, set prefixes of a BGPAdvertisement"
            );
            options.untranslated_at("addresses", position, why);
        }
    }
    let services = match selection(section, "selector") {
        Selection::Selector(selector) => selector,
        Selection::Missing => {
            section.note_here("is left out: without a selector Cilium announces no Service");
            return None;
        }
        Selection::Untranslated => return None,
    };
    if !has_addresses || !is_by_labels(section, "selector", &services) {
        return None;
    }
    let mut is_aggregated = false;
    for (field, name, afi) in [
        ("aggregationLengthIPv4", "aggregationLength", Afi::Ipv4),
        ("aggregationLengthIPv6", "aggregationLengthV6", Afi::Ipv6),
    ] {
        let Some(options) = &options else { continue };
        let Some(length) = options.number(field) else { continue };
        is_aggregated = true;
        if let Some(pool) = pools.iter().find(|it| it.longest(afi).is_some_and(|it| length < it)) {
            let why = format!(
                "{length} is shorter than a block of pool {}: a BGPAdvertisement announces no more than the pool \
                               holds; write one with ipAddressPools and a length that fits",
                pool.name
            );
            options.untranslated(field, why);
            return None;
        }
        options.note(field, "holds for Services with externalTrafficPolicy: Local too, which Cilium announces one by one");
        spec.set(name, json!(length));
    }
    if is_aggregated && !services.is_everything() {
        section.untranslated(
            "selector",
            "cannot be together with an aggregation length, whose prefixes hold other Services too: give the Services a pool \
             of their own, and write a BGPAdvertisement for it",
        );
        return None;
    }
    spec.set("serviceSelectors", any_of(&[services]));
    Some(())
}

/// Whether the selector of Services is about their labels alone. Fairway's do not know namespaces and names.
pub(super) fn is_by_labels(section: &Section<'_>, field: &str, selector: &Selector) -> bool {
    let is_by_labels = !selector.keys().any(|it| [NAMESPACE_LABEL, NAME_LABEL].contains(&it));
    if !is_by_labels {
        let why = "selects Services by namespace or name, and Fairway selects them by labels: label them, or give them a pool of \
                   their own; they are not announced";
        section.untranslated(field, why);
    }
    is_by_labels
}

/// Sets the attributes of routes; nothing where one of them would be missing.
pub(super) fn attributes(section: Option<&Section<'_>>, spec: &mut Fields) -> Option<()> {
    let Some(section) = section else { return Some(()) };
    if let Some(preference) = section.number("localPreference") {
        if preference == 0 {
            section
                .untranslated("localPreference", "0 stands for 100 in a BGPAdvertisement: use 1");
            return None;
        }
        spec.set("localPref", json!(preference));
    }
    let Some(communities) = section.section("communities") else { return Some(()) };
    let given = spec.0.get("communities").and_then(Value::as_array);
    let mut values: Vec<Value> = given.cloned().unwrap_or_default();
    for field in ["standard", "wellKnown", "large"] {
        for (position, text) in communities.texts(field) {
            let Some(value) = community(field, &text) else {
                communities.untranslated_at(
                    field,
                    position,
                    format!("{text:?} is no community: nothing is announced"),
                );
                return None;
            };
            if !values.contains(&json!(value)) {
                values.push(json!(value));
            }
        }
    }
    spec.set("communities", (!values.is_empty()).then_some(Value::Array(values)));
    Some(())
}

fn community(field: &str, text: &str) -> Option<String> {
    match field {
        "standard" => {
            let pair = text.parse::<u32>().map(|it| format!("{}:{}", it >> 16, it & 0xffff));
            let pair = pair.unwrap_or_else(|_| text.to_owned());
            pair.parse::<Community>().is_ok().then_some(pair)
        }
        "wellKnown" => {
            let known = WELL_KNOWN.iter().find(|(name, _)| *name == text);
            known.map(|(_, value)| (*value).to_owned())
        }
        _ => {
            let large = format!("large:{text}");
            large.parse::<LargeCommunity>().is_ok().then_some(large)
        }
    }
}
