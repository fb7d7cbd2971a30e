//! A JSON object that keeps the order of its keys.

use serde_json::{Map, Value};

/// Collects fields. What FRR leaves out in a state is an `optional` that is absent, never null.
#[derive(Debug, Clone, Default)]
pub(super) struct Object(Map<String, Value>);

impl Object {
    /// Without fields.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    pub(super) fn field(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a field that may be absent.
    pub(super) fn optional(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    /// Adds a flag that is only there when it is set.
    pub(super) fn flag(self, key: &str, is_set: bool) -> Self {
        self.optional(key, is_set.then_some(true))
    }

    /// Adds all fields of another object.
    pub(super) fn extend(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// All fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter()
    }

    /// Whether it has no field.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}
