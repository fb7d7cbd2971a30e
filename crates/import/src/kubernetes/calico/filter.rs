//! BGPFilter: which routes a peer may send, and which it may be told.
//!
//! Answers the rules of `toReceive`, and whether a filter lets an announcement through. Refuses to guess: where a part of a
//! rule has no equal, it rejects. Knows no peer.

use fairway_ground::{Asn, Community};
use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::number::as_number;
use super::range::Range;
use crate::kubernetes::field::{Section, SourceObject};

/// The rules of one family, for both directions.
pub(super) struct Rules<'a> {
    pub(super) import: Vec<Rule<'a>>,
    pub(super) export: Vec<Rule<'a>>,
}

/// The rules of a filter for IPv4, or else for IPv6.
pub(super) fn rules(object: &SourceObject, is_ipv4: bool) -> Rules<'_> {
    let spec = object.spec();
    let (import, export) =
        if is_ipv4 { ("importV4", "exportV4") } else { ("importV6", "exportV6") };
    let read = |key: &str| spec.sections(key).into_iter().map(Rule::read).collect();
    Rules { import: read(import), export: read(export) }
}

#[derive(Clone)]
pub(super) struct Rule<'a> {
    section: Section<'a>,
    prefixes: Prefixes,
    is_about_peers: bool,
    interface: Option<String>,
    /// `eBGP` or `iBGP`.
    peer_type: Option<String>,
    communities: Vec<String>,
    path: Vec<Asn>,
    is_accept: bool,
    added: Vec<String>,
    /// The field of a part that has no equal for received routes, and why.
    unknown: Option<(&'static str, &'static str)>,
    has_operations: bool,
}

#[derive(Clone, Copy)]
enum Prefixes {
    All,
    In(Range),
    NotIn(Range),
}

/// What a filter does with an announcement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Reject,
    /// It depends on what is not known here.
    Unknown,
}

impl<'a> Rule<'a> {
    fn read(section: Section<'a>) -> Self {
        let mut unknown = None;
        let prefixes = prefixes(&section).unwrap_or_else(|| {
            unknown = Some(("cidr", "is not a prefix with an operator that is known"));
            Prefixes::All
        });
        let interface = section.text("interface");
        if interface.is_some() {
            unknown = Some(("interface", "received routes have no interface that rules know"));
        }
        if section.has("priority") {
            unknown = Some(("priority", "routes have no priority that rules know"));
        }
        let matched = section.section("communities").map(|it| it.texts("values"));
        let matched = matched.unwrap_or_default().into_iter().map(|(_, it)| community(&it));
        let communities = matched.collect::<Option<Vec<String>>>().unwrap_or_else(|| {
            unknown = Some(("communities", "is not a community"));
            Vec::new()
        });
        let path = section.texts("asPathPrefix").into_iter().map(|(_, it)| as_number(&it));
        let path = path.collect::<Option<Vec<Asn>>>().unwrap_or_else(|| {
            unknown = Some(("asPathPrefix", "is not a list of AS numbers"));
            Vec::new()
        });
        let action = section.text("action").unwrap_or_default();
        if !["Accept", "Reject"].contains(&action.as_str()) {
            section.untranslated("action", "is neither Accept nor Reject: the rule rejects");
        }
        let mut added = Vec::new();
        let operations = section.sections("operations");
        for operation in &operations {
            let value = operation.section("addCommunity").and_then(|it| it.text("value"));
            match value.and_then(|it| community(&it)) {
                Some(community) => added.push(community),
                None => unknown = Some(("operations", "only addCommunity can be done to a route")),
            }
        }
        if unknown.is_some_and(|(field, _)| field == "operations") {
            section.ignore(&["operations"]);
        }
        Self {
            prefixes,
            is_about_peers: section.text("source").is_some(),
            interface,
            peer_type: section.text("peerType"),
            communities,
            path,
            is_accept: action == "Accept",
            added,
            unknown,
            has_operations: !operations.is_empty(),
            section,
        }
    }

    fn is_for(&self, is_external: bool) -> bool {
        let own = if is_external { "eBGP" } else { "iBGP" };
        self.peer_type.as_deref().is_none_or(|it| it == own)
    }

    /// The rule of `toReceive` for the routes in `scope` and in `prefixes`.
    fn received(&self, prefixes: Option<Range>) -> Value {
        let mut matches = Map::new();
        if let Some(range) = prefixes {
            matches.insert("prefixes".to_owned(), json!([range.value()]));
        }
        if !self.path.is_empty() {
            let path: String = self.path.iter().map(|it| format!("{it}_")).collect();
            matches.insert("asPath".to_owned(), json!(format!("^{path}")));
        }
        if !self.communities.is_empty() {
            matches.insert("communities".to_owned(), json!(self.communities));
        }
        let is_accept = self.is_accept && self.unknown.is_none();
        let added = Some(&self.added).filter(|it| is_accept && !it.is_empty());
        let mut rule = Map::new();
        if !matches.is_empty() {
            rule.insert("match".to_owned(), Value::Object(matches));
        }
        if let Some(added) = added {
            rule.insert("set".to_owned(), json!({"communities": {"add": added}}));
        }
        rule.insert("action".to_owned(), action(is_accept));
        Value::Object(rule)
    }

    /// What it does with routes of ours in `range`, and whether it is certain to decide about all of them; nothing where it
    /// is about none of them.
    fn announced(&self, range: Range, has_interface: bool) -> Option<(Verdict, bool)> {
        // Ours have no path, and come from no peer.
        if self.is_about_peers || !self.path.is_empty() {
            return None;
        }
        let is_without_interface = !has_interface && self.interface.as_deref() != Some("*");
        if self.interface.is_some() && is_without_interface {
            return None;
        }
        let (is_all, is_some) = match self.prefixes {
            Prefixes::All => (true, true),
            Prefixes::In(it) => (it.covers(range), it.intersection(range).is_some()),
            Prefixes::NotIn(it) => (it.intersection(range).is_none(), !it.covers(range)),
        };
        let own = match self.is_accept {
            true if self.has_operations => Verdict::Unknown,
            true => Verdict::Accept,
            false => Verdict::Reject,
        };
        let is_certain = is_all && self.communities.is_empty() && self.unknown.is_none();
        is_some.then_some((own, is_certain))
    }

    fn say_unknown(&self) {
        if let Some((field, why)) = self.unknown {
            let why = format!("{why}: the rule rejects what the rest of it matches");
            self.section.untranslated(field, why);
        }
    }

    fn is_about_prefixes_alone(&self) -> bool {
        self.communities.is_empty() && self.path.is_empty() && self.unknown.is_none()
    }
}

fn action(is_accept: bool) -> Value {
    json!(if is_accept { "accept" } else { "reject" })
}

/// The rules of `toReceive` that do the same to received routes. Where no rule decides, a route is accepted.
pub(super) fn received(rules: &[Rule<'_>], is_external: bool) -> Vec<Value> {
    let mut written = Vec::new();
    // What comes after all other rules, the last one first.
    let mut last = Vec::new();
    let mut scope: Option<Range> = None;
    for rule in rules.iter().filter(|it| it.is_for(is_external)) {
        let in_scope = |range: Range| match scope {
            None => Some(range),
            Some(scope) => scope.intersection(range),
        };
        match rule.prefixes {
            Prefixes::All => {
                rule.say_unknown();
                written.push(rule.received(scope));
            }
            Prefixes::In(range) => {
                rule.say_unknown();
                written.extend(in_scope(range).map(|range| rule.received(Some(range))));
            }
            // What is in the range is for the rules after it, and for nobody else.
            Prefixes::NotIn(range) if rule.is_about_prefixes_alone() => {
                last.push(rule.received(scope));
                let Some(inside) = in_scope(range) else { break };
                last.push(json!({"match": {"prefixes": [inside.value()]}, "action": "accept"}));
                scope = Some(inside);
            }
            Prefixes::NotIn(_) => {
                rule.section.untranslated(
                    "matchOperator",
                    "cannot be negated together with other conditions: the rule rejects what the rest of it matches",
                );
                let rejecting = Rule { is_accept: false, ..rule.clone() };
                written.push(rejecting.received(scope));
            }
        }
    }
    written.extend(last.into_iter().rev());
    written
}

/// What the rules do with routes of ours in `range`.
pub(super) fn verdict(
    rules: &[Rule<'_>],
    is_external: bool,
    range: Range,
    has_interface: bool,
) -> Verdict {
    let mut verdict = Verdict::Accept;
    let mut applying = Vec::new();
    for rule in rules.iter().filter(|it| it.is_for(is_external)) {
        let Some((own, is_certain)) = rule.announced(range, has_interface) else { continue };
        applying.push((rule, own));
        if is_certain {
            verdict = own;
            break;
        }
    }
    for (rule, own) in applying.into_iter().rev() {
        if own != verdict {
            verdict = Verdict::Unknown;
        }
        if verdict == Verdict::Unknown {
            let why = "whether it lets our own routes through is not known here: the peer is left out of their \
                       BGPAdvertisements; add it to peers where it may be told";
            rule.section.untranslated("action", why);
        }
    }
    verdict
}

/// The prefixes of a rule; nothing where they cannot be read.
fn prefixes(section: &Section<'_>) -> Option<Prefixes> {
    let length = section.section("prefixLength");
    let bound = |key: &str| {
        let number = length.as_ref().and_then(|it| it.number(key));
        number.map(|it| u8::try_from(it).unwrap_or(u8::MAX))
    };
    let (minimum, maximum) = (bound("min"), bound("max"));
    let operator = section.text("matchOperator");
    let Some(text) = section.text("cidr") else { return Some(Prefixes::All) };
    let network = text.parse::<IpNet>().ok()?;
    let has_length = minimum.is_some() || maximum.is_some();
    match operator.as_deref()? {
        "In" => {
            let maximum = maximum.unwrap_or(network.max_prefix_len());
            Range::new(network, minimum.unwrap_or(0), maximum).map(Prefixes::In)
        }
        _ if has_length => None,
        "Equal" => Some(Prefixes::In(Range::exactly(network))),
        "NotEqual" => Some(Prefixes::NotIn(Range::exactly(network))),
        "NotIn" => Some(Prefixes::NotIn(Range::inside(network))),
        _ => None,
    }
}

/// A community as Fairway writes it.
pub(super) fn community(text: &str) -> Option<String> {
    if text.parse::<Community>().is_ok() {
        return Some(text.to_owned());
    }
    let large = format!("large:{text}");
    large.parse::<fairway_ground::LargeCommunity>().is_ok().then_some(large)
}
