//! The filters of a neighbor, as `toReceive` and `toAdvertise` of a BGPPeer.
//!
//! Answers which routes pass in one direction of one address family. Knows no session. What has no equal lets nothing through.

use super::lists::{Entry, Lists};
use super::map_entry::{PAIRS_MAX, Use, pairs};
use super::route_map::{RouteMaps, Translation, rules};
use super::settings::{Scope, Setting, Settings};
use crate::outcome::Outcome;
use crate::policy::{Action, Passes, Range, Rule};

/// Which way routes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

impl Direction {
    fn key(self, filter: &str) -> String {
        format!("{filter} {}", if self == Self::In { "in" } else { "out" })
    }
}

/// What the neighbor is filtered by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filters<'a> {
    pub(super) lists: &'a Lists,
    pub(super) maps: &'a RouteMaps,
    pub(super) settings: &'a Settings,
    /// An external neighbor without a filter exchanges nothing (RFC 8212).
    pub(super) requires_policy: bool,
    /// As in [`Use`]: inbound the neighbor's AS, outbound ours.
    pub(super) asn: Option<u32>,
}

impl Filters<'_> {
    /// The filter of this kind, where there is one.
    pub(super) fn filter(&self, ipv6: bool, direction: Direction, kind: &str) -> Option<&Setting> {
        self.settings.on(Scope::of_family(ipv6), &direction.key(kind))
    }

    /// How entries of route maps are read.
    pub(super) fn how(&self, ipv6: bool, direction: Direction) -> Use {
        Use { ipv6, outbound: direction == Direction::Out, asn: self.asn }
    }

    /// What passes; lines without an equal are told.
    pub(super) fn passes(&self, ipv6: bool, direction: Direction, outcome: &mut Outcome) -> Passes {
        let [map, prefixes, paths, distribute] =
            ["route-map", "prefix-list", "filter-list", "distribute-list"]
                .map(|kind| self.filter(ipv6, direction, kind));
        if let Some(it) = distribute {
            let why = "access lists are not translated; until it is a prefix list, nothing passes";
            outcome.untranslated(it.line, &it.text, why);
            return Passes::Nothing;
        }
        match (map, prefixes, paths) {
            (None, None, None) if self.requires_policy => Passes::Nothing,
            (None, None, None) => Passes::EVERYTHING,
            (None, None, Some(paths)) => self.as_paths(paths, outcome),
            (_, _, Some(paths)) => {
                let why = "a filter-list beside another filter has no equal; match the AS path in the route map. \
                           Until then nothing passes";
                outcome.untranslated(paths.line, &paths.text, why);
                Passes::Nothing
            }
            (map, prefixes, None) => {
                let (allowed, mut all) = match prefixes {
                    None => (None, Vec::new()),
                    Some(list) => match self.prefix_list(ipv6, list, map.is_some(), outcome) {
                        Some(passes) => passes,
                        None => return Passes::Nothing,
                    },
                };
                if let Some(map) = map {
                    let Some(of_map) = self.route_map(map, self.how(ipv6, direction), outcome)
                    else {
                        return Passes::Nothing;
                    };
                    all.extend(of_map);
                }
                Passes::Some { allowed, rules: all }
            }
        }
    }

    fn as_paths(&self, setting: &Setting, outcome: &mut Outcome) -> Passes {
        let name = setting.words.first().map(String::as_str).unwrap_or_default();
        if let Err(why) = self.lists.whole(name) {
            outcome.untranslated(setting.line, &setting.text, why);
            return Passes::Nothing;
        }
        let Some(list) = self.lists.as_paths(name) else {
            outcome.note(
                setting.line,
                &setting.text,
                "the list is not defined, so that nothing passes",
            );
            return Passes::Nothing;
        };
        let rule = |it: &&Entry<String>| Rule::of_as_path(&it.value, verdict(it.permits));
        let rules = list.iter().map(rule).chain([Rule::reject_rest()]).collect();
        Passes::Some { allowed: None, rules }
    }

    /// What a prefix list lets through, before a route map or alone; `None`: nothing.
    fn prefix_list(
        &self,
        ipv6: bool,
        setting: &Setting,
        before_map: bool,
        outcome: &mut Outcome,
    ) -> Option<(Option<Vec<Range>>, Vec<Rule>)> {
        let name = setting.words.first().map(String::as_str).unwrap_or_default();
        if let Err(why) = self.lists.whole(name) {
            outcome.untranslated(setting.line, &setting.text, why);
            return None;
        }
        let Some(list) = self.lists.prefixes(ipv6, name) else {
            outcome.note(
                setting.line,
                &setting.text,
                "the list is not defined, so that nothing passes",
            );
            return None;
        };
        let permits: Vec<Range> = list.iter().filter(|it| it.permits).map(|it| it.value).collect();
        if permits.is_empty() {
            return None;
        }
        if permits.len() < list.len() && pairs(permits.len(), list.len()) > PAIRS_MAX {
            let why = format!(
                "prefix-list {name} is too long to compare its lines; until it is split, nothing passes"
            );
            outcome.untranslated(setting.line, &setting.text, why);
            return None;
        }
        let decides = |it: &&Entry<Range>| {
            it.permits || permits.iter().any(|permit| permit.overlaps(it.value))
        };
        let list: Vec<&Entry<Range>> = list.into_iter().filter(decides).collect();
        if list.iter().all(|it| it.permits) {
            return Some((Some(permits), Vec::new()));
        }
        if !before_map {
            let rule = |it: &&Entry<Range>| Rule::of_ranges(vec![it.value], verdict(it.permits));
            let rules = list.iter().map(rule).chain([Rule::reject_rest()]).collect();
            return Some((None, rules));
        }
        // What is denied is rejected first: the same, unless something was permitted before.
        let earlier = |place: usize| list.iter().take(place).filter(|it| it.permits);
        let is_first = |(place, it): (usize, &&Entry<Range>)| {
            it.permits || !earlier(place).any(|permit| permit.value.overlaps(it.value))
        };
        if !list.iter().enumerate().all(is_first) {
            let why = format!(
                "prefix-list {name} permits a part of what it denies later, and a route map follows; until that is \
                 split, nothing passes"
            );
            outcome.untranslated(setting.line, &setting.text, why);
            return None;
        }
        let denied = list.iter().filter(|it| !it.permits).map(|it| it.value).collect();
        Some((Some(permits), vec![Rule::of_ranges(denied, Action::Reject)]))
    }

    fn route_map(&self, setting: &Setting, how: Use, outcome: &mut Outcome) -> Option<Vec<Rule>> {
        let name = setting.words.first().map(String::as_str).unwrap_or_default();
        if let Err(why) = self.maps.whole(name) {
            outcome.untranslated(setting.line, &setting.text, why);
            return None;
        }
        let Some(entries) = self.maps.entries(name) else {
            outcome.note(
                setting.line,
                &setting.text,
                "the map is not defined, so that nothing passes",
            );
            return None;
        };
        let Translation { rules, flaws, notes } = rules(name, entries, self.lists, how);
        for note in notes {
            outcome.note(note.line, &note.text, note.why);
        }
        for flaw in flaws {
            let why = format!(
                "{}; until it is changed, the entry rejects what the rest of it matches",
                flaw.why
            );
            outcome.untranslated(flaw.line, &flaw.text, why);
        }
        (rules.iter().any(|it| it.action != Action::Reject)).then_some(rules)
    }
}

fn verdict(permits: bool) -> Action {
    if permits { Action::Accept } else { Action::Reject }
}
