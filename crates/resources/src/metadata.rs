//! `metadata`: common to all kinds.
//!
//! Answers the name and the labels of an object. Knows no kinds; `object` reads it before it passes
//! an object to the parser of its kind.

use std::collections::BTreeMap;

use fairway_model::{Labels, ObjectName};
use serde::Deserialize;

use super::dns_name::{NAME_BYTES_MAX, NAMESPACE_BYTES_MAX, is_label, is_subdomain};
use super::field_path::FieldPath;
use super::label;
use super::report::Report;
use super::yaml::node::Node;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// Fields of `metadata` that Kubernetes knows.
const KNOWN_FIELDS: &[&str] = &[
    "name",
    "namespace",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) name: ObjectName,
    pub(crate) labels: Labels,
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct RawMetadata {
    name: Option<String>,
    namespace: Option<String>,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The name of the object at `root`, if it has a usable one; for objects that cannot be parsed
/// further.
pub(crate) fn identify(root: &Node) -> Option<ObjectName> {
    let metadata = root.get("metadata")?;
    let name = metadata.get("name")?.text().filter(|name| is_subdomain(name))?;
    let namespace = match metadata.get("namespace") {
        None => DEFAULT_NAMESPACE,
        Some(node) if node.is_null() => DEFAULT_NAMESPACE,
        Some(node) => {
            Some(node.text()?).filter(|text| !text.is_empty()).unwrap_or(DEFAULT_NAMESPACE)
        }
    };
    Some(ObjectName::new(namespace, name))
}

/// Reads `metadata`. With `is_strict`, fields that Kubernetes does not define are faults.
pub(crate) fn read(report: &mut Report<'_>, is_strict: bool) -> Option<Metadata> {
    let path = FieldPath::of("metadata");
    if is_strict {
        let entries = report.root().get("metadata").map_or(&[][..], Node::entries);
        for entry in entries.iter().filter(|entry| !KNOWN_FIELDS.contains(&&*entry.key)) {
            report.unknown_field(&path.key(&entry.key), &entry.key, KNOWN_FIELDS, entry.line);
        }
    }
    let raw = report.read::<RawMetadata>(&path);
    let Some(raw) = raw else {
        report.missing(&path.key("name"), "the object's name");
        return None;
    };
    for (key, value) in &raw.labels {
        let path = path.key("labels").key(key);
        label::check_key(key, &path, report);
        label::check_value(value, &path, report);
    }
    let name = report.required(
        raw.name.filter(|name| !name.is_empty()),
        &path.key("name"),
        "the object's name",
    );
    if let Some(name) = name.as_deref().filter(|name| !is_subdomain(name)) {
        report.fault(
            &path.key("name"),
            format_args!(
                "{name:?} is not a name; expected lower-case letters, digits, - and ., beginning \
                 and ending with a letter or digit, at most {NAME_BYTES_MAX} characters"
            ),
        );
    }
    let namespace = raw.namespace.filter(|namespace| !namespace.is_empty());
    if let Some(namespace) = namespace.as_deref().filter(|namespace| !is_label(namespace)) {
        report.fault(
            &path.key("namespace"),
            format_args!(
                "{namespace:?} is not a namespace; expected lower-case letters, digits and -, \
                 beginning and ending with a letter or digit, at most {NAMESPACE_BYTES_MAX} \
                 characters"
            ),
        );
    }
    let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    Some(Metadata {
        name: ObjectName::new(namespace, name?),
        labels: raw.labels,
        annotations: raw.annotations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_kubernetes_takes() {
        for name in ["a", "a-b.c", "0", "tor-1.rack-2"] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a..b", "a.", "ä"] {
            assert!(!is_subdomain(name), "{name}");
        }
        assert!(!is_label("a.b"));
        assert!(!is_subdomain(&"a".repeat(254)));
    }
}
