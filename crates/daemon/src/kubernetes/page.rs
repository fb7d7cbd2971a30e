//! One page of a list, as the API server writes it.
//!
//! Reads the text in one pass, each object as its caller wants it; `metadata.managedFields`, which are half of many objects,
//! are skipped unread where nobody wants them. Knows no connection.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// See the module.
#[derive(Debug, PartialEq)]
pub(super) struct Page<Item> {
    /// Without `apiVersion` and `kind`, as in lists, unless they are added as they are read.
    pub(super) items: Vec<Item>,
    pub(super) resource_version: String,
    /// The token of the next page; `None`: this is the last one.
    pub(super) continue_token: Option<String>,
}

impl<Item> Page<Item> {
    /// `None`: that is not a list. Each object is read by `item`.
    pub(super) fn of<'de, S>(text: &'de str, item: S) -> Option<Self>
    where
        S: DeserializeSeed<'de, Value = Item> + Copy,
    {
        let mut reader = serde_json::Deserializer::from_str(text);
        let page = ListSeed(item).deserialize(&mut reader).ok()?;
        reader.end().ok().map(|()| page)
    }
}

#[derive(serde::Deserialize)]
struct ListMetadata {
    #[serde(rename = "resourceVersion")]
    resource_version: String,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
}

/// A list, whose objects are read by this.
#[derive(Clone, Copy)]
struct ListSeed<S>(S);

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for ListSeed<S> {
    type Value = Page<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<Self::Value, D::Error> {
        list.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for ListSeed<S> {
    type Value = Page<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut metadata, mut items) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => metadata = Some(map.next_value::<ListMetadata>()?),
                "items" => items = Some(map.next_value_seed(ItemsSeed(self.0))?),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        let metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        Ok(Page {
            items: items.ok_or_else(|| A::Error::missing_field("items"))?,
            resource_version: metadata.resource_version,
            continue_token: metadata.continue_token.filter(|token| !token.is_empty()),
        })
    }
}

/// Its objects; `null` is none.
struct ItemsSeed<S>(S);

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for ItemsSeed<S> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, items: D) -> Result<Self::Value, D::Error> {
        items.deserialize_any(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for ItemsSeed<S> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.0)? {
            items.push(item);
        }
        Ok(items)
    }
}

/// Objects as they are, with `metadata.managedFields` or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManagedFields {
    Read,
    Skipped,
}

impl<'de> DeserializeSeed<'de> for ManagedFields {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<Value, D::Error> {
        match self {
            Self::Read => Value::deserialize(object),
            Self::Skipped => object.deserialize_map(FieldsVisitor { are_of_metadata: false }),
        }
    }
}

/// Metadata without them.
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
