//! Objects to be written, and names for them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// An object, and what is said above it.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) comments: Vec<String>,
    api_version: &'static str,
    kind: &'static str,
    pub(crate) name: String,
    annotations: Map<String, Value>,
    /// `spec`, and what else is beside `metadata`.
    fields: Map<String, Value>,
}

impl Translated {
    /// One with a `spec`.
    pub(crate) fn new(
        api_version: &'static str,
        kind: &'static str,
        name: &str,
        spec: Fields,
    ) -> Self {
        let fields = Map::from_iter([("spec".to_owned(), Value::Object(spec.0))]);
        let (comments, annotations, name) = (Vec::new(), Map::new(), name.to_owned());
        Self { comments, api_version, kind, name, annotations, fields }
    }

    /// A Secret with the password of a session.
    pub(crate) fn password(name: &str, password: &str) -> Self {
        let fields = [
            ("type".to_owned(), json!("kubernetes.io/basic-auth")),
            ("stringData".to_owned(), json!({"password": password})),
        ];
        let fields = Map::from_iter(fields);
        let (comments, annotations, name) = (Vec::new(), Map::new(), name.to_owned());
        Self { comments, api_version: "v1", kind: "Secret", name, annotations, fields }
    }

    /// The same with a password that is in base64 already.
    pub(crate) fn encoded_password(name: &str, password: &str) -> Self {
        let fields = [
            ("type".to_owned(), json!("kubernetes.io/basic-auth")),
            ("data".to_owned(), json!({"password": password})),
        ];
        Self { fields: Map::from_iter(fields), ..Self::password(name, "") }
    }

    /// With an annotation.
    pub(crate) fn annotation(mut self, name: &str, value: &str) -> Self {
        self.annotations.insert(name.to_owned(), json!(value));
        self
    }

    /// With a comment above it.
    pub(crate) fn comment(mut self, text: impl Into<String>) -> Self {
        self.comments.push(text.into());
        self
    }

    pub(crate) fn value(&self) -> Value {
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), json!(self.api_version));
        object.insert("kind".to_owned(), json!(self.kind));
        let mut metadata = Map::from_iter([("name".to_owned(), json!(self.name))]);
        if !self.annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(self.annotations));
        }
        object.insert("metadata".to_owned(), Value::Object(metadata));
        object.extend(self.fields.clone());
        Value::Object(object)
    }
}

/// The fields of an object in the order in which they are set; what is not there is left out.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Fields(pub(crate) Map<String, Value>);

impl Fields {
    /// Sets `name`, unless the value is nothing.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Option<Value>>) -> &mut Self {
        if let Some(value) = value.into() {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets `name` to true where it holds.
    pub(crate) fn set_if(&mut self, name: &str, holds: bool) -> &mut Self {
        self.set(name, holds.then_some(json!(true)))
    }

    /// Sets `name` to true where it holds, and takes it back where it does not.
    pub(crate) fn switch(&mut self, name: &str, holds: bool) -> &mut Self {
        if !holds {
            self.remove(name);
        }
        self.set_if(name, holds)
    }

    /// Takes `name` back; the others keep their order.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.shift_remove(name);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value, unless there are no fields.
    pub(crate) fn some(self) -> Option<Value> {
        (!self.is_empty()).then_some(Value::Object(self.0))
    }
}

/// Names that were given, so that no two objects of a kind share one.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// A name for an object that the source calls `text`: lower-case letters, digits, `-` and `.`.
    pub(crate) fn give(&mut self, text: &str) -> String {
        let mut name = String::new();
        for letter in text.chars().take(200) {
            match letter {
                'a'..='z' | '0'..='9' => name.push(letter),
                'A'..='Z' => name.push(letter.to_ascii_lowercase()),
                '.' if !name.is_empty() && !name.ends_with(['-', '.']) => name.push('.'),
                _ if !name.is_empty() && !name.ends_with(['-', '.']) => name.push('-'),
                _ => {}
            }
        }
        let name = name.trim_end_matches(['-', '.']);
        let name = if name.is_empty() { "unnamed" } else { name };
        let numbered = (2..).map(|number: u32| format!("{name}-{number}"));
        let free = std::iter::once(name.to_owned()).chain(numbered);
        let free = free.into_iter().find(|it| !self.0.contains(it)).unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}
