//! One row for each pool. All nodes have the same, unless one of them is behind.

use fairway_ground::columns::aligned;
use serde_json::Value;

use super::group::{Groups, Nodes};
use super::{NodeAnswers, joined, list_at, number_at, text_at};

pub(super) fn text(answers: &NodeAnswers) -> String {
    let rows = answers.answers().flat_map(|(node, answer)| {
        list_at(answer, "items").iter().map(move |it| (node, cells(it)))
    });
    let groups = Groups::of(rows);
    let answering = answers.answers().count();
    let nodes = |nodes: &Nodes<'_>| match nodes.count() == answering {
        true => "all".to_owned(),
        false => nodes.cell(false),
    };
    let heading =
        ["NAME", "ADDRESSES", "IPV4 USED/TOTAL", "IPV6 USED/TOTAL", "AUTO ASSIGN", "NODES"];
    let mut table = vec![heading.map(str::to_owned)];
    table.extend(groups.rows().map(|([name, addresses, ipv4, ipv6, auto], of)| {
        let [name, addresses, ipv4, ipv6, auto] = [name, addresses, ipv4, ipv6, auto];
        [name.clone(), addresses.clone(), ipv4.clone(), ipv6.clone(), auto.clone(), nodes(of)]
    }));
    aligned(&table)
}

fn cells(pool: &Value) -> [String; 5] {
    let used = |family: &str| {
        let used = number_at(pool, &format!("assigned{family}"));
        let left = number_at(pool, &format!("available{family}"));
        format!("{used}/{}", used.saturating_add(left))
    };
    let is_automatic = pool.get("autoAssign").and_then(Value::as_bool).unwrap_or_default();
    [
        text_at(pool, "name").to_owned(),
        joined(list_at(pool, "addresses")),
        used("IPv4"),
        used("IPv6"),
        is_automatic.to_string(),
    ]
}
