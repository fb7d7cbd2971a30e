//! Which routes of a router does fairway accept, and what becomes of them when the configuration changes?
//! Filters, maxima, `fairway clear bgp`. Rows of the matrix.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::scene::{Cell, Scene, expect_equal};
use super::shown::{expect_at, keys, neighbour, notified, number_at, set, table, table_becomes};
use crate::speaker::SpeakerKind;
use lab::resources::{Allowed, Range};
use lab::routers::{Origination, Release, RouterKind};
use lab::wait::PATIENCE;
use lab::{Family, NODE_IPV6, Wiring};

/// How long fairway does not dial a router that announced too many prefixes.
const WAIT_AFTER_TOO_MANY: Duration = Duration::from_secs(30);

/// A direct eBGP session over IPv4 for `families`, with a router that originates this.
fn scene(cell: &Cell, families: &[Family], originated: Vec<Origination>) -> Result<Scene> {
    Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.families = families.to_vec();
        router.originated = originated;
        Ok(())
    })
}

/// An IPv4 session with plain routes.
fn plain_scene(cell: &Cell, prefixes: &[&str]) -> Result<Scene> {
    scene(cell, &[Family::Ipv4], plain(prefixes))
}

fn plain(prefixes: &[&str]) -> Vec<Origination> {
    prefixes.iter().map(|prefix| Origination::plain(prefix)).collect()
}

/// Topology: node --- router, eBGP over IPv4 for both families; the router originates routes inside
/// and outside of the filter, one of them with every attribute that it can set.
/// Proves: what `ge` and `le` allow is in the tables, with AS path, next hop, communities and MED as
/// the router said them; `received-routes` has the same, and what was refused beside it with the rule; that is counted, and
/// listed by `filtered-routes`.
pub(super) fn received_routes_are_those_that_the_filter_lists(cell: &Cell) -> Result<()> {
    let adorned = Origination {
        prepends: 2,
        communities: vec!["65002:100".to_owned(), "65002:200".to_owned()],
        large_communities: vec!["65002:1:2".to_owned()],
        med: Some(50),
        ..Origination::plain("10.90.1.0/24")
    };
    let mut originated = plain(&["10.90.2.0/28", "10.90.0.0/16", "10.90.3.0/29", "10.91.0.0/24"]);
    originated.extend(plain(&["2001:db8:90::/44", "2001:db8:91::/48", "2001:db8:92:1::/64"]));
    originated.push(adorned);
    let mut scene = scene(cell, &[Family::Ipv4, Family::Ipv6], originated)?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::Filtered(vec![
        Range { prefix: "10.90.0.0/16", ge: Some(24), le: Some(28) },
        Range::up_to("2001:db8:90::/44", 48),
    ]));
    scene.apply_peer(&peer)?;
    scene.start()?;
    scene.established()?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "10.90.2.0/28"])?;
    table_becomes(&mut scene, Family::Ipv6, &["2001:db8:90::/44", "2001:db8:91::/48"])?;

    let router = scene.spec.local_address.to_string();
    let entry = scene.fairway.show(&["bgp", "ipv4", "unicast", "10.90.1.0/24"])?;
    for (pointer, expected) in [
        ("/paths/0/aspath/string", json!("65002 65002 65002")),
        ("/paths/0/metric", json!(50)),
        ("/paths/0/community/list", json!(["65002:100", "65002:200"])),
        ("/paths/0/largeCommunity/list", json!(["65002:1:2"])),
        ("/paths/0/nexthops/0/ip", json!(router)),
        ("/paths/0/peer/peerId", json!(router)),
        ("/paths/0/peer/routerId", json!("10.0.0.2")),
        ("/paths/0/peer/type", json!("external")),
        ("/paths/0/bestpath/overall", json!(true)),
        ("/paths/1", Value::Null),
    ] {
        expect_at(&entry, pointer, &expected)?;
    }
    let entry = scene.fairway.show(&["bgp", "ipv6", "unicast", "2001:db8:91::/48"])?;
    expect_at(&entry, "/paths/0/nexthops/0/ip", &json!(cell.router.ipv6_next_hop(&scene.spec)))?;
    expect_at(&entry, "/paths/0/aspath/string", &json!("65002"))?;

    let received = scene.fairway.show(&["bgp", "neighbors", &router, "received-routes"])?;
    let accepted = ["10.90.1.0/24", "10.90.2.0/28", "2001:db8:90::/44", "2001:db8:91::/48"];
    let refused = ["10.90.0.0/16", "10.90.3.0/29", "10.91.0.0/24", "2001:db8:92:1::/64"];
    // FRR keeps none of those that it refuses.
    let is_kept = scene.speaker.is_none();
    let both = [&accepted[..], if is_kept { &refused } else { &[] }].concat();
    expect_equal("received routes", &keys(&received, "/receivedRoutes")?, &set(&both))?;
    if is_kept {
        let filtered = scene.fairway.show(&["bgp", "neighbors", &router, "filtered-routes"])?;
        expect_equal("refused routes", &keys(&filtered, "/receivedRoutes")?, &set(&refused))?;
        expect_at(&filtered, "/receivedRoutes/10.91.0.0~124/refusedBecause", &json!("policy"))?;
    }
    let neighbour = neighbour(&scene)?;
    for (pointer, expected) in [
        ("/addressFamilyInfo/ipv4Unicast/acceptedPrefixCounter", 2),
        ("/addressFamilyInfo/ipv4Unicast/prefixesRefused", 3),
        ("/addressFamilyInfo/ipv6Unicast/acceptedPrefixCounter", 2),
        ("/addressFamilyInfo/ipv6Unicast/prefixesRefused", 1),
        ("/refusedPrefixes/policy", 4),
    ] {
        // FRR does not count what it refuses by family; 8.4 not at all.
        if scene.speaker.is_none() || !pointer.contains("efused") {
            expect_at(&neighbour, pointer, &json!(expected))?;
        }
    }
    Ok(())
}

/// Topology: node --- router, eBGP over IPv4 for both families; the node has no IPv6 address but a
/// link-local one, as when a machine has just started, and gets its global one later.
/// Proves: IPv6 routes are received before that and after it, over the same session.
pub(super) fn received_routes_need_no_address_of_our_own_in_their_family(
    cell: &Cell,
) -> Result<()> {
    let originated = plain(&["10.90.1.0/24", "2001:db8:90::/48"]);
    let mut scene = scene(cell, &[Family::Ipv4, Family::Ipv6], originated)?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    let address = format!("{NODE_IPV6}/64");
    scene.lab.node.ip(&["address", "delete", &address, "dev", "to-router"])?;
    scene.start()?;
    let incarnation = scene.established()?;
    table_becomes(&mut scene, Family::Ipv6, &["2001:db8:90::/48"])?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24"])?;
    scene.lab.node.add_address("to-router", &address)?;
    let both = plain(&["10.90.1.0/24", "2001:db8:90::/48", "2001:db8:91::/48"]);
    scene.router.originate(&both)?;
    table_becomes(&mut scene, Family::Ipv6, &["2001:db8:90::/48", "2001:db8:91::/48"])?;
    scene.expect_same_session(&incarnation)
}

/// Topology: node --- router, eBGP over IPv4; the router originates two routes, and the BGPPeer has
/// no `toReceive` at first.
/// Proves: nothing comes in unless it is asked for. A wider filter makes fairway ask the router
/// (it counts a ROUTE-REFRESH) and the routes come; a narrower one drops at once; what the router
/// withdraws goes. All of that over one session.
//+ RFC 8212 §3: routes of an external peer are used without an import policy.
//+ RFC 2918 §4: another import policy is applied to all routes by asking for them again.
pub(super) fn received_routes_follow_a_live_change_of_the_filter(cell: &Cell) -> Result<()> {
    let mut scene = plain_scene(cell, &["10.90.1.0/24", "10.90.2.0/24"])?;
    let mut peer = scene.peer();
    scene.apply_peer(&peer)?;
    scene.start()?;
    let incarnation = scene.established()?;
    // FRR does not count them, or not in words of ours.
    if scene.speaker.is_none() {
        scene.wait("both routes are refused", PATIENCE, |scene| {
            expect_at(&neighbour(scene)?, "/refusedPrefixes/policy", &json!(2))
        })?;
    }
    expect_equal("table", &table(&scene, Family::Ipv4)?, &set(&[]))?;

    let asked = scene.router.received()?.route_refreshes;
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "10.90.2.0/24"])?;
    expect_equal("ROUTE-REFRESHes", &scene.router.received()?.route_refreshes, &(asked + 1))?;

    peer.to_receive = Some(Allowed::Filtered(vec![Range::exact("10.90.1.0/24")]));
    scene.apply_peer(&peer)?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24"])?;
    scene.router.originate(&plain(&["10.90.2.0/24"]))?;
    table_becomes(&mut scene, Family::Ipv4, &[])?;
    scene.expect_same_session(&incarnation)
}

/// Topology: node --- router, eBGP over IPv4, `maxPrefixes: {limit: 2}`; the router originates two
/// routes, then three, then one.
/// Proves: two are fine; the third ends the session with Cease 6/1, which the router names, and its
/// routes go; the session stays away although the router is ready, and comes back by itself.
//+ RFC 4271 §6.7: a session with too many prefixes ends with Cease.
//+ RFC 4486 §4: a session with too many prefixes ends with Maximum Number of Prefixes Reached, 6/1.
pub(super) fn too_many_received_prefixes_end_the_session_for_a_while(cell: &Cell) -> Result<()> {
    let prefixes = ["10.90.1.0/24", "10.90.2.0/24", "10.90.3.0/24"];
    let mut scene = plain_scene(cell, &prefixes[..2])?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    peer.max_prefixes = Some(2);
    scene.apply_peer(&peer)?;
    scene.start()?;
    let first = scene.established()?;
    table_becomes(&mut scene, Family::Ipv4, &prefixes[..2])?;
    scene.expect_same_session(&first)?;

    scene.router.originate(&plain(&prefixes))?;
    notified(&mut scene, 6, 1)?;
    table_becomes(&mut scene, Family::Ipv4, &[])?;
    let summary = scene.fairway.show(&["bgp", "summary"])?;
    let peer = "/ipv4Unicast/peers/10.77.0.2";
    expect_at(&summary, &format!("{peer}/state"), &json!("Idle (PfxCt)"))?;
    expect_at(&summary, &format!("{peer}/peerState"), &json!("PfxCt"))?;
    scene.router.originate(&plain(&prefixes[..1]))?;
    scene.expect_no_session()?;

    let limit = WAIT_AFTER_TOO_MANY + 2 * PATIENCE;
    scene.wait("the session is back", limit, |scene| {
        let neighbour = scene.fairway.neighbour("10.77.0.2")?;
        ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
        expect_equal("connectionsEstablished", &neighbour.connections_established, &2)
    })?;
    table_becomes(&mut scene, Family::Ipv4, &prefixes[..1])
}

/// Topology: node --- router, eBGP over IPv4, routes in both directions.
/// Proves: `fairway clear bgp` ends the session with Cease 6/4, and it is back, with the routes of
/// both sides, before any timer for broken sessions runs out.
//+ RFC 4486 §4: a session that the operator resets ends with Administrative Reset, 6/4.
pub(super) fn a_cleared_session_comes_back_and_receives_again(cell: &Cell) -> Result<()> {
    let mut scene = plain_scene(cell, &["10.90.1.0/24"])?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "203.0.113.10/32"])?;
    scene.route_arrives("203.0.113.10/32")?;

    let said = scene.fairway.clear(&["10.77.0.2"])?;
    expect_equal("answer", &said.as_str(), &"10.77.0.2 (router): session reset\n")?;
    notified(&mut scene, 6, 4)?;
    scene.established()?;
    let neighbour = scene.fairway.neighbour("10.77.0.2")?;
    let count = neighbour.connections_established;
    // 8.4 ends a session now and then that was accepted while its start timer ran out; the other end comes back.
    let may_come_twice =
        cell.speaker != SpeakerKind::Fairway && cell.router == RouterKind::Frr(Release::Bookworm);
    ensure!(count == 2 || count > 2 && may_come_twice, "connectionsEstablished: {count}");
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "203.0.113.10/32"])?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- router, eBGP over IPv4, routes in both directions.
/// Proves: `soft in` is one ROUTE-REFRESH at the router, and its routes come again; `soft out` is
/// the UPDATEs once more at the router; `soft` is both. Nothing is reset, no route is missing.
pub(super) fn a_softly_cleared_session_receives_again_without_a_reset(cell: &Cell) -> Result<()> {
    let mut scene = plain_scene(cell, &["10.90.1.0/24"])?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    let incarnation = scene.established()?;
    let both = ["10.90.1.0/24", "203.0.113.10/32"];
    table_becomes(&mut scene, Family::Ipv4, &both)?;
    scene.route_arrives("203.0.113.10/32")?;

    for (words, is_in, is_out) in [
        (["10.77.0.2", "soft", "in"].as_slice(), true, false),
        (["10.77.0.2", "soft", "out"].as_slice(), false, true),
        (["router", "soft"].as_slice(), true, true),
    ] {
        let before = scene.router.received()?;
        let updates_in = number_at(&neighbour(&scene)?, "/messageStats/updatesRecv")?;
        scene.fairway.clear(words)?;
        scene.wait(&format!("{words:?} is seen by both sides"), PATIENCE, |scene| {
            let now = scene.router.received()?;
            let asked = before.route_refreshes + u64::from(is_in);
            // A router that supports RFC 7313 and counts all of them gets two marks around the routes, too.
            let marked = asked + 2 * u64::from(is_out);
            let refreshes = now.route_refreshes;
            ensure!(
                refreshes == asked || refreshes == marked,
                "ROUTE-REFRESHes at the router: {refreshes}, expected {asked} or {marked}"
            );
            // An End-of-RIB marker of the round before may still come where nothing is expected.
            ensure!(!is_out || now.updates > before.updates, "no more UPDATEs at the router");
            let grew = number_at(&neighbour(scene)?, "/messageStats/updatesRecv")? > updates_in;
            ensure!(!is_in || grew, "no more UPDATEs at fairway");
            Ok(())
        })?;
        table_becomes(&mut scene, Family::Ipv4, &both)?;
        scene.route_arrives("203.0.113.10/32")?;
    }
    scene.expect_same_session(&incarnation)
}
