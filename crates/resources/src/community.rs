//! Community (metallb.io/v1beta1): names for BGP communities.
//!
//! Answers which name stands for which value. Knows no other object; that a name is defined once
//! in all of them is for the catalog.

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
    /// The name; each is given once in all Community objects.
    name: Option<String>,
    /// What it stands for: 65001:100 or large:65001:1:2.
    value: Option<Text<CommunityText>>,
}

/// A community of either size, as manifests write it.
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

/// Reads the object; `None` when a fault of it was noted.
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
                // Advertisements that write it mean the value.
                let message = format_args!("{name} is already a community; choose another name");
                report.fault(&path, message);
            } else {
                report.warning(
                    &path,
                    format_args!(
                        "is the name of another community to everybody else; in advertisements \
                         {name} is now what is written here"
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
