//! `kubectl fairway`: what several nodes answered, side by side.
//!
//! Pure: the JSON of the nodes in, a table out. The answers come from other machines, perhaps of another version: what is
//! missing in one is left empty. What the nodes say alike is one row, which names them.

mod faults;
mod group;
mod peers;
mod pools;
mod routes;
mod services;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::columns::aligned;
use serde_json::{Map, Value, json};

use group::{Groups, Nodes};

/// What the nodes were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// `show bgp summary`.
    Peers,
    /// `show bgp ipv4|ipv6 unicast`, of both families.
    Routes,
    /// `show services`.
    Services,
    /// `show pools`.
    Pools,
    /// `show config`.
    Faults,
    /// `explain`.
    Verdicts,
}

/// What a node answered.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeOutcome {
    /// This, in JSON.
    Answer(Value),
    /// That it cannot, and why.
    Refused(String),
    /// Nothing, and why.
    Unanswered(String),
}

/// The answers of all nodes, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeAnswers(BTreeMap<String, NodeOutcome>);

impl NodeAnswers {
    /// Those of an AnswerList of the node API; `None` if it is none.
    pub fn of(list: &Value) -> Option<Self> {
        let items = list.get("items")?.as_array()?;
        let item = |item: &Value| {
            let node = item.pointer("/metadata/name")?.as_str()?.to_owned();
            let text = |key| Some(item.get(key)?.as_str()?.to_owned());
            let outcome = match (item.get("answer"), text("error"), text("unanswered")) {
                (Some(answer), ..) => NodeOutcome::Answer(answer.clone()),
                (_, Some(why), _) => NodeOutcome::Refused(why),
                (_, _, Some(why)) => NodeOutcome::Unanswered(why),
                _ => return None,
            };
            Some((node, outcome))
        };
        items.iter().map(item).collect::<Option<_>>().map(Self)
    }

    /// Those of two questions about two families, as one answer of each node: `show bgp` is of one family at a time.
    pub fn of_families(ipv4: Self, ipv6: Self) -> Self {
        let (Self(mut ipv4), Self(mut ipv6)) = (ipv4, ipv6);
        let names: BTreeSet<String> = ipv4.keys().chain(ipv6.keys()).cloned().collect();
        let both = names.into_iter().map(|node| {
            // A speaker that came or went between the two has not answered.
            let silent = || NodeOutcome::Unanswered("it answered for one family only".to_owned());
            let of = |family: &mut BTreeMap<_, _>| family.remove(&node).unwrap_or_else(silent);
            let both = match (of(&mut ipv4), of(&mut ipv6)) {
                (NodeOutcome::Answer(ipv4), NodeOutcome::Answer(ipv6)) => {
                    NodeOutcome::Answer(json!({ "ipv4Unicast": ipv4, "ipv6Unicast": ipv6 }))
                }
                (NodeOutcome::Answer(_), other) | (other, _) => other,
            };
            (node, both)
        });
        Self(both.collect())
    }

    /// What each node answered, in JSON.
    fn answers(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().filter_map(|(node, outcome)| match outcome {
            NodeOutcome::Answer(answer) => Some((node.as_str(), answer)),
            _ => None,
        })
    }

    /// Whether each node answered. To `explain` it is an answer that a node does not know the object.
    pub fn are_whole(&self, subject: Subject) -> bool {
        let lacks = |it: &NodeOutcome| match it {
            NodeOutcome::Answer(_) => false,
            NodeOutcome::Refused(_) => subject != Subject::Verdicts,
            NodeOutcome::Unanswered(_) => true,
        };
        !self.0.values().any(lacks)
    }

    /// What all nodes said that they cannot; the reason of the first.
    pub fn refusal(&self) -> Option<&str> {
        let mut reasons = self.0.values().map(|it| match it {
            NodeOutcome::Refused(why) => Some(why.as_str()),
            _ => None,
        });
        let first = reasons.next()??;
        reasons.all(|it| it.is_some()).then_some(first)
    }

    /// The list again, in the order of the nodes.
    pub fn json(&self) -> Value {
        let item = |(node, outcome): (&String, &NodeOutcome)| {
            let (key, value) = match outcome {
                NodeOutcome::Answer(answer) => ("answer", answer.clone()),
                NodeOutcome::Refused(why) => ("error", why.as_str().into()),
                NodeOutcome::Unanswered(why) => ("unanswered", why.as_str().into()),
            };
            let mut item = Map::new();
            item.insert("metadata".to_owned(), json!({ "name": node }));
            item.insert(key.to_owned(), value);
            Value::Object(item)
        };
        json!({ "items": self.0.iter().map(item).collect::<Vec<_>>() })
    }

    /// The table, and below it the nodes without an answer.
    pub fn text(&self, subject: Subject, is_wide: bool) -> String {
        let table = match subject {
            Subject::Peers => peers::text(self, is_wide),
            Subject::Routes => routes::text(self, is_wide),
            Subject::Services => services::text(self, is_wide),
            Subject::Pools => pools::text(self),
            Subject::Faults => faults::text(self),
            Subject::Verdicts => verdicts::text(self),
        };
        table + &self.silent()
    }

    /// The texts of the nodes, each once, below the names of the nodes; for answers that are text.
    pub fn texts(&self) -> String {
        let mut texts: Vec<(&str, Nodes<'_>)> = Vec::new();
        for (node, answer) in self.answers() {
            let text = answer.as_str().unwrap_or_default();
            match texts.iter_mut().find(|(it, _)| *it == text) {
                Some((_, nodes)) => nodes.add(node),
                None => texts.push((text, Nodes::of(node))),
            }
        }
        let is_one = texts.len() == 1 && self.0.len() == 1;
        let paragraph = |(text, nodes): &(&str, Nodes<'_>)| match is_one {
            true => (*text).to_owned(),
            false => format!("{}:\n{text}\n", nodes.all()),
        };
        let texts: String = texts.iter().map(paragraph).collect();
        texts + &self.silent()
    }

    /// A row for each node without an answer, and one for those that say alike that they cannot.
    fn silent(&self) -> String {
        let mut rows = vec![["NODE".to_owned(), "NO ANSWER".to_owned()]];
        let reason = |(node, outcome): (&'_ String, &'_ NodeOutcome)| match outcome {
            NodeOutcome::Unanswered(why) => Some([node.clone(), why.clone()]),
            _ => None,
        };
        rows.extend(self.0.iter().filter_map(reason));
        let refused = self.0.iter().filter_map(|(node, outcome)| match outcome {
            NodeOutcome::Refused(why) => Some((node.as_str(), why.trim_start_matches("% "))),
            _ => None,
        });
        let refused = Groups::of(refused);
        rows.extend(refused.rows().map(|(why, nodes)| [nodes.cell(false), (*why).to_owned()]));
        if rows.len() == 1 { String::new() } else { format!("\n{}", aligned(&rows)) }
    }
}

/// The text at a key; empty without one.
fn text_at<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a key; 0 without one.
fn number_at(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// The list at a key; empty without one.
fn list_at<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a list, with commas.
fn joined(list: &[Value]) -> String {
    let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests;
