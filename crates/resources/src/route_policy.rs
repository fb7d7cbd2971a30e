//! `toReceive` and `toAdvertise` of a BGPPeer: which learned routes pass, in frr-k8s's words.
//!
//! Knows no session; `bgp_peer` calls it.

use std::str::FromStr;

use fairway_ground::{ChosenNextHops, ImportPolicy, MaximumPrefixes, PrefixFilter, RouteRule};
use schemars::JsonSchema;
use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::{AttributeBytes, OwnAsCount, Percentage, PrefixLimit, Text};
use super::next_hops::{RawNextHop, next_hops};
use super::prefix_range::{RawRange, ranges};
use super::report::{List, Report};
use super::route_rules::{self, RawRule};

/// What is accepted from the peer; not set: nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawToReceive {
    /// What is accepted.
    allowed: Option<RawAllowed>,
    /// Ends the session when the peer announces more.
    max_prefixes: Option<RawMaximumPrefixes>,
    /// Up to 64 rules for what is accepted; the first one that accepts or rejects a route is the last one.
    rules: Option<List<RawRule>>,
    /// Whether all routes that are refused are kept for filtered-routes. Default: the first 1000.
    keep_filtered: Option<bool>,
}

/// Which learned routes are advertised to the peer, too; not set: none.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawToAdvertise {
    /// What is passed on.
    allowed: Option<RawAllowed>,
    /// The next hops that are advertised to the peer, instead of our own addresses.
    next_hop: Option<RawNextHop>,
    /// Up to 64 rules for what is passed on; the first one that accepts or rejects a route is the last one.
    rules: Option<List<RawRule>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawAllowed {
    /// all, or filtered for the prefixes listed (default).
    #[schemars(extend("enum" = ["filtered", "all"]))]
    mode: Option<Text<Mode>>,
    /// The prefixes that pass.
    prefixes: Option<List<RawRange>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Filtered,
    All,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "filtered" => Ok(Self::Filtered),
            "all" => Ok(Self::All),
            other => Err(format!("{other:?} is not a mode; expected filtered or all")),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawMaximumPrefixes {
    /// The most prefixes of each family.
    #[schemars(required)]
    limit: Option<PrefixLimit>,
    /// The share of the limit from which on the log warns. Default: 75.
    warn_percent: Option<Percentage>,
    /// The most bytes of path attributes of all accepted routes. Default: 1024 for each prefix of the limit, at
    /// least 1048576.
    attribute_bytes: Option<AttributeBytes>,
}

/// What is accepted from the peer. Without the field, nothing.
pub(super) fn to_receive(
    raw: Option<RawToReceive>,
    own_as: Option<OwnAsCount>,
    report: &mut Report<'_>,
) -> ImportPolicy {
    let own_as_max = own_as.map_or(0, |OwnAsCount(count)| count);
    let path = FieldPath::of("spec.toReceive");
    let Some(raw) = raw else { return ImportPolicy { own_as_max, ..ImportPolicy::default() } };
    let allowed = filter(raw.allowed, &path, report);
    let maximum = raw.max_prefixes.and_then(|raw| maximum(&raw, &path.key("maxPrefixes"), report));
    if maximum.is_some() && allowed == PrefixFilter::Nothing {
        report.warning(
            &path.key("maxPrefixes"),
            "has no effect: toReceive.allowed accepts no route, and routes that are not accepted \
             do not count",
        );
    }
    let rules = rules(raw.rules, &allowed, &path, report);
    let sets_next_hop = |it: &RouteRule| it.settings.next_hops != ChosenNextHops::default();
    let message = "is for toAdvertise: received routes keep their next hop";
    refuse(&rules, sets_next_hop, &path, "set.nextHop", message, report);
    ImportPolicy {
        allowed,
        maximum,
        own_as_max,
        rules: rules.into(),
        keeps_filtered: raw.keep_filtered.unwrap_or(false),
    }
}

/// Which learned routes are advertised to the peer, none if the field is not set; the rules for them; and the
/// next hops of all its routes, where they are not our own addresses.
pub(super) fn to_advertise(
    raw: Option<RawToAdvertise>,
    report: &mut Report<'_>,
) -> (PrefixFilter, Vec<RouteRule>, ChosenNextHops) {
    let path = FieldPath::of("spec.toAdvertise");
    let Some(raw) = raw else { return Default::default() };
    let chosen = raw.next_hop.map(next_hops).unwrap_or_default();
    let allowed = filter(raw.allowed, &path, report);
    let rules = rules(raw.rules, &allowed, &path, report);
    (allowed, rules, chosen)
}

/// A fault of each rule that has a field of the other direction.
fn refuse(
    rules: &[RouteRule],
    has_field: impl Fn(&RouteRule) -> bool,
    parent: &FieldPath,
    field: &str,
    message: &str,
    report: &mut Report<'_>,
) {
    for (position, _) in rules.iter().enumerate().filter(|(_, rule)| has_field(rule)) {
        let rule = parent.key("rules").index(position);
        report.fault(&rule.join(&FieldPath::of(field)), message);
    }
}

/// `rules`, for the routes that are `allowed`.
fn rules(
    raw: Option<List<RawRule>>,
    allowed: &PrefixFilter,
    parent: &FieldPath,
    report: &mut Report<'_>,
) -> Vec<RouteRule> {
    let path = parent.key("rules");
    let rules = route_rules::parse(raw, &path, report);
    if !rules.is_empty() && *allowed == PrefixFilter::Nothing {
        report.warning(
            &path,
            "has no effect: allowed lets no route through; set allowed, as in {mode: all}",
        );
    }
    rules
}

/// `allowed`; the default mode is `filtered`.
fn filter(raw: Option<RawAllowed>, parent: &FieldPath, report: &mut Report<'_>) -> PrefixFilter {
    let path = parent.key("allowed");
    let Some(raw) = raw else { return PrefixFilter::Nothing };
    let list = path.key("prefixes");
    let has_prefixes = raw.prefixes.as_ref().is_some_and(|prefixes| !prefixes.is_empty());
    if raw.mode == Some(Text(Mode::All)) {
        if has_prefixes {
            report.fault(&list, "and mode all cannot both be given; use mode filtered");
        }
        return PrefixFilter::Everything;
    }
    let ranges = ranges(raw.prefixes, &list, report);
    // A faulty list gets no second finding.
    let is_faulty = ["mode", "prefixes"].iter().any(|field| report.is_faulty(&path.key(field)));
    if !has_prefixes && !is_faulty {
        report.warning(
            &path,
            "allows nothing: mode is filtered and prefixes is empty; list prefixes, or use mode \
             all",
        );
        return PrefixFilter::Nothing;
    }
    PrefixFilter::Listed(ranges)
}

fn maximum(
    raw: &RawMaximumPrefixes,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Option<MaximumPrefixes> {
    let limit = raw.limit.map(|PrefixLimit(limit)| limit);
    let limit = report.required(limit, &path.key("limit"), "a number from 1 to 4294967295")?;
    let percent = raw.warn_percent.map(|Percentage(percent)| percent);
    let warn_percent = percent.unwrap_or(MaximumPrefixes::WARN_PERCENT_DEFAULT);
    let attribute_bytes = raw.attribute_bytes.map(|AttributeBytes(bytes)| bytes);
    Some(MaximumPrefixes { limit, warn_percent, attribute_bytes })
}
