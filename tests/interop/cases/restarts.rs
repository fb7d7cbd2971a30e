//! Which routes outlive a restart? Those of a router that crashes, in our table; ours in that of the
//! router. Rows of the matrix.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::scene::{Cell, Scene};
use super::shown::{expect_at, neighbour, table_becomes};
use crate::lab::fairway::Fairway;
use crate::lab::resources::Allowed;
use crate::lab::wait::{Hopeless, PATIENCE, holds_for, now};
use crate::lab::withdrawals::Withdrawals;
use crate::lab::{Family, Wiring};
use crate::routers::{Dialling, GracefulRestart, Origination, RouterKind};

/// Longer than any restart of these cases takes.
const RESTART_SECONDS: u16 = 60;
/// What a router asks for that does not come back, and how exact the end of it is.
const SHORT_RESTART_SECONDS: u16 = 5;
const SLACK: Duration = Duration::from_secs(2);

const OURS: &str = "203.0.113.10";
const OUR_PREFIX: &str = "203.0.113.10/32";
const KEPT: &str = "10.90.1.0/24";
const DROPPED: &str = "10.90.2.0/24";

/// Each prefix of a table, and whether it is stale.
type Kept = BTreeMap<String, bool>;

/// A direct eBGP session over IPv4 for which both dial, with graceful restart at both ends; the
/// router originates two routes and we announce one, and both are there.
fn scene(cell: &Cell, restart_seconds: u16) -> Result<Scene> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.dialling = Dialling::Dials;
        router.originated = [KEPT, DROPPED].map(Origination::plain).to_vec();
        router.graceful_restart = Some(GracefulRestart { restart_seconds, notifications: true });
        Ok(())
    })?;
    let mut peer = scene.peer();
    peer.to_receive = Some(Allowed::All);
    scene.apply_peer(&peer)?;
    scene.announce(OURS)?;
    scene.start()?;
    scene.established()?;
    scene.route_arrives(OUR_PREFIX)?;
    table_becomes(&mut scene, Family::Ipv4, &[KEPT, DROPPED, OUR_PREFIX])?;
    scene.wait("both sides have told all", PATIENCE, |scene| {
        ensure!(scene.router.has_end_of_rib(Family::Ipv4)?, "we have not told all");
        Ok(())
    })?;
    Ok(scene)
}

/// What came from the router, in our table.
fn kept_by_us(scene: &Scene) -> Result<Kept> {
    let table = scene.fairway.show(&["bgp", "ipv4", "unicast"])?;
    let routes = table.get("routes").and_then(Value::as_object);
    let routes = routes.with_context(|| format!("expected routes in {table}"))?;
    let is_stale = |path: &Value| path.get("stale").and_then(Value::as_bool).unwrap_or(false);
    let stale = |paths: &Value| paths.as_array().into_iter().flatten().any(is_stale);
    let learned = routes.iter().filter(|(prefix, _)| prefix.as_str() != OUR_PREFIX);
    Ok(learned.map(|(prefix, paths)| (prefix.clone(), stale(paths))).collect())
}

fn kept_by_router(scene: &Scene) -> Result<Kept> {
    let mut kept = scene.router.kept(Family::Ipv4)?;
    // What it originates itself.
    kept.retain(|prefix, _| prefix != KEPT && prefix != DROPPED);
    Ok(kept)
}

/// Who sees our route go at the router, if only for an instant.
struct Witness(Option<Withdrawals>);

impl Witness {
    fn of(cell: &Cell, scene: &Scene) -> Result<Self> {
        let place = &scene.lab.router.namespace;
        let log = cell.directory.join("withdrawals.log");
        Ok(Self(match cell.router {
            RouterKind::Frr(_) | RouterKind::Bird(_) => Some(Withdrawals::of_kernel(place, &log)?),
            RouterKind::Gobgp => Some(Withdrawals::of_gobgp(place, &log)?),
            // It tells nobody, and has no route in a kernel here.
            RouterKind::Openbgpd => None,
        }))
    }

    fn expect_nothing(&mut self) -> Result<()> {
        let Some(withdrawals) = &mut self.0 else { return Ok(()) };
        let gone = withdrawals.lines(|prefix| prefix == OUR_PREFIX)?;
        ensure!(gone.is_empty(), "our route went: {gone:?}");
        Ok(())
    }
}

fn all(prefixes: &[&str], stale: bool) -> Kept {
    prefixes.iter().map(|prefix| ((*prefix).to_owned(), stale)).collect()
}

/// Waits until a table is this one; `always` must be in it all the time.
fn becomes(
    scene: &mut Scene,
    of: fn(&Scene) -> Result<Kept>,
    always: &str,
    expected: &Kept,
) -> Result<()> {
    let limit = scene.patience();
    scene.wait(&format!("the table is {expected:?}"), limit, |scene| {
        let found = of(scene)?;
        if !found.contains_key(always) {
            return Err(Hopeless(format!("{always} went: there is only {found:?}")).into());
        }
        ensure!(found == *expected, "it is {found:?}");
        Ok(())
    })
}

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends; what speaks BGP on the
/// router is killed with SIGKILL and started again, with one route fewer.
/// Proves: its routes stay in our table, marked stale; the one that it says again is never gone and
/// loses its mark, the other goes when it has told all.
//= RFC 4724 §4.2 MUST: routes of a restarting neighbour are kept, and marked as stale.
//= RFC 4724 §4.2 MUST: what is still stale when End-of-RIB arrives is removed.
pub(super) fn a_crashed_router_finds_its_routes_when_it_is_back(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, RESTART_SECONDS)?;
    scene.router.crash()?;
    becomes(&mut scene, kept_by_us, KEPT, &all(&[KEPT, DROPPED], true))?;
    scene.router.recover(&scene.lab.router, &[Origination::plain(KEPT)])?;
    scene.established()?;
    becomes(&mut scene, kept_by_us, KEPT, &all(&[KEPT], false))
}

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends, the router asks for 5 s;
/// what speaks BGP on it is killed with SIGKILL and stays away.
/// Proves: its routes stay for those 5 s, and no longer.
//= RFC 4724 §4.2 MUST: without a new session in the restart time, stale routes are removed.
pub(super) fn a_crashed_router_that_stays_away_loses_its_routes_in_time(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, SHORT_RESTART_SECONDS)?;
    let crashed = now();
    scene.router.crash()?;
    let stale = all(&[KEPT, DROPPED], true);
    becomes(&mut scene, kept_by_us, KEPT, &stale)?;
    let time = Duration::from_secs(SHORT_RESTART_SECONDS.into());
    let rest = (time - SLACK).saturating_sub(crashed.elapsed());
    holds_for("stale routes stay", rest, || {
        let found = kept_by_us(&scene)?;
        ensure!(found == stale, "there is {found:?}");
        Ok(())
    })?;
    let rest = (time + SLACK).saturating_sub(crashed.elapsed());
    scene.wait("stale routes are gone", rest, |scene| {
        let found = kept_by_us(scene)?;
        ensure!(found.is_empty(), "there is {found:?}");
        Ok(())
    })
}

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends; fairway is killed with
/// SIGKILL and started again; then it gets SIGTERM and is started again.
/// Proves: both times the router keeps our route, stale meanwhile, and it is never gone; SIGTERM ends
/// the session without a word.
//= RFC 4724 §4.1 MUST: a speaker that restarts says so, and what it still forwards.
pub(super) fn a_restarted_fairway_finds_its_routes_when_it_is_back(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, RESTART_SECONDS)?;
    let mut witness = Witness::of(cell, &scene)?;
    for end in [Fairway::kill, Fairway::stop] {
        end(&mut scene.fairway)?;
        becomes(&mut scene, kept_by_router, OUR_PREFIX, &all(&[OUR_PREFIX], true))?;
        scene.start_fairway()?;
        scene.established()?;
        becomes(&mut scene, kept_by_router, OUR_PREFIX, &all(&[OUR_PREFIX], false))?;
        table_becomes(&mut scene, Family::Ipv4, &[KEPT, DROPPED, OUR_PREFIX])?;
        witness.expect_nothing()?;
    }
    Ok(())
}

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends, with the N bit;
/// `fairway clear bgp` resets the session with a NOTIFICATION.
/// Proves: neither side loses a route of the other.
//= RFC 8538 §4 MUST: after a NOTIFICATION that is no hard reset, routes are kept as after a restart.
pub(super) fn a_cleared_session_keeps_the_routes_of_both_sides(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, RESTART_SECONDS)?;
    expect_at(&neighbour(&scene)?, "/gracefulRestartInfo/nBit", &json!(true))?;
    let before = scene.established()?;
    let mut witness = Witness::of(cell, &scene)?;
    let name = scene.neighbour.clone();
    scene.fairway.clear(&[&name])?;
    let ours = all(&[KEPT, DROPPED], false);
    let theirs = all(&[OUR_PREFIX], false);
    let limit = scene.patience();
    scene.wait("another session with all routes", limit, |scene| {
        let (us, router) = (kept_by_us(scene)?, kept_by_router(scene)?);
        if us.len() != ours.len() || router.len() != theirs.len() {
            let text = format!("a route went: we have {us:?}, the router {router:?}");
            return Err(Hopeless(text).into());
        }
        ensure!(us == ours && router == theirs, "we have {us:?}, the router {router:?}");
        let session = scene.router.session()?;
        let is_new = session.established && session.incarnation != before;
        ensure!(is_new, "the router says {}, {}", session.state, session.incarnation);
        Ok(())
    })?;
    witness.expect_nothing()
}

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends; the peer's file is
/// removed.
/// Proves: our route does not stay at the router: that end is for good.
pub(super) fn a_removed_peer_leaves_no_stale_route(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, RESTART_SECONDS)?;
    scene.fairway.remove("peer")?;
    scene.wait("our route is gone", PATIENCE, |scene| {
        let found = kept_by_router(scene)?;
        ensure!(found.is_empty(), "there is {found:?}");
        Ok(())
    })
}
