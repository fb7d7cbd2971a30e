//! What does a JSON answer look like, whatever the values? Its paths, each with the kinds of value
//! seen there, and whether it was there each time.
//!
//! Keys that are data get a general name: an address `ADDRESS`, or with the state of a session
//! `PEER(up)` and `PEER(down)`; a prefix `PREFIX`, a family `FAMILY`. Items of a list are `[]`, and
//! paths of routes `[own]` or `[heard]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

/// What was seen at one path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// `o` object, `a` list, `s` text, `n` number, `b` flag, `0` null.
    pub(crate) kinds: BTreeSet<char>,
    /// It was missing in some object of the same place.
    pub(crate) is_optional: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: String = self.kinds.iter().collect();
        write!(f, "{kinds}{}", if self.is_optional { "?" } else { "" })
    }
}

/// All answers to one command, laid over each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    seen: BTreeMap<String, Seen>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    kinds: BTreeSet<char>,
    /// In how many objects it was, and how many objects were at this path.
    times: usize,
    objects: usize,
    is_data: bool,
}

impl Shape {
    /// Lays one more answer over the others.
    pub(crate) fn add(&mut self, answer: &Value) {
        self.visit("", answer);
    }

    /// The paths; the answer itself is `.`.
    pub(crate) fn places(&self) -> BTreeMap<String, Place> {
        let place = |(path, seen): (&String, &Seen)| {
            let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
            let objects = self.seen.get(parent).map_or(0, |parent| parent.objects);
            let is_optional = !path.is_empty() && !seen.is_data && seen.times < objects;
            let name = if path.is_empty() { "." } else { path.trim_start_matches('.') };
            (name.to_owned(), Place { kinds: seen.kinds.clone(), is_optional })
        };
        self.seen.iter().map(place).collect()
    }

    fn visit(&mut self, path: &str, value: &Value) {
        let here = self.seen.entry(path.to_owned()).or_default();
        here.kinds.insert(kind_of(value));
        here.objects += usize::from(value.is_object());
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let general = general_name(key, value);
                    let name = general.unwrap_or(key);
                    let path = format!("{path}.{name}");
                    let child = self.seen.entry(path.clone()).or_default();
                    child.times += 1;
                    child.is_data |= general.is_some();
                    self.visit(&path, value);
                }
            }
            Value::Array(items) => {
                for item in items {
                    let path = format!("{path}{}", item_name(item));
                    let child = self.seen.entry(path.clone()).or_default();
                    child.is_data = true;
                    self.visit(&path, item);
                }
            }
            _ => {}
        }
    }
}

fn kind_of(value: &Value) -> char {
    match value {
        Value::Object(_) => 'o',
        Value::Array(_) => 'a',
        Value::String(_) => 's',
        Value::Number(_) => 'n',
        Value::Bool(_) => 'b',
        Value::Null => '0',
    }
}

fn general_name(key: &str, value: &Value) -> Option<&'static str> {
    if ["ipv4Unicast", "ipv6Unicast"].contains(&key) {
        return Some("FAMILY");
    }
    if key.parse::<IpAddr>().is_ok() {
        let state = value.get("state").or_else(|| value.get("bgpState")).and_then(Value::as_str);
        return Some(match state {
            Some("Established") => "PEER(up)",
            Some(_) => "PEER(down)",
            None => "ADDRESS",
        });
    }
    key.parse::<IpNet>().is_ok().then_some("PREFIX")
}

fn item_name(item: &Value) -> &'static str {
    let is_unspecified = item.get("peerId").and_then(Value::as_str) == Some("(unspec)");
    if is_unspecified || item.get("sourced").is_some() {
        "[own]"
    } else if item.get("peerId").is_some() || item.get("aspath").is_some() {
        "[heard]"
    } else {
        "[]"
    }
}
