//! An object in its stored form: the text of its JSON.
//!
//! A tree of values takes ten times the memory, and of ten thousand objects nearly all are kept only to be
//! compared or written to disk. A reader parses the text again, in microseconds.

use std::fmt;
use std::sync::Arc;

use fairway_model::{Kind, ObjectKey, ObjectName};
use serde::Deserialize;
use serde_json::Value;

/// The fields that are read without building the tree.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Head {
    kind: Option<String>,
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

impl Metadata {
    fn into_name(self) -> ObjectName {
        ObjectName::new(self.namespace.unwrap_or_default(), self.name.unwrap_or_default())
    }
}

/// See the module. Cheap to clone. Its `Debug` form hides the content, which may be a Secret.
#[derive(Clone)]
pub struct ObjectText(Arc<str>);

impl ObjectText {
    /// The object.
    pub fn value(&self) -> Value {
        // The text was made from a value, so it parses.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// `metadata.uid`, without building the tree.
    pub fn uid(&self) -> Option<String> {
        self.head().metadata.uid
    }

    /// Its namespace and name, without building the tree.
    pub fn name(&self) -> ObjectName {
        self.head().metadata.into_name()
    }

    /// Its kind, too; `None` if it is not one of ours.
    pub fn key(&self) -> Option<ObjectKey> {
        let Head { kind, metadata } = self.head();
        let kind = kind.and_then(|name| Kind::ALL.into_iter().find(|it| it.to_string() == name))?;
        Some(ObjectKey { kind, name: metadata.into_name() })
    }

    fn head(&self) -> Head {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ObjectText {
    /// The text is JSON.
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&Value> for ObjectText {
    fn from(object: &Value) -> Self {
        // A value has text keys, so it can be written.
        Self(serde_json::to_string(object).unwrap_or_default().into())
    }
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedObject {
    /// Its namespace and name.
    pub name: ObjectName,
    /// The rest, and these.
    pub text: ObjectText,
}

impl From<&Value> for ListedObject {
    fn from(object: &Value) -> Self {
        let text = ObjectText::from(object);
        Self { name: text.name(), text }
    }
}

impl PartialEq for ObjectText {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl fmt::Debug for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectText({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_is_what_was_given_and_debug_hides_it() {
        let secret = json!({
            "kind": "Secret", "metadata": { "name": "s", "uid": "u-1" }, "data": { "k": "Y2FuYXJ5" },
        });
        let text = ObjectText::from(&secret);
        assert_eq!(text.value(), secret);
        assert_eq!(text.uid().as_deref(), Some("u-1"));
        assert_eq!(text.name(), ObjectName::new("", "s"));
        assert_eq!(text.key().map(|key| key.kind), Some(Kind::Secret));
        assert_eq!(ObjectText::from(&json!({"kind": "Pod"})).key(), None);
        assert!(!format!("{text:?}").contains("Y2FuYXJ5"));
        assert_eq!(ObjectText::from(&json!({ "kind": "Secret" })).uid(), None);
    }

    #[test]
    fn two_are_equal_if_they_say_the_same() {
        let text = ObjectText::from(&json!({ "a": 1 }));
        assert_eq!(text, text.clone());
        assert_eq!(text, ObjectText::from(&json!({ "a": 1 })));
        assert_ne!(text, ObjectText::from(&json!({ "a": 2 })));
    }
}
