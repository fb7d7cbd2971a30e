//! The ConfigurationState: what a process reports of the objects that configure it, as MetalLB does.
//!
//! Builds the object and its status. Knows neither when nor how often; the controller and the reports of the
//! speaker write it.

use fairway_ground::Utc;
use fairway_resources::Finding;
use fairway_resources::status::{
    Condition, ConditionStatus, ConfigurationResult, ConfigurationStateStatus,
};
use serde_json::{Map, Value, json};

use super::write::{OwnPod, label_value, own_reference, shortened};

/// How many faults are reported in full; the log has all.
const FAULTS_MAX: usize = 20;
/// A message of a condition may be four times as long.
const SUMMARY_BYTES_MAX: usize = 8000;

/// The reporting process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Component {
    /// The leading controller.
    Controller,
    /// The speaker of this node.
    Speaker(String),
}

impl Component {
    /// The name of the object.
    pub fn object_name(&self) -> String {
        match self {
            Self::Controller => "controller".to_owned(),
            Self::Speaker(node) => format!("speaker-{node}"),
        }
    }

    /// The object with only its name, and what `add` adds to its metadata.
    fn object(
        &self,
        namespace: &str,
        add: impl FnOnce(&mut Map<String, Value>),
    ) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(self.object_name()));
        metadata.insert("namespace".to_owned(), json!(namespace));
        add(&mut metadata);
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), json!("metallb.io/v1beta1"));
        object.insert("kind".to_owned(), json!("ConfigurationState"));
        object.insert("metadata".to_owned(), metadata.into());
        object
    }

    fn condition(&self) -> &'static str {
        match self {
            Self::Controller => "poolReconcilerValid",
            Self::Speaker(_) => "configReconcilerValid",
        }
    }

    fn labels(&self) -> Value {
        match self {
            Self::Controller => json!({ "metallb.io/component-type": "controller" }),
            Self::Speaker(node) => json!({
                "metallb.io/component-type": "speaker", "metallb.io/node-name": label_value(node),
            }),
        }
    }
}

/// The faults as text; empty if all objects are in force.
pub fn fault_summary<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> String {
    let faults: Vec<&Finding> = findings.into_iter().filter(|it| it.is_fault()).collect();
    let mut texts: Vec<String> = faults.iter().take(FAULTS_MAX).map(|it| it.to_string()).collect();
    let more = faults.len().saturating_sub(FAULTS_MAX);
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    shortened(texts.join("; "), SUMMARY_BYTES_MAX)
}

/// The object without its status, for server-side apply. It is owned by the Pod, if that is known.
pub fn configuration_object(component: &Component, namespace: &str, pod: Option<&OwnPod>) -> Value {
    let owners = pod.map(|it| json!([own_reference(it)]));
    let object = component.object(namespace, |metadata| {
        metadata.insert("labels".to_owned(), component.labels());
        metadata.extend(owners.map(|it| ("ownerReferences".to_owned(), it)));
    });
    object.into()
}

/// Its status, for server-side apply. `summary` comes from [`fault_summary`]; `since`: when that was found,
/// in seconds since 1970.
pub fn configuration_status(
    component: &Component,
    namespace: &str,
    summary: &str,
    since: u64,
) -> Value {
    let (result, status, reason) = match summary {
        "" => (ConfigurationResult::Valid, ConditionStatus::True, "Reconciled"),
        _ => (ConfigurationResult::Invalid, ConditionStatus::False, "ConfigurationError"),
    };
    let condition = Condition {
        kind: component.condition().to_owned(),
        status,
        reason: reason.to_owned(),
        message: summary.to_owned(),
        last_transition_time: Utc(since).rfc3339(),
        observed_generation: None,
    };
    let status = ConfigurationStateStatus {
        result: Some(result),
        error_summary: summary.to_owned(),
        conditions: vec![condition],
    };
    let mut object = component.object(namespace, |_| {});
    object.insert("status".to_owned(), json!(status));
    object.into()
}

#[cfg(test)]
mod tests {
    use fairway_resources::Severity;

    use super::*;

    fn finding(number: usize, severity: Severity) -> Finding {
        let message = format!("number {number}");
        Finding { severity, file: String::new(), line: None, object: None, field: None, message }
    }

    #[test]
    fn faults_are_told_and_warnings_are_not_and_of_many_how_many() {
        assert_eq!(fault_summary(&[finding(1, Severity::Warning)]), "");
        let two = [finding(1, Severity::Fault), finding(2, Severity::Fault)];
        assert_eq!(fault_summary(&two), "number 1; number 2");
        let many: Vec<_> = (0..1000).map(|number| finding(number, Severity::Fault)).collect();
        let summary = fault_summary(&many);
        assert!(summary.ends_with("; number 19; and 980 more"), "{summary}");
    }

    #[test]
    fn a_speaker_has_the_names_and_labels_of_metallb() {
        let speaker = Component::Speaker("a".to_owned());
        let object = configuration_object(&speaker, "metallb-system", None);
        let metadata = json!({
            "name": "speaker-a", "namespace": "metallb-system",
            "labels": {
                "metallb.io/component-type": "speaker", "metallb.io/node-name": "a",
            },
        });
        assert_eq!(object.get("metadata"), Some(&metadata));
        let status = configuration_status(&speaker, "metallb-system", "", 0);
        let kind = status.pointer("/status/conditions/0/type");
        assert_eq!(kind, Some(&json!("configReconcilerValid")));
    }
}
