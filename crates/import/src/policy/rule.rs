//! Rules of a BGPPeer: what a rule matches, what it sets and what it does.
//!
//! Answers the fields of `rules`. Knows no source and no neighbor.

use fairway_ground::AsPathPattern;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::range::{Range, RangeIndex};
use crate::object::Fields;

/// As often as a rule may prepend an AS.
pub(crate) const PREPEND_MAX: usize = 16;

/// As many ranges of two lists are compared.
const INTERSECTIONS_MAX: usize = 1_000_000;

/// What routes a rule is about: all that is given must hold.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Matches {
    pub(crate) ranges: Option<Vec<Range>>,
    pub(crate) as_path: Option<String>,
    pub(crate) communities: Option<Vec<String>>,
    pub(crate) next_hops: Option<Vec<IpNet>>,
    pub(crate) origin_validation: Option<&'static str>,
}

impl Matches {
    /// As `match` of a rule.
    pub(crate) fn value(&self) -> Option<Value> {
        let Self { ranges, as_path, communities, next_hops, origin_validation } = self;
        let mut matches = Fields::default();
        let ranges = ranges.as_ref().map(|it| it.iter().map(|it| it.value()).collect::<Vec<_>>());
        matches.set("prefixes", ranges.map(|it| json!(it)));
        matches.set("asPath", as_path.as_ref().map(|it| json!(it)));
        matches.set("communities", communities.as_ref().map(|it| json!(it)));
        let next_hops =
            next_hops.as_ref().map(|it| it.iter().map(ToString::to_string).collect::<Vec<_>>());
        matches.set("nextHops", next_hops.map(|it| json!(it)));
        matches.set("originValidation", origin_validation.map(|it| json!(it)));
        matches.some()
    }

    /// Routes that both are about; `Ok(None)`: there are none.
    ///
    /// # Errors
    ///
    /// One rule cannot say both.
    pub(crate) fn and(&self, other: &Self) -> Result<Option<Self>, &'static str> {
        let mut both = self.clone();
        if let Some(ranges) = &other.ranges {
            let common = match &self.ranges {
                None => ranges.clone(),
                Some(own) if own.len().saturating_mul(ranges.len()) > INTERSECTIONS_MAX => {
                    return Err("two sets of prefixes are too long to compare");
                }
                Some(own) => {
                    let with_all = |it: &Range| {
                        ranges.iter().filter_map(|other| it.and(*other)).collect::<Vec<_>>()
                    };
                    own.iter().flat_map(with_all).collect()
                }
            };
            if common.is_empty() {
                return Ok(None);
            }
            both.ranges = Some(common);
        }
        match (&self.as_path, &other.as_path) {
            (_, None) => {}
            (None, pattern) => both.as_path.clone_from(pattern),
            (Some(one), Some(other)) if one == other => {}
            (Some(one), Some(other)) => {
                let joined = first_and_last(one, other).or_else(|| first_and_last(other, one));
                let joined = joined.ok_or("one rule matches one expression for the AS path")?;
                both.as_path = Some(joined);
            }
        }
        match (&self.communities, &other.communities) {
            (_, None) => {}
            (None, all) => both.communities.clone_from(all),
            (Some(own), Some(all)) if own.iter().all(|it| all.contains(it)) => {}
            (Some(own), Some(all)) if all.iter().all(|it| own.contains(it)) => {
                both.communities = Some(all.clone());
            }
            _ => return Err("one rule matches one of its communities; this needs one of each set"),
        }
        match (&self.next_hops, &other.next_hops) {
            (_, None) => {}
            (None, all) => both.next_hops.clone_from(all),
            (Some(own), Some(all)) if own == all => {}
            _ => return Err("one rule matches one set of next hops"),
        }
        match (self.origin_validation, other.origin_validation) {
            (_, None) => {}
            (None, state) => both.origin_validation = state,
            (Some(own), Some(state)) if own == state => {}
            _ => return Ok(None),
        }
        Ok(Some(both))
    }

    /// Routes that one of the two is about, where both say one thing of the same kind.
    pub(crate) fn or(&self, other: &Self) -> Option<Self> {
        let only = Self::default();
        let either = match (self, other) {
            (Self { ranges: Some(own), .. }, Self { ranges: Some(more), .. }) => {
                Self { ranges: Some(own.iter().chain(more).copied().collect()), ..only.clone() }
            }
            (Self { communities: Some(own), .. }, Self { communities: Some(more), .. }) => Self {
                communities: Some(own.iter().chain(more).cloned().collect()),
                ..only.clone()
            },
            (Self { as_path: Some(own), .. }, Self { as_path: Some(more), .. }) => {
                Self { as_path: Some(format!("({own})|({more})")), ..only.clone() }
            }
            _ => return None,
        };
        // Nothing else is said on either side.
        let rest = |it: &Self| Self {
            ranges: it.ranges.clone().filter(|_| either.ranges.is_none()),
            communities: it.communities.clone().filter(|_| either.communities.is_none()),
            as_path: it.as_path.clone().filter(|_| either.as_path.is_none()),
            ..it.clone()
        };
        (rest(self) == only && rest(other) == only).then_some(either)
    }

    /// Whether it is about every route.
    pub(crate) fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it is about prefixes and nothing else.
    pub(crate) fn is_of_ranges_only(&self) -> bool {
        self.ranges.is_some() && *self == Self { ranges: self.ranges.clone(), ..Self::default() }
    }

    /// Its prefixes, to be asked of many routes.
    pub(crate) fn index(&self) -> Option<RangeIndex> {
        self.ranges.as_ref().map(|it| RangeIndex::of(it.iter().copied()))
    }

    /// Whether an own route with this path matches, as far as that can be told here: of its next hop and its state of RPKI
    /// nothing is known. `index` is [`Self::index`].
    pub(crate) fn may_take_own(
        &self,
        index: Option<&RangeIndex>,
        prefix: IpNet,
        path: &str,
        communities: &[String],
    ) -> bool {
        let in_ranges = index.is_none_or(|it| it.first(prefix).is_some());
        let marked = self.communities.as_ref();
        let marked = marked.is_none_or(|it| it.iter().any(|one| communities.contains(one)));
        // Last, since the expression is compiled for it.
        let is_in = |it: &String| AsPathPattern::new(it).is_ok_and(|it| it.is_in(path));
        in_ranges && marked && self.as_path.as_ref().is_none_or(is_in)
    }

    /// Whether [`Self::may_take_own`] is all that there is to it.
    pub(crate) fn is_certain_of_own(&self) -> bool {
        self.next_hops.is_none() && self.origin_validation.is_none()
    }
}

/// One expression for paths that begin with one of some numbers (`^(1|2)_`) and end with one of others (`_(2|3)$`).
fn first_and_last(first: &str, last: &str) -> Option<String> {
    let numbers = |text: &str| {
        let inside = text.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(text);
        let all: Vec<String> = inside.split('|').map(str::to_owned).collect();
        let is_plain = |it: &String| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        all.iter().all(is_plain).then_some(all)
    };
    let (begin, end) =
        (first.strip_prefix('^')?.strip_suffix('_')?, last.strip_prefix('_')?.strip_suffix('$')?);
    let (begins, ends) = (numbers(begin)?, numbers(end)?);
    // A path of one number begins and ends with it.
    let alone = begins.into_iter().filter(|it| ends.contains(it));
    let longer = format!("{begin} (.* )?{end}");
    let all: Vec<String> = std::iter::once(longer).chain(alone).collect();
    Some(format!("^({})$", all.join("|")))
}

/// What a rule changes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) local_pref: Option<u32>,
    pub(crate) med: Option<u32>,
    pub(crate) add: Vec<String>,
    pub(crate) remove: Vec<String>,
    pub(crate) replace: Option<Vec<String>>,
    pub(crate) prepend: Option<usize>,
    pub(crate) ipv4_next_hop: Option<String>,
    pub(crate) ipv6_next_hop: Option<String>,
}

impl Settings {
    /// As `set` of a rule.
    pub(crate) fn value(&self) -> Option<Value> {
        let mut fields = Fields::default();
        fields.set("localPref", self.local_pref.map(|it| json!(it)));
        fields.set("med", self.med.map(|it| json!(it)));
        let mut communities = Fields::default();
        communities.set("replace", self.replace.as_ref().map(|it| json!(it)));
        communities.set("add", (!self.add.is_empty()).then(|| json!(self.add)));
        communities.set("remove", (!self.remove.is_empty()).then(|| json!(self.remove)));
        fields.set("communities", communities.some());
        fields.set("asPathPrepend", self.prepend.map(|it| json!(it)));
        let mut next_hop = Fields::default();
        next_hop.set("ipv4", self.ipv4_next_hop.as_ref().map(|it| json!(it)));
        next_hop.set("ipv6", self.ipv6_next_hop.as_ref().map(|it| json!(it)));
        fields.set("nextHop", next_hop.some());
        fields.some()
    }
}

/// What a rule does with a route that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Accept,
    Reject,
    Continue,
}

/// A rule of a BGPPeer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) matches: Matches,
    pub(crate) settings: Settings,
    pub(crate) action: Action,
}

impl Rule {
    /// What no entry permits is rejected.
    pub(crate) fn reject_rest() -> Self {
        let (matches, settings) = Default::default();
        Self { name: None, matches, settings, action: Action::Reject }
    }

    /// All routes have this LOCAL_PREF for the rules that follow.
    pub(crate) fn preferring(local_pref: u32) -> Self {
        let settings = Settings { local_pref: Some(local_pref), ..Settings::default() };
        Self { name: None, matches: Matches::default(), settings, action: Action::Continue }
    }

    /// About these prefixes.
    pub(crate) fn of_ranges(ranges: Vec<Range>, action: Action) -> Self {
        let matches = Matches { ranges: Some(ranges), ..Matches::default() };
        Self { name: None, matches, settings: Settings::default(), action }
    }

    /// About paths in which this is found.
    pub(crate) fn of_as_path(pattern: &str, action: Action) -> Self {
        let matches = Matches { as_path: Some(pattern.to_owned()), ..Matches::default() };
        Self { name: None, matches, settings: Settings::default(), action }
    }

    pub(crate) fn value(&self) -> Value {
        let mut fields = Fields::default();
        fields.set("name", self.name.as_ref().map(|it| json!(it)));
        fields.set("match", self.matches.value());
        fields.set("set", self.settings.value());
        let action = match self.action {
            Action::Accept if !fields.is_empty() => None,
            Action::Accept => Some("accept"),
            Action::Reject => Some("reject"),
            Action::Continue => Some("continue"),
        };
        fields.set("action", action.map(|it| json!(it)));
        Value::Object(fields.0)
    }
}
