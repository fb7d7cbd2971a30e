//! `"$N"` in an operation: what the result of an earlier one has.
//!
//! `$N` stands for all addresses of result N, `$N[i]` for one, `$N.block` for the block of the first, `$N.seq` for the number
//! that `inspect` gave.

use fairway_ground::Prefix;
use serde_json::Value;

/// The earlier results, and the block of the first address of each.
pub(super) struct Resolver<'a> {
    pub(super) results: &'a [Value],
    pub(super) blocks: &'a [Option<Prefix>],
}

/// The fields that are lists of addresses or prefixes: a reference may stand for all of one.
const LISTS: [&str; 4] = ["ips", "pools4", "pools6", "cidrs"];

impl Resolver<'_> {
    /// Puts what they stand for in the place of references.
    pub(super) fn resolve(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match parse(&text).map(|it| self.values(&it)) {
                None => Value::String(text),
                Some(values) => values.into_iter().next().unwrap_or(Value::Null),
            },
            Value::Array(items) => {
                Value::Array(items.into_iter().flat_map(|it| self.spliced(it)).collect())
            }
            Value::Object(fields) => {
                let resolved = fields.into_iter().map(|(key, value)| {
                    let is_list = LISTS.contains(&key.as_str()) && value.is_string();
                    let value = match is_list {
                        true => Value::Array(self.spliced(value)),
                        false => self.resolve(value),
                    };
                    (key, value)
                });
                Value::Object(resolved.collect())
            }
            value => value,
        }
    }

    /// Whether something in it refers to what is not there.
    pub(super) fn lacks(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => parse(text).is_some_and(|it| self.values(&it).is_empty()),
            Value::Array(items) => items.iter().any(|it| self.lacks(it)),
            Value::Object(fields) => fields.values().any(|it| self.lacks(it)),
            _ => false,
        }
    }

    fn spliced(&self, item: Value) -> Vec<Value> {
        match item.as_str().and_then(parse) {
            Some(reference) => self.values(&reference),
            None => vec![self.resolve(item)],
        }
    }

    fn values(&self, reference: &Reference<'_>) -> Vec<Value> {
        let Some(result) = self.results.get(reference.result) else { return Vec::new() };
        let found = addresses(result);
        match reference.part {
            Part::All => found.iter().map(|it| plain(it)).collect(),
            Part::One(index) => found.get(index).map(|it| plain(it)).into_iter().collect(),
            Part::Field("block") => {
                let of_result = ["block", "block4", "block6"].iter().find_map(|it| result.get(it));
                let block = self.blocks.get(reference.result).copied().flatten();
                let of_first = || block.map(|it| Value::from(it.to_string()));
                of_result.cloned().or_else(of_first).into_iter().collect()
            }
            Part::Field(field) => result.get(field).cloned().into_iter().collect(),
        }
    }
}

/// A reference that was read.
struct Reference<'a> {
    result: usize,
    part: Part<'a>,
}

enum Part<'a> {
    All,
    One(usize),
    Field(&'a str),
}

fn parse(text: &str) -> Option<Reference<'_>> {
    let rest = text.strip_prefix('$')?;
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at_checked(end)?;
    let result = number.parse().ok()?;
    let part = if rest.is_empty() {
        Part::All
    } else if let Some(index) = rest.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Part::One(index.parse().ok()?)
    } else {
        Part::Field(rest.strip_prefix('.').filter(|it| matches!(*it, "block" | "seq"))?)
    };
    Some(Reference { result, part })
}

/// The addresses of a result, some with the length of their block.
pub(super) fn addresses(result: &Value) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items
                .iter()
                .filter_map(|it| it.as_str().or_else(|| it.get("address")?.as_str()))
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        }
    };
    let mut found: Vec<String> = ["v4", "v6", "ips", "ip", "released"]
        .iter()
        .filter_map(|it| result.get(it))
        .flat_map(texts)
        .collect();
    if let Some(printed) = result.get("stdout") {
        found.extend(printed.get("ips").map(texts).unwrap_or_default());
    }
    for inner in result.get("results").and_then(Value::as_array).into_iter().flatten() {
        found.extend(addresses(inner));
    }
    found
}

fn plain(address: &str) -> Value {
    address.split_once('/').map_or(address, |(it, _)| it).into()
}
