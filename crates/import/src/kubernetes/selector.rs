//! Label selectors of Kubernetes' form.
//!
//! Answers what a selector selects, and its text in Fairway's objects. Knows no kind.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::field::Section;

/// Labels that Cilium makes of the namespace and the name of a Service.
pub(super) const NAMESPACE_LABEL: &str = "io.kubernetes.service.namespace";
pub(super) const NAME_LABEL: &str = "io.kubernetes.service.name";
/// The label of a node with its name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// All of its conditions have to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) conditions: Vec<Condition>,
}

/// An entry of `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) key: String,
    pub(super) operator: Operator,
    pub(super) values: Vec<String>,
}

impl Condition {
    fn contradicts(&self, other: &Self) -> bool {
        let is_in = |it: &String| other.values.contains(it);
        self.key == other.key
            && match (self.operator, other.operator) {
                (Operator::In, Operator::In) => !self.values.iter().any(is_in),
                (Operator::In, Operator::NotIn) => self.values.iter().all(is_in),
                (Operator::NotIn, Operator::In) => other.contradicts(self),
                (Operator::In | Operator::Exists, Operator::DoesNotExist)
                | (Operator::DoesNotExist, Operator::In | Operator::Exists) => true,
                _ => false,
            }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Operator {
    const ALL: [(Self, &str); 4] = [
        (Self::In, "In"),
        (Self::NotIn, "NotIn"),
        (Self::Exists, "Exists"),
        (Self::DoesNotExist, "DoesNotExist"),
    ];

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name)| *name == word).map(|(it, _)| it)
    }

    fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(it, _)| *it == self).map_or("", |(_, name)| name)
    }
}

/// What a field of selectors says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Selection {
    /// The field is missing.
    Missing,
    Selector(Selector),
    /// It cannot be translated, which was said.
    Untranslated,
}

impl Selector {
    /// The node of this name.
    pub(super) fn node(name: &str) -> Self {
        let labels = BTreeMap::from([(HOSTNAME.to_owned(), name.to_owned())]);
        Self { labels, conditions: Vec::new() }
    }

    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.conditions.is_empty()
    }

    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let holds = |it: &Condition| {
            let value = labels.get(&it.key);
            let is_in = value.is_some_and(|value| it.values.contains(value));
            match it.operator {
                Operator::In => is_in,
                Operator::NotIn => !is_in,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        };
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.conditions.iter().all(holds)
    }

    /// Whether the two contradict each other, so that nothing matches both.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        let ours = self.all_conditions();
        other.all_conditions().iter().any(|it| ours.iter().any(|own| own.contradicts(it)))
    }

    /// Its conditions, and its labels as conditions.
    fn all_conditions(&self) -> Vec<Condition> {
        let labels = self.labels.iter().map(|(key, value)| Condition {
            key: key.clone(),
            operator: Operator::In,
            values: vec![value.clone()],
        });
        labels.chain(self.conditions.iter().cloned()).collect()
    }

    /// The keys of its conditions.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let conditions = self.conditions.iter().map(|it| &it.key);
        self.labels.keys().chain(conditions).map(String::as_str)
    }

    pub(super) fn value(&self) -> Value {
        let mut value = Map::new();
        if !self.labels.is_empty() {
            value.insert("matchLabels".to_owned(), json!(self.labels));
        }
        let conditions = self.conditions.iter().map(|it| {
            let (key, operator) = (&it.key, it.operator.word());
            match it.values.as_slice() {
                [] => json!({"key": key, "operator": operator}),
                values => json!({"key": key, "operator": operator, "values": values}),
            }
        });
        let conditions: Vec<Value> = conditions.collect();
        if !conditions.is_empty() {
            value.insert("matchExpressions".to_owned(), Value::Array(conditions));
        }
        Value::Object(value)
    }
}

/// The selectors as a list of Fairway's, of which any may match; nothing where one selects everything.
pub(super) fn any_of(selectors: &[Selector]) -> Option<Value> {
    let is_all = selectors.is_empty() || selectors.iter().any(Selector::is_everything);
    let values = || selectors.iter().map(Selector::value).collect();
    (!is_all).then(|| Value::Array(values()))
}

/// The selector in a field.
pub(super) fn selection(section: &Section<'_>, key: &str) -> Selection {
    if !section.has(key) {
        return Selection::Missing;
    }
    let Some(inner) = section.section(key) else { return Selection::Untranslated };
    match selector(&inner) {
        Ok(selector) => Selection::Selector(selector),
        Err(why) => {
            section.untranslated(key, why);
            Selection::Untranslated
        }
    }
}

fn selector(section: &Section<'_>) -> Result<Selector, String> {
    let mut labels = BTreeMap::new();
    if let Some(map) = section.get("matchLabels").and_then(Value::as_object) {
        section.ignore(&["matchLabels"]);
        for (key, value) in map {
            let value =
                value.as_str().ok_or_else(|| format!("the value of {key} is not a text"))?;
            labels.insert(key.clone(), value.to_owned());
        }
    }
    let mut conditions = Vec::new();
    for it in section.sections("matchExpressions") {
        let operator = it.text("operator").unwrap_or_default();
        let key = it.text("key").ok_or("a condition has no key")?;
        let operator = Operator::of(&operator)
            .ok_or_else(|| format!("{operator:?} is no operator of label selectors"))?;
        let mut values: Vec<String> = Vec::new();
        for (_, value) in it.texts("values") {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let wants_values = matches!(operator, Operator::In | Operator::NotIn);
        if values.is_empty() == wants_values {
            return Err(format!("the condition about {key} has the wrong number of values"));
        }
        let condition = Condition { key, operator, values };
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    Ok(Selector { labels, conditions })
}
