//! Do a route's attributes arrive as they were asked for, and do many routes arrive? Communities,
//! local preference, numbers of prefixes. Rows of the matrix.

use std::collections::BTreeSet;

use anyhow::Result;

use super::scene::{Cell, NODE_AS, Scene, expect_equal, expect_next_hop};
use lab::resources::{Advertisement, community, service};
use lab::{Family, NODE_IPV4, Wiring};

const MANY: u32 = 2000;

/// Topology: node --- router, eBGP over IPv4; one advertisement with four communities: plain,
/// well-known (NO_EXPORT), large, and the alias of a Community object.
/// Proves: the router has all of them, and nothing more.
//= RFC 1997 §COMMUNITIES attribute MUST: COMMUNITIES are values of four octets.
pub(super) fn communities_arrive_as_numbers_well_known_large_and_alias(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    scene.apply_peer(&scene.peer())?;
    scene.apply_pool_only()?;
    let advertisement = Advertisement {
        name: "coloured",
        pools: &["main"],
        communities: &["65001:100", "65535:65281", "large:65001:1:2", "blue"],
        ..Advertisement::default()
    };
    scene.fairway.apply("advertisement", &advertisement.yaml())?;
    scene.fairway.apply("aliases", &community("blue", "65001:200"))?;
    scene.fairway.apply("web", &service("web", Some("203.0.113.10")))?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    let communities = ["65001:100", "65001:200", "65535:65281"].map(str::to_owned);
    expect_equal("communities", &route.communities, &BTreeSet::from(communities))?;
    let large = BTreeSet::from(["65001:1:2".to_owned()]);
    expect_equal("large communities", &route.large_communities, &large)
}

/// Topology: node --- router, iBGP over IPv4 in AS 65001, `localPref: 250`.
/// Proves: the router sees the preference, an empty AS path, and the node as next hop.
//+ RFC 4271 §5.1.5: LOCAL_PREF is sent to internal peers.
//+ RFC 4271 §5.1.2: an internal peer is told our own routes with an empty AS_PATH.
pub(super) fn an_internal_session_carries_the_local_preference(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.local_as = NODE_AS;
        Ok(())
    })?;
    scene.apply_peer(&scene.peer())?;
    scene.apply_pool_only()?;
    let advertisement = Advertisement {
        name: "preferred",
        pools: &["main"],
        local_preference: Some(250),
        ..Advertisement::default()
    };
    scene.fairway.apply("advertisement", &advertisement.yaml())?;
    scene.fairway.apply("web", &service("web", Some("203.0.113.10")))?;
    scene.start()?;
    scene.established()?;
    let route = scene.route_arrives("203.0.113.10/32")?;
    expect_equal("local preference", &route.local_preference, &Some(250))?;
    expect_equal("AS path", &route.as_path, &Vec::new())?;
    expect_next_hop(&route, NODE_IPV4)
}

/// Topology: node --- router, eBGP over IPv4; an advertisement with `prefixes:` originates 2,000
/// networks without any service. Its file comes and goes while the session is up.
/// Proves: all arrive, all are withdrawn, and the session survives both.
//+ RFC 4271 §9.2: every route that is new and every route that is gone is told.
pub(super) fn two_thousand_prefixes_arrive_and_leave(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    scene.apply_peer(&scene.peer())?;
    scene.start()?;
    let incarnation = scene.established()?;
    let prefixes: Vec<String> =
        (0..MANY).map(|index| format!("100.{}.{}.0/24", 64 + index / 250, index % 250)).collect();
    let advertisement =
        Advertisement { name: "many", prefixes: &prefixes, ..Advertisement::default() };
    scene.fairway.apply("many", &advertisement.yaml())?;
    scene.prefixes_become(Family::Ipv4, &prefixes.iter().cloned().collect())?;
    scene.expect_same_session(&incarnation)?;
    scene.fairway.remove("many")?;
    scene.prefixes_become(Family::Ipv4, &BTreeSet::new())?;
    scene.expect_same_session(&incarnation)
}
