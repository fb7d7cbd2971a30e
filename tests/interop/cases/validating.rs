//! What does RPKI do to routes between two routers? A second router of the same kind, on a cable of its own, and Routinator as
//! the cache. A row of the matrix.

use anyhow::{Context, Result};
use serde_json::json;

use super::ruling::explained;
use super::scene::{Cell, expect_equal};
use super::transit::{Transit, with_communities};
use lab::Family;
use lab::resources::{Allowed, configuration};
use lab::rpki::{self, Payload, Routinator};
use lab::wait::PATIENCE;

const SECOND_AS: u32 = 65003;

const RULES: &str = "\
- {name: no-origin, match: {originValidation: invalid}, action: reject}
- {match: {originValidation: valid}, set: {communities: {add: ['65001:1']}}}
";

/// The router (AS 65002) may originate the first prefix of each family, and not the second one.
const SAID: &[Payload] = &[
    ("10.90.0.0/16", 24, 64999),
    ("10.90.1.0/24", 24, 65002),
    ("2001:db8:90::/48", 64, 65002),
    ("2001:db8:91::/48", 64, 64999),
];
/// The other way round, but for the longest prefix of IPv6.
const SAID_LATER: &[Payload] = &[
    ("10.90.1.0/24", 24, 64999),
    ("10.90.2.0/24", 24, 65002),
    ("2001:db8:90::/48", 48, 65002),
    ("2001:db8:91::/48", 64, 65002),
];

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65003); Routinator beside the node.
/// Proves: a route that RPKI calls invalid is refused by the rule that says so, a valid one is marked on its way to the second
/// router, and one that RPKI does not know goes there as it is; `show` has all three states. When the cache says the opposite,
/// what was refused arrives and what was valid leaves, without a reset and without a question to the router; when the cache
/// is gone, what it said stays.
pub(super) fn rpki_decides_over_received_routes(cell: &Cell) -> Result<()> {
    rpki_decides(cell, Side::Receives)
}

/// Proves: the same where the rules are about what the second router is sent; the node itself uses all routes.
pub(super) fn rpki_decides_over_advertised_routes(cell: &Cell) -> Result<()> {
    rpki_decides(cell, Side::Advertises)
}

/// Whose routes the rules are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Receives,
    Advertises,
}

fn rpki_decides(cell: &Cell, side: Side) -> Result<()> {
    let mut transit = Transit::open_with(cell, SECOND_AS, |router| {
        router.families = vec![Family::Ipv4, Family::Ipv6];
        let prefixes = ["10.90.1.0/24", "10.90.2.0/24", "10.91.1.0/24"];
        let prefixes6 = ["2001:db8:90:1::/64", "2001:db8:91:1::/64"];
        let plain = |prefix| with_communities(prefix, &["65002:7"]);
        router.originated = prefixes.into_iter().chain(prefixes6).map(plain).collect();
    })?;
    let directory = transit.scene.lab.directory.clone();
    let mut cache = Routinator::start(&transit.scene.lab.node, &directory, SAID)?;
    transit.scene.fairway.apply("rpki", &configuration("127.0.0.1", rpki::PORT))?;
    let mut router = transit.scene.peer();
    router.to_receive = Some(Allowed::All);
    router.receive_rules = Some(RULES).filter(|_| side == Side::Receives);
    let mut second = transit.second_peer();
    second.to_advertise = Some(Allowed::All);
    second.advertise_rules = Some(RULES.to_owned()).filter(|_| side == Side::Advertises);
    transit.join(&router, &second, PATIENCE)?;
    let incarnation = transit.scene.established()?;

    for valid in ["10.90.1.0/24", "2001:db8:90:1::/64"] {
        marked(&mut transit, valid)?;
    }
    transit.leaves("10.90.2.0/24")?;
    transit.leaves("2001:db8:91:1::/64")?;
    transit.has_exactly(Family::Ipv4, &["10.90.1.0/24", "10.91.1.0/24"])?;
    transit.has_exactly(Family::Ipv6, &["2001:db8:90:1::/64"])?;
    let unknown = transit.arrives("10.91.1.0/24")?;
    expect_equal("communities", &unknown.communities, &["65002:7".to_owned()].into())?;
    states_are_shown(&transit)?;
    match side {
        Side::Receives => rule_is_shown(&transit)?,
        Side::Advertises => {
            let line = "10.90.2.0/24 not to second: rule 1 (no-origin) of toAdvertise rejects it";
            explained(&transit, line)?;
        }
    }
    let asked = refreshes(&transit)?;

    cache.say(SAID_LATER)?;
    for valid in ["10.90.2.0/24", "2001:db8:91:1::/64"] {
        marked(&mut transit, valid)?;
    }
    transit.leaves("10.90.1.0/24")?;
    transit.leaves("2001:db8:90:1::/64")?;
    cache.kill();
    transit.wait("the cache is away", PATIENCE, |transit| {
        let cache = transit.scene.fairway.show(&["rpki"])?;
        expect_equal("state", &cache.pointer("/items/0/state"), &Some(&json!("away")))
    })?;
    transit.has_exactly(Family::Ipv4, &["10.90.2.0/24", "10.91.1.0/24"])?;
    transit.has_exactly(Family::Ipv6, &["2001:db8:91:1::/64"])?;
    expect_equal("requests for all routes", &refreshes(&transit)?, &asked)?;
    transit.scene.expect_same_session(&incarnation)
}

fn marked(transit: &mut Transit, prefix: &str) -> Result<()> {
    transit.wait(&format!("{prefix} arrives, marked as valid"), PATIENCE, |transit| {
        let route = transit.second.route(prefix)?.context("it is not there")?;
        let marked = ["65001:1".to_owned(), "65002:7".to_owned()].into();
        expect_equal("communities", &route.communities, &marked)
    })
}

fn states_are_shown(transit: &Transit) -> Result<()> {
    let fairway = &transit.scene.fairway;
    for (prefix, state) in [("10.90.1.0/24", "valid"), ("10.91.1.0/24", "not found")] {
        let entry = fairway.show(&["bgp", "ipv4", "unicast", prefix])?;
        let shown = entry.pointer("/paths/0/rpkiValidationState");
        expect_equal(prefix, &shown, &Some(&json!(state)))?;
    }
    let table = fairway.show(&["rpki", "prefix-table"])?;
    expect_equal("payloads", &table.get("ipv4PrefixCount"), &Some(&json!(2)))
}

/// The rule of toReceive that refuses a route.
fn rule_is_shown(transit: &Transit) -> Result<()> {
    let router = transit.scene.spec.local_address.to_string();
    let listed = transit.scene.fairway.show(&["bgp", "neighbors", &router, "filtered-routes"])?;
    let rule = listed.pointer("/receivedRoutes/10.90.2.0~124/refusedByRule");
    expect_equal("the rule", &rule, &Some(&json!({"number": 1, "name": "no-origin"})))
}

/// How often the router was asked for all its routes.
fn refreshes(transit: &Transit) -> Result<serde_json::Value> {
    let router = transit.scene.spec.local_address.to_string();
    let neighbour = transit.scene.fairway.show(&["bgp", "neighbors", &router])?;
    let pointer = format!("/{router}/messageStats/routeRefreshSent");
    neighbour.pointer(&pointer).cloned().with_context(|| format!("no {pointer}"))
}
