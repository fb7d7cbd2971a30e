//! One value of a Secret, by the names of both: `{name, key}`.
//!
//! Knows no Secret; whether one exists is for the catalog. Called by the parsers of kinds that sign
//! with it.

use fairway_model::ObjectName;
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::hidden::HiddenMapping;
use super::report::Report;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawSecretKey {
    /// A Secret in the namespace of this object.
    #[schemars(required)]
    name: Option<String>,
    /// The key of its data.
    #[schemars(required)]
    key: Option<String>,
}

/// The Secret and its key that the required field at `path` names; `None` if it has a fault.
pub(super) fn required(
    raw: Option<HiddenMapping<RawSecretKey>>,
    path: &FieldPath,
    namespace: &str,
    report: &mut Report<'_>,
) -> Option<(ObjectName, String)> {
    let HiddenMapping(raw) = report.required(raw, path, "the name and key of a Secret")?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let name = report.required(given(raw.name), &path.key("name"), "the name of a Secret");
    let key = report.required(given(raw.key), &path.key("key"), "a key of the Secret's data");
    Some((ObjectName::new(namespace, name?), key?))
}
