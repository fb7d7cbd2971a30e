//! `protocol static`: routes of the router itself.
//!
//! Answers which prefixes a protocol has, and what their lines and its filter make of them. Knows no neighbor.

use ipnet::IpNet;

use super::channel::{Channel, is_on};
use super::code::{Step, filter};
use super::policies::{Policies, Way};
use super::text::Statement;
use super::translated_each;
use crate::outcome::Outcome;
use crate::policy::OwnRoute;

/// A protocol with its routes.
#[derive(Debug, Default)]
pub(super) struct Static {
    pub(super) name: String,
    routes: Vec<(IpNet, Vec<Step>)>,
    channel: Channel,
    is_off: bool,
    /// Some say which AS may announce a prefix, beside what caches say.
    pub(super) has_roas: bool,
}

impl Static {
    /// Reads the statements of a protocol.
    pub(super) fn read(name: &str, statements: &[Statement], outcome: &mut Outcome) -> Self {
        let mut protocol = Self { name: name.to_owned(), ..Self::default() };
        translated_each(statements, outcome, |words, statement, outcome| {
            protocol.statement(words, statement, outcome)
        });
        protocol
    }

    fn statement(
        &mut self,
        words: &[&str],
        statement: &Statement,
        outcome: &mut Outcome,
    ) -> Result<(), &'static str> {
        match words {
            ["ipv4" | "ipv6"] => {
                let inside = statement.block.as_deref().unwrap_or_default();
                // Which of two routes to a prefix counts concerns only routes with a next hop.
                let counts = |it: &&Statement| !matches!(it.words().as_slice(), ["preference", ..]);
                let inside: Vec<Statement> = inside.iter().filter(counts).cloned().collect();
                self.channel.read(&inside, outcome);
            }
            ["roa4" | "roa6"] => {
                self.has_roas = true;
                return Err("is for caches to say: set rpki in a BGPConfiguration");
            }
            ["description" | "debug" | "check" | "igp", ..] => {}
            ["disabled", rest @ ..] => self.is_off = is_on(rest),
            ["route", prefix, "blackhole" | "unreachable" | "prohibit" | "reject" | "drop"] => {
                let prefix = prefix.parse::<IpNet>().map_err(|_| "expected a prefix")?;
                let sets = statement.code.as_deref().map(filter).unwrap_or_default();
                self.routes.push((prefix.trunc(), sets));
            }
            ["route", ..] => {
                return Err(
                    "routes to a next hop are the node's own; announce the prefix in a BGPAdvertisement",
                );
            }
            _ => return Err("has no equal"),
        }
        Ok(())
    }

    /// The routes as they are in the table.
    pub(super) fn routes(
        &self,
        policies: &Policies,
        outcome: &mut Outcome,
    ) -> Vec<(IpNet, OwnRoute)> {
        if self.is_off || self.channel.is_elsewhere {
            return Vec::new();
        }
        let way = |ipv6: bool| Way { ipv6, outbound: true, asn: None };
        let filter =
            |ipv6: bool| self.channel.import.as_ref().map(|it| policies.own(it, way(ipv6), self));
        let filters = [filter(false), filter(true)];
        let mut all = Vec::new();
        for (prefix, sets) in &self.routes {
            let ipv6 = prefix.addr().is_ipv6();
            let sets = policies.of_steps(sets, way(ipv6), self);
            let set = sets.applied(*prefix, &OwnRoute::default(), outcome);
            let Some((route, _)) = set else { continue };
            let [ipv4, other] = &filters;
            let route = match if ipv6 { other } else { ipv4 } {
                None => Some(route),
                Some(filter) => filter.as_ref().and_then(|it| it.passed(*prefix, &route, outcome)),
            };
            all.extend(route.map(|it| (*prefix, it)));
        }
        all
    }
}
