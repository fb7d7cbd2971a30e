//! What happens when one side freezes, restarts or dies? Hold timers, restarts, addresses that must
//! not move. Rows of the matrix.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::scene::{Cell, Scene, expect_equal};
use lab::Family;
use lab::resources::{Advertisement, service};
use lab::wait::{PATIENCE, wait_until};

const HOLD_SECONDS: u16 = 3;

/// Topology: node --- router, eBGP over IPv4, `holdTime: 3s`, `keepaliveTime: 1s`; the router's
/// processes are stopped with SIGSTOP, so that its kernel still acknowledges and it sends nothing.
/// Proves: fairway gives the session up within the hold time and 2 s, and it comes back when the
/// router goes on.
//= RFC 4271 §10 MUST: the hold time is configured for each peer.
pub(super) fn a_silent_router_runs_into_the_hold_timer(cell: &Cell) -> Result<()> {
    let mut scene = Scene::plain(cell, Family::Ipv4)?;
    let mut peer = scene.peer();
    peer.timers = Some((HOLD_SECONDS, 1));
    scene.apply_peer(&peer)?;
    scene.announce("203.0.113.10")?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.router.freeze()?;
    let address = scene.spec.local_address.to_string();
    let limit = Duration::from_secs(u64::from(HOLD_SECONDS) + 2);
    scene.wait("fairway notices the silence", limit, |scene| {
        let neighbour = scene.fairway.neighbour(&address)?;
        ensure!(!neighbour.is_established(), "it says {}", neighbour.state);
        Ok(())
    })?;
    scene.router.thaw()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- router, eBGP over IPv4, both sides dial; the router is stopped and started.
/// Proves: session and route come back without any action on fairway.
pub(super) fn a_restarted_router_gets_its_routes_again(cell: &Cell) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    scene.bring_up("203.0.113.10")?;
    scene.route_arrives("203.0.113.10/32")?;
    scene.router.stop()?;
    let address = scene.spec.local_address.to_string();
    scene.wait("fairway notices that the router is gone", PATIENCE, |scene| {
        let neighbour = scene.fairway.neighbour(&address)?;
        ensure!(!neighbour.is_established(), "it says {}", neighbour.state);
        Ok(())
    })?;
    scene.start_router()?;
    scene.established()?;
    scene.route_arrives("203.0.113.10/32").map(drop)
}

/// Topology: node --- router, eBGP over IPv4, both sides dial; fairway gets SIGTERM and is started
/// again.
/// Proves: it leaves with exit code 0, and each service has the address that it had.
pub(super) fn a_restarted_fairway_keeps_its_addresses(cell: &Cell) -> Result<()> {
    fairway_comes_back(cell, |scene| scene.fairway.stop())
}

/// Topology: node --- router, eBGP over IPv4, both sides dial; fairway is killed with SIGKILL and
/// started again.
/// Proves: each service has the address that it had.
pub(super) fn a_killed_fairway_keeps_its_addresses(cell: &Cell) -> Result<()> {
    fairway_comes_back(cell, |scene| scene.fairway.kill())
}

/// Two services that request no address get theirs one after the other, against the order of their names,
/// so that fairway could not find the same ones by chance. Each service's routes carry a community of its
/// own, which identifies them at the router.
fn fairway_comes_back(cell: &Cell, end: fn(&mut Scene) -> Result<()>) -> Result<()> {
    let mut scene = Scene::both_dial(cell)?;
    scene.apply_peer(&scene.peer())?;
    scene.apply_pool_only()?;
    let services = [("zulu", "65001:26"), ("alpha", "65001:1")];
    for (name, community) in services {
        let advertisement = Advertisement {
            name: &format!("only-{name}"),
            pools: &["main"],
            communities: &[community],
            only_service: Some(name),
            ..Advertisement::default()
        };
        scene.fairway.apply(&format!("advertisement-{name}"), &advertisement.yaml())?;
    }
    scene.start()?;
    scene.established()?;
    let mut before = Vec::new();
    for (name, community) in services {
        scene.fairway.apply(name, &service(name, None))?;
        before.push(prefix_with(&mut scene, community)?);
    }
    let all: BTreeSet<String> = before.iter().cloned().collect();
    expect_equal("number of different addresses", &all.len(), &services.len())?;
    // Routes do not wait for the disk.
    for prefix in &before {
        let address = prefix.trim_end_matches("/32");
        wait_until(&format!("{address} is on disk"), PATIENCE, || {
            ensure!(scene.fairway.keeps_assigned(address)?, "it is not");
            Ok(())
        })?;
    }
    end(&mut scene)?;
    // FRR goes on without us.
    let left = if scene.speaker.is_some() { all.clone() } else { BTreeSet::new() };
    scene.prefixes_become(Family::Ipv4, &left)?;
    scene.start_fairway()?;
    scene.established()?;
    for ((name, community), prefix) in services.into_iter().zip(&before) {
        let after = prefix_with(&mut scene, community)?;
        expect_equal(&format!("address of {name}"), &after, prefix)?;
    }
    scene.prefixes_become(Family::Ipv4, &all)
}

/// The prefix of the one route that carries this community.
fn prefix_with(scene: &mut Scene, community: &str) -> Result<String> {
    scene.wait(&format!("the router has a route with {community}"), PATIENCE, |scene| {
        let mut seen = Vec::new();
        for prefix in scene.router.prefixes(Family::Ipv4)? {
            let route = scene.router.route(&prefix)?.context("it went while we looked")?;
            if route.communities.contains(community) {
                return Ok(prefix);
            }
            seen.push(route);
        }
        bail!("it has {seen:?}")
    })
}
