//! One row for each route that some nodes have: its source, and those nodes.

use std::net::IpAddr;

use fairway_ground::Prefix;
use fairway_plan::columns::aligned;
use ipnet::IpNet;
use serde_json::Value;

use super::group::Groups;
use super::{NodeAnswers, NodeOutcome, list_at, text_at};

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

/// The paths of each network, of both families.
fn routes_of(answer: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let tables = FAMILIES.into_iter().filter_map(|family| answer.get(family)?.get("routes"));
    tables.filter_map(Value::as_object).flatten()
}

fn row(network: &str, path: &Value) -> Row {
    let net: Option<IpNet> = network.parse().ok();
    let prefix = net.and_then(|net| Prefix::new(net.addr(), net.prefix_len()).ok());
    let from = match text_at(path, "peerId") {
        UNSPECIFIED | "" => "itself".to_owned(),
        _ => {
            let next_hop = list_at(path, "nexthops").first();
            let name = next_hop.map(|it| text_at(it, "ip")).unwrap_or_default();
            if name.is_empty() { text_at(path, "peerId").to_owned() } else { name.to_owned() }
        }
    };
    (prefix, network.to_owned(), from, text_at(path, "path").to_owned())
}

impl NodeAnswers {
    /// Of answers to [`super::Subject::Routes`], the routes to `wanted`; of an address, those to the longest prefix around it
    /// that any node has. `None` if it is neither.
    pub fn only_prefix(self, wanted: &str) -> Option<Self> {
        let prefix = match wanted.parse::<IpNet>() {
            Ok(net) => Prefix::new(net.addr(), net.prefix_len()).ok()?,
            Err(_) => self.longest_around(wanted.parse().ok()?),
        };
        let is_wanted = |network: &str| {
            let net: Option<IpNet> = network.parse().ok();
            net.and_then(|net| Prefix::new(net.addr(), net.prefix_len()).ok()) == Some(prefix)
        };
        let Self(mut nodes) = self;
        for outcome in nodes.values_mut() {
            let NodeOutcome::Answer(answer) = outcome else { continue };
            for family in FAMILIES {
                let routes = answer.get_mut(family).and_then(|it| it.get_mut("routes"));
                if let Some(routes) = routes.and_then(Value::as_object_mut) {
                    routes.retain(|network, _| is_wanted(network));
                }
            }
        }
        Some(Self(nodes))
    }

    fn longest_around(&self, address: IpAddr) -> Prefix {
        let networks = self.answers().flat_map(|(_, answer)| routes_of(answer));
        let prefixes = networks.filter_map(|(network, _)| {
            let net: IpNet = network.parse().ok()?;
            Prefix::new(net.addr(), net.prefix_len()).ok()
        });
        let around = prefixes.filter(|prefix| prefix.contains(address));
        around.max_by_key(|prefix| prefix.length()).unwrap_or_else(|| Prefix::host(address))
    }
}
