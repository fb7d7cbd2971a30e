//! Node (v1): a machine that may announce.
//!
//! Answers its labels, its addresses and the networks of its Pods, whether its network is available, and whether it must be drained.
//! Knows no other object.

use std::time::Duration;

use fairway_ground::Prefix;
use fairway_model::{Node, Object};
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{GoDuration, HostAddress};
use super::metadata::Metadata;
use super::report::{List, Report, elements};

#[derive(Deserialize)]
struct RawStatus {
    addresses: Option<List<RawAddress>>,
    conditions: Option<List<RawCondition>>,
}

#[derive(Deserialize)]
struct RawAddress {
    #[serde(rename = "type")]
    address_type: Option<String>,
    address: Option<String>,
}

#[derive(Deserialize)]
struct RawCondition {
    #[serde(rename = "type")]
    condition_type: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct RawTaint {
    key: Option<String>,
    value: Option<String>,
}

/// How long routers have to find other paths before the node is drained; `None` if the node is not
/// marked, or its mark says `false`. Of several marks, the one with the longest wait counts.
fn drain_wait(
    metadata: &Metadata,
    taints: &[(FieldPath, RawTaint)],
    report: &mut Report<'_>,
) -> Option<Duration> {
    let key = Node::DRAIN_MARK;
    let field = |name| FieldPath::of("metadata").key(name).key(key);
    let taints = taints.iter().filter(|(_, taint)| taint.key.as_deref() == Some(key));
    let taints =
        taints.map(|(path, taint)| (path.key("value"), taint.value.clone().unwrap_or_default()));
    let label = metadata.labels.get(key).map(|it| (field("labels"), it.clone()));
    let annotation = metadata.annotations.get(key).map(|it| (field("annotations"), it.clone()));
    let marks: Vec<(FieldPath, String)> =
        label.into_iter().chain(annotation).chain(taints).collect();
    marks.into_iter().filter_map(|(path, text)| wait_of(&text, &path, report)).max()
}

/// The wait that one mark asks for.
fn wait_of(text: &str, path: &FieldPath, report: &mut Report<'_>) -> Option<Duration> {
    match text {
        "" | "true" => return Some(Node::DRAIN_WAIT_DEFAULT),
        "false" => return None,
        _ => {}
    }
    match text.parse() {
        Ok(GoDuration(wait)) if wait <= Node::DRAIN_WAIT_MAX => Some(wait),
        _ => {
            // Any mark means that the node must be drained, even if its value is invalid.
            report.warning(
                path,
                format_args!(
                    "{text:?} is not a drain wait; expected true, false or a duration from 0s to \
                     24h, such as 30s; the node is drained after {} s",
                    Node::DRAIN_WAIT_DEFAULT.as_secs()
                ),
            );
            Some(Node::DRAIN_WAIT_DEFAULT)
        }
    }
}

/// The networks of its Pods, in order. Another component writes them: one that is none is a warning.
fn pod_cidrs(report: &mut Report<'_>) -> Vec<Prefix> {
    let all: Option<List<String>> = report.read(&FieldPath::of("spec.podCIDRs"));
    let list = FieldPath::of("spec.podCIDRs");
    let all: Vec<(FieldPath, String)> = match all {
        Some(all) => elements(Some(all)).map(|(at, text)| (list.index(at), text)).collect(),
        None => {
            let one: Option<String> = report.read(&FieldPath::of("spec.podCIDR"));
            one.into_iter().map(|text| (FieldPath::of("spec.podCIDR"), text)).collect()
        }
    };
    let mut prefixes = Vec::new();
    for (path, text) in all {
        match text.parse::<Prefix>() {
            Ok(prefix) if !prefix.is_multicast() => prefixes.push(prefix),
            Ok(_) => report.warning(
                &path,
                format_args!("{text} has no unicast addresses; it is not announced"),
            ),
            Err(error) => report.warning(&path, format_args!("{error}; it is not announced")),
        }
    }
    prefixes
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let raw: Option<RawStatus> = report.read(&FieldPath::of("status"));
    let (addresses, conditions) =
        raw.map_or((None, None), |status| (status.addresses, status.conditions));
    let list = FieldPath::of("status.addresses");
    let mut internal = Vec::new();
    for (position, raw) in elements(addresses) {
        if raw.address_type.as_deref() != Some("InternalIP") {
            continue;
        }
        match raw.address.unwrap_or_default().parse::<HostAddress>() {
            Ok(HostAddress(address)) => internal.push(address),
            Err(error) => report.fault(&list.index(position).key("address"), error),
        }
    }
    let pod_cidrs = pod_cidrs(report);
    let (mut network_unavailable, mut is_unready) = (false, false);
    for (_, RawCondition { condition_type, status }) in elements(conditions) {
        match (condition_type.as_deref(), status.as_deref()) {
            (Some("NetworkUnavailable"), Some("True")) => network_unavailable = true,
            (Some("Ready"), Some("False" | "Unknown")) => is_unready = true,
            _ => {}
        }
    }
    let list = FieldPath::of("spec.taints");
    let taints: Option<List<RawTaint>> = report.read(&list);
    let taints: Vec<(FieldPath, RawTaint)> =
        elements(taints).map(|(position, taint)| (list.index(position), taint)).collect();
    let has = |key: &str| taints.iter().any(|(_, taint)| taint.key.as_deref() == Some(key));
    let is_out_of_service = has(Node::OUT_OF_SERVICE_TAINT);
    let drain = drain_wait(&metadata, &taints, report);
    Some(Object::Node(Node {
        name: metadata.name.name.clone(),
        labels: metadata.labels,
        addresses: internal,
        pod_cidrs,
        network_unavailable,
        is_unready,
        is_out_of_service,
        is_to_be_deleted: has(Node::TO_BE_DELETED_TAINT),
        drain,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::parse_value;

    #[test]
    fn the_networks_of_its_pods_are_those_of_spec_and_a_bad_one_is_left_out() {
        let of = |spec: Value| {
            let value = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a" }, "spec": spec,
            });
            let parsed = parse_value(&value);
            assert!(!parsed.is_broken(), "{:?}", parsed.findings);
            let Some(Object::Node(node)) = parsed.object else { panic!("no node") };
            let prefixes: Vec<_> = node.pod_cidrs.iter().map(ToString::to_string).collect();
            (prefixes.join(" "), parsed.findings.len())
        };
        let both = json!({ "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00::/64"] });
        assert_eq!(of(both), ("10.1.0.0/24 fd00::/64".to_owned(), 0));
        assert_eq!(of(json!({ "podCIDR": "10.1.0.0/24" })), ("10.1.0.0/24".to_owned(), 0));
        assert_eq!(of(json!({})), (String::new(), 0));
        let bad = json!({ "podCIDRs": ["10.1.0.0/33", "224.0.0.0/24", "10.2.0.0/24"] });
        assert_eq!(of(bad), ("10.2.0.0/24".to_owned(), 2));
    }

    /// The wait of a Node with this metadata and these taints, and the findings.
    fn drain(metadata: Value, taints: Value) -> (Option<u64>, Vec<String>) {
        let mut value = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-a" },
            "spec": { "taints": taints },
        });
        let given = metadata.as_object().cloned().unwrap_or_default();
        value["metadata"].as_object_mut().unwrap().extend(given);
        let parsed = parse_value(&value);
        let findings = parsed.findings.iter().map(ToString::to_string).collect();
        match parsed.object {
            Some(Object::Node(node)) => (node.drain.map(|it| it.as_secs()), findings),
            other => panic!("{other:?}: {findings:?}"),
        }
    }

    #[test]
    fn a_label_an_annotation_and_a_taint_take_a_node_out_of_service() {
        let key = Node::DRAIN_MARK;
        for (text, wait) in [("", 30), ("true", 30), ("0s", 0), ("1m30s", 90), ("24h", 86_400)] {
            let expected = (Some(wait), vec![]);
            assert_eq!(drain(json!({ "labels": { key: text } }), json!([])), expected, "{text}");
            assert_eq!(drain(json!({ "annotations": { key: text } }), json!(null)), expected);
            for effect in ["NoSchedule", "PreferNoSchedule", "NoExecute"] {
                let taint = json!({ "key": key, "value": text, "effect": effect });
                assert_eq!(drain(json!({}), json!([taint])), expected);
            }
        }
        assert_eq!(drain(json!({}), json!([{ "key": key, "effect": "NoExecute" }])).0, Some(30));
        let other = json!([{ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }]);
        assert_eq!(drain(json!({ "labels": { "drain": "true" } }), other), (None, vec![]));
    }

    #[test]
    fn of_several_marks_the_longest_wait_counts_and_false_is_none() {
        let key = Node::DRAIN_MARK;
        let both = json!({ "labels": { key: "5s" }, "annotations": { key: "false" } });
        assert_eq!(drain(both.clone(), json!([])), (Some(5), vec![]));
        assert_eq!(drain(both, json!([{ "key": key, "value": "7s" }])), (Some(7), vec![]));
        assert_eq!(drain(json!({ "labels": { key: "false" } }), json!([])), (None, vec![]));
    }

    #[test]
    fn a_mark_that_cannot_be_read_drains_and_says_so() {
        let key = Node::DRAIN_MARK;
        for text in ["soon", "30", "25h", "-5s", "no"] {
            let (wait, findings) = drain(json!({ "annotations": { key: text } }), json!([]));
            assert_eq!((wait, findings.len()), (Some(30), 1), "{text}");
            let start = format!(
                "Node/node-a: metadata.annotations[{key}]: warning: {text:?} is not a drain wait; \
                 expected"
            );
            assert!(findings[0].starts_with(&start), "{}", findings[0]);
        }
        let (_, findings) = drain(json!({}), json!([{ "key": key, "value": "x" }]));
        assert!(findings[0].contains("spec.taints[0].value: warning: "), "{findings:?}");
    }
}
