//! Rules of an operator about routes: which routes does one match, and what does it do with them?
//!
//! Values only; the RIB applies them to routes. Rules are tried in order. The settings of each one that matches take effect
//! at once, so the rules after it see the route with them; the first one that accepts or rejects is the last one.

use std::fmt;
use std::sync::Arc;

use super::{
    AsPathPattern, ChosenNextHops, Community, ExtendedCommunity, LargeCommunity, NextHop,
    OriginValidation, Prefix, PrefixRange,
};

/// The most rules of one direction of a peer: each has a bit in a number of 64.
pub const ROUTE_RULES_MAX: usize = 64;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteRule {
    /// The operator's word for it.
    pub name: Option<Arc<str>>,
    /// The routes that it is about.
    pub matches: RouteMatch,
    /// What it changes in them.
    pub settings: RouteSettings,
    /// What happens then.
    pub action: RuleAction,
}

/// What happens to a route that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum RuleAction {
    /// It passes, and no other rule is tried.
    #[default]
    Accept,
    /// It does not pass.
    Reject,
    /// The next rule is tried.
    Continue,
}

/// All conditions must hold; one that is empty holds for every route.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteMatch {
    /// The prefix is in one of these ranges.
    pub prefixes: Vec<PrefixRange>,
    /// The AS path has this form.
    pub as_path: Option<AsPathPattern>,
    /// The route has one of these communities.
    pub communities: Communities,
    /// The next hop is in one of these networks.
    pub next_hops: Vec<Prefix>,
    /// The origin has this state (RFC 6811).
    pub origin_validation: Option<OriginValidation>,
}

impl RouteMatch {
    /// Whether the condition about prefixes holds.
    pub fn has_prefix(&self, prefix: Prefix) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|range| range.contains(prefix))
    }

    /// Whether the condition about the origin holds for a route in this state; `None` is one whose state nobody knows.
    pub fn has_origin_validation(&self, state: Option<OriginValidation>) -> bool {
        self.origin_validation.is_none() || self.origin_validation == state
    }

    /// Whether the condition about next hops holds.
    pub fn has_next_hop(&self, next_hop: NextHop) -> bool {
        let address = next_hop.address();
        self.next_hops.is_empty() || self.next_hops.iter().any(|it| it.contains(address))
    }
}

/// Communities of the three kinds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Communities {
    /// RFC 1997.
    pub standard: Vec<Community>,
    /// RFC 4360.
    pub extended: Vec<ExtendedCommunity>,
    /// RFC 8092.
    pub large: Vec<LargeCommunity>,
}

impl Communities {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.standard.is_empty() && self.extended.is_empty() && self.large.is_empty()
    }
}

/// What a rule changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteSettings {
    /// LOCAL_PREF.
    pub local_pref: Option<u32>,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// All communities are removed first.
    pub removes_communities: bool,
    /// Communities that are removed.
    pub removed: Communities,
    /// Communities that are added.
    pub added: Communities,
    /// How often an AS is put in front of the path: of a received route its first one, of one that is sent ours.
    pub prepend: u8,
    /// The next hop; only of routes that are sent.
    pub next_hops: ChosenNextHops,
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Continue => "continue",
        })
    }
}
