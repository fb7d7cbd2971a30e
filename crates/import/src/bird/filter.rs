//! Filters as moves: steps whose conditions a rule can match.
//!
//! Answers what a filter does to routes of which [`Facts`] are known, with functions in place of their calls, and what becomes
//! of one route of ours. `rules` writes the same moves for routes that are learned.

use std::net::IpAddr;

use ipnet::IpNet;

use super::code::{Does, Expression, Step, Value};
use super::condition::{Condition, Facts, community, is_of_other_kind};
use crate::policy::{Matches, OwnRoute, PREPEND_MAX, RangeIndex, Settings};

/// Functions inside functions.
const CALLS_MAX: usize = 16;
/// Moves of one filter, after conditions were taken apart.
const MOVES_MAX: usize = 5_000;
/// Moves and prefixes that are written twice for conditions that were taken apart: conditions inside of each other double them.
const COPIES_MAX: usize = 200_000;

/// Something that a filter does, where it says so.
#[derive(Debug, Clone)]
pub(super) struct Move {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) does: Action,
}

#[derive(Debug, Clone)]
pub(super) enum Action {
    Accept,
    Reject,
    Set(Change),
    If(Box<Tested>, Vec<Move>, Vec<Move>),
    /// Without an equal, and why.
    Unknown(String),
}

/// What is asked of a route.
#[derive(Debug, Clone)]
pub(super) struct Tested {
    pub(super) matches: Matches,
    index: Option<RangeIndex>,
}

/// What is set.
#[derive(Debug, Clone)]
pub(super) enum Change {
    LocalPref(u32),
    Med(u32),
    NextHop(IpAddr),
    Prepend,
    Add(String),
    Remove(Vec<String>),
    /// `bgp_community` is emptied; a rule removes those of other kinds, too.
    Clear,
}

/// A move without an equal.
#[derive(Debug, Clone)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) why: String,
}

impl Flaw {
    pub(super) fn of(it: &Move, why: impl Into<String>) -> Self {
        Self { line: it.line, text: it.text.clone(), why: why.into() }
    }
}

/// The moves of the steps of a filter.
pub(super) fn moves(steps: &[Step], facts: &Facts<'_>) -> Vec<Move> {
    Lowering { facts, count: 0, copied: 0 }.steps(steps, 0)
}

struct Lowering<'a> {
    facts: &'a Facts<'a>,
    count: usize,
    copied: usize,
}

impl Lowering<'_> {
    fn steps(&mut self, steps: &[Step], calls: usize) -> Vec<Move> {
        let mut all = Vec::new();
        for step in steps {
            self.count = self.count.saturating_add(1);
            if self.count > MOVES_MAX {
                all.push(unknown(step, "the filter is too long"));
                break;
            }
            all.extend(self.step(step, calls));
        }
        all
    }

    fn step(&mut self, step: &Step, calls: usize) -> Vec<Move> {
        let does = match &step.does {
            Does::Accept => Action::Accept,
            Does::Reject => Action::Reject,
            Does::If { condition, then, otherwise } => {
                let condition = self.facts.condition(condition);
                let (then, otherwise) = (self.steps(then, calls), self.steps(otherwise, calls));
                return self.branch(step, condition, then, otherwise);
            }
            // Our own routes have it (RFC 4271 §5.1.1).
            Does::Assign(name, Value::Plain(origin))
                if name == "bgp_origin"
                    && origin == "ORIGIN_IGP"
                    && self.facts.source != "RTS_BGP" =>
            {
                return Vec::new();
            }
            Does::Assign(name, value) => self.assign(name, value),
            Does::Call(name, values) => match self.facts.functions.get(name) {
                Some(function) if calls < CALLS_MAX => {
                    let body = function.called(values);
                    return body.map_or_else(
                        || {
                            vec![unknown(
                                step,
                                "the function takes other values, or ones that it changes",
                            )]
                        },
                        |it| self.call(step, &it, calls),
                    );
                }
                _ => self.method(name, values),
            },
            Does::Return(_) => Action::Unknown("return inside of a function has no equal".into()),
            Does::Unknown => Action::Unknown("has no equal in rules of a BGPPeer".into()),
        };
        vec![Move { line: step.line, text: step.text.clone(), does }]
    }

    /// The moves of a function in place of its call; what it returns is not used.
    fn call(&mut self, step: &Step, body: &[Step], calls: usize) -> Vec<Move> {
        let body = match body.split_last() {
            // What it calls may reject.
            Some((Step { does: Does::Return(Expression::Alone(value)), .. }, rest))
                if !matches!(value, Value::Call(..)) =>
            {
                rest
            }
            _ => body,
        };
        let mut all = self.steps(body, calls.saturating_add(1));
        if all.is_empty() && !body.is_empty() {
            all.push(unknown(step, "has no equal in rules of a BGPPeer"));
        }
        all
    }

    /// Conditions that a rule cannot match at once are taken apart.
    fn branch(
        &mut self,
        step: &Step,
        condition: Condition,
        then: Vec<Move>,
        otherwise: Vec<Move>,
    ) -> Vec<Move> {
        self.count = self.count.saturating_add(then.len()).saturating_add(otherwise.len());
        if self.count > MOVES_MAX {
            return vec![unknown(step, "the filter is too long")];
        }
        match condition {
            Condition::Is(true) => then,
            Condition::Is(false) => otherwise,
            Condition::Not(inner) => self.branch(step, *inner, otherwise, then),
            Condition::Matches(matches) => {
                let index = matches.index().filter(|_| self.facts.source != "RTS_BGP");
                let tested = Tested { matches: *matches, index };
                let does = Action::If(Box::new(tested), then, otherwise);
                vec![Move { line: step.line, text: step.text.clone(), does }]
            }
            Condition::All(_) if !self.may_copy(&otherwise) => {
                vec![unknown(step, "the filter comes to too many conditions")]
            }
            Condition::Any(_) if !self.may_copy(&then) => {
                vec![unknown(step, "the filter comes to too many conditions")]
            }
            Condition::All(mut parts) => {
                let first = parts.remove(0);
                let rest = if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) };
                let inner = self.branch(step, rest, then, otherwise.clone());
                self.branch(step, first, inner, otherwise)
            }
            Condition::Any(mut parts) => {
                let first = parts.remove(0);
                let rest = if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) };
                let inner = self.branch(step, rest, then.clone(), otherwise);
                self.branch(step, first, then, inner)
            }
            Condition::Unknown(why) => vec![unknown(step, &why)],
        }
    }

    /// Whether these moves may be written once more.
    fn may_copy(&mut self, moves: &[Move]) -> bool {
        self.copied = self.copied.saturating_add(size(moves));
        self.copied <= COPIES_MAX
    }

    fn assign(&self, name: &str, value: &Value) -> Action {
        let number = |value: &Value| match value {
            Value::Plain(number) => number.parse::<u32>().ok(),
            _ => None,
        };
        match (name, value) {
            ("bgp_local_pref", value) => number(value).map(|it| Action::Set(Change::LocalPref(it))),
            ("bgp_med", value) => number(value).map(|it| Action::Set(Change::Med(it))),
            ("bgp_next_hop", Value::Plain(address)) if self.facts.outbound => {
                let address = address.parse::<IpAddr>().ok();
                address.map(|it| Action::Set(Change::NextHop(it)))
            }
            ("bgp_community" | "bgp_large_community" | "bgp_ext_community", Value::Empty) => {
                return self.clear(name);
            }
            // `bgp_community = add(bgp_community, (1, 2))`.
            (name, Value::Call(method, values)) => match values.split_first() {
                Some((Value::Plain(same), rest)) if same == name => {
                    return self.method(&format!("{name}.{method}"), rest);
                }
                _ => None,
            },
            _ => None,
        }
        .unwrap_or_else(|| Action::Unknown("has no equal in set of a rule".to_owned()))
    }

    /// An attribute with communities has none.
    fn clear(&self, attribute: &str) -> Action {
        match attribute {
            "bgp_community" if self.facts.may_clear => Action::Set(Change::Clear),
            "bgp_community" => Action::Unknown(
                "a rule removes all kinds of communities, and filters of export look at others"
                    .to_owned(),
            ),
            _ => Action::Unknown(
                "a rule removes all kinds of communities, NO_EXPORT among them".to_owned(),
            ),
        }
    }

    fn method(&self, name: &str, values: &[Value]) -> Action {
        let unknown = |why: &str| Action::Unknown(why.to_owned());
        let Some((attribute, method)) = name.split_once('.') else {
            return unknown("has no equal in rules of a BGPPeer");
        };
        match (attribute, method, values) {
            ("bgp_path", "prepend", [Value::Plain(asn)]) => {
                match self.facts.asn.is_some_and(|own| asn.parse() == Ok(own)) {
                    true => Action::Set(Change::Prepend),
                    false => unknown(
                        "only our own AS can be prepended to what is sent, and the neighbor's to what is received",
                    ),
                }
            }
            ("bgp_community" | "bgp_large_community" | "bgp_ext_community", "empty", []) => {
                self.clear(attribute)
            }
            (attribute, "add", [Value::Tuple(parts)]) => match community(attribute, parts) {
                Some(value) => Action::Set(Change::Add(value)),
                None => unknown("is no community that a rule can set"),
            },
            (attribute, "delete", [value]) => {
                let tuple = |words: &Vec<String>| {
                    let parts: Vec<String> = words
                        .iter()
                        .filter(|it| !["(", ")", ","].contains(&it.as_str()))
                        .cloned()
                        .collect();
                    community(attribute, &parts)
                };
                let all = match value {
                    Value::Tuple(parts) => community(attribute, parts).map(|it| vec![it]),
                    Value::Set(parts) => parts.iter().map(tuple).collect(),
                    _ => None,
                };
                match all {
                    Some(all) => Action::Set(Change::Remove(all)),
                    None => unknown("a rule removes communities by their values"),
                }
            }
            _ => unknown("has no equal in rules of a BGPPeer"),
        }
    }
}

/// How many moves there are, with those inside of others and the prefixes that they match.
fn size(moves: &[Move]) -> usize {
    let each = moves.iter().map(|it| match &it.does {
        Action::If(tested, then, otherwise) => {
            let prefixes = tested.matches.ranges.as_ref().map_or(0, Vec::len);
            size(then).saturating_add(size(otherwise)).saturating_add(prefixes).saturating_add(1)
        }
        _ => 1,
    });
    each.fold(0, usize::saturating_add)
}

fn unknown(step: &Step, why: &str) -> Move {
    let does = Action::Unknown(why.to_owned());
    Move { line: step.line, text: step.text.clone(), does }
}

/// Adds a change to those of a rule.
///
/// # Errors
///
/// A rule cannot set both.
pub(super) fn add(settings: &mut Settings, change: &Change) -> Result<(), &'static str> {
    match change {
        Change::LocalPref(value) => settings.local_pref = Some(*value),
        Change::Med(value) => settings.med = Some(*value),
        Change::NextHop(address) if address.is_ipv6() => {
            settings.ipv6_next_hop = Some(address.to_string());
        }
        Change::NextHop(address) => settings.ipv4_next_hop = Some(address.to_string()),
        Change::Prepend => {
            let count = settings.prepend.unwrap_or(0).saturating_add(1);
            if count > PREPEND_MAX {
                return Err("a rule prepends an AS 16 times at most");
            }
            settings.prepend = Some(count);
        }
        Change::Add(value) => {
            settings.remove.retain(|it| it != value);
            let all = settings.replace.as_mut().unwrap_or(&mut settings.add);
            if !all.contains(value) {
                all.push(value.clone());
            }
        }
        Change::Remove(values) => {
            let all = settings.replace.as_mut().unwrap_or(&mut settings.add);
            all.retain(|it| !values.contains(it));
            if settings.replace.is_none() {
                settings.remove.extend(values.iter().cloned());
            }
        }
        Change::Clear => {
            settings.replace = Some(Vec::new());
            (settings.add, settings.remove) = (Vec::new(), Vec::new());
        }
    }
    Ok(())
}

/// What becomes of a route of ours; nothing if it is rejected, or where something without an equal is met.
pub(super) fn apply(
    moves: &[Move],
    prefix: IpNet,
    route: &mut OwnRoute,
    facts: &Facts<'_>,
) -> Result<Option<bool>, Flaw> {
    for it in moves {
        match &it.does {
            Action::Accept => return Ok(Some(true)),
            Action::Reject => return Ok(Some(false)),
            Action::Unknown(why) => return Err(Flaw::of(it, why.as_str())),
            Action::Set(change) => set(it, change, route)?,
            Action::If(tested, then, otherwise) => {
                let Tested { matches, index } = &**tested;
                if !matches.is_certain_of_own() {
                    let why = "the next hop of own routes is not known here, nor what RPKI says";
                    return Err(Flaw::of(it, why));
                }
                let own = facts.asn.map(|it| it.to_string()).unwrap_or_default();
                let path = vec![own; route.prepend].join(" ");
                let holds = matches.may_take_own(index.as_ref(), prefix, &path, &route.communities);
                let verdict = apply(if holds { then } else { otherwise }, prefix, route, facts)?;
                if verdict.is_some() {
                    return Ok(verdict);
                }
            }
        }
    }
    Ok(None)
}

fn set(it: &Move, change: &Change, route: &mut OwnRoute) -> Result<(), Flaw> {
    let why = match change {
        Change::LocalPref(0) => {
            Some("a LOCAL_PREF of 0 stands for 100 in a BGPAdvertisement; use 1")
        }
        Change::NextHop(_) => Some(
            "the next hop of own routes is ours; set toAdvertise.nextHop, which is for all routes of the neighbor",
        ),
        Change::Add(value) if value.starts_with("rt:") || value.starts_with("soo:") => {
            Some("own routes have no extended communities")
        }
        _ => None,
    };
    if let Some(why) = why {
        return Err(Flaw::of(it, why));
    }
    if matches!(change, Change::Clear) {
        route.communities.retain(|it| is_of_other_kind(it));
        return Ok(());
    }
    let mut settings = Settings::default();
    add(&mut settings, change).map_err(|why| Flaw::of(it, why))?;
    route.set(&settings);
    Ok(())
}
