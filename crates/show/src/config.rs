//! `show config`: the sources, the objects in force, and the findings.

use std::collections::{BTreeMap, BTreeSet};

use fairway_model::{Kind, ObjectKey};
use fairway_resources::StaleObject;
use serde_json::Value;

use super::Snapshot;
use super::columns::aligned;
use super::drain::DrainView;
use super::object::Object;

/// `lines` below a title, or the title and `none`.
fn section(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return format!("{title}: none\n");
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{title}:\n{lines}")
}

fn stale_line(stale: &StaleObject) -> String {
    let place = match stale.file.as_str() {
        "" => String::new(),
        file => format!("{file}:{}: ", stale.line),
    };
    format!("{place}{}: an earlier version is in force", stale.key)
}

/// Sources, counts, and what needs attention.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let stale: BTreeSet<&ObjectKey> = snapshot.stale.iter().map(|it| &it.key).collect();
    let mut counts: BTreeMap<Kind, (usize, usize)> = BTreeMap::new();
    for key in snapshot.index.keys() {
        let (active, outdated) = counts.entry(key.kind).or_default();
        let counter = if stale.contains(&key) { outdated } else { active };
        *counter = counter.saturating_add(1);
    }
    let mut rows = vec![["KIND", "ACTIVE", "STALE"].map(str::to_owned)];
    rows.extend(counts.into_iter().map(|(kind, (active, outdated))| {
        [kind.to_string(), active.to_string(), outdated.to_string()]
    }));
    let findings: Vec<_> = snapshot.findings.iter().map(ToString::to_string).collect();
    let stale: Vec<_> = snapshot.stale.iter().map(stale_line).collect();
    let left_out: Vec<_> = snapshot.plan.faults.iter().map(ToString::to_string).collect();
    let left_alone = match snapshot.bgp.left_alone.as_slice() {
        [] => String::new(),
        some => section("Left alone, of somebody else", some),
    };
    [
        section("Sources", snapshot.sources),
        format!("\n{}\n", aligned(&rows)),
        section("Findings", &findings),
        section("Stale", &stale),
        section("Left out on this node", &left_out),
        section("Not in force", &snapshot.bgp.faults),
        left_alone,
        DrainView::of(snapshot).line(),
    ]
    .concat()
}

/// The objects in force, with `file` and `line` of what makes an object stale; beside them the sources, the
/// findings, what this node left out, what the backend could not apply, and the drain state.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let stale: BTreeMap<&ObjectKey, &StaleObject> =
        snapshot.stale.iter().map(|it| (&it.key, it)).collect();
    let item = |key: &ObjectKey| {
        let stale = stale.get(key);
        let place = stale.filter(|it| !it.file.is_empty());
        Object::new()
            .field("kind", key.kind.to_string())
            .field("namespace", key.name.namespace.as_str())
            .field("name", key.name.name.as_str())
            .field("state", if stale.is_some() { "stale" } else { "active" })
            .optional("file", place.map(|it| it.file.as_str()))
            .optional("line", place.map(|it| it.line))
            .into()
    };
    let items: Vec<Value> = snapshot.index.keys().map(|key| item(&key)).collect();
    let findings: Vec<Value> =
        snapshot.findings.iter().filter_map(|it| serde_json::to_value(it).ok()).collect();
    let left_out: Vec<_> = snapshot.plan.faults.iter().map(ToString::to_string).collect();
    Object::new()
        .field("items", items)
        .field("sources", snapshot.sources.to_vec())
        .field("findings", findings)
        .field("leftOut", left_out)
        .field("notInForce", snapshot.bgp.faults.clone())
        .optional("leftAlone", Some(&snapshot.bgp.left_alone).filter(|it| !it.is_empty()).cloned())
        .optional("drain", DrainView::of(snapshot).json())
}
