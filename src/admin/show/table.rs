//! `show bgp ipv4|ipv6 unicast`: what this node originates.
//!
//! `version` of a path is that of the table: when an entry changed last is not kept.

use fairway_sessions::backend::DesiredRoute;
use fairway_sessions::types::AddressFamily;
use serde_json::Value;

use super::Snapshot;
use super::instance::Instance;
use super::neighbor::family_word;
use super::object::Object;
use super::route::{Entry, Row, SELECTION_REASON, WEIGHT, entries, unspecified};

/// The table in FRR's columns.
pub(super) fn text(snapshot: &Snapshot<'_>, family: AddressFamily) -> String {
    let entries = entries(snapshot, family);
    if entries.is_empty() {
        return "No BGP prefixes displayed, 0 exist\n".to_owned();
    }
    let mut text = Instance::of(snapshot, Some(family)).table_head();
    let mut paths_total = 0_usize;
    for entry in &entries {
        for (position, path) in entry.paths.iter().enumerate() {
            let first = position == 0;
            let row = Row {
                status: if first { "*>" } else { "*=" },
                network: if first { entry.prefix.to_string() } else { String::new() },
                next_hop: unspecified(family),
                metric: Some(0),
                local_pref: path.attributes.local_pref,
                path: String::new(),
                origin_code: 'i',
            };
            text.push_str(&row.line());
            paths_total = paths_total.saturating_add(1);
        }
    }
    // Two blanks, as in FRR 8.4.
    text + &format!("\nDisplayed  {} routes and {paths_total} total paths\n", entries.len())
}

/// The head, and the paths by prefix.
pub(super) fn json(snapshot: &Snapshot<'_>, family: AddressFamily) -> Object {
    let instance = Instance::of(snapshot, Some(family));
    let entries = entries(snapshot, family);
    let routes: Object = entries
        .iter()
        .map(|entry| (entry.prefix.to_string(), paths(snapshot, &instance, entry).into()))
        .collect();
    instance.table_fields().field("routes", routes)
}

fn paths(snapshot: &Snapshot<'_>, instance: &Instance, entry: &Entry<'_>) -> Vec<Value> {
    let family = entry.prefix.family();
    let is_ipv6 = family == AddressFamily::Ipv6Unicast;
    let next_hop = Object::new()
        .field("ip", unspecified(family).to_string())
        .field("hostname", snapshot.node.name.as_str())
        .field("afi", family_word(family))
        .optional("scope", is_ipv6.then_some("global"))
        .field("used", true);
    let one = |(position, path): (usize, &&DesiredRoute)| {
        let is_best = position == 0;
        Object::new()
            .field("valid", true)
            .flag("multipath", !is_best)
            .flag("bestpath", is_best)
            .optional("selectionReason", is_best.then_some(SELECTION_REASON))
            .field("pathFrom", "external")
            .field("prefix", entry.prefix.address().to_string())
            .field("prefixLen", entry.prefix.length())
            .field("network", entry.prefix.to_string())
            .field("version", instance.table_version)
            .field("metric", 0)
            .optional("locPrf", path.attributes.local_pref)
            .field("weight", WEIGHT)
            .field("peerId", "(unspec)")
            .field("path", "")
            .field("origin", "IGP")
            .field("nexthops", vec![Value::from(next_hop.clone())])
            .into()
    };
    entry.paths.iter().enumerate().map(one).collect()
}
