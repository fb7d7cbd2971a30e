//! Parses one Kubernetes object from JSON with the parsers for files.
//!
//! Objects of a list or a watch are trees already, or JSON that a program has written, so they skip YAML and join where
//! documents do. Answers which object a value is and all its faults. Knows no API server and no
//! other object; the code that watches a cluster calls it.

use std::fmt;

use fairway_model::{Object, ObjectKey};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value as Json};

use super::backend::BackendKind;
use super::finding::Finding;
use super::object::{self, Outcome, Reading};
use super::yaml::node::{Entry, Node, Value};
use super::yaml::scalar::ScalarKind;

/// The result of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedValue {
    /// Which object of ours it is: `None` for kinds that Fairway ignores, and where no kind or name
    /// can be read.
    pub key: Option<ObjectKey>,
    /// Its content; `None` when it has a fault, and when it is valid and configures nothing, such as a
    /// Service that requests no address. An object held under this key must then be forgotten.
    pub object: Option<Object>,
    /// Its faults and warnings. They name no file and no line.
    pub findings: Vec<Finding>,
}

impl ParsedValue {
    /// Whether it has a fault, so that its last good version should stay in force.
    pub fn is_broken(&self) -> bool {
        self.findings.iter().any(Finding::is_fault)
    }
}

/// Parses one object, as the API server writes it. `value` must come from a parser that bounds its
/// depth, as serde_json's does.
pub fn parse_value(value: &Json) -> ParsedValue {
    parse_value_for(BackendKind::default(), value)
}

/// The same, for what this backend reads of it.
pub fn parse_value_for(backend: BackendKind, value: &Json) -> ParsedValue {
    parse_tree(backend, &node(value))
}

/// The same of an object as text, which serde_json has written: no key is there twice.
pub fn parse_text_for(backend: BackendKind, text: &str) -> ParsedValue {
    let root = serde_json::from_str::<Tree>(text);
    // What is no object has a fault of its own.
    parse_tree(backend, &root.map_or_else(|_| scalar("", ScalarKind::Null), |it| it.0))
}

fn parse_tree(backend: BackendKind, root: &Node) -> ParsedValue {
    let Reading { object, remarks, outcome, .. } = object::read_object(root, &[], 0, backend);
    let findings = remarks.into_iter().map(|remark| Finding {
        severity: remark.severity,
        file: String::new(),
        line: None,
        object: object.clone(),
        field: (!remark.path.is_empty()).then(|| remark.path.to_string()),
        message: remark.message,
    });
    let findings = findings.collect();
    match outcome {
        Outcome::Object(object, _) => {
            ParsedValue { key: Some(object.key()), object: Some(*object), findings }
        }
        Outcome::Broken { key, .. } => ParsedValue { key, object: None, findings },
        Outcome::Nothing => ParsedValue { key: object::identify(root), object: None, findings },
        Outcome::Skipped => ParsedValue { key: None, object: None, findings },
    }
}

/// The value as a tree of a document, all on its first line.
pub(super) fn node(value: &Json) -> Node {
    match value {
        Json::Null => scalar("", ScalarKind::Null),
        Json::Bool(value) => boolean(*value),
        Json::Number(value) => number(value),
        Json::String(text) => scalar(text.as_str(), ScalarKind::Text),
        Json::Array(elements) => sequence(elements.iter().map(node).collect()),
        Json::Object(fields) => {
            let entry = |(key, value): (&String, &Json)| entry(key.as_str(), node(value));
            mapping(fields.iter().map(entry).collect())
        }
    }
}

const fn of(value: Value) -> Node {
    Node { line: 1, value }
}

fn scalar(text: impl Into<Box<str>>, kind: ScalarKind) -> Node {
    of(Value::Scalar(text.into(), kind))
}

fn boolean(value: bool) -> Node {
    scalar(if value { "true" } else { "false" }, ScalarKind::Boolean)
}

fn number(value: &Number) -> Node {
    let kind = if value.is_f64() { ScalarKind::Float } else { ScalarKind::Integer };
    scalar(value.to_string(), kind)
}

fn sequence(elements: Vec<Node>) -> Node {
    of(Value::Sequence(elements))
}

fn mapping(entries: Vec<Entry>) -> Node {
    of(Value::Mapping(entries))
}

fn entry(key: impl Into<Box<str>>, value: Node) -> Entry {
    Entry { key: key.into(), line: 1, value }
}

/// Such a tree, from JSON.
struct Tree(Node);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(scalar("", ScalarKind::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(boolean(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(number(&value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(number(&value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Number::from_f64(value).map(|it| number(&it)).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(scalar(text, ScalarKind::Text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Node, A::Error> {
        let mut elements = Vec::new();
        while let Some(Tree(element)) = all.next_element()? {
            elements.push(element);
        }
        Ok(sequence(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, Tree(value))) = all.next_entry::<Box<str>, Tree>()? {
            entries.push(entry(key, value));
        }
        Ok(mapping(entries))
    }
}

#[cfg(test)]
mod tests {
    use fairway_model::{Kind, ObjectName};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_reads_as_the_document_does() {
        let parsed = parse_value(&json!({
            "apiVersion": "metallb.io/v1beta1",
            "kind": "IPAddressPool",
            "metadata": {"name": "a", "namespace": "metallb-system", "uid": "1", "generation": 1},
            "spec": {"addresses": ["192.0.2.0/24"], "autoAssign": false},
            "status": {"assignedIPv4": 3},
        }));
        assert_eq!(parsed.findings, []);
        let Some(Object::Pool(pool)) = parsed.object else { panic!("{parsed:?}") };
        assert!(!pool.auto_assign);
        assert_eq!(parsed.key.map(|key| key.name), Some(pool.name));
    }

    #[test]
    fn a_text_reads_as_the_value_that_it_was_written_from() {
        let value = json!({
            "apiVersion": "metallb.io/v1beta2", "kind": "BGPPeer",
            "metadata": {"name": "tor", "labels": {"a\"b": "\u{7}\n\u{1f6e4}"}},
            "spec": {
                "myASN": 1.5, "peerASN": 64500, "peerAddress": "here", "colour": null, "ebgpMultiHop": true,
                "holdTime": -3, "far": 1e300, "nodeSelectors": [{"matchLabels": {}}, [], null],
            },
        });
        let tree: Tree = serde_json::from_str(&value.to_string()).unwrap();
        assert_eq!(tree.0, node(&value));
        let backend = BackendKind::default();
        assert_eq!(parse_text_for(backend, &value.to_string()), parse_value(&value));
        assert!(parse_text_for(backend, "{").is_broken());
    }

    #[test]
    fn all_faults_of_a_value_come_with_its_key() {
        let parsed = parse_value(&json!({
            "apiVersion": "metallb.io/v1beta2",
            "kind": "BGPPeer",
            "metadata": {"name": "tor"},
            "spec": {"myASN": 1.5, "peerASN": 64500, "peerAddress": "here", "colour": null},
        }));
        assert!(parsed.is_broken());
        let name = ObjectName::new("default", "tor");
        assert_eq!(parsed.key, Some(ObjectKey { kind: Kind::BgpPeer, name }));
        assert_eq!(parsed.object, None);
        let shown: Vec<_> = parsed.findings.iter().map(Finding::to_string).collect();
        assert!(
            shown.iter().any(|it| it.starts_with("BGPPeer/tor: spec.myASN: 1.5 is")),
            "{shown:?}"
        );
        assert_eq!(shown.len(), 3, "{shown:?}");
    }

    #[test]
    fn what_has_nothing_to_say_keeps_its_name_and_what_is_not_ours_has_none() {
        let parsed = parse_value(&json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"type": "ClusterIP"},
        }));
        let name = ObjectName::new("shop", "web");
        assert_eq!(parsed.key, Some(ObjectKey { kind: Kind::Service, name }));
        assert_eq!((parsed.object, parsed.findings), (None, Vec::new()));
        let other = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}});
        let expected = ParsedValue { key: None, object: None, findings: Vec::new() };
        assert_eq!(parse_value(&other), expected);
        assert!(parse_value(&json!([1])).is_broken());
    }
}
