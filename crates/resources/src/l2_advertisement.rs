//! L2Advertisement (metallb.io/v1beta1): which nodes answer for addresses on the local segment.
//!
//! Answers which pools, services, nodes and interfaces are selected, and which nodes are preferred. Knows
//! no other object; whether what it names exists is for the catalog.

use std::collections::BTreeSet;

use fairway_model::{Layer2Advertisement, Object, PreferredNodes};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::Weight;
use super::label_selector::{self, RawLabelSelector};
use super::metadata::Metadata;
use super::report::{List, Report, elements, unique};

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpec {
    /// Names of the IPAddressPools that are announced.
    #[serde(rename = "ipAddressPools")]
    pools: Option<List<String>>,
    /// Selects further IPAddressPools by label. Without names and selectors: all.
    #[serde(rename = "ipAddressPoolSelectors")]
    pool_selectors: Option<List<RawLabelSelector>>,
    /// Selects the nodes that may answer. None: all.
    node_selectors: Option<List<RawLabelSelector>>,
    /// Selects the Services for which addresses are announced. None: all.
    service_selectors: Option<List<RawLabelSelector>>,
    /// Names of the interfaces on which nodes answer. None: all.
    interfaces: Option<List<String>>,
    /// Which of those nodes are preferred. Weights of all that match add up.
    preferred_node_selectors: Option<List<RawPreference>>,
    /// The node that answers for an address also has it on the interface, for hosts without kube-proxy.
    bind: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawPreference {
    /// The weight that a matching node gains.
    #[schemars(required)]
    weight: Option<Weight>,
    /// Selects the nodes.
    #[schemars(required)]
    preference: Option<RawLabelSelector>,
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let spec = FieldPath::of("spec");
    // Without a spec every node may answer for every pool, as in MetalLB.
    let raw: RawSpec =
        report.read(&spec).or_else(|| (!report.has_faults()).then(RawSpec::default))?;
    let selectors = |raw, field: &str, report: &mut Report<'_>| {
        label_selector::parse_list(raw, &FieldPath::of("spec").key(field), report)
    };
    Some(Object::Layer2Advertisement(Layer2Advertisement {
        name: metadata.name,
        pools: unique(raw.pools, &spec.key("ipAddressPools"), report),
        pool_selectors: selectors(raw.pool_selectors, "ipAddressPoolSelectors", report),
        node_selectors: selectors(raw.node_selectors, "nodeSelectors", report),
        service_selectors: selectors(raw.service_selectors, "serviceSelectors", report),
        // MetalLB accepts a duplicate name, which has no effect.
        interfaces: elements(raw.interfaces).map(|(_, name)| name).collect(),
        preferred_nodes: preferred_nodes(raw.preferred_node_selectors, report),
        bind: raw.bind.unwrap_or(false),
    }))
}

fn preferred_nodes(
    raw: Option<List<RawPreference>>,
    report: &mut Report<'_>,
) -> Vec<PreferredNodes> {
    let list = FieldPath::of("spec.preferredNodeSelectors");
    let mut preferred: Vec<PreferredNodes> = Vec::new();
    let mut seen: BTreeSet<(u8, fairway_model::LabelSelector)> = BTreeSet::new();
    for (position, raw) in elements(raw) {
        let path = list.index(position);
        let weight = report.required(raw.weight, &path.key("weight"), "a weight from 1 to 100");
        let preference = path.key("preference");
        let selector = report.required(raw.preference, &preference, "which nodes are better");
        let (Some(Weight(weight)), Some(selector)) = (weight, selector) else { continue };
        let preference = label_selector::parse(selector, &preference, report);
        if !seen.insert((weight, preference.clone())) {
            report.fault(&path, "is given twice; remove one");
        }
        preferred.push(PreferredNodes { weight, preference });
    }
    preferred
}
