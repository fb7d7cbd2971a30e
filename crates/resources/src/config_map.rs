//! ConfigMap (v1): only the one named `bgpextras`, with extra FRR configuration lines.
//!
//! Answers which lines the operator adds to the generated FRR configuration. FRR interprets them.
//! Knows no other object; that there is only one is for the catalog.

use fairway_model::{FrrExtras, Object};
use serde::Deserialize;

use super::field_path::FieldPath;
use super::metadata::Metadata;
use super::report::Report;
use super::yaml::node::Node;

/// The name, as MetalLB has it.
pub(crate) const NAME: &str = "bgpextras";

#[derive(Deserialize)]
struct RawConfigMap {
    data: Option<RawData>,
}

#[derive(Deserialize)]
struct RawData {
    extras: Option<String>,
}

/// Whether the tree at `root` is another ConfigMap, which is ignored.
pub(super) fn is_another(root: &Node) -> bool {
    let name = root.get("metadata").and_then(|metadata| metadata.get("name"));
    name.and_then(Node::text).is_some_and(|name| name != NAME)
}

/// Parses the object; `None` if it has a fault, or no lines for FRR.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let raw: RawConfigMap = report.read(&FieldPath::default())?;
    let path = FieldPath::of("data.extras");
    let Some(text) = raw.data.and_then(|data| data.extras) else {
        report.warning(&path, "is missing: the ConfigMap configures nothing in FRR");
        return None;
    };
    let is_odd = |it: &char| it.is_control() && !matches!(it, '\n' | '\r' | '\t');
    if let Some(odd) = text.chars().find(is_odd) {
        let message = format_args!(
            "has the control character U+{:04X}; expected lines of FRR's configuration",
            u32::from(odd)
        );
        report.fault(&path, message);
        return None;
    }
    Some(Object::FrrExtras(FrrExtras { name: metadata.name, text }))
}
