//! An edit for people: first a summary, then each part as a table. Nodes with the same changes
//! share a line.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::Outcome;

use super::edit::{Edit, Layer2Edit, RouteEdit, ServiceEdit};
use super::sessions::{Fate, FieldEdit, SessionEdit};
use super::{listed, routes, section, whole};
use fairway_ground::columns::or_none;

const ARROW: &str = " -> ";

/// All of it.
pub(super) fn text(edit: &Edit<'_>) -> String {
    if edit.is_empty() {
        return "Nothing changes.\n".to_owned();
    }
    let parts = [Some(summary(edit)), services(edit), sessions(edit), routes(edit), layer2(edit)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// A line for each part.
fn summary(edit: &Edit<'_>) -> String {
    let services = |wanted: fn(&ServiceEdit<'_>) -> bool| {
        edit.services.iter().filter(|service| wanted(service)).count()
    };
    let routes = |wanted: fn(&RouteEdit<'_>) -> bool| {
        edit.routes.iter().filter(|route| wanted(route)).count()
    };
    let sessions = |fate| edit.sessions.iter().filter(|session| session.fate == fate).count();
    let is_losing = |it: &&SessionEdit<'_>| it.fate == Fate::Reset && it.loses_routes;
    let losing = edit.sessions.iter().filter(is_losing).count();
    [
        line(
            "Services",
            &[
                (services(is_moved), "moved to other addresses"),
                (services(is_lost), "left without an address"),
                (services(has_fewer), "with one address fewer"),
                (services(has_more), "given an address"),
                (services(|it| it.before.is_none()), "new"),
                (services(|it| it.after.is_none()), "gone"),
            ],
        ),
        line(
            "Sessions",
            &[
                (sessions(Fate::Added), "added"),
                (sessions(Fate::Removed), "removed"),
                (sessions(Fate::Reset), "reset"),
                (losing, "of them with route loss"),
            ],
        ),
        line(
            "Routes",
            &[
                (routes(|it| it.before.is_none()), "announced"),
                (routes(|it| it.after.is_none()), "withdrawn"),
                (routes(|it| it.before.is_some() && it.after.is_some()), "changed"),
            ],
        ),
    ]
    .concat()
}

/// `Routes: 2 announced, 1 withdrawn`: the parts that are not 0.
fn line(what: &str, parts: &[(usize, &str)]) -> String {
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    let said = if parts.is_empty() { "unchanged".to_owned() } else { parts.join(", ") };
    format!("{what}: {said}\n")
}

fn is_moved(edit: &ServiceEdit<'_>) -> bool {
    edit.lost_count() > 0 && edit.got_count() > 0
}

fn has_more(edit: &ServiceEdit<'_>) -> bool {
    edit.lost_count() == 0 && edit.got_count() > 0
}

fn has_fewer(edit: &ServiceEdit<'_>) -> bool {
    edit.lost_count() > 0 && edit.got_count() == 0 && !is_lost(edit)
}

/// Whether it had addresses, still exists, and has none.
fn is_lost(edit: &ServiceEdit<'_>) -> bool {
    edit.before.is_some_and(|it| !it.is_pending()) && edit.after.is_some_and(Outcome::is_pending)
}

/// `before -> after`, or one of them if they are equal.
fn transition(before: String, after: String) -> String {
    if before == after { after } else { format!("{before}{ARROW}{after}") }
}

fn services(edit: &Edit<'_>) -> Option<String> {
    let side = |outcome: Option<&Outcome>, of: fn(&Outcome) -> String| {
        or_none(outcome.map(of).unwrap_or_default())
    };
    let row = |it: &ServiceEdit<'_>| {
        let both = |of: fn(&Outcome) -> String| transition(side(it.before, of), side(it.after, of));
        let reason = match it.after {
            None => "deleted, or no longer a Service of this type and class".to_owned(),
            Some(after) => after.reason.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        let pool = both(|outcome| outcome.pool.clone().unwrap_or_default());
        [it.name.to_string(), both(whole::addresses), pool, reason]
    };
    let rows: Vec<_> = edit.services.iter().map(row).collect();
    let heads = ["SERVICE", "ADDRESSES", "POOL", "REASON"];
    (!rows.is_empty()).then(|| section("Services", heads, rows))
}

/// Puts equal lines of several nodes on one line. `key` is the line without the nodes.
fn by_nodes<'a, T, K: Ord>(
    edits: &'a [T],
    key: impl Fn(&T) -> K,
    node: impl Fn(&'a T) -> &'a str,
) -> BTreeMap<K, BTreeSet<&'a str>> {
    let mut lines: BTreeMap<K, BTreeSet<&str>> = BTreeMap::new();
    for edit in edits {
        lines.entry(key(edit)).or_default().insert(node(edit));
    }
    lines
}

fn sessions(edit: &Edit<'_>) -> Option<String> {
    let key = |it: &SessionEdit<'_>| {
        (it.fate, it.peer.clone(), it.remote.clone(), it.fields.clone(), it.effect)
    };
    let mut rows = Vec::new();
    for ((fate, peer, remote, fields, effect), nodes) in by_nodes(&edit.sessions, key, |it| it.node)
    {
        let change = match fate {
            Fate::Added => "added",
            Fate::Removed => "removed",
            Fate::Reset => "reset",
            Fate::Kept => "kept",
        };
        let field = |it: &FieldEdit| match &it.values {
            Some((before, after)) => format!("{} {before}{ARROW}{after}", it.name),
            None => it.name.clone(),
        };
        let fields: Vec<_> = fields.iter().map(field).collect();
        let (fields, nodes) = (or_none(fields.join(", ")), listed(nodes));
        rows.push([change.to_owned(), peer, remote, fields, nodes, effect.to_owned()]);
    }
    let heads = ["CHANGE", "PEER", "REMOTE", "FIELDS", "NODES", "EFFECT"];
    (!rows.is_empty()).then(|| section("Sessions", heads, rows))
}

fn routes(edit: &Edit<'_>) -> Option<String> {
    let key = |it: &RouteEdit<'_>| {
        let (rank, change, attributes) = match (&it.before, &it.after) {
            (Some(before), Some(after)) => (2, "changed", routes::difference(before, after)),
            (Some(before), None) => (1, "withdrawn", routes::attributes(before)),
            (None, Some(after)) => (0, "announced", routes::attributes(after)),
            (None, None) => (3, "", String::new()),
        };
        (rank, change, it.prefix, it.peer.clone(), attributes, it.services.clone())
    };
    // Routers with the same routes share the line, too.
    let mut lines: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for ((rank, change, prefix, peer, attributes, services), nodes) in
        by_nodes(&edit.routes, key, |it| it.node)
    {
        let line = (rank, change, prefix, attributes, services, nodes);
        lines.entry(line).or_default().insert(peer);
    }
    let rows: Vec<_> = lines
        .into_iter()
        .map(|((_, change, prefix, attributes, services, nodes), peers)| {
            [
                change.to_owned(),
                prefix.to_string(),
                listed(peers.iter().map(String::as_str)),
                listed(nodes),
                attributes,
                or_none(listed(services.iter().map(String::as_str))),
            ]
        })
        .collect();
    let heads = ["CHANGE", "PREFIX", "PEERS", "NODES", "ATTRIBUTES", "SERVICES"];
    (!rows.is_empty()).then(|| section("Routes", heads, rows))
}

fn layer2(edit: &Edit<'_>) -> Option<String> {
    /// Which nodes answer, and on which interfaces.
    type Sides<'a> = (BTreeSet<&'a str>, BTreeSet<&'a str>, BTreeSet<String>, BTreeSet<String>);
    let mut addresses: BTreeMap<IpAddr, (Sides<'_>, BTreeSet<String>)> = BTreeMap::new();
    for Layer2Edit { node, before, after } in &edit.layer2 {
        for (answer, is_before) in [(before, true), (after, false)] {
            let Some(answer) = answer else { continue };
            let ((was, is, on, now_on), services) = addresses.entry(answer.address).or_default();
            let (nodes, interfaces) = if is_before { (was, on) } else { (is, now_on) };
            nodes.insert(*node);
            interfaces.insert(routes::interfaces(answer));
            services.extend(answer.services.iter().map(ToString::to_string));
        }
    }
    let rows: Vec<_> = addresses
        .into_iter()
        .map(|(address, ((was, is, on, now_on), services))| {
            let interfaces =
                |names: BTreeSet<String>| or_none(listed(names.iter().map(String::as_str)));
            [
                address.to_string(),
                transition(or_none(listed(was)), or_none(listed(is))),
                transition(interfaces(on), interfaces(now_on)),
                listed(services.iter().map(String::as_str)),
            ]
        })
        .collect();
    let heads = ["ADDRESS", "ANSWERED BY", "INTERFACES", "SERVICES"];
    (!rows.is_empty()).then(|| section("Layer 2", heads, rows))
}
