//! `toAdvertise` of a neighbor: which prefixes of the router it is told, and with which attributes.
//!
//! Knows one neighbor in one configuration.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{Community, LargeCommunity};
use ipnet::IpNet;
use serde_json::json;

use crate::kubernetes::field::Section;
use crate::object::Fields;

/// What a neighbor is told.
#[derive(Default)]
pub(super) struct Advertised {
    pub(super) routes: BTreeMap<String, Attributes>,
}

/// The attributes of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    preference: Option<u64>,
    communities: BTreeSet<String>,
}

impl Attributes {
    pub(super) fn has_same_preference(&self, other: &Self) -> bool {
        self.preference == other.preference
    }

    /// Takes the attributes of another configuration in; false if both have a preference, and another one.
    pub(super) fn merge(&mut self, other: &Self) -> bool {
        let is_conflict = self.preference.zip(other.preference).is_some_and(|(a, b)| a != b);
        self.preference = self.preference.or(other.preference);
        self.communities.extend(other.communities.iter().cloned());
        !is_conflict
    }

    pub(super) fn set(&self, spec: &mut Fields) {
        spec.set("localPref", self.preference.map(|it| json!(it)));
        let communities = (!self.communities.is_empty()).then(|| json!(self.communities));
        spec.set("communities", communities);
    }
}

/// The prefixes of a list, without bits of hosts.
pub(super) fn prefixes(section: &Section<'_>, field: &str) -> Vec<String> {
    let mut prefixes: Vec<String> = Vec::new();
    for (position, text) in section.texts(field) {
        match text.parse::<IpNet>() {
            Ok(network) => {
                let prefix = network.trunc().to_string();
                if !prefixes.contains(&prefix) {
                    prefixes.push(prefix);
                }
            }
            Err(_) => {
                section.untranslated_at(field, position, "is not a prefix as in 192.0.2.0/24")
            }
        }
    }
    prefixes
}

/// What a neighbor of a router with these prefixes is told.
pub(super) fn advertised(neighbor: &Section<'_>, own: &[String]) -> Advertised {
    let Some(section) = neighbor.section("toAdvertise") else { return Advertised::default() };
    let allowed = section.section("allowed");
    let is_all = allowed.as_ref().and_then(|it| it.text("mode")).as_deref() == Some("all");
    let listed = allowed.map(|it| prefixes(&it, "prefixes")).unwrap_or_default();
    let allowed = if is_all { own.to_vec() } else { listed };
    let mut routes: BTreeMap<String, Attributes> =
        allowed.into_iter().map(|it| (it, Attributes::default())).collect();
    for marking in section.sections("withLocalPref") {
        let preference = marking.number("localPref").unwrap_or_default();
        let marked = prefixes(&marking, "prefixes");
        if preference == 0 {
            let why =
                "0 stands for 100 in a BGPAdvertisement: these prefixes are not announced; use 1";
            marking.untranslated("localPref", why);
            routes.retain(|prefix, _| !marked.contains(prefix));
        }
        for prefix in marked {
            match routes.get_mut(&prefix) {
                Some(route) => route.preference = Some(preference),
                None => say_not_allowed(&marking, &prefix),
            }
        }
    }
    for marking in section.sections("withCommunity") {
        let text = marking.text("community").unwrap_or_default();
        let is_large = text.starts_with("large:");
        let is_community = if is_large {
            text.parse::<LargeCommunity>().is_ok()
        } else {
            text.parse::<Community>().is_ok()
        };
        let marked = prefixes(&marking, "prefixes");
        if !is_community {
            marking.untranslated("community", "is no community: these prefixes are not announced");
            routes.retain(|prefix, _| !marked.contains(prefix));
            continue;
        }
        for prefix in marked {
            match routes.get_mut(&prefix) {
                Some(route) => {
                    route.communities.insert(text.clone());
                }
                None => say_not_allowed(&marking, &prefix),
            }
        }
    }
    Advertised { routes }
}

/// Next hops of all routes that the neighbor is told.
pub(super) fn next_hop(neighbor: &Section<'_>, spec: &mut Fields) {
    let Some(section) = neighbor.section("toAdvertise").and_then(|it| it.section("nextHop")) else {
        return;
    };
    let mut next_hop = Fields::default();
    for family in ["ipv4", "ipv6"] {
        next_hop.set(family, section.text(family).map(|it| json!(it)));
    }
    spec.set("toAdvertise", next_hop.some().map(|it| json!({"nextHop": it})));
}

fn say_not_allowed(marking: &Section<'_>, prefix: &str) {
    let why = format!("{prefix} is not among the prefixes that the neighbor is told");
    marking.untranslated_here(why);
}

pub(super) fn say_not_originated(neighbor: &Section<'_>, prefix: &str) {
    if let Some(allowed) = neighbor.section("toAdvertise").and_then(|it| it.section("allowed")) {
        allowed.untranslated(
            "prefixes",
            format!(
                "{prefix} is a prefix of no router of the text with the same nodes: it is not announced; for a route that is \
                 passed on, set toAdvertise.allowed of the BGPPeer"
            ),
        );
    }
}

pub(super) fn say_conflict(neighbor: &Section<'_>, prefix: &str) {
    if let Some(section) = neighbor.section("toAdvertise") {
        let why =
            format!("{prefix} has another localPref in another FRRConfiguration, which holds");
        section.untranslated("withLocalPref", why);
    }
}
