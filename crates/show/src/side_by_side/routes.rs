//! One row for each route that some nodes have: its source, and those nodes.

use fairway_ground::Prefix;
use fairway_ground::columns::aligned;
use ipnet::IpNet;
use serde_json::Value;

use super::group::Groups;
use super::{NodeAnswers, list_at, text_at};

const FAMILIES: [&str; 2] = ["ipv4Unicast", "ipv6Unicast"];
/// What FRR says of a route that the node originates.
const UNSPECIFIED: &str = "(unspec)";

/// By prefix, then by where it is from.
type Row = (Option<Prefix>, String, String, String);

pub(super) fn text(answers: &NodeAnswers, is_wide: bool) -> String {
    let rows = answers.answers().flat_map(|(node, answer)| {
        routes_of(answer).flat_map(move |(network, paths)| {
            let paths = paths.as_array().map_or(&[][..], Vec::as_slice);
            paths.iter().map(move |path| (node, row(network, path)))
        })
    });
    let groups = Groups::of(rows);
    let heading = ["NETWORK", "FROM", "AS PATH", "NODES"];
    let mut table = vec![heading.map(str::to_owned)];
    table.extend(groups.rows().map(|((_, network, from, as_path), nodes)| {
        [network.clone(), from.clone(), as_path.clone(), nodes.cell(is_wide)]
    }));
    aligned(&table)
}

/// The paths of each network: of both families, or of the one network that was asked for.
fn routes_of(answer: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let tables = FAMILIES.into_iter().filter_map(|family| answer.get(family)?.get("routes"));
    let routes = tables.filter_map(Value::as_object).flatten();
    let of_one = answer.get("prefix").and_then(Value::as_str).zip(answer.get("paths"));
    routes.map(|(network, paths)| (network.as_str(), paths)).chain(of_one)
}

fn row(network: &str, path: &Value) -> Row {
    let net: Option<IpNet> = network.parse().ok();
    let prefix = net.and_then(|net| Prefix::new(net.addr(), net.prefix_len()).ok());
    // The path of one network has more about the peer, and the AS path in an object.
    let peer = path.get("peer").unwrap_or(path);
    let is_own =
        path.get("sourced").is_some() || [UNSPECIFIED, ""].contains(&text_at(peer, "peerId"));
    let from = match is_own {
        true => "itself".to_owned(),
        false => {
            let next_hop = list_at(path, "nexthops").first();
            let name = next_hop.map(|it| text_at(it, "ip")).unwrap_or_default();
            if name.is_empty() { text_at(peer, "peerId").to_owned() } else { name.to_owned() }
        }
    };
    let as_path = match path.get("aspath") {
        Some(_) if is_own => "",
        Some(as_path) => text_at(as_path, "string"),
        None => text_at(path, "path"),
    };
    (prefix, network.to_owned(), from, as_path.to_owned())
}
