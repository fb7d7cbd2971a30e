//! `rules` in `toReceive` and `toAdvertise` of a BGPPeer: what happens to routes that `allowed` lets through.
//!
//! Knows no session; `route_policy` calls it.

use std::str::FromStr;

use fairway_ground::{
    AsPathPattern, Communities, ExtendedCommunity, OriginValidation, Prefix, ROUTE_RULES_MAX,
    RouteMatch, RouteRule, RouteSettings, RuleAction,
};
use fairway_model::CommunityValue;
use schemars::JsonSchema;
use serde::Deserialize;

use super::community::CommunityText;
use super::field_path::FieldPath;
use super::fields::{LocalPreference, Metric, PrependCount, Text};
use super::next_hops::{RawNextHop, next_hops};
use super::prefix_range::{RawRange, ranges};
use super::report::{List, Report, elements};

/// One rule.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawRule {
    /// A name for it, shown where it rejects a route: 1 to 63 letters, digits, -, _ and . Default: its number.
    name: Option<Text<RuleName>>,
    /// The routes that it is about. None: all.
    #[serde(rename = "match")]
    matches: Option<RawMatch>,
    /// What it changes in them; the rules after it see the change.
    set: Option<RawSettings>,
    /// What happens then: accept (default), reject, or continue with the next rule.
    #[schemars(extend("enum" = ["accept", "reject", "continue"]))]
    action: Option<Text<Action>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawMatch {
    /// Ranges of prefixes, one of which contains the prefix of the route.
    prefixes: Option<List<RawRange>>,
    /// A regular expression for the AS path; _ is the border of a number, as in _65010$.
    as_path: Option<Text<Pattern>>,
    /// Communities, one of which the route has: 65001:100, large:65001:1:2, rt:65001:100 or soo:65001:100.
    communities: Option<List<Text<AnyCommunity>>>,
    /// Networks, one of which contains the next hop.
    next_hops: Option<List<Text<Prefix>>>,
    /// What RPKI says about the origin: valid, invalid or notFound. In toReceive only.
    #[schemars(extend("enum" = ["valid", "invalid", "notFound"]))]
    origin_validation: Option<Text<OriginValidation>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawSettings {
    /// LOCAL_PREF.
    local_pref: Option<LocalPreference>,
    /// MULTI_EXIT_DISC.
    med: Option<Metric>,
    /// What happens to the communities.
    communities: Option<RawCommunities>,
    /// How many extra times an AS is in the path: the first one of a received route, ours in one that is sent.
    as_path_prepend: Option<PrependCount>,
    /// The next hop, whatever that of the peer is. In toAdvertise only.
    next_hop: Option<RawNextHop>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawCommunities {
    /// Communities that the route gets.
    add: Option<List<Text<AnyCommunity>>>,
    /// Communities that it loses.
    remove: Option<List<Text<AnyCommunity>>>,
    /// The communities of all kinds that it has from now on, none with an empty list. Not with add and remove.
    replace: Option<List<Text<AnyCommunity>>>,
}

/// The operator's word for a rule.
struct RuleName(String);

impl FromStr for RuleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_known = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        if (1..=63).contains(&text.len()) && text.chars().all(is_known) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("{text:?} is not a name; expected 1 to 63 letters, digits, -, _ and ."))
    }
}

struct Action(RuleAction);

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [RuleAction::Accept, RuleAction::Reject, RuleAction::Continue];
        all.into_iter().find(|it| it.to_string() == text).map(Self).ok_or_else(|| {
            format!("{text:?} is not an action; expected accept, reject or continue")
        })
    }
}

struct Pattern(AsPathPattern);

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        AsPathPattern::new(text).map(Self).map_err(|error| {
            format!("{text:?} is not a regular expression: {error}; expected one as in ^65010_")
        })
    }
}

/// A community of any kind.
enum AnyCommunity {
    Plain(CommunityValue),
    Extended(ExtendedCommunity),
}

impl FromStr for AnyCommunity {
    type Err = fairway_ground::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if ExtendedCommunity::has_name(text) {
            return text.parse().map(Self::Extended);
        }
        text.parse().map(|CommunityText(value)| Self::Plain(value))
    }
}

/// The rules at `path`, in their order.
pub(super) fn parse(
    raw: Option<List<RawRule>>,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Vec<RouteRule> {
    if raw.as_ref().is_some_and(|list| list.len() > ROUTE_RULES_MAX) {
        report.fault(path, format_args!("has too many rules; expected at most {ROUTE_RULES_MAX}"));
        return Vec::new();
    }
    let mut rules: Vec<RouteRule> = Vec::new();
    let mut is_settled = false;
    for (position, raw) in elements(raw) {
        let path = path.index(position);
        if is_settled {
            report.warning(
                &path,
                "has no effect: a rule before it accepts or rejects every route; move it up",
            );
        }
        let rule = rule(raw, &path, report);
        let is_named = |it: &RouteRule| it.name.is_some() && it.name == rule.name;
        if rules.iter().any(is_named) {
            report.fault(&path.key("name"), "is given twice; choose another name");
        }
        is_settled |= rule.action != RuleAction::Continue
            && rule.matches == RouteMatch::default()
            && !report.is_faulty(&path.key("match"));
        rules.push(rule);
    }
    rules
}

fn rule(raw: RawRule, path: &FieldPath, report: &mut Report<'_>) -> RouteRule {
    let action = raw.action.map(|Text(Action(action))| action).unwrap_or_default();
    let matches = matches(raw.matches.unwrap_or_default(), &path.key("match"), report);
    let settings_path = path.key("set");
    let settings = settings(raw.set.unwrap_or_default(), &settings_path, report);
    if action == RuleAction::Reject && settings != RouteSettings::default() {
        report.warning(&settings_path, "has no effect: the rule rejects the route");
    }
    if action == RuleAction::Continue && settings == RouteSettings::default() {
        report.warning(path, "has no effect: it sets nothing, and goes on with the next rule");
    }
    RouteRule { name: raw.name.map(|Text(RuleName(name))| name.into()), matches, settings, action }
}

fn matches(raw: RawMatch, path: &FieldPath, report: &mut Report<'_>) -> RouteMatch {
    for (field, is_empty) in [
        ("prefixes", raw.prefixes.as_ref().is_some_and(Vec::is_empty)),
        ("communities", raw.communities.as_ref().is_some_and(Vec::is_empty)),
        ("nextHops", raw.next_hops.as_ref().is_some_and(Vec::is_empty)),
    ] {
        if is_empty {
            report.fault(&path.key(field), "is empty; expected at least one, or no such field");
        }
    }
    RouteMatch {
        prefixes: ranges(raw.prefixes, &path.key("prefixes"), report),
        as_path: raw.as_path.map(|Text(Pattern(pattern))| pattern),
        communities: communities(raw.communities),
        next_hops: elements(raw.next_hops).map(|(_, Text(network))| network).collect(),
        origin_validation: raw.origin_validation.map(|Text(state)| state),
    }
}

fn settings(raw: RawSettings, path: &FieldPath, report: &mut Report<'_>) -> RouteSettings {
    let RawCommunities { add, remove, replace } = raw.communities.unwrap_or_default();
    if replace.is_some() && (add.is_some() || remove.is_some()) {
        report.fault(
            &path.key("communities").key("replace"),
            "and add or remove cannot both be given; list in replace all that the route has",
        );
    }
    RouteSettings {
        local_pref: raw.local_pref.map(|LocalPreference(value)| value),
        med: raw.med.map(|Metric(value)| value),
        removes_communities: replace.is_some(),
        removed: communities(remove),
        added: communities(replace.or(add)),
        prepend: raw.as_path_prepend.map_or(0, |PrependCount(count)| count),
        next_hops: raw.next_hop.map(next_hops).unwrap_or_default(),
    }
}

fn communities(raw: Option<List<Text<AnyCommunity>>>) -> Communities {
    let mut communities = Communities::default();
    for (_, Text(community)) in elements(raw) {
        match community {
            AnyCommunity::Plain(CommunityValue::Standard(it)) => communities.standard.push(it),
            AnyCommunity::Plain(CommunityValue::Large(it)) => communities.large.push(it),
            AnyCommunity::Extended(it) => communities.extended.push(it),
        }
    }
    communities
}
