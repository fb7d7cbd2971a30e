//! YAML or JSON text as plain values, for objects that are parsed elsewhere.
//!
//! Answers the documents with the line of each fault. Knows no kinds. Called by commands that read other programs' objects.

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

/// The documents of `text`, in order. One with a fault is left out, and told by its first.
pub fn plain_documents(text: &str) -> impl Iterator<Item = Result<Json, DocumentFault>> + '_ {
    documents(text).filter_map(|document| match document.faults.into_iter().next() {
        Some(fault) => Some(Err(DocumentFault { line: fault.line, message: fault.message })),
        None => document.root.map(|root| Ok(plain(&root))),
    })
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
}
