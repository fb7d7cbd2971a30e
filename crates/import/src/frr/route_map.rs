//! FRR's route maps, as rules of a BGPPeer and as what becomes of a route of this router.
//!
//! Answers what one entry matches, sets and does, and which of its lines have no equal. Knows no neighbor; `policy`
//! applies maps to neighbors, `originate` to own routes.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::lists::{Lists, number};
use super::map_entry::{Flaw, MapEntry, Reading, Use};
use crate::policy::{Action, Matches, OwnRoute, RangeIndex, Rule, Settings};

/// All route maps: by name, entries by sequence number.
#[derive(Debug, Default)]
pub(super) struct RouteMaps {
    maps: BTreeMap<String, BTreeMap<u32, MapEntry>>,
    /// Of which entries were taken back.
    partial: BTreeSet<String>,
}

impl RouteMaps {
    /// `route-map NAME permit 10` opens an entry.
    pub(super) fn open(
        &mut self,
        line: usize,
        opening: &str,
        words: &[&str],
    ) -> Result<(), String> {
        let [_, name, verb, sequence] = words else {
            return Err("expected route-map NAME permit|deny NUMBER".to_owned());
        };
        let sequence: u32 = number(sequence)?;
        let permits = *verb == "permit";
        let entries = self.maps.entry((*name).to_owned()).or_default();
        let entry = entries.entry(sequence).or_insert_with(|| MapEntry {
            permits,
            line,
            opening: opening.to_owned(),
            lines: Vec::new(),
        });
        entry.permits = permits;
        Ok(())
    }

    /// A line in the entry that `opening` opened.
    pub(super) fn read(&mut self, line: usize, opening: &str, text: &str) {
        let words: Vec<&str> = opening.split(' ').collect();
        let [_, name, _, sequence] = words.as_slice() else { return };
        let Ok(sequence) = number::<u32>(sequence) else { return };
        let entry = self.maps.get_mut(*name).and_then(|it| it.get_mut(&sequence));
        if let Some(entry) = entry {
            entry.lines.push((line, text.to_owned()));
        }
    }

    /// The entries of a map in their order, with their numbers; `None` if there is no such map.
    pub(super) fn entries(&self, name: &str) -> Option<&BTreeMap<u32, MapEntry>> {
        self.maps.get(name)
    }

    /// `no route-map NAME ...`.
    pub(super) fn take_back(&mut self, name: &str) {
        self.partial.insert(name.to_owned());
    }

    /// An error if not all lines about the map are followed.
    pub(super) fn whole(&self, name: &str) -> Result<(), String> {
        match self.partial.contains(name) {
            true => {
                Err(format!("a line that takes an entry of route map {name} back is not followed"))
            }
            false => Ok(()),
        }
    }
}

/// What a map comes to.
#[derive(Debug, Default)]
pub(super) struct Translation {
    /// In their order. An entry with a line that has no equal rejects what the rest of it matches.
    pub(super) rules: Vec<Rule>,
    pub(super) flaws: Vec<Flaw>,
    pub(super) notes: Vec<Flaw>,
}

/// The rules that say what a map says.
pub(super) fn rules(
    name: &str,
    entries: &BTreeMap<u32, MapEntry>,
    lists: &Lists,
    how: Use,
) -> Translation {
    let mut all = Translation::default();
    let mut is_over = false;
    for (sequence, entry) in entries {
        let reading = Reading::of(entry, lists, how);
        all.flaws.extend(reading.flaws.iter().cloned());
        all.notes.extend(reading.notes);
        let Some(matches) = reading.matches.filter(|_| !is_over) else { continue };
        let is_faulty = !reading.flaws.is_empty();
        let rejects = !entry.permits || is_faulty;
        let action = match (rejects, reading.continues) {
            (true, _) => Action::Reject,
            (false, true) => Action::Continue,
            (false, false) => Action::Accept,
        };
        let settings = if rejects { Settings::default() } else { reading.settings };
        let ends = matches.is_everything() && action != Action::Continue;
        all.rules.push(Rule { name: Some(rule_name(name, *sequence)), matches, settings, action });
        match (ends, is_faulty) {
            (true, false) => return all,
            // What follows is not reached now, and will be when this entry is changed.
            (true, true) => is_over = true,
            (false, _) => {}
        }
    }
    if !is_over {
        all.rules.push(Rule::reject_rest());
    }
    all
}

/// `MAP-10`, of the letters that a name of a rule may have.
fn rule_name(map: &str, sequence: u32) -> String {
    let end = format!("-{sequence}");
    let room = 63_usize.saturating_sub(end.len());
    let letter = |it: char| if it.is_ascii_alphanumeric() || "-_.".contains(it) { it } else { '-' };
    let begin: String = map.chars().take(room).map(letter).collect();
    begin + &end
}

/// The entries of a map, read for own routes.
pub(super) struct OwnMap<'a> {
    entries: Vec<(&'a MapEntry, Reading<'a>, Option<RangeIndex>)>,
    asn: u32,
}

impl<'a> OwnMap<'a> {
    /// Reads the entries; our AS is in the path as often as it was prepended.
    pub(super) fn of(
        entries: &'a BTreeMap<u32, MapEntry>,
        lists: &'a Lists,
        how: Use,
        asn: u32,
    ) -> Self {
        let read = |entry: &'a MapEntry| {
            let reading = Reading::of(entry, lists, how);
            let index = reading.matches.as_ref().and_then(Matches::index);
            (entry, reading, index)
        };
        Self { entries: entries.values().map(read).collect(), asn }
    }

    /// What becomes of an own route; `None` if it is rejected. Only flaws of entries that it meets count.
    pub(super) fn apply(&self, prefix: IpNet, route: &OwnRoute) -> (Option<OwnRoute>, Vec<Flaw>) {
        let mut route = route.clone();
        for (entry, reading, index) in &self.entries {
            let Some(matches) = &reading.matches else { continue };
            let path = vec![self.asn.to_string(); route.prepend].join(" ");
            if !matches.may_take_own(index.as_ref(), prefix, &path, &route.communities) {
                continue;
            }
            let flaws = flaws_of_own(entry, reading, matches);
            if !flaws.is_empty() || !entry.permits {
                return (None, flaws);
            }
            route.set(&reading.settings);
            if !reading.continues {
                return (Some(route), Vec::new());
            }
        }
        (None, Vec::new())
    }
}

/// What of an entry has no equal for own routes.
fn flaws_of_own(entry: &MapEntry, reading: &Reading<'_>, matches: &Matches) -> Vec<Flaw> {
    let mut flaws = reading.flaws.clone();
    let mut add = |why: &str| {
        let (line, text) = (entry.line, entry.opening.clone());
        flaws.push(Flaw { line, text, why: why.to_owned() });
    };
    if !matches.is_certain_of_own() {
        add("the next hop of own routes is not known here, nor what RPKI says");
    }
    let set = &reading.settings;
    let extended = |it: &String| it.starts_with("rt:") || it.starts_with("soo:");
    if set.add.iter().chain(set.replace.iter().flatten()).any(extended) {
        add("own routes have no extended communities");
    }
    if set.local_pref == Some(0) {
        add("a LOCAL_PREF of 0 stands for 100 in a BGPAdvertisement; use 1");
    }
    if let Some(hop) = &reading.next_hop {
        let why = "the next hop of own routes is ours; set toAdvertise.nextHop, which is for all routes of the neighbor";
        flaws.push(Flaw { why: why.to_owned(), ..hop.clone() });
    }
    flaws
}
