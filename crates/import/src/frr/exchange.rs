//! What a neighbor and this router exchange: address families, limits and policies.
//!
//! Another part of [`Scene`]. Knows no session; `policy` has the filters.

use serde_json::json;

use super::lists::number;
use super::peer::{Families, Neighbor, Remote, Scene};
use super::policy::{Direction, Filters};
use super::settings::{Scope, Setting};
use crate::object::Fields;
use crate::outcome::Outcome;
use crate::policy::{Named, Passes, policy};

impl Scene<'_> {
    pub(super) fn of_families(
        &self,
        neighbor: &Neighbor,
        spec: &mut Fields,
        outcome: &mut Outcome,
    ) {
        let Families { ipv4, ipv6 } = neighbor.families;
        let is_ipv6 = match &neighbor.remote {
            Remote::Address(address) => Some(address.is_ipv6()),
            Remote::Range(range) => Some(range.addr().is_ipv6()),
            Remote::Interface(_) => None,
        };
        let (own, other) = if is_ipv6 == Some(true) { (ipv6, ipv4) } else { (ipv4, ipv6) };
        if !ipv4 && !ipv6 {
            outcome.note(
                neighbor.line,
                &neighbor.text,
                "no address family is activated: no routes are exchanged",
            );
        } else if !own && is_ipv6.is_some() {
            outcome.note(
                neighbor.line,
                &neighbor.text,
                "the family of its address is offered to it, too",
            );
        }
        spec.set_if("dualStackAddressFamily", other && is_ipv6.is_some());
        let mut has = |key: &str| of_all_families(neighbor, key, outcome);
        let reflects = has("route-reflector-client").is_some();
        let serves = has("route-server-client").is_some();
        let sends_all = has("addpath-tx-all-paths").is_some();
        let paths = has("addpath-tx-best-selected");
        let allowed = has("allowas-in");
        spec.set_if("routeReflectorClient", reflects);
        if !neighbor.is_external {
            spec.set("clusterID", self.router.defaults.cluster_id.as_ref().map(|it| json!(it)));
        }
        spec.set_if("routeServerClient", serves);
        let paths = paths.and_then(|it| number::<u8>(it.words.first()?).ok());
        let paths = sends_all.then_some(16).or(paths.map(|it| it.min(16)));
        spec.set("addPath", paths.map(|it| json!({"send": it})));
        if let Some(setting) = allowed {
            match setting.words().as_slice() {
                [] => drop(spec.set("allowASIn", json!(3))),
                [count] if number::<u8>(count).is_ok_and(|it| (1..=10).contains(&it)) => {
                    spec.set("allowASIn", number::<u8>(count).ok().map(|it| json!(it)));
                }
                _ => outcome.untranslated(
                    setting.line,
                    &setting.text,
                    "expected a count from 1 to 10",
                ),
            }
        }
        for (scope, key, setting) in neighbor.settings.iter() {
            let of_family = match scope {
                Scope::Session => false,
                Scope::Ipv4 => ipv4,
                Scope::Ipv6 => ipv6,
            };
            if let Some(why) = of_family.then(|| without_equal(key, setting.is_on)).flatten() {
                outcome.untranslated(setting.line, &setting.text, why);
            }
        }
    }

    pub(super) fn policies(&self, neighbor: &Neighbor, spec: &mut Fields, outcome: &mut Outcome) {
        for (direction, field) in [(Direction::In, "toReceive"), (Direction::Out, "toAdvertise")] {
            let filters = self.filters(neighbor, direction);
            let [ipv4, ipv6] = [false, true].map(|is_ipv6| {
                if !neighbor.families.has(is_ipv6) {
                    // The session has the family all the same.
                    return neighbor.carries(is_ipv6).then_some(Passes::Nothing);
                }
                let passes = filters.passes(is_ipv6, direction, outcome);
                // What an external neighbor announces has no LOCAL_PREF.
                let preference = self.router.defaults.local_preference;
                let preference =
                    preference.filter(|_| direction == Direction::In && neighbor.is_external);
                Some(preference.map_or_else(|| passes.clone(), |it| passes.clone().preferred(it)))
            });
            let named = Named { line: neighbor.line, text: &neighbor.text };
            let mut fields = policy(ipv4, ipv6, &named, outcome);
            if direction == Direction::In {
                self.maximum(neighbor, &mut fields, outcome);
            } else {
                self.next_hop(neighbor, &mut fields, outcome);
            }
            if direction == Direction::In && !fields.is_empty() && self.router.installs {
                spec.set("installRoutes", json!(true));
            }
            spec.set(field, fields.some());
        }
    }

    /// The filters of one direction.
    pub(super) fn filters<'n>(
        &'n self,
        neighbor: &'n Neighbor,
        direction: Direction,
    ) -> Filters<'n> {
        let asn = match direction {
            Direction::In => neighbor.asn,
            Direction::Out => Some(self.own_asn(&neighbor.settings)),
        };
        let (lists, maps, settings) = (self.lists, self.maps, &neighbor.settings);
        Filters { lists, maps, settings, requires_policy: neighbor.requires_policy, asn }
    }

    fn maximum(&self, neighbor: &Neighbor, fields: &mut Fields, outcome: &mut Outcome) {
        let limits =
            [Scope::Ipv4, Scope::Ipv6].map(|it| neighbor.settings.on(it, "maximum-prefix"));
        let mut most: Option<(u32, Option<u8>)> = None;
        for setting in limits.into_iter().flatten() {
            let words = setting.words();
            let (limit, percent, rest) = match words.as_slice() {
                [limit, percent, rest @ ..] if percent.parse::<u8>().is_ok() => {
                    (limit, percent.parse().ok(), rest)
                }
                [limit, rest @ ..] => (limit, None, rest),
                [] => continue,
            };
            let Ok(limit) = number::<u32>(limit) else { continue };
            match rest {
                ["warning-only"] => {
                    outcome.untranslated(
                        setting.line,
                        &setting.text,
                        "the limit ends the session, and is left out; set \
                        toReceive.maxPrefixes if that is wanted",
                    );
                    continue;
                }
                _ => outcome.note(
                    setting.line,
                    &setting.text,
                    "a session that exceeds it is tried again after 30 s; the limit is for each family",
                ),
            }
            if let Some((known, _)) = most.filter(|(known, _)| *known != limit) {
                outcome.note(
                    setting.line,
                    &setting.text,
                    format!("one limit is for each family: {}", known.max(limit)),
                );
            }
            most = Some((limit.max(most.map_or(0, |it| it.0)), percent));
        }
        if let Some((limit, percent)) = most.filter(|_| !fields.is_empty()) {
            let mut maximum = Fields::default();
            maximum.set("limit", json!(limit)).set("warnPercent", percent.map(|it| json!(it)));
            fields.set("maxPrefixes", maximum.some());
        }
    }

    /// Towards internal neighbors the next hop stays as received, as in FRR, unless it is to be ours.
    fn next_hop(&self, neighbor: &Neighbor, fields: &mut Fields, outcome: &mut Outcome) {
        let families = [(Scope::Ipv4, "ipv4", false), (Scope::Ipv6, "ipv6", true)];
        let mut next_hop = Fields::default();
        for (scope, field, is_ipv6) in families {
            let Some(setting) = neighbor.settings.on(scope, "next-hop-self") else { continue };
            if neighbor.is_external || fields.is_empty() {
                continue;
            }
            let source = neighbor.settings.on(Scope::Session, "update-source");
            let source: Option<std::net::IpAddr> =
                source.and_then(|it| it.words.first()?.parse().ok());
            match source.filter(|it| it.is_ipv6() == is_ipv6) {
                Some(address) => drop(next_hop.set(field, json!(address.to_string()))),
                None => {
                    let why = format!(
                        "our address is not known here; set toAdvertise.nextHop.{field} to it"
                    );
                    outcome.untranslated(setting.line, &setting.text, why);
                }
            }
        }
        fields.set("nextHop", next_hop.some());
    }
}

/// A setting that a BGPPeer has for all families, where all that are exchanged have it; one that only some have is told.
fn of_all_families<'n>(
    neighbor: &'n Neighbor,
    key: &str,
    outcome: &mut Outcome,
) -> Option<&'n Setting> {
    let families = [(Scope::Ipv4, false), (Scope::Ipv6, true)];
    let exchanged = families.into_iter().filter(|(_, ipv6)| neighbor.families.has(*ipv6));
    let settings: Vec<_> = exchanged.map(|(scope, _)| neighbor.settings.on(scope, key)).collect();
    let first = settings.iter().copied().flatten().next()?;
    if settings.iter().all(|it| it.is_some_and(|it| it.words == first.words)) {
        return Some(first);
    }
    let why = "a BGPPeer has it for both address families or for none; it is left out";
    outcome.untranslated(first.line, &first.text, why);
    None
}

/// Why a setting of an address family is not translated, where it is not.
fn without_equal(key: &str, is_on: bool) -> Option<&'static str> {
    match (key, is_on) {
        (it, false) if it.starts_with("send-community") => {
            Some("communities are always sent; remove them in toAdvertise.rules")
        }
        (_, false) => None,
        ("as-override", _) => Some("the neighbor's AS stays in the path; it can set allowas-in"),
        ("remove-private-AS", _) => Some("private ASes stay in the path"),
        ("attribute-unchanged", _) => {
            Some("has no equal; routeServerClient leaves AS path, next hop and MED as they are")
        }
        ("nexthop-local unchanged", _) => Some("has no equal"),
        ("weight", _) => Some("has no equal; set localPref in toReceive.rules"),
        ("soo", _) => {
            Some("has no equal; add soo:... in toReceive.rules, and reject it in toAdvertise.rules")
        }
        ("unsuppress-map", _) => Some("there are no aggregates that suppress routes"),
        ("maximum-prefix-out", _) => Some("has no equal"),
        ("addpath-tx-bestpath-per-AS", _) => {
            Some("has no equal; addPath.send sends the best ones of all")
        }
        _ => None,
    }
}
