//! Conditions of filters, as what a rule matches.
//!
//! Answers what of a condition is known before a route is seen, what a rule can match, and what has no equal. Knows no step.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AsPathPattern, Community, ExtendedCommunity, LargeCommunity};
use ipnet::IpNet;

use super::code::{Does, Expression, Function, Step, Value};
use super::paths;
use crate::policy::{Matches, Range};

/// Functions inside functions.
const CALLS_MAX: usize = 16;
/// Parts of a condition that are looked at, with those of functions: functions inside of functions multiply them.
const PARTS_MAX: usize = 5_000;
/// Prefixes of a set.
const RANGES_MAX: usize = 100_000;

/// Which protocol a route comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    Protocol(&'a str),
    /// One of these.
    Neighbor(&'a BTreeSet<String>),
}

/// What is known of the routes that a filter sees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) ipv6: bool,
    pub(super) outbound: bool,
    /// The AS that may be prepended: ours outbound, the neighbor's inbound.
    pub(super) asn: Option<u32>,
    /// `RTS_BGP` and the like.
    pub(super) source: &'static str,
    pub(super) origin: Origin<'a>,
    /// Whether no filter behind this one looks at large and extended communities.
    pub(super) may_clear: bool,
    pub(super) functions: &'a BTreeMap<String, Function>,
    /// The tables with what RPKI servers say.
    pub(super) roa_tables: &'a BTreeSet<String>,
}

/// A condition about routes of which [`Facts`] are known.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    Is(bool),
    Matches(Box<Matches>),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
    Unknown(String),
}

fn unknown(why: &str) -> Condition {
    Condition::Unknown(why.to_owned())
}

fn on_path(pattern: String) -> Condition {
    match AsPathPattern::new(&pattern) {
        Ok(_) => Matches { as_path: Some(pattern), ..Matches::default() }.into(),
        Err(why) => Condition::Unknown(why),
    }
}

impl From<Matches> for Condition {
    fn from(matches: Matches) -> Self {
        Self::Matches(Box::new(matches))
    }
}

impl Facts<'_> {
    pub(super) fn condition(&self, expression: &Expression) -> Condition {
        let mut left = PARTS_MAX;
        self.within(expression, 0, &mut left)
    }

    /// `left` counts the parts that may still be looked at.
    fn within(&self, expression: &Expression, calls: usize, left: &mut usize) -> Condition {
        let Some(rest) = left.checked_sub(1) else {
            return unknown("the condition is too long");
        };
        *left = rest;
        match expression {
            Expression::Not(inner) => match self.within(inner, calls, left) {
                Condition::Is(holds) => Condition::Is(!holds),
                Condition::Not(inner) => *inner,
                other => Condition::Not(Box::new(other)),
            },
            Expression::All(parts) => all(parts.iter().map(|it| self.within(it, calls, left))),
            Expression::Any(parts) => any(parts.iter().map(|it| self.within(it, calls, left))),
            Expression::Alone(value) => self.alone(value, calls, left),
            Expression::Compare(left, operator, right) => self.compare(left, operator, right),
            Expression::Unknown => unknown("has no equal in match of a rule"),
        }
    }

    fn alone(&self, value: &Value, calls: usize, left: &mut usize) -> Condition {
        match value {
            Value::Plain(word) if word == "true" => Condition::Is(true),
            Value::Plain(word) if word == "false" => Condition::Is(false),
            Value::Call(name, values) if calls < CALLS_MAX => {
                let function = self.functions.get(name);
                match function.and_then(|it| it.condition(values)) {
                    Some(inner) => self.within(&inner, calls.saturating_add(1), left),
                    None => unknown("only functions that return a condition are translated in one"),
                }
            }
            _ => unknown("has no equal in match of a rule"),
        }
    }

    /// A route of an interface has no attributes of BGP.
    fn compare(&self, left: &Value, operator: &str, right: &Value) -> Condition {
        match self.compared(left, operator, right) {
            Condition::Matches(matches)
                if self.source == "RTS_DEVICE" && matches.ranges.is_none() =>
            {
                let none = IpNet::default();
                Condition::Is(
                    matches.is_certain_of_own() && matches.may_take_own(None, none, "", &[]),
                )
            }
            other => other,
        }
    }

    fn compared(&self, left: &Value, operator: &str, right: &Value) -> Condition {
        match (left, operator, right) {
            (Value::Plain(name), operator, right) if name == "net" => self.net(operator, right),
            (Value::Plain(name), operator, Value::Plain(length)) if name == "net.len" => {
                self.length(operator, length)
            }
            (Value::Plain(name), "=", Value::Plain(kind)) if name == "net.type" => {
                Condition::Is(kind == if self.ipv6 { "NET_IP6" } else { "NET_IP4" })
            }
            (Value::Plain(name), "=", Value::Plain(source)) if name == "source" => {
                Condition::Is(source == self.source)
            }
            (Value::Plain(name), "~", Value::Set(parts)) if name == "source" => {
                Condition::Is(parts.iter().any(|it| it.as_slice() == [self.source]))
            }
            (Value::Plain(name), "=" | "~", Value::Quoted(pattern)) if name == "proto" => {
                self.protocol(pattern)
            }
            (value, "~", Value::Plain(name)) if name.ends_with("_community") => {
                communities(name, std::slice::from_ref(value))
            }
            (Value::Plain(name), "~", Value::Set(parts)) if name.ends_with("_community") => {
                let value = |it: &Vec<String>| Value::Tuple(inside(it));
                communities(name, &parts.iter().map(value).collect::<Vec<_>>())
            }
            (Value::Plain(number), "~", Value::Plain(name)) if name == "bgp_path" => {
                path(paths::through(&[vec![number.clone()]]))
            }
            (Value::Plain(name), operator, value) if name.starts_with("bgp_path") => {
                on_bgp_path(name, operator, value)
            }
            (Value::Plain(name), "=", Value::Plain(address)) if name == "bgp_next_hop" => {
                match address.parse::<IpAddr>() {
                    Ok(address) if !self.outbound => {
                        let next_hops = Some(vec![address.into()]);
                        Matches { next_hops, ..Matches::default() }.into()
                    }
                    _ => unknown("next hops are matched where routes are received"),
                }
            }
            (Value::Call(name, values), "=", Value::Plain(state)) if name == "roa_check" => {
                self.origin_validation(values, state)
            }
            _ => unknown("has no equal in match of a rule"),
        }
    }

    fn net(&self, operator: &str, value: &Value) -> Condition {
        let ranges = match (operator, value) {
            ("=", Value::Plain(prefix)) => ranges(&[vec![prefix.clone()]]),
            ("~", Value::Plain(prefix)) => ranges(&[vec![prefix.clone(), "+".to_owned()]]),
            ("~", Value::Set(parts)) => ranges(parts),
            _ => None,
        };
        let Some(mut ranges) = ranges else {
            return unknown("expected a prefix or a set of prefixes");
        };
        ranges.retain(|it| it.network.addr().is_ipv6() == self.ipv6);
        if ranges.is_empty() {
            return Condition::Is(false);
        }
        Matches { ranges: Some(ranges), ..Matches::default() }.into()
    }

    fn length(&self, operator: &str, length: &str) -> Condition {
        let Ok(length) = length.parse::<u8>() else { return unknown("expected a length") };
        let everything = Range::everything(self.ipv6);
        let longest = everything.longest();
        let (from, to) = match operator {
            "=" => (length, length),
            "<=" => (0, length),
            ">=" => (length, longest),
            "<" if length == 0 => return Condition::Is(false),
            "<" => (0, length.saturating_sub(1)),
            ">" => (length.saturating_add(1), longest),
            _ => return unknown("has no equal in match of a rule"),
        };
        let to = to.min(longest);
        match (from > to, from == 0 && to == longest) {
            (true, _) => Condition::Is(false),
            (_, true) => Condition::Is(true),
            _ => {
                let ge = (from > 0).then_some(from);
                let ranges = Some(vec![Range { ge, le: Some(to), ..everything }]);
                Matches { ranges, ..Matches::default() }.into()
            }
        }
    }

    fn protocol(&self, pattern: &str) -> Condition {
        match self.origin {
            Origin::Protocol(name) => Condition::Is(is_like(name, pattern)),
            Origin::Neighbor(names) => {
                let matching = names.iter().filter(|it| is_like(it, pattern)).count();
                if matching == 0 {
                    return Condition::Is(false);
                }
                if matching == names.len() {
                    return Condition::Is(true);
                }
                unknown(
                    "a rule does not know the neighbor that announced a route: give its routes a community in its \
                     toReceive.rules, and match that",
                )
            }
        }
    }

    fn origin_validation(&self, values: &[Value], state: &str) -> Condition {
        let is_known =
            matches!(values.first(), Some(Value::Plain(table)) if self.roa_tables.contains(table));
        let is_usual = match values {
            [_] => true,
            [_, Value::Plain(net), Value::Plain(last)] => {
                net == "net" && last.starts_with("bgp_path.last")
            }
            _ => false,
        };
        if !is_known || !is_usual {
            return unknown(
                "only tables that each cache of protocol rpki fills are known, and nothing else",
            );
        }
        let state = match state {
            "ROA_VALID" => "valid",
            "ROA_INVALID" => "invalid",
            "ROA_UNKNOWN" => "notFound",
            _ => return unknown("expected ROA_VALID, ROA_INVALID or ROA_UNKNOWN"),
        };
        Matches { origin_validation: Some(state), ..Matches::default() }.into()
    }
}

fn path(pattern: Option<String>) -> Condition {
    match pattern {
        Some(pattern) if pattern.is_empty() => Condition::Is(true),
        Some(pattern) => on_path(pattern),
        None => unknown("such an AS path has no equal in match of a rule"),
    }
}

fn on_bgp_path(name: &str, operator: &str, value: &Value) -> Condition {
    let number = |value: &Value| match value {
        Value::Plain(number) => Some(vec![vec![number.clone()]]),
        Value::Set(parts) => Some(parts.clone()),
        _ => None,
    };
    match (name, operator, value) {
        ("bgp_path", "~", Value::Mask(parts)) => path(paths::mask(parts)),
        ("bgp_path", "~", Value::Set(parts)) => path(paths::through(parts)),
        ("bgp_path", "=", Value::Empty) => on_path("^$".to_owned()),
        ("bgp_path.first", "=" | "~", value) => {
            path(number(value).and_then(|it| paths::first(&it)))
        }
        ("bgp_path.last", "=" | "~", value) => path(number(value).and_then(|it| paths::last(&it))),
        ("bgp_path.len", operator, Value::Plain(count)) => {
            let Ok(count) = count.parse::<u16>() else { return unknown("expected a number") };
            let longer = |than: u16| on_path(paths::longer_than(than));
            match (operator, count) {
                (">", count) => longer(count),
                (">=", 0) => Condition::Is(true),
                (">=", count) => longer(count.saturating_sub(1)),
                ("<", 0) => Condition::Is(false),
                ("<", count) => Condition::Not(Box::new(longer(count.saturating_sub(1)))),
                ("<=", count) => Condition::Not(Box::new(longer(count))),
                ("=", count) => on_path(paths::of_length(count)),
                _ => unknown("has no equal in match of a rule"),
            }
        }
        _ => unknown("such an AS path has no equal in match of a rule"),
    }
}

/// A pattern of names, with `*` and `?`.
fn is_like(name: &str, pattern: &str) -> bool {
    let (mut name, mut pattern) = (name, pattern);
    while let Some(first) = pattern.chars().next() {
        let rest = pattern.get(first.len_utf8()..).unwrap_or_default();
        if first == '*' {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            return ends.any(|at| is_like(name.get(at..).unwrap_or_default(), rest));
        }
        match name.chars().next() {
            Some(letter) if first == '?' || letter == first => {
                name = name.get(letter.len_utf8()..).unwrap_or_default();
            }
            _ => return false,
        }
        pattern = rest;
    }
    name.is_empty()
}

/// The words of a tuple, without parentheses and commas.
fn inside(words: &[String]) -> Vec<String> {
    words.iter().filter(|it| !["(", ")", ","].contains(&it.as_str())).cloned().collect()
}

fn communities(attribute: &str, values: &[Value]) -> Condition {
    let one = |value: &Value| match value {
        Value::Tuple(parts) => community(attribute, parts),
        _ => None,
    };
    match values.iter().map(one).collect::<Option<Vec<String>>>() {
        Some(all) => Matches { communities: Some(all), ..Matches::default() }.into(),
        None => unknown("a rule matches communities by their values"),
    }
}

/// A community as a BGPPeer has it.
pub(super) fn community(attribute: &str, parts: &[String]) -> Option<String> {
    let text = parts.join(":");
    match (attribute, parts) {
        ("bgp_community", [_, _]) => text.parse::<Community>().ok().map(|it| it.to_string()),
        ("bgp_large_community", [_, _, _]) => {
            text.parse::<LargeCommunity>().ok().map(|_| format!("large:{text}"))
        }
        ("bgp_ext_community", [kind, asn, value]) => {
            let kind = match kind.as_str() {
                "rt" => "rt",
                "ro" => "soo",
                _ => return None,
            };
            let text = format!("{kind}:{asn}:{value}");
            text.parse::<ExtendedCommunity>().ok().map(|_| text)
        }
        _ => None,
    }
}

/// Whether steps look at large or extended communities, but for the functions that they call.
pub(super) fn looks_at_other_kinds(steps: &[Step]) -> bool {
    steps.iter().any(|it| match &it.does {
        Does::If { condition, then, otherwise } => {
            names_other_kinds(condition)
                || looks_at_other_kinds(then)
                || looks_at_other_kinds(otherwise)
        }
        Does::Return(expression) => names_other_kinds(expression),
        Does::Call(_, values) => values.iter().any(is_other_kind),
        Does::Accept | Does::Reject | Does::Assign(..) | Does::Unknown => false,
    })
}

fn names_other_kinds(expression: &Expression) -> bool {
    match expression {
        Expression::Any(parts) | Expression::All(parts) => parts.iter().any(names_other_kinds),
        Expression::Not(inner) => names_other_kinds(inner),
        Expression::Compare(left, _, right) => is_other_kind(left) || is_other_kind(right),
        Expression::Alone(value) => is_other_kind(value),
        Expression::Unknown => false,
    }
}

fn is_other_kind(value: &Value) -> bool {
    match value {
        Value::Plain(name) => ["bgp_large_community", "bgp_ext_community"].contains(&name.as_str()),
        Value::Call(_, values) => values.iter().any(is_other_kind),
        _ => false,
    }
}

/// Whether a community of a BGPPeer is a large or an extended one.
pub(super) fn is_of_other_kind(community: &str) -> bool {
    ["large:", "rt:", "soo:"].iter().any(|it| community.starts_with(it))
}

/// `10.0.0.0/8`, `10.0.0.0/8+`, `10.0.0.0/8-`, `10.0.0.0/8{16,24}`.
fn ranges(parts: &[Vec<String>]) -> Option<Vec<Range>> {
    let mut all = Vec::new();
    for part in parts {
        let words: Vec<&str> = part.iter().map(String::as_str).collect();
        let (network, bounds) = words.split_first()?;
        let network: IpNet = network.parse::<IpNet>().ok()?.trunc();
        let (own, longest) = (network.prefix_len(), network.max_prefix_len());
        let (from, to) = match bounds {
            [] => (own, own),
            ["+"] => (own, longest),
            ["-"] => (0, own),
            ["{", from, ",", to, "}"] => (from.parse().ok()?, to.parse().ok()?),
            _ => return None,
        };
        if from > to || to > longest {
            return None;
        }
        // Shorter ones are the networks around it.
        for length in from..own.min(to.saturating_add(1)) {
            let network = IpNet::new(network.addr(), length).ok()?.trunc();
            all.push(Range { network, ge: None, le: None });
        }
        if to >= own {
            let (ge, le) = (from.max(own), to);
            let ge = (ge > own).then_some(ge);
            let le = (ge.is_some() || le > own).then_some(le);
            all.push(Range { network, ge, le });
        }
        if all.len() > RANGES_MAX {
            return None;
        }
    }
    Some(all)
}

/// All of them hold; what can be matched at once is one condition.
fn all(parts: impl Iterator<Item = Condition>) -> Condition {
    let (mut joined, mut others) = (None::<Matches>, Vec::new());
    for part in parts {
        match part {
            Condition::Is(true) => {}
            Condition::Is(false) => return Condition::Is(false),
            Condition::Matches(matches) => match &joined {
                None => joined = Some(*matches),
                Some(known) => match known.and(&matches) {
                    Ok(Some(both)) => joined = Some(both),
                    Ok(None) => return Condition::Is(false),
                    Err(_) => others.push(Condition::Matches(matches)),
                },
            },
            other => others.push(other),
        }
    }
    let mut parts: Vec<Condition> = joined.map(Condition::from).into_iter().collect();
    parts.extend(others);
    match parts.len() {
        0 => Condition::Is(true),
        1 => parts.remove(0),
        _ => Condition::All(parts),
    }
}

/// One of them holds; conditions of one kind are one condition.
fn any(parts: impl Iterator<Item = Condition>) -> Condition {
    let mut others: Vec<Condition> = Vec::new();
    for part in parts {
        match part {
            Condition::Is(false) => {}
            Condition::Is(true) => return Condition::Is(true),
            Condition::Matches(matches) => {
                let joined = others.iter_mut().find_map(|it| match it {
                    Condition::Matches(known) => known.or(&matches).map(|both| **known = both),
                    _ => None,
                });
                if joined.is_none() {
                    others.insert(0, Condition::Matches(matches));
                }
            }
            other => others.push(other),
        }
    }
    match others.len() {
        0 => Condition::Is(false),
        1 => others.remove(0),
        _ => Condition::Any(others),
    }
}
