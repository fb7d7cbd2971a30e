//! Lists of ranges of prefixes: `{prefix: 10.0.0.0/8, ge: 16, le: 24}`.
//!
//! Knows no kinds; filters and rules of BGPPeers have such lists.

use fairway_ground::{Prefix, PrefixRange};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{Length, Text};
use super::report::{List, Report, elements};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawRange {
    /// A prefix as 192.0.2.0/24.
    #[schemars(required)]
    prefix: Option<Text<Prefix>>,
    /// The shortest length that passes.
    ge: Option<Length>,
    /// The longest length that passes.
    le: Option<Length>,
}

/// The ranges of the list at `path`.
pub(super) fn ranges(
    raw: Option<List<RawRange>>,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Vec<PrefixRange> {
    elements(raw).filter_map(|(position, raw)| range(&raw, &path.index(position), report)).collect()
}

fn range(raw: &RawRange, path: &FieldPath, report: &mut Report<'_>) -> Option<PrefixRange> {
    let prefix = raw.prefix.as_ref().map(|Text(prefix)| *prefix);
    let prefix = report.required(prefix, &path.key("prefix"), "a prefix, as in 192.0.2.0/24")?;
    let length = |raw: &Option<Length>| raw.as_ref().map(|Length(length)| *length);
    match PrefixRange::new(prefix, length(&raw.ge), length(&raw.le)) {
        Ok(range) => Some(range),
        Err(error) => {
            report.fault(path, error);
            None
        }
    }
}
