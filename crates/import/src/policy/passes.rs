//! What passes between a neighbor and this router, as `allowed` and `rules` of a BGPPeer.
//!
//! Writes what passes of both address families as one policy. Knows no source.

use serde_json::{Value, json};

use super::range::Range;
use super::rule::Rule;
use crate::object::Fields;
use crate::outcome::Outcome;

/// As many rules as a BGPPeer takes.
const RULES_MAX: usize = fairway_ground::ROUTE_RULES_MAX;

/// What passes, of one family.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Passes {
    Nothing,
    /// What these ranges contain, or all, as far as the rules do not reject it.
    Some {
        allowed: Option<Vec<Range>>,
        rules: Vec<Rule>,
    },
}

impl Passes {
    pub(crate) const EVERYTHING: Self = Self::Some { allowed: None, rules: Vec::new() };

    /// The same, with this LOCAL_PREF where no rule sets another.
    pub(crate) fn preferred(mut self, local_pref: u32) -> Self {
        if let Self::Some { rules, .. } = &mut self {
            rules.insert(0, Rule::preferring(local_pref));
        }
        self
    }
}

/// Where a policy was written, for what is said of it as a whole.
pub(crate) struct Named<'a> {
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// `allowed` and `rules` of what passes of each family, `None` where the family is not exchanged. No fields: nothing passes.
pub(crate) fn policy(
    ipv4: Option<Passes>,
    ipv6: Option<Passes>,
    named: &Named<'_>,
    outcome: &mut Outcome,
) -> Fields {
    let mut fields = Fields::default();
    let (allowed, rules) = match (ipv4, ipv6) {
        (None, None)
        | (Some(Passes::Nothing), None | Some(Passes::Nothing))
        | (None, Some(Passes::Nothing)) => {
            return fields;
        }
        (Some(Passes::Some { allowed, rules }), None)
        | (None, Some(Passes::Some { allowed, rules })) => (allowed, rules),
        (Some(ipv4), Some(ipv6)) if ipv4 == ipv6 && ipv4 == Passes::EVERYTHING => {
            (None, Vec::new())
        }
        (ipv4, ipv6) => both(ipv4, ipv6),
    };
    if rules.len() > RULES_MAX {
        let why = format!(
            "{} rules; a BGPPeer has up to {RULES_MAX}. Until there are fewer, nothing passes",
            rules.len()
        );
        outcome.untranslated(named.line, named.text, why);
        return fields;
    }
    let allowed = match allowed {
        None => json!({"mode": "all"}),
        Some(ranges) => {
            let ranges: Vec<Value> = ranges.into_iter().map(Range::value).collect();
            json!({"mode": "filtered", "prefixes": ranges})
        }
    };
    fields.set("allowed", allowed);
    let rules: Vec<Value> = rules.iter().map(Rule::value).collect();
    fields.set("rules", (!rules.is_empty()).then(|| json!(rules)));
    fields
}

/// Both families in one list, each of whose rules is about one of them.
fn both(ipv4: Option<Passes>, ipv6: Option<Passes>) -> (Option<Vec<Range>>, Vec<Rule>) {
    let mut ranges = Vec::new();
    let mut all = Vec::new();
    let mut is_everything = true;
    for (is_ipv6, passes) in [(false, ipv4), (true, ipv6)] {
        let Some(Passes::Some { allowed, rules }) = passes else {
            is_everything = false;
            continue;
        };
        is_everything &= allowed.is_none();
        ranges.extend(allowed.unwrap_or_else(|| vec![Range::everything(is_ipv6)]));
        all.extend(rules.into_iter().map(|mut rule| {
            rule.matches.ranges.get_or_insert_with(|| vec![Range::everything(is_ipv6)]);
            if let Some(name) = &mut rule.name {
                name.push_str(if is_ipv6 { ".6" } else { ".4" });
                name.truncate(63);
            }
            rule
        }));
    }
    ((!is_everything).then_some(ranges), all)
}
