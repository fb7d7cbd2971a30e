//! Writes a tree as text, on one line, in YAML's flow style.
//!
//! For the last good version of an object: the output reads back as the same tree, except for the
//! lines. Knows no files; the catalog stores the text.

use super::node::{Node, Value};
use super::scalar::ScalarKind;

/// The tree as one line, without the fields that `skip` selects by the number of keys above them and
/// their own key. Text is quoted as in JSON; other scalars are unchanged.
pub(crate) fn flow(node: &Node, skip: &dyn Fn(usize, &str) -> bool) -> String {
    let mut out = String::new();
    write(node, 0, skip, &mut out);
    out
}

fn write(node: &Node, depth: usize, skip: &dyn Fn(usize, &str) -> bool, out: &mut String) {
    match &node.value {
        Value::Scalar(_, ScalarKind::Null) | Value::Removed => out.push_str("null"),
        Value::Scalar(text, ScalarKind::Text) => quote(text, out),
        Value::Scalar(text, _) => out.push_str(text),
        Value::Sequence(elements) => {
            out.push('[');
            for (position, element) in elements.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write(element, depth, skip, out);
            }
            out.push(']');
        }
        Value::Mapping(entries) => {
            out.push('{');
            let kept = entries.iter().filter(|entry| !skip(depth, &entry.key));
            for (position, entry) in kept.enumerate() {
                if position > 0 {
                    out.push(',');
                }
                quote(&entry.key, out);
                out.push(':');
                write(&entry.value, depth + 1, skip, out);
            }
            out.push('}');
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
