//! YAML or JSON text as plain values, for objects that are parsed elsewhere.
//!
//! Answers the documents with the line of each fault. Knows no kinds. Called by commands that read other programs' objects.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value as Json};

use super::yaml::documents;
use super::yaml::node::{Node, Value};
use super::yaml::scalar::{self, ScalarKind};

/// A document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct DocumentFault {
    line: usize,
    message: String,
}

impl DocumentFault {
    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What is wrong there.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The documents of `text`, in order. One with a fault is left out, and told by its first.
pub fn plain_documents(text: &str) -> impl Iterator<Item = Result<Json, DocumentFault>> + '_ {
    documents(text).filter_map(|document| match document.faults.into_iter().next() {
        Some(fault) => Some(Err(DocumentFault { line: fault.line, message: fault.message })),
        None => document.root.map(|root| Ok(plain(&root))),
    })
}

/// A document as a plain value that knows the lines of its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainDocument {
    /// The value.
    pub value: Json,
    /// By JSON pointer (RFC 6901).
    lines: BTreeMap<String, usize>,
}

impl PlainDocument {
    /// The line, from 1, of the field at this JSON pointer, or of the innermost part of it that exists.
    pub fn line(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.lines.get(pointer) {
                return *line;
            }
            match pointer.rsplit_once('/') {
                Some((outer, _)) => pointer = outer,
                None => return 1,
            }
        }
    }
}

/// The documents of `text` as [`plain_documents`] has them, with the lines of their fields.
pub fn numbered_documents(
    text: &str,
) -> impl Iterator<Item = Result<PlainDocument, DocumentFault>> + '_ {
    documents(text).filter_map(|document| match document.faults.into_iter().next() {
        Some(fault) => Some(Err(DocumentFault { line: fault.line, message: fault.message })),
        None => document.root.map(|root| {
            let mut lines = BTreeMap::new();
            number(root.line, &root, String::new(), &mut lines);
            Ok(PlainDocument { value: plain(&root), lines })
        }),
    })
}

fn number(line: usize, node: &Node, pointer: String, lines: &mut BTreeMap<String, usize>) {
    match &node.value {
        Value::Sequence(elements) => {
            for (position, element) in elements.iter().enumerate() {
                number(element.line, element, format!("{pointer}/{position}"), lines);
            }
        }
        Value::Mapping(entries) => {
            for entry in entries {
                let key = entry.key.replace('~', "~0").replace('/', "~1");
                number(entry.line, &entry.value, format!("{pointer}/{key}"), lines);
            }
        }
        Value::Removed | Value::Scalar(..) => {}
    }
    lines.insert(pointer, line);
}

fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Removed => Json::Null,
        Value::Sequence(elements) => Json::Array(elements.iter().map(plain).collect()),
        Value::Mapping(entries) => {
            let field = |(key, value): (&str, &Node)| (key.to_owned(), plain(value));
            let entries = entries.iter().map(|it| (&*it.key, &it.value));
            Json::Object(entries.map(field).collect::<Map<_, _>>())
        }
        Value::Scalar(text, kind) => match kind {
            ScalarKind::Null => Json::Null,
            ScalarKind::Boolean => Json::Bool(scalar::boolean(text) == Some(true)),
            ScalarKind::Integer => {
                let number = text.parse::<i64>().map(Number::from);
                let number = number.or_else(|_| text.parse::<u64>().map(Number::from));
                number.map_or_else(|_| Json::from(text.to_string()), Json::Number)
            }
            ScalarKind::Float => {
                let number = scalar::float(text).and_then(Number::from_f64);
                number.map_or(Json::Null, Json::Number)
            }
            ScalarKind::Text | ScalarKind::SwitchWord => Json::from(text.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_the_same_in_yaml_and_json_and_a_fault_has_its_line() {
        let text = "a: [1, null, -2, 'x', true, 1.5]\nb: {}\n---\n{\"c\": [null]}\n---\nd: [\n";
        let mut read = plain_documents(text);
        assert_eq!(read.next(), Some(Ok(json!({"a": [1, null, -2, "x", true, 1.5], "b": {}}))));
        assert_eq!(read.next(), Some(Ok(json!({"c": [null]}))));
        assert!(read.next().is_some_and(|it| it.is_err_and(|fault| fault.line >= 6)));
    }

    #[test]
    fn a_field_has_the_line_of_its_key_and_an_element_its_own() {
        let text = "\na:\n  b/c: 1\n  list:\n    - x\n    - {y: 2}\n";
        let document = numbered_documents(text).next().unwrap().unwrap();
        let lines = ["/a", "/a/b~1c", "/a/list/0", "/a/list/1/y", "/a/list/1/z/q", "/n"];
        assert_eq!(lines.map(|it| document.line(it)), [2, 3, 5, 6, 6, 2]);
    }
}
