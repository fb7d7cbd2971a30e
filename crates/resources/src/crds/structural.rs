//! A JSON schema in the form that CustomResourceDefinitions require.
//!
//! They support only a part of JSON schema ("structural schemas"): no `null` beside another type, no
//! `additionalProperties: false` (unknown fields are pruned anyway), no title. Numbers state their
//! width. Knows no kinds.

use serde_json::{Map, Value, json};

/// The keywords of a schema, in the order in which they are written. Others come last, and are
/// unknown to the API server.
pub(super) const KEYWORDS: [&str; 21] = [
    "description",
    "type",
    "format",
    "enum",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "x-kubernetes-int-or-string",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "additionalProperties",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Keywords without meaning here: generator details, removed bounds, and the defaults that absent
/// fields have anyway.
fn is_superfluous(keyword: &str, value: &Value) -> bool {
    matches!(keyword, "$schema" | "title")
        || (keyword == "additionalProperties" && *value == Value::Bool(false))
        || (keyword == "format" && value.as_str().is_some_and(|it| it.starts_with("uint")))
        || (keyword == "default" && is_empty(value))
        || value.is_null()
}

fn is_empty(value: &Value) -> bool {
    matches!(value.to_string().as_str(), "{}" | "[]" | "\"\"")
}

/// The schema, and all those inside it, in their structural form.
pub(super) fn structural(schema: &Value) -> Value {
    let Value::Object(given) = schema else { return schema.clone() };
    let mut made = Map::new();
    for (keyword, value) in given.iter().filter(|(keyword, value)| !is_superfluous(keyword, value))
    {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), structural(field))).collect()
            }
            ("items" | "additionalProperties", value) => structural(value),
            ("type", value) => without_null(value),
            // A schema, or null.
            ("anyOf", Value::Array(alternatives)) => {
                let is_null = |schema: &&Value| schema.get("type").is_some_and(|it| it == "null");
                let others = alternatives.iter().filter(|it| !is_null(it)).map(structural);
                made.extend(others.filter_map(into_fields).flatten());
                continue;
            }
            ("oneOf", Value::Array(words)) => {
                made.insert("type".to_owned(), "string".into());
                made.insert("enum".to_owned(), words.iter().filter_map(word).collect());
                continue;
            }
            ("description", Value::String(text)) => Value::from(sentence(text)),
            (_, value) => value.clone(),
        };
        made.insert(keyword.clone(), value);
    }
    if made.contains_key("x-kubernetes-int-or-string") {
        // Replaces the type.
        made.remove("type");
    } else if made.get("type").is_some_and(|it| it == "integer") && !made.contains_key("format") {
        made.insert("format".to_owned(), width(&made));
    }
    let rank =
        |keyword: &str| KEYWORDS.iter().position(|it| *it == keyword).unwrap_or(KEYWORDS.len());
    let mut keywords: Vec<_> = made.into_iter().collect();
    keywords.sort_by_key(|(keyword, _)| rank(keyword));
    keywords.into_iter().collect()
}

fn into_fields(schema: Value) -> Option<Map<String, Value>> {
    if let Value::Object(fields) = schema { Some(fields) } else { None }
}

/// The value of an enum that has a description for each value.
fn word(schema: &Value) -> Option<Value> {
    schema.get("const").cloned()
}

/// An absent field is not written as `null`.
fn without_null(types: &Value) -> Value {
    let Value::Array(types) = types else { return types.clone() };
    let types: Vec<_> = types.iter().filter(|it| *it != "null").cloned().collect();
    match types.as_slice() {
        [one] => one.clone(),
        _ => types.into(),
    }
}

/// The narrowest integer that holds all allowed values.
fn width(schema: &Map<String, Value>) -> Value {
    let fits = |bound: &str| {
        let bound = schema.get(bound).and_then(Value::as_i64);
        bound.is_some_and(|bound| i32::try_from(bound).is_ok())
    };
    if fits("minimum") && fits("maximum") { json!("int32") } else { json!("int64") }
}

/// A doc comment without its line breaks and Rust's markup.
fn sentence(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_closed_mappings_go_and_widths_come() {
        let given = json!({
            "title": "Spec",
            "type": ["object", "null"],
            "properties": {
                "port": {"description": "One\n port.", "type": ["integer", "null"],
                    "format": "uint16", "minimum": 1, "maximum": 16384},
                "large": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32},
                "open": {"type": "integer", "minimum": 1, "maximum": null},
                "mixed": {"type": ["integer", "string"], "x-kubernetes-int-or-string": true},
                "result": {"default": "", "anyOf": [
                    {"oneOf": [{"description": "Good.", "const": "Valid"}, {"const": "Invalid"}]},
                    {"type": "null"},
                ]},
                "labels": {"additionalProperties": {"type": "string"}, "type": "object"},
            },
            "additionalProperties": false,
        });
        let expected = r#"{"type":"object","properties":{"port":{"description":"One port.","type":"integer","format":"int32","minimum":1,"maximum":16384},"large":{"type":"integer","format":"int64","minimum":0,"maximum":4294967295},"open":{"type":"integer","format":"int64","minimum":1},"mixed":{"x-kubernetes-int-or-string":true},"result":{"type":"string","enum":["Valid","Invalid"]},"labels":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
        assert_eq!(structural(&given).to_string(), expected);
    }
}
