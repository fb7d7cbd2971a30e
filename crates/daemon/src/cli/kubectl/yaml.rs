//! JSON as YAML, for readers of YAML 1.1 too: those take an unquoted `10:00:02` for a number to the base of sixty.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_saphyr::SingleQuoted;

/// A value that is written so.
struct Yaml<'a>(&'a Value);

impl Serialize for Yaml<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if looks_like_a_time(text) => SingleQuoted(text).serialize(to),
            Value::Array(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(&Yaml(item)))?;
                list.end()
            }
            Value::Object(fields) => {
                let mut map = to.serialize_map(Some(fields.len()))?;
                fields
                    .iter()
                    .try_for_each(|(key, value)| map.serialize_entry(key, &Yaml(value)))?;
                map.end()
            }
            other => other.serialize(to),
        }
    }
}

fn looks_like_a_time(text: &str) -> bool {
    text.contains(':') && text.bytes().all(|it| it.is_ascii_digit() || matches!(it, b':' | b'.'))
}

/// The text of a document.
pub(super) fn text(value: &Value) -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(&Yaml(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_reader_could_take_for_another_type_is_quoted() {
        let value = json!({
            "node": "node-a", "up": "10:00:02", "yes": "no", "asn": "65001", "count": 7,
            "list": [{ "prefix": "192.0.2.0/24" }], "address": "2001:db8::1", "none": null,
        });
        let expected = "node: node-a\nup: '10:00:02'\n\"yes\": \"no\"\nasn: \"65001\"\ncount: 7\nlist:\n\
                        - prefix: 192.0.2.0/24\naddress: 2001:db8::1\nnone: null\n";
        assert_eq!(text(&value).unwrap(), expected);
    }
}
