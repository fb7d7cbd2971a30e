//! One row for each Service: its addresses, the nodes that announce it, and why others do not.

use std::collections::BTreeMap;

use fairway_ground::columns::{aligned, or_none};
use serde_json::Value;

use super::group::{Groups, Nodes};
use super::{NodeAnswers, joined, list_at, text_at};

/// The word of the reason, as in ConfigurationState.
const NO_LOCAL_ENDPOINTS: &str = "noLocalEndpoints:";

/// A Service, from the answers of all nodes.
#[derive(Default)]
struct Row<'a> {
    addresses: String,
    pool: &'a str,
    /// The nodes that announce it, by the neighbors that have it.
    told: Vec<(&'a str, String)>,
    /// Why a node does not, or not to all.
    reasons: Vec<(&'a str, &'a str)>,
}

pub(super) fn text(answers: &NodeAnswers, is_wide: bool) -> String {
    let mut services: BTreeMap<(&str, &str), Row<'_>> = BTreeMap::new();
    for (node, answer) in answers.answers() {
        for item in list_at(answer, "items") {
            let key = (text_at(item, "namespace"), text_at(item, "name"));
            services.entry(key).or_default().add(node, item);
        }
    }
    let heading = ["NAMESPACE", "NAME", "ADDRESSES", "POOL", "ANNOUNCED BY", "REASON"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(services.iter().map(|((namespace, name), row)| {
        [
            (*namespace).to_owned(),
            (*name).to_owned(),
            or_none(row.addresses.clone()),
            or_none(row.pool.to_owned()),
            or_none(row.announced_by(is_wide)),
            row.reason(is_wide),
        ]
    }));
    aligned(&rows)
}

impl<'a> Row<'a> {
    fn add(&mut self, node: &'a str, item: &'a Value) {
        self.addresses = joined(list_at(item, "addresses"));
        self.pool = text_at(item, "pool");
        let lines = list_at(item, "announced").iter();
        let peers = lines.flat_map(|line| list_at(line, "peers")).filter_map(Value::as_str);
        let mut peers: Vec<&str> = peers.collect();
        peers.sort_unstable();
        peers.dedup();
        if !peers.is_empty() {
            self.told.push((node, peers.join(",")));
        }
        let reason = text_at(item, "reason");
        if !reason.is_empty() {
            self.reasons.push((node, reason));
        }
    }

    /// The nodes; if it is to be wide, with the neighbors that have it from them.
    fn announced_by(&self, is_wide: bool) -> String {
        if !is_wide {
            let mut nodes = Nodes::default();
            self.told.iter().for_each(|(node, _)| nodes.add(node));
            return nodes.cell(false);
        }
        let told: Vec<_> = self.told.iter().map(|(node, to)| format!("{node} to {to}")).collect();
        told.join("; ")
    }

    /// The reason that most nodes have, or all with their nodes. That a node without an endpoint leaves the Service to others
    /// is as its policy wants it.
    fn reason(&self, is_wide: bool) -> String {
        let is_wanted =
            |reason: &str| reason.starts_with(NO_LOCAL_ENDPOINTS) && !self.told.is_empty();
        let reasons = self.reasons.iter().copied();
        let groups = Groups::of(reasons.filter(|(_, reason)| is_wide || !is_wanted(reason)));
        let mut groups: Vec<(&&str, &Nodes<'_>)> = groups.rows().collect();
        groups.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.count()));
        let named =
            |(reason, nodes): &(&&str, &Nodes<'_>)| format!("{}: {reason}", nodes.cell(is_wide));
        let shown = if is_wide { groups.len() } else { 1 };
        let texts: Vec<String> = groups.iter().take(shown).map(named).collect();
        let more = groups.len().saturating_sub(shown);
        let more = if more == 0 { String::new() } else { format!("; {more} more with -o wide") };
        texts.join("; ") + &more
    }
}
