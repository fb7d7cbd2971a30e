//! LabelSelector, as MetalLB's kinds write it.
//!
//! Answers what a selector means and refuses the ones that can only be mistakes: repeated
//! selectors, conditions or values. Knows no kinds; those with selectors read them with it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use fairway_model::{LabelSelector, Operator, Requirement};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::Text;
use super::label;
use super::report::{List, Report, elements};

/// Selects by labels; an empty one selects everything.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub(crate) struct RawLabelSelector {
    /// Labels that must have exactly these values.
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    /// Conditions that must all hold.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    match_expressions: Option<List<RawRequirement>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawRequirement {
    /// The name of the label.
    #[schemars(required)]
    key: Option<String>,
    /// In, NotIn, Exists or DoesNotExist.
    #[schemars(required)]
    operator: Option<Text<OperatorName>>,
    /// The values for In and NotIn.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    values: Option<List<String>>,
}

#[derive(Debug, Clone, Copy)]
struct OperatorName(Operator);

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an operator; expected In, NotIn, Exists or DoesNotExist")]
struct OperatorError(String);

impl FromStr for OperatorName {
    type Err = OperatorError;

    fn from_str(text: &str) -> Result<Self, OperatorError> {
        match text {
            "In" => Ok(Self(Operator::In)),
            "NotIn" => Ok(Self(Operator::NotIn)),
            "Exists" => Ok(Self(Operator::Exists)),
            "DoesNotExist" => Ok(Self(Operator::DoesNotExist)),
            _ => Err(OperatorError(text.to_owned())),
        }
    }
}

/// The selectors of the list at `path`, in the order written.
pub(crate) fn parse_list(
    raw: Option<List<RawLabelSelector>>,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Vec<LabelSelector> {
    // As in MetalLB, an equivalent selector in another form is a different selector.
    let mut seen: BTreeMap<(LabelSelector, BTreeSet<Requirement>), usize> = BTreeMap::new();
    let mut selectors = Vec::new();
    for (position, raw) in elements(raw) {
        let path = path.index(position);
        let written = read(raw, &path, report);
        if report.is_faulty(&path) {
            continue;
        }
        match seen.get(&written) {
            Some(first) => {
                report
                    .fault(&path, format_args!("selects the same as entry [{first}]; remove one"));
            }
            None => {
                selectors.push(written.0.clone());
                seen.insert(written, position);
            }
        }
    }
    selectors
}

/// The selector at `path`.
pub(crate) fn parse(
    raw: RawLabelSelector,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> LabelSelector {
    read(raw, path, report).0
}

/// The selector at `path`, and its conditions that are written as `matchExpressions`.
fn read(
    raw: RawLabelSelector,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> (LabelSelector, BTreeSet<Requirement>) {
    for (key, value) in &raw.match_labels {
        let path = path.key("matchLabels").key(key);
        label::check_key(key, &path, report);
        label::check_value(value, &path, report);
    }
    let mut requirements: BTreeSet<Requirement> = raw
        .match_labels
        .into_iter()
        .map(|(key, value)| Requirement {
            key,
            operator: Operator::In,
            values: BTreeSet::from([value]),
        })
        .collect();
    let path = path.key("matchExpressions");
    let mut expressions = BTreeSet::new();
    for (position, raw) in elements(raw.match_expressions) {
        let path = path.index(position);
        let Some(requirement) = parse_requirement(raw, &path, report) else { continue };
        if !expressions.insert(requirement.clone()) {
            report.fault(&path, "is given twice in this selector; remove one");
        }
        requirements.insert(requirement);
    }
    (LabelSelector { requirements }, expressions)
}

fn parse_requirement(
    raw: RawRequirement,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Option<Requirement> {
    let key = raw.key.filter(|key| !key.is_empty());
    let key = report.required(key, &path.key("key"), "the name of a label");
    if let Some(key) = &key {
        label::check_key(key, &path.key("key"), report);
    }
    let operator =
        report.required(raw.operator, &path.key("operator"), "In, NotIn, Exists or DoesNotExist");
    let (key, Text(OperatorName(operator))) = (key?, operator?);
    let values_path = path.key("values");
    let mut values = BTreeSet::new();
    for (position, value) in elements(raw.values) {
        let path = values_path.index(position);
        label::check_value(&value, &path, report);
        if values.contains(&value) {
            report.fault(&path, format_args!("{value:?} is given twice; remove one"));
        }
        values.insert(value);
    }
    let wants_values = matches!(operator, Operator::In | Operator::NotIn);
    if wants_values && values.is_empty() {
        report.missing(&values_path, "one value or more for the operators In and NotIn");
    }
    if !wants_values && !values.is_empty() {
        report.fault(&values_path, "must be left out with the operators Exists and DoesNotExist");
    }
    Some(Requirement { key, operator, values })
}
