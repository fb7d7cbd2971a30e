//! Which routes that are there already does a changed filter concern?
//!
//! FRR looks at them again only seconds later, or when it is told to. Entries for tags that come or go
//! with their routes concern no route that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Batch, MARK, Sides, Step, vrf, words};
use crate::configuration::Statement;

/// What routes carry that were learned.
const LEARNED_TAG: &str = "18007";

/// The commands that make FRR look again.
pub(super) fn after(sides: &Sides<'_>, batch: &Batch) -> Vec<String> {
    let steps = || batch.additions.iter().chain(&batch.removals);
    let lists: BTreeSet<&str> =
        steps().filter(|it| it.context.is_empty()).filter_map(|it| prefix_list(&it.line)).collect();
    let steady = steady_tags(sides);
    let running = || sides.running.statements.iter();
    let in_maps = || running().chain(sides.wanted.iter().copied());
    // Of a map that nobody used before, no route that is there knows.
    let uses_list = |it: &&Statement| {
        words(&it.line).last().is_some_and(|name| lists.contains(name))
            && it.line.starts_with("match ")
    };
    let mut maps: BTreeSet<&str> =
        in_maps().filter(uses_list).filter_map(|it| map(it.context.first()?)).collect();
    let tags = tags_of_entries(sides);
    // An entry that asks for no tag is for all routes.
    let concerns_routes =
        |entry: &&str| tags.get(entry).is_none_or(|tags| !tags.is_disjoint(&steady));
    maps.extend(steps().map(entry).filter(concerns_routes).filter_map(map));
    let wanted: BTreeSet<(&[Arc<str>], &str)> =
        sides.wanted.iter().map(|it| (&*it.context, &*it.line)).collect();
    let users = running().filter(|it| wanted.contains(&(&*it.context, &*it.line)));
    users.filter_map(|it| command(it, &maps)).collect()
}

/// The name of a map of ours.
fn map(opener: &str) -> Option<&str> {
    opener.strip_prefix("route-map ")?.split(' ').next().filter(|it| it.starts_with(MARK))
}

fn prefix_list(line: &str) -> Option<&str> {
    match words(line.strip_prefix("no ").unwrap_or(line)).as_slice() {
        ["ip" | "ipv6", "prefix-list", name, ..] => Some(name),
        _ => None,
    }
}

/// Tags that routes have now and will have.
fn steady_tags<'a>(sides: &Sides<'a>) -> BTreeSet<&'a str> {
    let tag = |it: &'a Statement| {
        let is_network = it.line.starts_with("network ");
        is_network.then(|| it.line.rsplit_once("route-map FW-set-").map(|it| it.1)).flatten()
    };
    let now: BTreeSet<&str> = sides.running.statements.iter().filter_map(tag).collect();
    let then: BTreeSet<&str> = sides.wanted.iter().filter_map(|it| tag(it)).collect();
    let both = now.intersection(&then).copied();
    both.chain([LEARNED_TAG]).collect()
}

/// The entries of maps, each with the tags that it is for, before and after.
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

/// The entry that a step is in, or that it makes or takes away.
fn entry(step: &Step) -> &str {
    let line = step.line.strip_prefix("no ").unwrap_or(&step.line);
    step.context.first().map_or(line, |it| it)
}

/// What to say when `statement` is that a neighbour uses one of these maps.
fn command(statement: &Statement, maps: &BTreeSet<&str>) -> Option<String> {
    let [router, family] = &*statement.context else { return None };
    let family = family.strip_prefix("address-family ")?;
    let (name, way) = match words(&statement.line).as_slice() {
        ["neighbor", name, "route-map", map, way] if maps.contains(map) => (*name, *way),
        _ => return None,
    };
    let vrf =
        vrf(router).filter(|it| !it.is_empty()).map(|it| format!("{it} ")).unwrap_or_default();
    let group = if name.starts_with(MARK) { "peer-group " } else { "" };
    Some(format!("clear bgp {vrf}{family} {group}{name} soft {way}"))
}
