//! What do an operator's rules become in a route map?
//!
//! Entries between those that ask whether a route is allowed at all and the last one, which each route reaches that no
//! rule rejects. A rule with conditions that FRR cannot join in one entry has several, one after the other. Knows no
//! neighbour but by its part of names. Called by `neighbour`.

use std::collections::BTreeSet;
use std::fmt::Display;

use fairway_ground::{
    AddressFamily, Communities, ExtendedCommunity, FamilySet, Prefix, RouteRule, RouteSettings,
    RuleAction,
};
use serde::Serialize;

use super::attributes::{FrrCommunity, joined};
use super::filters::{Sequenced, numbered, range, word};
use super::words::{WordError, Words};

/// FRR prepends the first AS of a path at most so often.
pub(super) const LAST_AS_MAX: u8 = 10;
/// Between the first entries of two rules: more than one rule has.
const STEP: u32 = 20;
/// The place of the last entry that asks whether a route is allowed.
pub(super) const GATE_LAST: u32 = 99;
/// The place of the entry for routes that pass.
pub(super) const PASS: u32 = 3_999;

/// Why FRR cannot have a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RuleRefusal {
    /// It asks RPKI.
    #[error("match.originValidation is not supported with FRR")]
    OriginValidation,
    /// The regular expression cannot stand in a line.
    #[error("match.asPath {0}")]
    AsPath(WordError),
    /// It is none of FRR's.
    #[error(
        "match.asPath has {0:?}, which FRR does not take; expected digits, blanks and _^|[],{{}}()$*+.?-\\"
    )]
    Character(char),
    /// FRR sets the next hop first.
    #[error("match.nextHops beside toAdvertise.nextHop is not supported with FRR")]
    ReplacedNextHop,
    /// FRR looks at those of the family of the prefix.
    #[error("match.nextHops beside extendedNexthop is not supported with FRR")]
    ForeignNextHop,
    /// FRR 8.4 removes no single extended community.
    #[error("set.communities.remove with rt: or soo: is not supported with FRR")]
    RemovedExtended,
    /// FRR sets either none or some.
    #[error("set.communities.replace with rt: or soo: is not supported with FRR")]
    ReplacedExtended,
    /// Too often.
    #[error(
        "set.asPathPrepend {0} is more than FRR supports in toReceive; expected 0 to {LAST_AS_MAX}"
    )]
    Prepend(u8),
}

/// The direction of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// From the neighbour.
    In,
    /// To it, whose path gets this AS.
    Out(u32),
}

/// The rules of one direction.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Rules {
    /// The lines of lists that the entries name.
    lists: Vec<String>,
    entries: Vec<RuleEntry>,
}

/// An entry of the route map.
#[derive(Debug, Clone, Serialize)]
struct RuleEntry {
    action: &'static str,
    place: u32,
    /// The lines of its conditions, without their first word.
    matches: Vec<String>,
    /// Likewise of its settings, in FRR's order.
    sets: Vec<String>,
    /// The entry that follows.
    goto: Option<u32>,
}

/// A condition: that any of these holds.
type Alternatives = Vec<Option<String>>;

impl Rules {
    /// Lists have names that begin with that of the `map`. Fails, with its number from 0, for a rule that FRR cannot have.
    pub(super) fn new(
        rules: &[RouteRule],
        families: FamilySet,
        way: Way,
        map: &str,
    ) -> Result<Self, (usize, RuleRefusal)> {
        let mut all = Self { lists: Vec::new(), entries: Vec::new() };
        let mut first = GATE_LAST.saturating_add(1);
        for (number, rule) in rules.iter().enumerate() {
            // No name of a neighbour has this character.
            let name = format!("{map}+{}", number.saturating_add(1));
            all.add(rule, &name, families, way, first).map_err(|why| (number, why))?;
            first = first.saturating_add(STEP);
        }
        Ok(all)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn add(
        &mut self,
        rule: &RouteRule,
        name: &str,
        families: FamilySet,
        way: Way,
        first: u32,
    ) -> Result<(), RuleRefusal> {
        if rule.matches.origin_validation.is_some() {
            return Err(RuleRefusal::OriginValidation);
        }
        let sets = self.settings(&rule.settings, name, way)?;
        let (action, sets, goto) = match rule.action {
            RuleAction::Accept => ("permit", sets, Some(PASS)),
            RuleAction::Reject => ("deny", Vec::new(), None),
            RuleAction::Continue => ("permit", sets, Some(first.saturating_add(STEP))),
        };
        let as_path = self.as_path(rule, name)?;
        let prefixes = self.prefixes(rule, name, families);
        let communities = self.communities(&rule.matches.communities, name);
        let next_hops = self.next_hops(&rule.matches.next_hops, name);
        let mut place = first;
        for prefix in &prefixes {
            for community in &communities {
                for next_hop in &next_hops {
                    let conditions = [&as_path, community, prefix, next_hop];
                    let mut matches: Vec<String> =
                        conditions.into_iter().flatten().cloned().collect();
                    matches.sort_unstable();
                    let sets = sets.clone();
                    self.entries.push(RuleEntry { action, place, matches, sets, goto });
                    place = place.saturating_add(1);
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, kind: &str, name: &str, texts: impl IntoIterator<Item = impl Display>) {
        let texts: BTreeSet<String> = texts.into_iter().map(|it| it.to_string()).collect();
        let line =
            |Sequenced { sequence, text }| format!("{kind} {name} seq {sequence} permit {text}");
        self.lists.extend(numbered(texts).into_iter().map(line));
    }

    fn as_path(&mut self, rule: &RouteRule, name: &str) -> Result<Option<String>, RuleRefusal> {
        let Some(pattern) = &rule.matches.as_path else { return Ok(None) };
        Words::new(pattern.as_str().as_bytes()).map_err(RuleRefusal::AsPath)?;
        if let Some(other) = pattern.unknown_to_frr() {
            return Err(RuleRefusal::Character(other));
        }
        self.list("bgp as-path access-list", name, [pattern.as_str()]);
        Ok(Some(format!("as-path {name}")))
    }

    fn prefixes(&mut self, rule: &RouteRule, name: &str, families: FamilySet) -> Alternatives {
        let ranges = &rule.matches.prefixes;
        if ranges.is_empty() {
            return vec![None];
        }
        let of_family = |family| {
            let ranges = ranges.iter().filter(move |it| it.prefix().family() == family);
            (family, ranges.map(range).collect())
        };
        self.prefix_lists("address", name, families.iter().map(of_family))
    }

    fn next_hops(&mut self, networks: &[Prefix], name: &str) -> Alternatives {
        if networks.is_empty() {
            return vec![None];
        }
        let of_family = |family| {
            let networks = networks.iter().filter(move |it| it.family() == family);
            (family, networks.map(all_within).collect())
        };
        let name = format!("{name}+next-hops");
        self.prefix_lists("next-hop", &name, AddressFamily::ALL.into_iter().map(of_family))
    }

    fn prefix_lists(
        &mut self,
        what: &str,
        name: &str,
        texts: impl Iterator<Item = (AddressFamily, Vec<String>)>,
    ) -> Alternatives {
        let mut alternatives = Vec::new();
        for (family, texts) in texts.filter(|(_, texts)| !texts.is_empty()) {
            let word = word(family);
            self.list(&format!("{word} prefix-list"), name, texts);
            alternatives.push(Some(format!("{word} {what} prefix-list {name}")));
        }
        alternatives
    }

    fn communities(&mut self, wanted: &Communities, name: &str) -> Alternatives {
        if wanted.is_empty() {
            return vec![None];
        }
        let Communities { standard, extended, large } = wanted;
        let kinds = [
            ("community", words(standard, |it| FrrCommunity(*it))),
            ("extcommunity", words(extended, frr_extended)),
            ("large-community", words(large, |it| *it)),
        ];
        let mut alternatives = Vec::new();
        for (kind, texts) in kinds.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            self.list(&format!("bgp {kind}-list standard"), name, texts);
            alternatives.push(Some(format!("{kind} {name}")));
        }
        alternatives
    }

    /// The lines of its settings.
    fn settings(
        &mut self,
        settings: &RouteSettings,
        name: &str,
        way: Way,
    ) -> Result<Vec<String>, RuleRefusal> {
        let RouteSettings { removed, added, .. } = settings;
        let removes_all = settings.removes_communities;
        if !removed.extended.is_empty() {
            return Err(RuleRefusal::RemovedExtended);
        }
        if removes_all && !added.extended.is_empty() {
            return Err(RuleRefusal::ReplacedExtended);
        }
        let mut sets = self.removes(removed, name);
        sets.extend(prepends(settings.prepend, way)?);
        let standard = joined(&words(&added.standard, |it| FrrCommunity(*it)));
        sets.extend(community_words("community", standard, removes_all));
        sets.extend(community_words("large-community", joined(&added.large), removes_all));
        if removes_all {
            sets.push("extcommunity none".to_owned());
        }
        let extended: Vec<String> = words(&added.extended, frr_extended);
        for kind in ["rt ", "soo "] {
            let values: Vec<&str> =
                extended.iter().filter_map(|it| it.strip_prefix(kind)).collect();
            sets.extend(joined(&values).map(|values| format!("extcommunity {kind}{values}")));
        }
        sets.extend(settings.next_hops.ipv4.map(|it| format!("ip next-hop {it}")));
        sets.extend(settings.next_hops.ipv6.map(|it| format!("ipv6 next-hop global {it}")));
        sets.extend(settings.local_pref.map(|it| format!("local-preference {it}")));
        sets.extend(settings.med.map(|it| format!("metric {it}")));
        sets.sort_unstable();
        Ok(sets)
    }

    fn removes(&mut self, removed: &Communities, name: &str) -> Vec<String> {
        let name = format!("{name}+removed");
        let mut removes = Vec::new();
        if !removed.standard.is_empty() {
            let texts = words(&removed.standard, |it| FrrCommunity(*it));
            self.list("bgp community-list standard", &name, texts);
            removes.push(format!("comm-list {name} delete"));
        }
        if !removed.large.is_empty() {
            self.list("bgp large-community-list standard", &name, &removed.large);
            removes.push(format!("large-comm-list {name} delete"));
        }
        removes
    }
}

fn prepends(times: u8, way: Way) -> Result<Option<String>, RuleRefusal> {
    match way {
        _ if times == 0 => Ok(None),
        Way::In if times > LAST_AS_MAX => Err(RuleRefusal::Prepend(times)),
        Way::In => Ok(Some(format!("as-path prepend last-as {times}"))),
        Way::Out(asn) => {
            let path = joined(&vec![asn; usize::from(times)]);
            Ok(path.map(|path| format!("as-path prepend {path}")))
        }
    }
}

fn words<T, W: Display>(values: &[T], word: impl Fn(&T) -> W) -> Vec<String> {
    values.iter().map(|it| word(it).to_string()).collect()
}

/// What a route has besides, or instead.
fn community_words(kind: &str, added: Option<String>, removes_all: bool) -> Option<String> {
    match (added, removes_all) {
        (Some(added), false) => Some(format!("{kind} {added} additive")),
        (Some(added), true) => Some(format!("{kind} {added}")),
        (None, true) => Some(format!("{kind} none")),
        (None, false) => None,
    }
}

/// As in FRR: `rt 65001:100`.
fn frr_extended(community: &ExtendedCommunity) -> String {
    let text = community.to_string();
    match text.split_once(':') {
        Some((name, value)) => format!("{} {value}", name.to_ascii_lowercase()),
        None => text,
    }
}

/// Each address of the network.
fn all_within(network: &Prefix) -> String {
    let longest = network.family().address_bits();
    if network.length() == longest {
        network.to_string()
    } else {
        format!("{network} le {longest}")
    }
}
