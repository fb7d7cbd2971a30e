//! `show bgp ipv4|ipv6 unicast`: what this node originates, and what it accepted.
//!
//! `version` of a path is that of the table: when an entry changed last is not kept.

use fairway_sessions::types::AddressFamily;
use serde_json::Value;

use super::Snapshot;
use super::instance::Instance;
use super::neighbor::family_word;
use super::object::Object;
use super::route::{Entry, EntryPath, Row, entries};

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
                status: status(*path, position),
                network: if first { entry.prefix.to_string() } else { String::new() },
                next_hop: path.next_hop(),
                metric: path.metric(),
                local_pref: path.local_pref(),
                weight: path.weight(),
                path: path.as_path(),
                origin_code: path.origin().code(),
            };
            text.push_str(&row.line());
            paths_total = paths_total.saturating_add(1);
        }
    }
    // Two blanks, as in FRR 8.4.
    text + &format!("\nDisplayed  {} routes and {paths_total} total paths\n", entries.len())
}

/// The first characters of a row.
fn status(path: EntryPath<'_>, position: usize) -> &'static str {
    match (position, path.is_multipath(position), path.is_internal()) {
        (0, _, false) => "*>",
        (0, _, true) => "*>i",
        (_, true, _) => "*=",
        (_, false, false) => "*",
        (_, false, true) => "* i",
    }
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
    let reason = entry.selection_reason();
    let one = |(position, path): (usize, &EntryPath<'_>)| {
        let is_best = position == 0;
        let (peer, host) = match path {
            EntryPath::Originated(_) => ("(unspec)".to_owned(), Some(snapshot.node.name.as_str())),
            EntryPath::Learned(learned) => (learned.path.source.key.to_string(), None),
        };
        let next_hop = Object::new()
            .field("ip", path.next_hop().to_string())
            .optional("hostname", host)
            .field("afi", family_word(AddressFamily::of(path.next_hop())))
            .optional("scope", is_ipv6.then_some("global"))
            .field("used", true);
        Object::new()
            .field("valid", true)
            .flag("multipath", path.is_multipath(position))
            .flag("bestpath", is_best)
            .optional("selectionReason", is_best.then_some(reason.as_str()))
            .field("pathFrom", if path.is_internal() { "internal" } else { "external" })
            .field("prefix", entry.prefix.address().to_string())
            .field("prefixLen", entry.prefix.length())
            .field("network", entry.prefix.to_string())
            .field("version", instance.table_version)
            .optional("metric", path.metric())
            .optional("locPrf", path.local_pref())
            .field("weight", path.weight())
            .field("peerId", peer)
            .field("path", path.as_path())
            .field("origin", path.origin().name())
            .field("nexthops", vec![Value::from(next_hop)])
            .into()
    };
    entry.paths.iter().enumerate().map(one).collect()
}
