//! What do rules of an operator make of routes between two routers? A second router of the same kind, on a cable of its
//! own. A row of the matrix.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::scene::{Cell, NODE_AS, ROUTER_AS, expect_equal};
use super::transit::{Transit, with_communities};
use lab::Family;
use lab::resources::Allowed;
use lab::wait::PATIENCE;

use crate::speaker::SpeakerKind;

const SECOND_AS: u32 = 65003;

const RECEIVED: &str = "\
- {name: bogons, match: {prefixes: [{prefix: 10.91.0.0/16, le: 32}]}, action: reject}
- match: {asPath: '^65002$', communities: ['65002:7'], nextHops: [10.77.0.0/24]}
  set: {localPref: 200, communities: {add: ['65001:100'], remove: ['65002:7']}}
";

const ADVERTISED: &str = "\
- match: {communities: ['65001:100']}
  set: {med: 77, asPathPrepend: 2, communities: {replace: ['65001:9', 'large:65001:1:2']}}
";

/// Topology: router (AS 65002) --- node (AS 65001) --- second router (AS 65003); rules in both directions.
/// Proves: a route that a rule of `toReceive` rejects is not there, and is listed with the name of the rule; another one
/// reaches the second router with MED, path and communities of the rules of `toAdvertise`, and one that no rule is about
/// as it is; a rule that rejects everything else takes that away, without a reset. FRR does not say which rule decided.
pub(super) fn rules_decide_what_is_received_and_passed_on(cell: &Cell) -> Result<()> {
    let mut transit = Transit::open_with(cell, SECOND_AS, |router| {
        router.families = vec![Family::Ipv4];
        router.originated = vec![
            with_communities("10.90.1.0/24", &["65002:7", "65002:8"]),
            with_communities("10.90.2.0/24", &["65002:8"]),
            with_communities("10.91.1.0/24", &["65002:7"]),
        ];
    })?;
    let mut router = transit.scene.peer();
    router.to_receive = Some(Allowed::All);
    router.receive_rules = Some(RECEIVED);
    let mut second = transit.second_peer();
    second.to_advertise = Some(Allowed::All);
    second.advertise_rules = Some(ADVERTISED.to_owned());
    transit.join(&router, &second, PATIENCE)?;
    let incarnation = transit.scene.established()?;

    let route = transit.arrives("10.90.1.0/24")?;
    expect_equal("AS path", &route.as_path, &vec![NODE_AS, NODE_AS, NODE_AS, ROUTER_AS])?;
    expect_equal("MED", &route.med, &Some(77))?;
    expect_equal("communities", &route.communities, &["65001:9".to_owned()].into())?;
    let large = ["65001:1:2".to_owned()].into();
    expect_equal("large communities", &route.large_communities, &large)?;
    let plain = transit.arrives("10.90.2.0/24")?;
    expect_equal("AS path", &plain.as_path, &vec![NODE_AS, ROUTER_AS])?;
    expect_equal("communities", &plain.communities, &["65002:8".to_owned()].into())?;
    transit.has_exactly(Family::Ipv4, &["10.90.1.0/24", "10.90.2.0/24"])?;
    if cell.speaker == SpeakerKind::Fairway {
        rejected_is_named(&transit)?;
    }
    preferred(&mut transit, 200)?;

    second.advertise_rules = Some(format!("{ADVERTISED}- {{name: rest, action: reject}}\n"));
    transit.scene.fairway.apply("second", &second.yaml())?;
    transit.leaves("10.90.2.0/24")?;
    if cell.speaker == SpeakerKind::Fairway {
        explained(&transit, "10.90.1.0/24 to second: rule 1 of toAdvertise accepts it")?;
        explained(&transit, "10.90.2.0/24 not to second: rule 2 (rest) of toAdvertise rejects it")?;
    }
    router.receive_rules = Some("- {set: {localPref: 300, communities: {add: ['65001:100']}}}\n");
    transit.scene.apply_peer(&router)?;
    transit.arrives("10.91.1.0/24")?;
    preferred(&mut transit, 300)?;
    transit.scene.expect_same_session(&incarnation)
}

/// The route that the rule `bogons` rejects is counted and listed.
fn rejected_is_named(transit: &Transit) -> Result<()> {
    let router = transit.scene.spec.local_address.to_string();
    let fairway = &transit.scene.fairway;
    let listed = fairway.show(&["bgp", "neighbors", &router, "filtered-routes"])?;
    let routes = listed.get("receivedRoutes").context("no receivedRoutes")?;
    let rule = routes.get("10.91.1.0/24").and_then(|route| route.get("refusedByRule"));
    expect_equal("the rule", &rule, &Some(&json!({"number": 1, "name": "bogons"})))?;
    let neighbour = fairway.show(&["bgp", "neighbors", &router])?;
    let pointer = format!("/{router}/refusedPrefixes/rule");
    let count = neighbour.pointer(&pointer).with_context(|| format!("no {pointer}"))?;
    expect_equal(&pointer, count, &json!(1))
}

/// `explain prefix` has this line about its first word.
pub(super) fn explained(transit: &Transit, line: &str) -> Result<()> {
    let prefix = line.split(' ').next().unwrap_or_default();
    let text = transit.scene.fairway.explain("prefix", prefix)?;
    ensure!(text.contains(line), "no line {line:?} in\n{text}");
    Ok(())
}

/// LOCAL_PREF of the route that a rule prefers.
fn preferred(transit: &mut Transit, expected: u32) -> Result<()> {
    transit.wait(&format!("LOCAL_PREF is {expected}"), 2 * PATIENCE, |transit| {
        let entry = transit.scene.fairway.show(&["bgp", "ipv4", "unicast", "10.90.1.0/24"])?;
        let found = entry.pointer("/paths/0/locPrf").cloned();
        expect_equal("locPrf", &found, &Some(json!(expected)))
    })
}
