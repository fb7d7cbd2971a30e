//! Which lines make a daemon's running configuration the one that is wanted?
//!
//! Everything that is new is said before anything is taken away, and what others refer to before those
//! that do: no route is away in between, and no session is touched that the change does not concern.
//! What is not ours is left alone. Knows no socket and remembers nothing. Called by
//! [`crate::application`].

mod beginnings;
mod refresh;
mod settings;
mod whose;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::configuration::{Configuration, Context, Statement, leads_into_context};
use settings::unset;
pub(crate) use settings::{holds_anyway, setting};
use whose::Ours;

/// What the names of everything begin with that Fairway makes in FRR.
pub const MARK: &str = "FW-";

/// Where a line stands, and what it says.
pub type Place = (Context, Arc<str>);

/// What the difference is made from.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// What the daemon shows.
    pub running: &'a Configuration,
    /// What it should have. Of two lines that set the same, the later counts.
    pub wanted: &'a [&'a Statement],
    /// What it was told so far, beside what carries [`MARK`].
    pub told: &'a BTreeSet<Place>,
    /// What it took and shows otherwise, or not at all; and what it shows in its place.
    pub hidden: &'a BTreeMap<Place, Option<Arc<str>>>,
    /// There may be more than what is wanted: only what the daemon was told is taken away.
    pub keep: bool,
}

/// A line to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub context: Context,
    /// What.
    pub line: Arc<str>,
    /// What it is from.
    pub origin: Option<Arc<str>>,
    /// What is so afterwards.
    pub purpose: Purpose,
}

/// What a line is said for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It is part of what is wanted.
    Add,
    /// Something goes.
    Remove,
}

/// What one daemon is to be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What is new and what changes.
    pub additions: Vec<Step>,
    /// What goes.
    pub removals: Vec<Step>,
    /// Commands, outside of the configuration, that make changed filters count for routes that are
    /// there already: FRR waits for seconds.
    pub refreshes: Vec<String>,
}

impl Batch {
    /// Nothing is to be said.
    pub fn is_empty(&self) -> bool {
        self.additions.is_empty() && self.removals.is_empty()
    }
}

/// What identifies a setting: what each line of the context sets, and what the line itself does.
type Key = (Vec<String>, String);
/// Statements by what they set.
type Keyed<'a> = BTreeMap<Key, &'a Statement>;

fn key(context: &[Arc<str>], line: &str) -> Key {
    let outer = |depth| context.get(..depth).unwrap_or_default();
    let context_key = context.iter().enumerate().map(|(depth, it)| setting(outer(depth), it));
    (context_key.collect(), setting(context, line))
}

fn keyed(statement: &Statement) -> (Key, &Statement) {
    (key(&statement.context, &statement.line), statement)
}

/// What makes the `running` side the `wanted` one.
pub fn difference(sides: &Sides<'_>) -> Batch {
    let wanted: Keyed<'_> = sides.wanted.iter().map(|it| keyed(it)).collect();
    let running: Keyed<'_> = sides.running.statements.iter().map(keyed).collect();
    let ours = Ours::find(sides);
    let mut removals = Removals {
        wanted: &wanted,
        running: &running,
        ours: &ours,
        keep_all_but: sides.keep.then_some(sides.told),
        found: BTreeSet::new(),
    };
    for (key, statement) in &running {
        removals.consider(key, statement);
    }
    let (early, late): (Vec<_>, Vec<_>) = removals.found.into_iter().partition(|it| it.is_early);
    let taken = if sides.keep { Taken::find(&wanted, &running) } else { Taken::default() };
    let (in_routers, others): (Vec<_>, Vec<_>) = sides
        .wanted
        .iter()
        .filter(|it| {
            let key = key(&it.context, &it.line);
            // A later line for the same setting counts instead.
            wanted.get(&key).is_some_and(|counts| std::ptr::eq(*counts, **it))
                && !taken.concerns(&key, it)
                && !holds(sides, it, running.get(&key).copied())
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

/// What the daemon shows for the setting of a line.
pub fn shown_for(running: &Configuration, context: &[Arc<str>], line: &str) -> Option<Arc<str>> {
    let wanted = key(context, line);
    let mut same = running.statements.iter().filter(|it| key(&it.context, &it.line) == wanted);
    same.next_back().map(|it| it.line.clone())
}

/// Those of `statements` that set what one of `like` does.
pub fn same_settings<'a>(
    statements: impl Iterator<Item = &'a Statement>,
    like: &[&Statement],
) -> Vec<&'a Statement> {
    let settings: BTreeSet<Key> = like.iter().map(|it| keyed(it).0).collect();
    statements.filter(|it| settings.contains(&keyed(it).0)).collect()
}

impl Step {
    /// Where it stands, and what it says.
    pub fn place(&self) -> Place {
        (self.context.clone(), self.line.clone())
    }

    /// It makes something that others are settings of: a context, or a neighbour.
    pub fn makes_something(&self) -> bool {
        self.purpose == Purpose::Add
            && (leads_into_context(&self.context, &self.line) || self.made_neighbor().is_some())
    }

    fn made_neighbor(&self) -> Option<&str> {
        match words(&self.line).as_slice() {
            ["neighbor", name, "remote-as" | "interface" | "peer-group", ..] => Some(name),
            _ => None,
        }
    }

    /// Whether a line is about what this one makes.
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

/// Whether the daemon has a statement, going by what it shows for the same setting.
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

fn is_in_router(context: &[Arc<str>], line: &str) -> bool {
    context.first().map_or(line, |it| it).starts_with("router ")
}

/// What a line is about, by its first words.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Something that goes, in the order in which such things go.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Removal {
    /// It would be in the way of what is added.
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
    ours: &'a Ours,
    keep_all_but: Option<&'a BTreeSet<Place>>,
    found: BTreeSet<Removal>,
}

impl Removals<'_> {
    /// `statement` is there: should it not?
    fn consider(&mut self, key: &Key, statement: &Statement) {
        if self.wanted.contains_key(key) || !self.ours.has(statement) || self.goes_along(key) {
            return;
        }
        let Statement { context, line, .. } = statement;
        if self.keep_all_but.is_some_and(|told| !told.contains(&(context.clone(), line.clone()))) {
            return;
        }
        let router = context.first().filter(|it| it.starts_with("router bgp"));
        let in_the_way = self.is_in_the_way(router.unwrap_or(line));
        match (router, words(line).as_slice()) {
            // What leads into a context only, and what others are in, too.
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
                self.remove(in_the_way, 1, &router, format!("no neighbor {name}"));
            }
            (Some(_), ["network", ..]) => {
                self.remove(in_the_way, 2, context, unset(context, line));
            }
            (None, ["router", "bgp", ..]) => {
                self.remove(in_the_way, 4, context, format!("no {line}"));
            }
            (None, ["route-map", name, _, _]) => {
                let whole = format!("route-map {name}");
                let line = if self.keep_all_but.is_some() || self.stays(&whole) {
                    line
                } else {
                    whole.as_str()
                };
                self.remove(false, 5, context, format!("no {line}"));
            }
            (None, [family @ ("ip" | "ipv6"), "prefix-list", name, ..]) if context.is_empty() => {
                let whole = format!("{family} prefix-list {name}");
                let line = if self.keep_all_but.is_some() || self.stays(&whole) {
                    line
                } else {
                    whole.as_str()
                };
                self.remove(false, 6, context, format!("no {line}"));
            }
            (None, ["profile", _]) => self.remove(false, 7, context, format!("no {line}")),
            (None, _) if context.is_empty() => self.remove(false, 8, context, unset(context, line)),
            // A setting inside of something that stays.
            _ => self.remove(true, 3, context, unset(context, line)),
        }
    }

    fn remove(&mut self, is_early: bool, rank: u8, context: &Context, line: String) {
        self.found.insert(Removal { is_early, rank, context: context.clone(), line });
    }

    /// It goes when the context goes that it is in. FRR 8.4 wants neighbours and networks to be gone
    /// before their router.
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

    /// There can be one router only in a VRF, and another one is wanted.
    fn is_in_the_way(&self, router: &str) -> bool {
        let tops = || self.wanted.keys().filter(|(context, _)| context.is_empty());
        !tops().any(|(_, it)| it == router)
            && vrf(router).is_some_and(|vrf_| tops().any(|(_, it)| vrf(it) == Some(vrf_)))
    }

    fn is_wanted_neighbor(&self, router: &str, name: &str) -> bool {
        let begin = format!("neighbor {name} ");
        self.wanted.keys().any(|(context, setting)| {
            context.first().is_some_and(|it| it == router) && setting.starts_with(&begin)
        })
    }

    /// Whether there will be something of a list or a map.
    fn stays(&self, name: &str) -> bool {
        let begin = format!("{name} ");
        self.wanted.keys().any(|(context, it)| context.is_empty() && it.starts_with(&begin))
    }
}

fn goes_before_its_router(setting: &str) -> bool {
    matches!(words(setting).as_slice(), ["neighbor" | "network", ..] | ["bgp", "listen", ..])
}

/// What comes after the AS of a router: the VRF, and nothing for the first one.
fn vrf(router: &str) -> Option<&str> {
    let of_asn = router.strip_prefix("router bgp ")?;
    Some(of_asn.split_once(' ').map_or("", |(_, vrf)| vrf))
}

/// Places that are taken by something that may be wanted still: an entry of an outgoing map has a
/// number that another class had, whose routes are not known yet.
#[derive(Default)]
struct Taken {
    entries: BTreeSet<String>,
    maps: BTreeSet<String>,
}

impl Taken {
    fn find(wanted: &Keyed<'_>, running: &Keyed<'_>) -> Self {
        let mut taken = Self::default();
        for (key, statement) in wanted {
            let Some(tag) = statement.line.strip_prefix("match tag ") else { continue };
            if running.get(key).is_some_and(|it| it.line != statement.line) {
                taken.entries.extend(key.0.first().cloned());
                taken.maps.insert(format!("{MARK}set-{tag}"));
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
