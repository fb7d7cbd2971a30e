//! Which objects a list or watch selects: namespace, labels, fields.

use crate::request::Request;
use crate::status::Status;
use serde_json::Value;

/// The parsed selectors of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Selector {
    namespace: Option<String>,
    labels: Vec<LabelRule>,
    fields: Vec<FieldRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelRule {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRule {
    pointer: String,
    value: String,
    equal: bool,
}

impl Selector {
    pub(crate) fn of(request: &Request) -> Result<Self, Status> {
        let namespace = (!request.namespace.is_empty()).then(|| request.namespace.clone());
        let labels = request.query.label_selector.as_deref().unwrap_or_default();
        let fields = request.query.field_selector.as_deref().unwrap_or_default();
        let labels = terms(labels).into_iter().map(label_rule).collect::<Option<Vec<_>>>();
        let fields = terms(fields).into_iter().map(field_rule).collect::<Option<Vec<_>>>();
        let unable = |which| Status::bad_request(&format!("unable to parse requirement: {which}"));
        Ok(Self {
            namespace,
            labels: labels.ok_or_else(|| unable("labelSelector"))?,
            fields: fields.ok_or_else(|| unable("fieldSelector"))?,
        })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        if let Some(namespace) = &self.namespace
            && text("/metadata/namespace") != Some(namespace)
        {
            return false;
        }
        let label = |key: &str| {
            let labels = object.pointer("/metadata/labels");
            labels.and_then(|labels| labels.get(key)).and_then(Value::as_str)
        };
        let one_of = |key: &str, values: &[String]| {
            label(key).is_some_and(|value| values.iter().any(|it| it == value))
        };
        let labels = self.labels.iter().all(|rule| match rule {
            LabelRule::In(key, values) => one_of(key, values),
            LabelRule::NotIn(key, values) => !one_of(key, values),
            LabelRule::Exists(key) => label(key).is_some(),
            LabelRule::Missing(key) => label(key).is_none(),
        });
        labels
            && self
                .fields
                .iter()
                .all(|rule| (text(&rule.pointer).unwrap_or_default() == rule.value) == rule.equal)
    }
}

/// Split at commas that are not inside parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn label_rule(term: &str) -> Option<LabelRule> {
    let values = |text: &str| -> Option<Vec<String>> {
        let inside = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inside.split(',').map(|value| value.trim().to_owned()).collect())
    };
    let key = |text: &str| text.trim().to_owned();
    if let Some((name, value)) = term.split_once("!=") {
        return Some(LabelRule::NotIn(key(name), vec![key(value)]));
    }
    if let Some((name, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(LabelRule::In(key(name), vec![key(value)]));
    }
    if let Some((name, rest)) = term.split_once(" notin ") {
        return Some(LabelRule::NotIn(key(name), values(rest)?));
    }
    if let Some((name, rest)) = term.split_once(" in ") {
        return Some(LabelRule::In(key(name), values(rest)?));
    }
    match term.strip_prefix('!') {
        Some(name) => Some(LabelRule::Missing(key(name))),
        None if term.contains(' ') => None,
        None => Some(LabelRule::Exists(key(term))),
    }
}

fn field_rule(term: &str) -> Option<FieldRule> {
    let unequal = term.split_once("!=").map(|(name, value)| (name, value, false));
    let equal = || term.split_once("==").or_else(|| term.split_once('='));
    let (name, value, equal) =
        unequal.or_else(|| equal().map(|(name, value)| (name, value, true)))?;
    let pointer = format!("/{}", name.trim().replace('.', "/"));
    Some(FieldRule { pointer, value: value.trim().to_owned(), equal })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::request::Resource;
    use serde_json::json;

    fn selects(labels: &str, fields: &str) -> bool {
        let mut request = Request::list(&Resource::core("services"), "web");
        request.query.label_selector = Some(labels.to_owned());
        request.query.field_selector = Some(fields.to_owned());
        let object = json!({
            "metadata": {"name": "shop", "namespace": "web", "labels": {"tier": "front", "blue": ""}},
            "spec": {"type": "LoadBalancer"},
        });
        Selector::of(&request).unwrap().matches(&object)
    }

    #[test]
    fn labels_select_as_kubectl_writes_them() {
        assert!(selects("tier=front,blue,!green", ""));
        assert!(selects("tier in (back, front),tier notin (x)", ""));
        assert!(selects("other!=x", ""));
        assert!(!selects("tier==back", ""));
        assert!(!selects("green", ""));
    }

    #[test]
    fn fields_select_by_path() {
        assert!(selects("", "metadata.name=shop"));
        assert!(selects("", "spec.type=LoadBalancer,metadata.name!=other"));
        assert!(!selects("", "metadata.name=other"));
    }
}
