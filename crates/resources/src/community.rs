//! Community (metallb.io/v1beta1): names for BGP communities.
//!
//! Answers which name stands for which value. Knows no other object; uniqueness of names across all
//! objects is for the catalog.

use std::collections::BTreeMap;
use std::str::FromStr;

use fairway_ground::{Community, LargeCommunity, ParseError};
use fairway_model::{CommunityAliases, CommunityValue, Object};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::Text;
use super::metadata::Metadata;
use super::report::{List, Report, elements};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RawSpec {
    /// Names that advertisements may write for communities.
    communities: Option<List<RawAlias>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAlias {
    /// The name, unique among all Community objects.
    name: Option<String>,
    /// What it stands for: 65001:100 or large:65001:1:2.
    value: Option<Text<CommunityText>>,
}

/// A standard or large community, as manifests write it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommunityText(pub(super) CommunityValue);

impl FromStr for CommunityText {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let value = if text.starts_with("large:") {
            CommunityValue::Large(text.parse::<LargeCommunity>()?)
        } else {
            CommunityValue::Standard(text.parse::<Community>()?)
        };
        Ok(Self(value))
    }
}

/// Parses the object; `None` if it has a fault.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let raw: Option<RawSpec> = report.read(&FieldPath::of("spec"));
    let list = FieldPath::of("spec.communities");
    let mut aliases: BTreeMap<String, CommunityValue> = BTreeMap::new();
    for (position, raw) in elements(raw.and_then(|raw| raw.communities)) {
        let path = list.index(position);
        let name = raw.name.filter(|name| !name.is_empty());
        let name = report.required(name, &path.key("name"), "a name for the community");
        let value = report.required(raw.value, &path.key("value"), "a community as in 65001:100");
        let (Some(name), Some(Text(CommunityText(value)))) = (name, value) else { continue };
        let path = path.key("name");
        if let Ok(CommunityText(known)) = name.parse()
            && known != value
        {
            if name.contains(':') {
                // Advertisements that use it mean the value.
                let message = format_args!("{name} is already a community; choose another name");
                report.fault(&path, message);
            } else {
                report.warning(
                    &path,
                    format_args!(
                        "is also a well-known community; in advertisements \
                         {name} now means the value given here"
                    ),
                );
            }
        }
        if aliases.insert(name.clone(), value).is_some() {
            report.fault(&path, format_args!("{name} is defined twice; remove one"));
        }
    }
    Some(Object::Community(CommunityAliases { name: metadata.name, aliases }))
}
