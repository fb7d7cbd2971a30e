//! Parses one Kubernetes object from JSON with the parsers for files.
//!
//! Objects of a list or a watch are trees already, so they skip the text stage and join where
//! documents do. Answers which object a value is and all its faults. Knows no API server and no
//! other object; the code that watches a cluster calls it.

use fairway_model::{Object, ObjectKey};
use serde_json::Value as Json;

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
    let root = node(value);
    let Reading { object, remarks, outcome, .. } = object::read_object(&root, &[], 0, backend);
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
        Outcome::Nothing => ParsedValue { key: object::identify(&root), object: None, findings },
        Outcome::Skipped => ParsedValue { key: None, object: None, findings },
    }
}

/// The value as a tree of a document, all on its first line.
pub(super) fn node(value: &Json) -> Node {
    let scalar = |text: String, kind| Value::Scalar(text.into(), kind);
    let value = match value {
        Json::Null => scalar(String::new(), ScalarKind::Null),
        Json::Bool(value) => scalar(value.to_string(), ScalarKind::Boolean),
        Json::Number(number) if number.is_f64() => scalar(number.to_string(), ScalarKind::Float),
        Json::Number(number) => scalar(number.to_string(), ScalarKind::Integer),
        Json::String(text) => scalar(text.clone(), ScalarKind::Text),
        Json::Array(elements) => Value::Sequence(elements.iter().map(node).collect()),
        Json::Object(fields) => {
            let entry = |(key, value): (&String, &Json)| Entry {
                key: key.as_str().into(),
                line: 1,
                value: node(value),
            };
            Value::Mapping(fields.iter().map(entry).collect())
        }
    };
    Node { line: 1, value }
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
