//! Is a line that a daemon shows ours or foreign?
//!
//! A line is ours if the record says so, if it carries our mark, or if it configures one of our neighbours: one whose
//! lines carry the mark. A router is ours if we created it and nothing in it is foreign.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Place, unnumbered, words};
use crate::configuration::{Configuration, Context, Statement};
use crate::owner::{Owner, VIEW};

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
pub(crate) struct Ours<'a> {
    mark: &'a str,
    told: &'a BTreeSet<Place>,
    /// Neighbours, each with its router.
    neighbors: BTreeSet<(Arc<str>, String)>,
    /// Routers that have nothing but ours.
    routers: BTreeSet<Arc<str>>,
    /// No other Fairway has neighbours in the view.
    has_view: bool,
}

impl<'a> Ours<'a> {
    pub(crate) fn find(
        running: &Configuration,
        wanted: &[&Statement],
        mark: &'a str,
        told: &'a BTreeSet<Place>,
    ) -> Self {
        let marked = running.statements.iter().filter(|it| is_marked(it, mark));
        let marked = marked.filter_map(|it| neighbor(&it.context, &it.line));
        let made = told.iter().filter(|(_, line)| makes_neighbor(line));
        let told_neighbors = made.filter_map(|(context, line)| neighbor(context, line));
        let half_made = half_made(running, wanted, mark);
        let neighbors = marked.chain(told_neighbors).chain(half_made).collect();
        let of_others = |it: &Statement| {
            let owners = it.line.split(' ').filter_map(Owner::in_name);
            let is_in_view = it.context.first().is_some_and(|it| is_view(it));
            is_in_view && owners.into_iter().any(|it| it.mark() != mark)
        };
        let has_view = !running.statements.iter().any(of_others);
        let mut ours = Self { mark, told, neighbors, routers: BTreeSet::new(), has_view };
        let left = ours.left_half_made(running);
        ours.neighbors.extend(left);
        ours.routers = ours.find_routers(running);
        ours
    }

    /// Routers that we created, and in which nobody else has put anything.
    fn find_routers(&self, running: &Configuration) -> BTreeSet<Arc<str>> {
        let mut made: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut foreign: BTreeSet<Arc<str>> = BTreeSet::new();
        for it in &running.statements {
            match it.context.first() {
                None if is_router(&it.line) && self.made(&it.line) => {
                    made.insert(it.line.clone());
                }
                Some(router) if is_router(router) && !self.has(it) => {
                    foreign.insert(router.clone());
                }
                _ => {}
            }
        }
        made.into_iter().filter(|it| !foreign.contains(it)).collect()
    }

    /// Neighbours that were being created when everything ended: the line with a name of ours is missing, and the map
    /// that it names is there.
    fn left_half_made(&self, running: &Configuration) -> BTreeSet<(Arc<str>, String)> {
        let mut rest: BTreeMap<(Arc<str>, String), Vec<&str>> = BTreeMap::new();
        for it in &running.statements {
            if let Some(neighbor) = neighbor(&it.context, &it.line).filter(|it| self.made(&it.0)) {
                rest.entry(neighbor).or_default().push(&it.line);
            }
        }
        let maps = maps_in(running, self.mark);
        let has_map = |router: &str, name: &str| {
            let of_vrf = router.split_once(" vrf ").map(|(_, vrf)| format!("@{vrf}"));
            let of_vrf = of_vrf.unwrap_or_default();
            let named = [format!("in-{name}{of_vrf}"), format!("in-if-{name}{of_vrf}")];
            let mut names = maps.iter().filter_map(|it| it.strip_prefix(self.mark));
            names.any(|it| named.iter().any(|named| named == it))
        };
        let is_begun = |router: &str, name: &str, lines: &[&str]| {
            let is_of_begin = |line: &&str| {
                matches!(
                    words(line).as_slice(),
                    ["neighbor", _, "remote-as", _]
                        | ["neighbor", _, "interface", "remote-as", _]
                        | ["neighbor", _, "shutdown"]
                )
            };
            lines.iter().all(is_of_begin) && has_map(router, name)
        };
        rest.retain(|(router, name), lines| is_begun(router, name, lines));
        rest.into_keys().collect()
    }

    /// Whether a router is one that we created.
    pub(crate) fn made(&self, router: &str) -> bool {
        (self.has_view && is_view(router))
            || self.told.contains(&(Context::from([]), Arc::from(router)))
    }

    /// Whether a line is ours.
    pub(crate) fn has(&self, statement: &Statement) -> bool {
        let Statement { context, line, .. } = statement;
        if context.is_empty() && is_router(line) {
            return self.routers.contains(line);
        }
        if self.has_view && context.first().is_some_and(|it| is_view(it)) {
            return true;
        }
        let is_in_ours = context.first().is_some_and(|it| is_router(it) && self.made(it));
        (is_in_ours && is_of_every_router(line))
            || is_marked(statement, self.mark)
            || neighbor(context, line).is_some_and(|it| self.has_neighbor(&it))
            || self.told.contains(&(context.clone(), line.clone()))
            || unnumbered(line).is_some_and(|it| self.told.contains(&(context.clone(), it.into())))
    }

    fn has_neighbor(&self, neighbor: &(Arc<str>, String)) -> bool {
        self.neighbors.contains(neighbor)
    }
}

/// Wanted neighbours with lines of ours that are not complete: their route maps come first.
fn half_made(
    running: &Configuration,
    wanted: &[&Statement],
    mark: &str,
) -> BTreeSet<(Arc<str>, String)> {
    let maps = maps_in(running, mark);
    let of_map = |it: &&&Statement| match words(&it.line).as_slice() {
        ["neighbor", _, "route-map", map, "in"] => maps.contains(map),
        _ => false,
    };
    wanted.iter().filter(of_map).filter_map(|it| neighbor(&it.context, &it.line)).collect()
}

/// The names of our route maps.
fn maps_in<'a>(running: &'a Configuration, mark: &str) -> BTreeSet<&'a str> {
    let top = running.statements.iter().filter(|it| it.context.is_empty());
    let names = top.filter_map(|it| it.line.strip_prefix("route-map ")?.split(' ').next());
    names.filter(|it| it.starts_with(mark)).collect()
}

/// Whether we send a line for every router.
pub(crate) fn is_of_every_router(line: &str) -> bool {
    OF_EVERY_ROUTER.iter().any(|begin| line.starts_with(begin))
}

pub(crate) fn is_router(line: &str) -> bool {
    line.starts_with("router bgp ")
}

/// Whether a router is the view that only Fairway has.
pub(crate) fn is_view(router: &str) -> bool {
    matches!(words(router).as_slice(), ["router", "bgp", _, "view", name] if *name == VIEW)
}

/// Whether it has a name of ours, or is in a context that has one.
pub(crate) fn is_marked(statement: &Statement, mark: &str) -> bool {
    let names = |line: &str| line.split(' ').any(|word| word.starts_with(mark));
    let free =
        words(&statement.line).get(2).is_some_and(|it| matches!(*it, "description" | "password"));
    (!free && names(&statement.line)) || statement.context.iter().any(|it| names(it))
}

/// Whether a line creates a neighbour, and does not only configure one.
fn makes_neighbor(line: &str) -> bool {
    matches!(words(line).as_slice(), ["neighbor", _, "remote-as" | "interface" | "peer-group", ..])
}

/// The neighbour that a line configures, with its router.
pub(crate) fn neighbor(context: &[Arc<str>], line: &str) -> Option<(Arc<str>, String)> {
    let router = context.first().filter(|it| is_router(it))?;
    match words(line.strip_prefix("no ").unwrap_or(line)).as_slice() {
        ["neighbor", name, ..] => Some((router.clone(), (*name).to_owned())),
        _ => None,
    }
}
