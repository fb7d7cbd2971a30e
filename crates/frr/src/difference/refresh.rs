//! Which of the existing routes does a changed filter concern?
//!
//! FRR re-evaluates them only seconds later, or on command. Entries for tags that come or go with their
//! routes concern no existing route.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Batch, Sides, Step, vrf, words};
use crate::configuration::Statement;

/// The tag of learned routes.
const LEARNED_TAG: &str = "18007";

/// The commands that make FRR re-evaluate its routes.
pub(super) fn after(sides: &Sides<'_>, batch: &Batch) -> Vec<String> {
    let steps = || batch.additions.iter().chain(&batch.removals);
    let lists: BTreeSet<&str> =
        steps().filter(|it| it.context.is_empty()).filter_map(|it| list(&it.line)).collect();
    let steady = steady_tags(sides);
    let running = || sides.running.statements.iter();
    let in_maps = || running().chain(sides.wanted.iter().copied());
    // A map that was not in use before concerns no existing route.
    let uses_list = |it: &&Statement| {
        let is_about_routes = it.line.starts_with("match ") || it.line.starts_with("set ");
        is_about_routes && words(&it.line).iter().any(|name| lists.contains(name))
    };
    let mut maps: BTreeSet<&str> =
        in_maps().filter(uses_list).filter_map(|it| map(it.context.first()?, sides.mark)).collect();
    let tags = tags_of_entries(sides);
    // An entry that matches no tag is for all routes.
    let concerns_routes =
        |entry: &&str| tags.get(entry).is_none_or(|tags| !tags.is_disjoint(&steady));
    maps.extend(steps().map(entry).filter(concerns_routes).filter_map(|it| map(it, sides.mark)));
    let wanted: BTreeSet<(&[Arc<str>], &str)> =
        sides.wanted.iter().map(|it| (&*it.context, &*it.line)).collect();
    let users = running().filter(|it| wanted.contains(&(&*it.context, &*it.line)));
    users.filter_map(|it| command(it, &maps, sides.mark)).collect()
}

/// The name of a map of ours.
fn map<'a>(opener: &'a str, mark: &str) -> Option<&'a str> {
    opener.strip_prefix("route-map ")?.split(' ').next().filter(|it| it.starts_with(mark))
}

/// The name of the list that a line is of.
fn list(line: &str) -> Option<&str> {
    match words(line.strip_prefix("no ").unwrap_or(line)).as_slice() {
        ["ip" | "ipv6", "prefix-list", name, ..] => Some(name),
        ["bgp", "as-path", "access-list", name, ..] => Some(name),
        [
            "bgp",
            "community-list" | "large-community-list" | "extcommunity-list",
            "standard",
            name,
            ..,
        ] => Some(name),
        _ => None,
    }
}

/// Tags that routes have before and after the change.
fn steady_tags<'a>(sides: &Sides<'a>) -> BTreeSet<&'a str> {
    let set = format!("route-map {}set-", sides.mark);
    let tag = |it: &'a Statement| {
        let is_network = it.line.starts_with("network ");
        is_network.then(|| it.line.rsplit_once(&set).map(|it| it.1)).flatten()
    };
    let now: BTreeSet<&str> = sides.running.statements.iter().filter_map(tag).collect();
    let then: BTreeSet<&str> = sides.wanted.iter().filter_map(|it| tag(it)).collect();
    let both = now.intersection(&then).copied();
    both.chain([LEARNED_TAG]).collect()
}

/// The entries of maps with the tags that they match, before and after.
fn tags_of_entries<'a>(sides: &Sides<'a>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut entries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for statement in sides.running.statements.iter().chain(sides.wanted.iter().copied()) {
        if let (Some(entry), Some(tag)) =
            (statement.context.first(), statement.line.strip_prefix("match tag "))
        {
            entries.entry(&**entry).or_default().insert(tag);
        }
    }
    entries
}

/// The entry that a step is in, creates or removes.
fn entry(step: &Step) -> &str {
    let line = step.line.strip_prefix("no ").unwrap_or(&step.line);
    step.context.first().map_or(line, |it| it)
}

/// The command to send if `statement` applies one of these maps to a neighbour.
fn command(statement: &Statement, maps: &BTreeSet<&str>, mark: &str) -> Option<String> {
    let [router, family] = &*statement.context else { return None };
    let family = family.strip_prefix("address-family ")?;
    let (name, way) = match words(&statement.line).as_slice() {
        ["neighbor", name, "route-map", map, way] if maps.contains(map) => (*name, *way),
        _ => return None,
    };
    let vrf =
        vrf(router).filter(|it| !it.is_empty()).map(|it| format!("{it} ")).unwrap_or_default();
    let group = if name.starts_with(mark) { "peer-group " } else { "" };
    Some(format!("clear bgp {vrf}{family} {group}{name} soft {way}"))
}
