//! Is a line that a daemon shows ours or foreign?
//!
//! A line is ours if we sent it, if it carries our mark, or if it configures one of our neighbours. A router
//! is ours if nothing in it is foreign.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{MARK, Place, Sides, words};
use crate::configuration::Statement;

/// Beginnings of lines that we send for every router and that do not make a router foreign.
const OF_EVERY_ROUTER: &[&str] = &[
    "address-family ",
    "bgp router-id ",
    "bgp log-neighbor-changes",
    "no bgp ebgp-requires-policy",
    "no bgp hard-administrative-reset",
    "no bgp default ipv4-unicast",
    "no bgp network import-check",
    "bgp graceful-restart ",
    "bgp long-lived-graceful-restart ",
    "bgp listen limit ",
];

/// What is ours.
pub(super) struct Ours {
    told: BTreeSet<Place>,
    /// Neighbours, each with its router.
    neighbors: BTreeSet<(Arc<str>, String)>,
    routers: BTreeSet<Arc<str>>,
}

impl Ours {
    pub(super) fn find(sides: &Sides<'_>) -> Self {
        let marked = sides.running.statements.iter().filter(|it| is_marked(it));
        let wanted = sides.wanted.iter().copied();
        let told = sides.told.iter().filter_map(|(context, line)| neighbor(context, line));
        let neighbors = marked.chain(wanted).filter_map(|it| neighbor(&it.context, &it.line));
        let mut ours = Self {
            told: sides.told.clone(),
            neighbors: neighbors.chain(told).collect(),
            routers: BTreeSet::new(),
        };
        ours.routers = ours.find_routers(sides);
        ours
    }

    fn find_routers(&self, sides: &Sides<'_>) -> BTreeSet<Arc<str>> {
        let in_router = |it: &&Statement| it.context.first().is_some_and(|it| is_router(it));
        let router = |it: &Statement| it.context.first().cloned();
        let lines = || sides.running.statements.iter().filter(in_router);
        let of_all =
            |it: &Statement| OF_EVERY_ROUTER.iter().any(|begin| it.line.starts_with(begin));
        let foreign: BTreeSet<_> =
            lines().filter(|it| !of_all(it) && !self.has(it)).filter_map(router).collect();
        let ours = lines().filter(|it| is_marked(it)).filter_map(router);
        let told = self.told.iter().filter(|(context, it)| context.is_empty() && is_router(it));
        ours.chain(told.map(|(_, it)| it.clone())).filter(|it| !foreign.contains(it)).collect()
    }

    /// Whether a line is ours.
    pub(super) fn has(&self, statement: &Statement) -> bool {
        let Statement { context, line, .. } = statement;
        if context.is_empty() && is_router(line) {
            return self.routers.contains(line);
        }
        is_marked(statement)
            || neighbor(context, line).is_some_and(|it| self.neighbors.contains(&it))
            || self.told.contains(&(context.clone(), line.clone()))
    }
}

fn is_router(line: &str) -> bool {
    line.starts_with("router bgp ")
}

/// Whether it has a name of ours, or is in a context that has one.
fn is_marked(statement: &Statement) -> bool {
    let names = |line: &str| line.split(' ').any(|word| word.starts_with(MARK));
    let free =
        words(&statement.line).get(2).is_some_and(|it| matches!(*it, "description" | "password"));
    (!free && names(&statement.line)) || statement.context.iter().any(|it| names(it))
}

/// The neighbour that a line configures, with its router.
fn neighbor(context: &[Arc<str>], line: &str) -> Option<(Arc<str>, String)> {
    let router = context.first().filter(|it| is_router(it))?;
    match words(line.strip_prefix("no ").unwrap_or(line)).as_slice() {
        ["neighbor", name, ..] => Some((router.clone(), (*name).to_owned())),
        _ => None,
    }
}
