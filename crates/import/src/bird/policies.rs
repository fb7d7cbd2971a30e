//! What the filters of a text do to routes.
//!
//! Answers what passes of learned routes, and what becomes of one of ours, with the names of filters, functions and protocols
//! that the text has. Knows no session.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::channel::{Code, Filter};
use super::code::{Function, Step};
use super::condition::{Facts, Origin, looks_at_other_kinds};
use super::filter::{Flaw, Move, apply, moves};
use super::rules;
use super::statics::Static;
use crate::outcome::Outcome;
use crate::policy::{OwnRoute, Passes};

/// Which way routes go, and the AS that a filter may prepend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) ipv6: bool,
    pub(super) outbound: bool,
    pub(super) asn: Option<u32>,
}

/// What filters name.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) filters: BTreeMap<String, Vec<Step>>,
    pub(super) functions: BTreeMap<String, Function>,
    /// Names of BGP protocols.
    pub(super) neighbors: BTreeSet<String>,
    pub(super) roa_tables: BTreeSet<String>,
    /// Whether a filter of `export` looks at large or extended communities.
    pub(super) exports_by_other_kinds: bool,
}

impl Policies {
    fn facts<'a>(&'a self, way: Way, source: &'static str, origin: Origin<'a>) -> Facts<'a> {
        let Way { ipv6, outbound, asn } = way;
        let (functions, roa_tables) = (&self.functions, &self.roa_tables);
        let may_clear = outbound || !self.exports_by_other_kinds;
        Facts { ipv6, outbound, asn, source, origin, may_clear, functions, roa_tables }
    }

    /// Whether a filter looks at large or extended communities, or a function that it may call.
    pub(super) fn looks_at_other_kinds(&self, filter: &Filter) -> bool {
        self.steps(filter).is_ok_and(|it| looks_at_other_kinds(it.0))
            || self.functions.values().any(Function::looks_at_other_kinds)
    }

    fn steps<'a>(&'a self, filter: &'a Filter) -> Result<(&'a [Step], Option<&'a str>), Flaw> {
        match &filter.code {
            Code::Steps(steps) => Ok((steps, None)),
            Code::Named(name) => match self.filters.get(name) {
                Some(steps) => Ok((steps, Some(name))),
                None => Err(Flaw {
                    line: filter.line,
                    text: filter.text.clone(),
                    why: "the text has no such filter, so that nothing passes".to_owned(),
                }),
            },
        }
    }

    /// What passes of routes that neighbors announce; `from` is the one of them that a filter is for.
    pub(super) fn learned(
        &self,
        filter: &Filter,
        way: Way,
        from: Option<&str>,
        outcome: &mut Outcome,
    ) -> Passes {
        let origin = from.map_or(Origin::Neighbor(&self.neighbors), Origin::Protocol);
        self.passes(filter, &self.facts(way, "RTS_BGP", origin), outcome)
    }

    /// Whether routes to the networks of interfaces may pass.
    pub(super) fn may_pass_direct(&self, filter: &Filter, way: Way, protocol: &str) -> bool {
        let facts = self.facts(way, "RTS_DEVICE", Origin::Protocol(protocol));
        // What has no equal is told about learned routes.
        let mut unsaid = Outcome::new("");
        self.passes(filter, &facts, &mut unsaid) != Passes::Nothing
    }

    fn passes(&self, filter: &Filter, facts: &Facts<'_>, outcome: &mut Outcome) -> Passes {
        let (steps, name) = match self.steps(filter) {
            Ok(found) => found,
            Err(flaw) => {
                outcome.untranslated(flaw.line, &flaw.text, flaw.why);
                return Passes::Nothing;
            }
        };
        let translation = rules::passes(&moves(steps, facts), name);
        for flaw in translation.flaws {
            outcome.untranslated(flaw.line, &flaw.text, flaw.why);
        }
        for note in translation.notes {
            outcome.note(note.line, &note.text, note.why);
        }
        translation.passes
    }

    /// A filter that routes of ours meet; nothing where it does not exist, which is told about learned routes.
    pub(super) fn own<'a>(
        &'a self,
        filter: &'a Filter,
        way: Way,
        of: &'a Static,
    ) -> Option<Own<'a>> {
        let (steps, _) = self.steps(filter).ok()?;
        Some(self.of_steps(steps, way, of))
    }

    /// The same of steps, which may decide nothing.
    pub(super) fn of_steps<'a>(&'a self, steps: &[Step], way: Way, of: &'a Static) -> Own<'a> {
        let facts = self.facts(way, "RTS_STATIC", Origin::Protocol(&of.name));
        Own { moves: moves(steps, &facts), facts }
    }
}

/// What is done to routes of ours, one after the other.
pub(super) struct Own<'a> {
    moves: Vec<Move>,
    facts: Facts<'a>,
}

impl Own<'_> {
    /// What becomes of a route, and whether it passes; nothing where something has no equal.
    pub(super) fn applied(
        &self,
        prefix: IpNet,
        route: &OwnRoute,
        outcome: &mut Outcome,
    ) -> Option<(OwnRoute, Option<bool>)> {
        let mut route = route.clone();
        match apply(&self.moves, prefix, &mut route, &self.facts) {
            Ok(verdict) => Some((route, verdict)),
            Err(flaw) => {
                let why = format!("{}; own routes that come this far are not announced", flaw.why);
                outcome.untranslated(flaw.line, &flaw.text, why);
                None
            }
        }
    }

    /// The route, if it passes.
    pub(super) fn passed(
        &self,
        prefix: IpNet,
        route: &OwnRoute,
        outcome: &mut Outcome,
    ) -> Option<OwnRoute> {
        let (route, verdict) = self.applied(prefix, route, outcome)?;
        (verdict == Some(true)).then_some(route)
    }
}
