//! One page of a list, as the API server writes it.
//!
//! Reads the text into values; `metadata.managedFields`, which are half of many objects, are skipped unread where nobody
//! wants them. Knows no connection.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Whether `metadata.managedFields` of the objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManagedFields {
    Read,
    Skipped,
}

/// See the module.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    /// Without `apiVersion` and `kind`, as in lists.
    pub(super) items: Vec<Value>,
    pub(super) resource_version: String,
    /// The token of the next page; `None`: this is the last one.
    pub(super) continue_token: Option<String>,
}

impl Page {
    /// `None`: that is not a list.
    pub(super) fn of(text: &str, managed_fields: ManagedFields) -> Option<Self> {
        match managed_fields {
            ManagedFields::Read => serde_json::from_str(text).ok().map(Self::new),
            ManagedFields::Skipped => {
                let List { metadata, items } = serde_json::from_str(text).ok()?;
                let items = items.0.map(|all| all.into_iter().map(|Unmanaged(it)| it).collect());
                Some(Self::new(List { metadata, items: Items(items) }))
            }
        }
    }

    fn new(list: List<Value>) -> Self {
        let List { metadata, items } = list;
        Self {
            items: items.0.unwrap_or_default(),
            resource_version: metadata.resource_version,
            continue_token: metadata.continue_token.filter(|token| !token.is_empty()),
        }
    }
}

#[derive(serde::Deserialize)]
struct List<Item> {
    metadata: ListMetadata,
    items: Items<Item>,
}

/// `null` is none; without the field it is no list.
#[derive(serde::Deserialize)]
struct Items<Item>(Option<Vec<Item>>);

#[derive(serde::Deserialize)]
struct ListMetadata {
    #[serde(rename = "resourceVersion")]
    resource_version: String,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

/// An object without its managed fields.
struct Unmanaged(Value);

impl<'de> Deserialize<'de> for Unmanaged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor { are_of_metadata: false }).map(Self)
    }
}

/// Its metadata without them.
struct Metadata(Value);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor { are_of_metadata: true }).map(Self)
    }
}

struct FieldsVisitor {
    are_of_metadata: bool,
}

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match (key.as_str(), self.are_of_metadata) {
                ("managedFields", true) => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                ("metadata", false) => map.next_value::<Metadata>()?.0,
                _ => map.next_value()?,
            };
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_alone_are_skipped_where_nobody_wants_them() {
        let item = json!({
            "metadata": {"managedFields": [{"manager": "kubectl"}], "name": "a", "labels": {"managedFields": "kept"}},
            "spec": {"metadata": {"managedFields": "kept"}},
        });
        let list = json!({
            "kind": "ServiceList",
            "metadata": {"resourceVersion": "12", "continue": "more", "remainingItemCount": 3},
            "items": [item],
        });
        let read = |managed| Page::of(&list.to_string(), managed).unwrap();
        let mut without = item.clone();
        without["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
        for (managed, expected) in [(ManagedFields::Read, item), (ManagedFields::Skipped, without)]
        {
            let page = read(managed);
            assert_eq!(page.items, [expected]);
            assert_eq!(page.resource_version, "12");
            assert_eq!(page.continue_token.as_deref(), Some("more"));
        }
    }

    #[test]
    fn what_is_no_list_is_no_page() {
        let version = json!({"resourceVersion": "1"});
        let odd = [
            json!([]),
            json!({}),
            json!({"metadata": {}, "items": []}),
            json!({"metadata": version}),
            json!({"metadata": version, "items": {}}),
        ];
        let texts = odd.iter().map(Value::to_string);
        for text in texts.chain(["".to_owned(), "{\"metadata\":".to_owned()]) {
            for managed in [ManagedFields::Read, ManagedFields::Skipped] {
                assert_eq!(Page::of(&text, managed), None, "{text}");
            }
        }
        let empty = json!({"metadata": {"resourceVersion": "1", "continue": ""}, "items": null});
        let page = Page::of(&empty.to_string(), ManagedFields::Skipped).unwrap();
        assert!(page.items.is_empty() && page.continue_token.is_none());
    }
}
