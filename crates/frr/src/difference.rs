//! Which lines turn a daemon's running configuration into the wanted one?
//!
//! All additions are sent before any removal, and objects are created before the lines that refer to them: no
//! route is withdrawn in between, and no session is reset that the change does not concern. Configuration
//! that is not ours is left alone. Knows no socket and remembers nothing. Called by [`crate::application`].

mod beginnings;
mod refresh;
mod settings;
mod whose;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Context, Statement, leads_into_context};
pub(crate) use settings::{holds_anyway, setting, unnumbered, unset};
pub(crate) use whose::{Ours, is_marked, is_of_every_router, is_router, is_view, neighbor};

/// Lines of route maps from which they are sent as one transaction: fewer take FRR no longer one by one.
pub const MANY_LINES: usize = 50;

/// A line and its context.
pub type Place = (Context, Arc<str>);

/// The input of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The running configuration of the daemon.
    pub running: &'a Configuration,
    /// The wanted statements. Of two lines that set the same, the later one counts.
    pub wanted: &'a [&'a Statement],
    /// How the names of our objects begin.
    pub mark: &'a str,
    /// Lines that it was sent so far, beside those that carry the mark.
    pub told: &'a BTreeSet<Place>,
    /// What some of them replaced.
    pub replaced: &'a BTreeMap<Place, Arc<str>>,
    /// Lines that it accepted but shows in another form or not at all, with what it shows instead.
    pub hidden: &'a BTreeMap<Place, Option<Arc<str>>>,
    /// The wanted statements may be incomplete: of all others only these lines are removed.
    pub keep_all_but: Option<&'a BTreeSet<Place>>,
}

/// A line to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its context.
    pub context: Context,
    /// The line.
    pub line: Arc<str>,
    /// The resource it belongs to.
    pub origin: Option<Arc<str>>,
    /// Why it is sent.
    pub purpose: Purpose,
}

/// Why a line is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is part of the wanted configuration.
    Add,
    /// It removes something.
    Remove,
}

/// The lines to send to one daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// New and changed settings.
    pub additions: Vec<Step>,
    /// Removals.
    pub removals: Vec<Step>,
    /// Commands, outside of the configuration, that apply changed filters to routes that are already there:
    /// FRR itself waits for seconds.
    pub refreshes: Vec<String>,
}

impl Batch {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.additions.is_empty() && self.removals.is_empty()
    }
}

/// Identifies a setting: the setting of each line of the context, and of the line itself.
type Key = (Vec<String>, String);
/// Statements by their settings.
type Keyed<'a> = BTreeMap<Key, &'a Statement>;

fn key(context: &[Arc<str>], line: &str) -> Key {
    let outer = |depth| context.get(..depth).unwrap_or_default();
    let context_key = context.iter().enumerate().map(|(depth, it)| setting(outer(depth), it));
    (context_key.collect(), setting(context, line))
}

fn keyed(statement: &Statement) -> (Key, &Statement) {
    (key(&statement.context, &statement.line), statement)
}

/// The lines that turn the `running` side into the `wanted` one.
pub fn difference(sides: &Sides<'_>) -> Batch {
    let wanted: Keyed<'_> = sides.wanted.iter().map(|it| keyed(it)).collect();
    let running: Keyed<'_> = sides.running.statements.iter().map(keyed).collect();
    let ours = Ours::find(sides.running, sides.wanted, sides.mark, sides.told);
    let unnumbered: BTreeSet<Place> =
        sides.running.statements.iter().filter_map(without_number).collect();
    let mut removals = Removals {
        wanted: &wanted,
        running: &running,
        ours: &ours,
        replaced: sides.replaced,
        keep_all_but: sides.keep_all_but,
        found: BTreeSet::new(),
    };
    for (key, statement) in &running {
        removals.consider(key, statement);
    }
    let (early, late): (Vec<_>, Vec<_>) = removals.found.into_iter().partition(|it| it.is_early);
    let taken = if sides.keep_all_but.is_some() {
        Taken::find(&wanted, &running, sides.mark)
    } else {
        Taken::default()
    };
    let (in_routers, others): (Vec<_>, Vec<_>) = sides
        .wanted
        .iter()
        .filter(|it| {
            let key = key(&it.context, &it.line);
            // A later line for the same setting counts instead.
            wanted.get(&key).is_some_and(|counts| std::ptr::eq(*counts, **it))
                && !taken.concerns(&key, it)
                && !holds(sides, it, running.get(&key).copied())
                && !unnumbered.contains(&(it.context.clone(), it.line.clone()))
        })
        .map(|it| Step::add(it))
        .partition(|step| is_in_router(&step.context, &step.line));
    let early = early.into_iter().map(Removal::into_step);
    let late = late.into_iter().map(Removal::into_step);
    let mut batch = Batch {
        additions: early.chain(others).chain(beginnings::whole(sides, in_routers)).collect(),
        removals: late.collect(),
        refreshes: Vec::new(),
    };
    batch.refreshes = refresh::after(sides, &batch);
    batch
}

/// The line that the daemon shows for the same setting.
pub fn shown_for(running: &Configuration, context: &[Arc<str>], line: &str) -> Option<Arc<str>> {
    let wanted = key(context, line);
    let mut same = running.statements.iter().filter(|it| key(&it.context, &it.line) == wanted);
    same.next_back().map(|it| it.line.clone())
}

/// The `statements` with the same setting as one of `like`.
pub fn same_settings<'a>(
    statements: impl Iterator<Item = &'a Statement>,
    like: &[&Statement],
) -> Vec<&'a Statement> {
    let settings: BTreeSet<Key> = like.iter().map(|it| keyed(it).0).collect();
    statements.filter(|it| settings.contains(&keyed(it).0)).collect()
}

impl Step {
    /// Its context and line.
    pub fn place(&self) -> Place {
        (self.context.clone(), self.line.clone())
    }

    /// Whether it creates an object that other lines configure: a context, or a neighbour.
    pub fn makes_something(&self) -> bool {
        self.purpose == Purpose::Add
            && (leads_into_context(&self.context, &self.line) || self.made_neighbor().is_some())
    }

    /// Whether it creates a neighbour.
    pub fn makes_neighbor(&self) -> bool {
        self.purpose == Purpose::Add && self.made_neighbor().is_some()
    }

    fn made_neighbor(&self) -> Option<&str> {
        match words(&self.line).as_slice() {
            ["neighbor", name, "remote-as" | "interface" | "peer-group", ..] => Some(name),
            _ => None,
        }
    }

    /// Whether a line belongs to the object that this step creates.
    pub fn is_around(&self, context: &[Arc<str>], line: &str) -> bool {
        let depth = self.context.len();
        if context.get(..depth) != Some(&*self.context) {
            return false;
        }
        match self.made_neighbor() {
            Some(name) => {
                *line != *self.line
                    && matches!(words(line).as_slice(), ["neighbor", it, ..] if *it == name)
            }
            None => context.get(depth) == Some(&self.line),
        }
    }

    pub(crate) fn add(statement: &Statement) -> Self {
        let Statement { context, line, origin } = statement.clone();
        Self { context, line, origin, purpose: Purpose::Add }
    }
}

/// Whether the daemon has a statement, judged by what it shows for the same setting.
fn holds(sides: &Sides<'_>, statement: &Statement, shown: Option<&Statement>) -> bool {
    let shown = shown.map(|it| &it.line);
    if shown == Some(&statement.line) {
        return true;
    }
    if shown.is_none() && holds_anyway(&statement.context, &statement.line) {
        return true;
    }
    let place = (statement.context.clone(), statement.line.clone());
    sides.hidden.get(&place).is_some_and(|hidden| hidden.as_ref() == shown)
}

/// The place of an entry of a list without its number.
fn without_number(statement: &Statement) -> Option<Place> {
    Some((statement.context.clone(), unnumbered(&statement.line)?.into()))
}

/// Whether a line creates, configures or removes a route map.
pub fn is_of_route_map(context: &[Arc<str>], line: &str) -> bool {
    let opener = context.first().map_or(line, |it| it);
    opener.strip_prefix("no ").unwrap_or(opener).starts_with("route-map ")
}

fn is_in_router(context: &[Arc<str>], line: &str) -> bool {
    context.first().map_or(line, |it| it).starts_with("router ")
}

/// The line that removes a router. FRR 10.3 takes `no router bgp N view V` for the default instance of that AS, and finds
/// a view by its name as well as a VRF.
pub(crate) fn without_router(line: &str) -> String {
    format!("no {}", line.replace(" view ", " vrf "))
}

/// The words of a line.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A removal. Removals are sent in the order of these fields.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Removal {
    /// It conflicts with an addition.
    is_early: bool,
    rank: u8,
    context: Context,
    line: String,
}

impl Removal {
    fn into_step(self) -> Step {
        let Self { context, line, .. } = self;
        Step { context, line: Arc::from(line), origin: None, purpose: Purpose::Remove }
    }
}

struct Removals<'a> {
    wanted: &'a Keyed<'a>,
    running: &'a Keyed<'a>,
    ours: &'a Ours<'a>,
    replaced: &'a BTreeMap<Place, Arc<str>>,
    keep_all_but: Option<&'a BTreeSet<Place>>,
    found: BTreeSet<Removal>,
}

impl Removals<'_> {
    /// Removes `statement`, which the daemon has, unless it is wanted.
    fn consider(&mut self, key: &Key, statement: &Statement) {
        if self.wanted.contains_key(key) || !self.ours.has(statement) || self.goes_along(key) {
            return;
        }
        let numbered = without_number(statement)
            .map(|(context, line)| crate::difference::key(&context, &line));
        if numbered.is_some_and(|it| self.wanted.contains_key(&it)) {
            return;
        }
        let Statement { context, line, .. } = statement;
        if self.keep_all_but.is_some_and(|told| !told.contains(&(context.clone(), line.clone()))) {
            return;
        }
        if let Some(before) = self.replaced.get(&(context.clone(), line.clone())) {
            self.remove(true, 3, context, before.to_string());
            return;
        }
        let router = context.first().filter(|it| it.starts_with("router bgp"));
        let in_the_way = self.is_in_the_way(router.unwrap_or(line));
        match (router, words(line).as_slice()) {
            // Contexts without settings of their own, which others share.
            (_, ["address-family", ..] | ["vrf" | "interface", _] | ["bfd"]) => {}
            (Some(_), ["bgp", "listen", "range", ..]) => {
                self.remove(true, 0, context, unset(context, line));
            }
            (Some(router), ["neighbor", name, what, ..] | ["no", "neighbor", name, what, ..])
                if !self.is_wanted_neighbor(router, name) =>
            {
                if self.keep_all_but.is_some() && !matches!(*what, "remote-as" | "interface") {
                    return;
                }
                let router = [router.clone()].into();
                let is_early = in_the_way || self.moves(name);
                self.remove(is_early, 1, &router, format!("no neighbor {name}"));
            }
            (Some(_), ["network", ..]) => {
                self.remove(in_the_way, 2, context, unset(context, line));
            }
            (None, ["router", "bgp", ..]) => {
                self.remove(in_the_way, 4, context, without_router(line));
            }
            (None, ["route-map", name, _, _]) => {
                let whole = format!("route-map {name}");
                let line = if self.is_whole(&whole) { whole.as_str() } else { line };
                self.remove(false, 5, context, format!("no {line}"));
            }
            (None, [family @ ("ip" | "ipv6"), "prefix-list", name, ..]) if context.is_empty() => {
                let whole = format!("{family} prefix-list {name}");
                let line = if self.is_whole(&whole) { whole.as_str() } else { line };
                self.remove(false, 6, context, format!("no {line}"));
            }
            (None, ["profile", _]) => self.remove(false, 7, context, format!("no {line}")),
            (None, _) if context.is_empty() => self.remove(false, 8, context, unset(context, line)),
            // Without its condition an entry would apply to every route until the new one is there.
            _ if is_of_route_map(context, line) && line.starts_with("match ") => {
                self.remove(false, 3, context, unset(context, line));
            }
            // A setting inside of an object that stays.
            _ => self.remove(true, 3, context, unset(context, line)),
        }
    }

    fn remove(&mut self, is_early: bool, rank: u8, context: &Context, line: String) {
        self.found.insert(Removal { is_early, rank, context: context.clone(), line });
    }

    /// Whether it is removed together with its context. FRR 8.4 requires neighbours and networks to be
    /// removed before their router.
    fn goes_along(&self, (context, setting): &Key) -> bool {
        (0..context.len()).any(|depth| {
            let around = context.get(..depth).unwrap_or_default().to_vec();
            let opener = context.get(depth).cloned().unwrap_or_default();
            let in_router = opener.starts_with("router bgp ");
            let key = (around, opener);
            let takes_all_along = |it: &&Statement| {
                matches!(words(&it.line).as_slice(), ["router" | "route-map" | "profile", ..])
                    && self.ours.has(it)
            };
            !self.wanted.contains_key(&key)
                && self.running.get(&key).is_some_and(takes_all_along)
                && !(in_router && goes_before_its_router(setting))
        })
    }

    /// Whether another router is wanted in the same VRF, which can have only one.
    fn is_in_the_way(&self, router: &str) -> bool {
        let tops = || self.wanted.keys().filter(|(context, _)| context.is_empty());
        !tops().any(|(_, it)| it == router)
            && vrf(router).is_some_and(|vrf_| tops().any(|(_, it)| vrf(it) == Some(vrf_)))
    }

    /// Whether a neighbour that is not wanted in its router is wanted in another one: FRR has one connection for both.
    fn moves(&self, name: &str) -> bool {
        let begin = format!("neighbor {name} ");
        self.wanted.keys().any(|(context, it)| !context.is_empty() && it.starts_with(&begin))
    }

    fn is_wanted_neighbor(&self, router: &str, name: &str) -> bool {
        let begin = format!("neighbor {name} ");
        self.wanted.keys().any(|(context, setting)| {
            context.first().is_some_and(|it| it == router) && setting.starts_with(&begin)
        })
    }

    /// Whether a list or map goes as a whole: it is ours, and nothing of it remains.
    fn is_whole(&self, name: &str) -> bool {
        let begin = format!("{name} ");
        let is_of_it = |(context, it): &Key| context.is_empty() && it.starts_with(&begin);
        let mut there = self.running.iter().filter(|(key, _)| is_of_it(key));
        self.keep_all_but.is_none()
            && !self.wanted.keys().any(is_of_it)
            && there.all(|(_, it)| self.ours.has(it))
    }
}

fn goes_before_its_router(setting: &str) -> bool {
    matches!(words(setting).as_slice(), ["neighbor" | "network", ..] | ["bgp", "listen", ..])
}

/// The VRF of a router, after its AS; empty for the default one.
fn vrf(router: &str) -> Option<&str> {
    let router = router.split_once(" as-notation ").map_or(router, |(it, _)| it);
    let of_asn = router.strip_prefix("router bgp ")?;
    Some(of_asn.split_once(' ').map_or("", |(_, vrf)| vrf))
}

/// Places that may still be in use by a wanted statement: an entry of an outgoing map may reuse the number of
/// another class, with routes that are not known yet.
#[derive(Default)]
struct Taken {
    entries: BTreeSet<String>,
    maps: BTreeSet<String>,
}

impl Taken {
    fn find(wanted: &Keyed<'_>, running: &Keyed<'_>, mark: &str) -> Self {
        let mut taken = Self::default();
        for (key, statement) in wanted {
            let Some(tag) = statement.line.strip_prefix("match tag ") else { continue };
            if running.get(key).is_some_and(|it| it.line != statement.line) {
                taken.entries.extend(key.0.first().cloned());
                taken.maps.insert(format!("{mark}set-{tag}"));
            }
        }
        taken
    }

    fn concerns(&self, (context, setting): &Key, statement: &Statement) -> bool {
        self.entries.contains(context.first().unwrap_or(setting))
            || (setting.starts_with("network ")
                && words(&statement.line).last().is_some_and(|it| self.maps.contains(*it)))
    }
}

#[cfg(test)]
mod tests;
