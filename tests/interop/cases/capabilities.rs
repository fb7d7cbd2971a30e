//! What do both sides offer each other beyond routes, and does it work? Several paths, roles, texts,
//! limits, attributes. Rows of the matrix.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::scene::{Cell, NODE_AS, ROUTER_AS, Scene, expect_equal};
use super::shown::{expect_at, neighbour, notified, table_becomes};
use crate::speaker::SpeakerKind;
use lab::resources::{Advertisement, Allowed, Peer, service};
use lab::routers::{FEEDER_AS, Origination, Role, RouterSpec};
use lab::wait::PATIENCE;
use lab::{FEEDER, Family, NODE_TO_SECOND, SECOND, Wiring};

/// OpenBGPD stays in Idle for a minute after its second error, and for two after the third; attempts in between may be
/// those.
const ERRORS_FORGIVEN: Duration = Duration::from_secs(150);
const TEXT: &str = "Rack 7 moves, back at 04:00";

/// Topology: node --- router --- feeder (a BIRD), eBGP over IPv4, ADD-PATH in both directions with
/// the router, which originates a prefix that the feeder announces as well.
/// Proves: fairway has both paths, apart by their AS paths; one that goes leaves the other.
pub(super) fn several_paths_of_a_router_are_received(cell: &Cell) -> Result<()> {
    let prefix = "10.90.1.0/24";
    let feeder: Ipv4Addr = FEEDER.parse().context("the feeder's address")?;
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.add_path = true;
        router.feeder = Some(feeder);
        router.originated = vec![Origination::plain(prefix)];
        Ok(())
    })?;
    let mut feeder = scene.add_feeder(cell, Origination::plain(prefix))?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.start()?;
    scene.established()?;
    let of_router = vec![ROUTER_AS.to_string()];
    let of_feeder = vec![format!("{ROUTER_AS} {FEEDER_AS}")];
    let both = [of_router.clone(), of_feeder.clone()].concat();
    paths_become(&mut scene, prefix, &both)?;
    scene.router.originate(&[])?;
    paths_become(&mut scene, prefix, &of_feeder)?;
    scene.router.originate(&[Origination::plain(prefix)])?;
    paths_become(&mut scene, prefix, &both)?;
    feeder.router.originate(&[])?;
    paths_become(&mut scene, prefix, &of_router)
}

/// Topology: node --- router --- feeder (a BIRD), eBGP over IPv4; node and feeder are both in AS 65009.
/// Proves: the feeder's path is a loop, and accepted as soon as `allowASIn: 1` allows it, without a reset; refused again
/// without it.
pub(super) fn a_path_with_our_own_as_is_accepted_where_that_is_allowed(cell: &Cell) -> Result<()> {
    let prefix = "10.90.1.0/24";
    let feeder: Ipv4Addr = FEEDER.parse().context("the feeder's address")?;
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.peer_as = FEEDER_AS;
        router.feeder = Some(feeder);
        Ok(())
    })?;
    let _feeder = scene.add_feeder(cell, Origination::plain(prefix))?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.start()?;
    let incarnation = scene.established()?;
    // FRR 8.4 does not count what it refuses.
    if cell.speaker == SpeakerKind::Fairway {
        scene.wait("fairway has refused the path", PATIENCE, |scene| {
            expect_at(&neighbour(scene)?, "/refusedPrefixes/asLoop", &json!(1))
        })?;
    }
    paths_become(&mut scene, prefix, &[])?;
    peer.own_as_max = Some(1);
    scene.apply_peer(&peer)?;
    paths_become(&mut scene, prefix, &[format!("{ROUTER_AS} {FEEDER_AS}")])?;
    peer.own_as_max = None;
    scene.apply_peer(&peer)?;
    paths_become(&mut scene, prefix, &[])?;
    scene.expect_same_session(&incarnation)
}

/// Waits until fairway's paths to a prefix have these AS paths.
fn paths_become(scene: &mut Scene, prefix: &str, expected: &[String]) -> Result<()> {
    scene.wait(&format!("fairway's paths to {prefix} are {expected:?}"), 2 * PATIENCE, |scene| {
        let entry = scene.fairway.show(&["bgp", "ipv4", "unicast", prefix])?;
        let paths = entry.get("paths").and_then(serde_json::Value::as_array);
        let as_path =
            |path: &serde_json::Value| Some(path.pointer("/aspath/string")?.as_str()?.to_owned());
        let mut found: Vec<String> = paths.into_iter().flatten().filter_map(as_path).collect();
        found.sort();
        expect_equal("AS paths", &found.as_slice(), &expected)
    })
}

/// Topology: router --- node --- second router, eBGP over IPv4; both announce the address of the
/// service, `toAdvertise` of the first lets the routes of the second through, `addPath: {send: 6}`.
/// Proves: the router has fairway's own path and that of the second router; when the second goes,
/// its path goes.
pub(super) fn several_paths_are_sent_to_a_router(cell: &Cell) -> Result<()> {
    let prefix = "203.0.113.10/32";
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.add_path = true;
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.to_advertise = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    let site = scene.lab.add_second_router(cell.number)?;
    let spec = RouterSpec {
        router_id: Ipv4Addr::new(10, 0, 0, 3),
        local_as: 65003,
        originated: vec![Origination::plain(prefix)],
        ..RouterSpec::between(
            SECOND[0].parse().context("the second router's address")?,
            SECOND[1].parse().context("the second router's IPv6 address")?,
            NODE_TO_SECOND[0].parse().context("the node's address")?,
        )
    };
    let mut second = cell.router.prepare(&site, &spec)?;
    let mut other = Peer::towards(&spec);
    other.name = "second";
    other.to_receive = Some(Allowed::All);
    scene.fairway.apply("second", &other.yaml())?;
    second.start(&site)?;
    scene.start()?;
    scene.established()?;
    let (own, passed_on) = (vec![NODE_AS], vec![NODE_AS, 65003]);
    router_has(&mut scene, prefix, &[own.clone(), passed_on])?;
    second.stop()?;
    router_has(&mut scene, prefix, &[own])
}

/// Waits until the router's paths to a prefix have these AS paths.
fn router_has(scene: &mut Scene, prefix: &str, expected: &[Vec<u32>]) -> Result<()> {
    scene.wait(&format!("the router's paths are {expected:?}"), 3 * PATIENCE, |scene| {
        let paths = scene.router.paths(prefix)?;
        let mut found: Vec<_> = paths.into_iter().map(|path| path.as_path).collect();
        found.sort();
        expect_equal("AS paths", &found.as_slice(), &expected)
    })
}

/// A direct session over IPv4 where the router has a role.
fn with_role(cell: &Cell, role: Option<Role>) -> Result<Scene> {
    Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.role = role;
        router.originated = vec![Origination::plain("10.90.1.0/24")];
        Ok(())
    })
}

/// Topology: node --- router, eBGP over IPv4, `role: provider`; the router is the customer.
/// Proves: the session comes up, both names are shown, and the route that the router gets carries
/// ONLY_TO_CUSTOMER with our AS.
pub(super) fn roles_that_agree_mark_routes_as_for_customers_only(cell: &Cell) -> Result<()> {
    let mut scene = with_role(cell, Some(Role::Customer))?;
    let mut peer = scene.peer();
    peer.role = Some(Role::Provider);
    peer.role_strict = true;
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_equal("OTC", &route.otc, &Some(NODE_AS))?;
    let neighbour = neighbour(&scene)?;
    expect_at(&neighbour, "/localRole", &json!("provider"))?;
    expect_at(&neighbour, "/remoteRole", &json!("customer"))
}

/// Topology: node --- router, eBGP over IPv4, `role: rs-server`; the router is its client.
/// Proves: these two agree as well.
pub(super) fn a_route_server_and_its_client_agree(cell: &Cell) -> Result<()> {
    let mut scene = with_role(cell, Some(Role::RsClient))?;
    let mut peer = scene.peer();
    peer.role = Some(Role::RsServer);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_equal("OTC", &route.otc, &Some(NODE_AS))?;
    expect_at(&neighbour(&scene)?, "/remoteRole", &json!("rs-client"))
}

/// Topology: node --- router, eBGP over IPv4; both sides have the role provider.
/// Proves: no session; and with the right role in the file there is one.
pub(super) fn roles_that_disagree_never_establish(cell: &Cell) -> Result<()> {
    let mut scene = with_role(cell, Some(Role::Provider))?;
    let mut peer = scene.peer();
    peer.role = Some(Role::Provider);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    role_mismatch(&mut scene)?;
    peer.role = Some(Role::Customer);
    scene.apply_peer(&peer)?;
    scene.established_within(ERRORS_FORGIVEN)?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- router, eBGP over IPv4, `role: peer`; the router sends no role.
/// Proves: that comes up, and `roleStrict: true` refuses it from then on. In this order, because after
/// two errors OpenBGPD stays in Idle for a minute.
pub(super) fn a_strict_role_refuses_a_router_that_says_none(cell: &Cell) -> Result<()> {
    let mut scene = with_role(cell, None)?;
    let mut peer = scene.peer();
    peer.role = Some(Role::Peer);
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    peer.role_strict = true;
    scene.apply_peer(&peer)?;
    role_mismatch(&mut scene)
}

/// One of both sides has sent Role Mismatch, RFC 9234 §4.2, and there is no session.
fn role_mismatch(scene: &mut Scene) -> Result<()> {
    scene.wait("a NOTIFICATION 2/11 ended the attempt", 3 * PATIENCE, |scene| {
        expect_at(&neighbour(scene)?, "/lastErrorCodeSubcode", &json!("020B"))
    })?;
    scene.expect_no_session()
}

/// Topology: node --- router, eBGP over IPv4; the BGPPeer gets `shutdown: {message: ...}` while the
/// session is up, and loses it again.
/// Proves: the router receives Cease 6/2 with the text, no session follows, and one does when the
/// field is gone.
pub(super) fn a_shut_down_peer_is_told_why(cell: &Cell) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    let plain = scene.peer();
    scene.apply_peer(&plain)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    let mut shut = plain.clone();
    shut.shutdown = Some(TEXT);
    scene.apply_peer(&shut)?;
    notified(&mut scene, 6, 2)?;
    let text = scene.router.last_shutdown_text()?;
    expect_equal("text at the router", &text.as_deref(), &Some(TEXT))?;
    scene.route_leaves("203.0.113.10/32")?;
    scene.expect_no_session()?;
    scene.apply_peer(&plain)?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- router, eBGP over IPv4; the router's operator shuts the session down, with a
/// text.
/// Proves: `show bgp neighbors` has the text, and the router's routes are gone.
pub(super) fn a_router_that_shuts_down_says_why(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.originated = vec![Origination::plain("10.90.1.0/24")];
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.start()?;
    scene.established()?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24"])?;
    scene.router.shut_down(TEXT)?;
    table_becomes(&mut scene, Family::Ipv4, &[])?;
    let neighbour = neighbour(&scene)?;
    expect_at(&neighbour, "/lastShutdownDescription", &json!(TEXT))?;
    expect_at(&neighbour, "/lastNotification/code", &json!(6))?;
    expect_at(&neighbour, "/lastNotification/subcode", &json!(2))
}

/// Topology: node --- router, eBGP over IPv4; the router accepts two prefixes and no more, two more
/// services come (FRR 8.4 lets one too many in).
/// Proves: fairway shows that the router ended the session with Cease 6/1, and lives on.
pub(super) fn a_router_that_takes_no_more_prefixes_says_so(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.max_prefixes = Some(2);
        Ok(())
    })?;
    scene.apply_peer(&scene.peer())?;
    scene.announce("203.0.113.10")?;
    scene.fairway.apply("mail", &service("mail", Some("203.0.113.11")))?;
    scene.start()?;
    let incarnation = scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.route_arrives("203.0.113.11/32")?;
    scene.expect_same_session(&incarnation)?;
    scene.fairway.apply("dns", &service("dns", Some("203.0.113.12")))?;
    scene.fairway.apply("ldap", &service("ldap", Some("203.0.113.13")))?;
    scene.wait("fairway received 6/1", PATIENCE, |scene| {
        expect_at(&neighbour(scene)?, "/lastErrorCodeSubcode", &json!("0601"))
    })?;
    scene.check_running()
}

/// Topology: node --- router, eBGP over IPv4, an advertisement with `med: 50`, `asPathPrepend: 2` and
/// `linkBandwidth: 8000000`; then without.
/// Proves: the router gets all three, and they go when they are taken out of the file, over the same
/// session.
pub(super) fn an_advertisement_sets_med_prepends_and_link_bandwidth(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    scene.apply_peer(&scene.peer())?;
    scene.apply_pool_only()?;
    let plain = Advertisement { name: "plain", pools: &["main"], ..Advertisement::default() };
    let adorned = Advertisement {
        med: Some(50),
        prepends: Some(2),
        link_bandwidth: Some("8000000"),
        ..plain.clone()
    };
    scene.fairway.apply("advertisement", &adorned.yaml())?;
    scene.fairway.apply("web", &service("web", Some("203.0.113.10")))?;
    scene.start()?;
    let incarnation = scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_equal("AS path", &route.as_path, &vec![NODE_AS; 3])?;
    expect_equal("MED", &route.med, &Some(50))?;
    expect_equal("link bandwidth in bytes/s", &route.link_bandwidth, &Some(1_000_000.0))?;
    scene.fairway.apply("advertisement", &plain.yaml())?;
    scene.wait("the route is plain", PATIENCE, |scene| {
        let route = scene.router.route("203.0.113.10/32")?.context("there is none")?;
        expect_equal("AS path", &route.as_path, &vec![NODE_AS])?;
        ensure!(matches!(route.med, None | Some(0)), "its MED is {:?}", route.med);
        expect_equal("link bandwidth", &route.link_bandwidth, &None)
    })?;
    scene.expect_same_session(&incarnation)
}

/// Topology: node --- router, eBGP over IPv4, routes from the router.
/// Proves: both sides offer enhanced route refresh, and a refresh between its two marks leaves what
/// is there in place, with no reset.
pub(super) fn an_enhanced_refresh_keeps_what_is_said_again(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.originated = vec![Origination::plain("10.90.1.0/24")];
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.start()?;
    let incarnation = scene.established()?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24"])?;
    let pointer = "/neighborCapabilities/enhancedRouteRefresh";
    expect_at(&neighbour(&scene)?, pointer, &json!("advertisedAndReceived"))?;
    let asked = scene.router.received()?.route_refreshes;
    scene.fairway.clear(&["router", "soft", "in"])?;
    scene.wait("the router was asked", PATIENCE, |scene| {
        ensure!(scene.router.received()?.route_refreshes > asked, "it was not");
        Ok(())
    })?;
    scene.router.originate(&["10.90.1.0/24", "10.90.2.0/24"].map(Origination::plain))?;
    table_becomes(&mut scene, Family::Ipv4, &["10.90.1.0/24", "10.90.2.0/24"])?;
    scene.expect_same_session(&incarnation)
}
