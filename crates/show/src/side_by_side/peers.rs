//! One row for each neighbor of each node.

use std::collections::BTreeMap;

use fairway_ground::columns::{aligned, or_none};
use serde_json::Value;

use super::{NodeAnswers, NodeOutcome, number_at, text_at};

const FAMILIES: [&str; 2] = ["ipv4Unicast", "ipv6Unicast"];

/// A neighbor, from the tables of both families.
#[derive(Default)]
struct Row<'a> {
    facts: Option<&'a Value>,
    /// Received and sent, of each family.
    prefixes: [(u64, u64); 2],
}

pub(super) fn text(answers: &NodeAnswers, is_wide: bool) -> String {
    let heading = [
        "NODE", "PEER", "ADDRESS", "AS", "STATE", "SINCE", "RECEIVED", "SENT", "IPV4", "IPV6",
        "FLAPS",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    for (node, outcome) in &answers.0 {
        match outcome {
            NodeOutcome::Answer(answer) => {
                let found = neighbors(answer);
                rows.extend(found.iter().map(|(address, row)| row.cells(node, address)));
                if found.is_empty() {
                    rows.push(row_of(node, "has no peers"));
                }
            }
            NodeOutcome::Refused(_) | NodeOutcome::Unanswered(_) => {
                rows.push(row_of(node, "no answer"));
            }
        }
    }
    if is_wide {
        return aligned(&rows);
    }
    let narrow = |row: [String; 11]| {
        let [node, peer, address, asn, state, since, received, sent, ..] = row;
        [node, peer, address, asn, state, since, received, sent]
    };
    aligned(&rows.into_iter().map(narrow).collect::<Vec<_>>())
}

fn neighbors(answer: &Value) -> BTreeMap<&str, Row<'_>> {
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for (place, family) in FAMILIES.iter().enumerate() {
        let peers = answer.get(family).and_then(|it| it.get("peers")).and_then(Value::as_object);
        for (address, facts) in peers.into_iter().flatten() {
            let row = rows.entry(address).or_default();
            row.facts = Some(facts);
            if let Some(prefixes) = row.prefixes.get_mut(place) {
                *prefixes = (number_at(facts, "pfxRcd"), number_at(facts, "pfxSnt"));
            }
        }
    }
    rows
}

/// A row that says of a node what it has in place of neighbors.
fn row_of(node: &str, what: &str) -> [String; 11] {
    let mut row: [String; 11] = Default::default();
    let [first, peer, ..] = &mut row;
    (*first, *peer) = (node.to_owned(), format!("<{what}>"));
    row
}

impl Row<'_> {
    fn cells(&self, node: &str, address: &str) -> [String; 11] {
        let null = Value::Null;
        let facts = self.facts.unwrap_or(&null);
        let [ipv4, ipv6] = self.prefixes;
        let both = |(received, sent): (u64, u64)| format!("{received}/{sent}");
        [
            node.to_owned(),
            or_none(text_at(facts, "desc").to_owned()),
            address.to_owned(),
            number_at(facts, "remoteAs").to_string(),
            text_at(facts, "state").to_owned(),
            text_at(facts, "peerUptime").to_owned(),
            ipv4.0.saturating_add(ipv6.0).to_string(),
            ipv4.1.saturating_add(ipv6.1).to_string(),
            both(ipv4),
            both(ipv6),
            number_at(facts, "connectionsDropped").to_string(),
        ]
    }
}
