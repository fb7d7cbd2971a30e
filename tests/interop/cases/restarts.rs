//! Which routes outlive a restart? Those of a router that crashes, in our table; ours in that of the
//! router. Rows of the matrix.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::scene::{Cell, NODE_AS, Scene, expect_equal};
use super::shown::{expect_at, keys, neighbour, set, table_becomes};
use crate::speaker::SpeakerKind;
use lab::fairway::{self, Fairway};
use lab::resources::{Allowed, service};
use lab::routers::{Dialling, GracefulRestart, Origination, RouterKind, RouterRoute};
use lab::wait::{Hopeless, PATIENCE, holds_for, now};
use lab::withdrawals::Withdrawals;
use lab::{FEEDER, Family, Wiring};

/// Longer than any restart of these cases takes.
const RESTART_SECONDS: u16 = 60;
/// What a router asks for that does not come back, and how exact the end of it is.
const SHORT_RESTART_SECONDS: u16 = 5;
const SLACK: Duration = Duration::from_secs(2);

const OURS: &str = "203.0.113.10";
const OUR_PREFIX: &str = "203.0.113.10/32";
const KEPT: &str = "10.90.1.0/24";
const DROPPED: &str = "10.90.2.0/24";

/// An address that the router's feeder announces as well, with a longer path.
const SHARED_ADDRESS: &str = "203.0.113.20";
const SHARED: &str = "203.0.113.20/32";

const LLGR_STALE: &str = "65535:6";

/// Each prefix of a table, and whether it is stale.
type Kept = BTreeMap<String, bool>;

/// How much earlier a timer may expire, by the clocks of a busy machine.
const TIMER_SLACK: Duration = Duration::from_millis(500);

/// Both ends wait for this long, and keep routes as the last resort for much longer.
const LONG_LIVED: GracefulRestart =
    GracefulRestart { restart_seconds: 3, notifications: true, long_lived_seconds: Some(60) };

/// A direct eBGP session over IPv4 for which both dial, with graceful restart at both ends; the
/// router originates two routes and we announce one, and both are there.
fn scene(cell: &Cell, restart_seconds: u16) -> Result<Scene> {
    let restart =
        GracefulRestart { restart_seconds, notifications: true, long_lived_seconds: None };
    scene_with(cell, restart, None)
}

/// The same with this graceful restart; the router may have a feeder.
fn scene_with(cell: &Cell, restart: GracefulRestart, feeder: Option<Ipv4Addr>) -> Result<Scene> {
    let mut scene = Scene::open(cell, Wiring::Direct, Family::Ipv4, |router| {
        router.dialling = Dialling::Dials;
        router.originated = [KEPT, DROPPED].map(Origination::plain).to_vec();
        router.graceful_restart = Some(restart);
        router.feeder = feeder;
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
    scene.wait("both sides have sent End-of-RIB", PATIENCE, |scene| {
        ensure!(scene.router.has_end_of_rib(Family::Ipv4)?, "we have not sent it");
        Ok(())
    })?;
    is_on_disk(&mut scene, OUR_PREFIX)?;
    Ok(scene)
}

/// Announcements do not wait for the disk: a daemon that is killed in that instant remembers nothing.
fn is_on_disk(scene: &mut Scene, prefix: &str) -> Result<()> {
    scene.wait(&format!("{prefix} is on disk"), PATIENCE, |scene| {
        ensure!(scene.fairway.keeps_announced(prefix)?, "it is not");
        Ok(())
    })
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
    // A feeder may announce it, too.
    kept.remove(SHARED);
    Ok(kept)
}

/// Reports our route going at the router, if only for an instant.
struct Witness(Option<Withdrawals>);

impl Witness {
    fn of(cell: &Cell, scene: &Scene) -> Result<Self> {
        let place = &scene.lab.router.namespace;
        let log = cell.directory.join("withdrawals.log");
        Ok(Self(match cell.router {
            RouterKind::Frr(_) | RouterKind::Bird(_) => Some(Withdrawals::of_kernel(place, &log)?),
            RouterKind::Gobgp => Some(Withdrawals::of_gobgp(place, &log)?),
            // It reports no changes, and has no route in a kernel here.
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

/// Fairway logs every route that goes, if only for an instant; of these none went. FRR does not log them.
fn expect_never_gone(cell: &Cell, prefixes: &[&str]) -> Result<()> {
    if cell.speaker != SpeakerKind::Fairway {
        return Ok(());
    }
    let log = fs::read_to_string(fairway::log_in(&cell.directory)).context("fairway's log")?;
    for prefix in prefixes {
        let of_prefix = log.lines().filter(|line| line.contains(&format!("prefix={prefix} ")));
        let (learned, gone): (Vec<_>, Vec<_>) =
            of_prefix.partition(|line| line.contains("route learned"));
        ensure!(!learned.is_empty() && gone.is_empty(), "{prefix} went: {gone:#?}");
    }
    Ok(())
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

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends; the BGP daemon of the
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
    becomes(&mut scene, kept_by_us, KEPT, &all(&[KEPT], false))?;
    expect_never_gone(cell, &[KEPT])
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
/// the session without a NOTIFICATION.
//= RFC 4724 §4.1 MUST: a speaker that restarts says so, and what it still forwards.
pub(super) fn a_restarted_fairway_finds_its_routes_when_it_is_back(cell: &Cell) -> Result<()> {
    let mut scene = scene(cell, RESTART_SECONDS)?;
    let mut witness = Witness::of(cell, &scene)?;
    for end in [Fairway::kill, Fairway::stop] {
        end(&mut scene.fairway)?;
        // FRR goes on without us.
        let is_away = scene.speaker.is_none();
        becomes(&mut scene, kept_by_router, OUR_PREFIX, &all(&[OUR_PREFIX], is_away))?;
        scene.start_fairway()?;
        scene.established()?;
        becomes(&mut scene, kept_by_router, OUR_PREFIX, &all(&[OUR_PREFIX], false))?;
        table_becomes(&mut scene, Family::Ipv4, &[KEPT, DROPPED, OUR_PREFIX])?;
        witness.expect_nothing()?;
    }
    Ok(())
}

/// Our path to a prefix in the router's table, whether the router uses it or another one.
fn our_path(scene: &Scene, prefix: &str) -> Result<RouterRoute> {
    let mut paths = scene.router.paths(prefix)?.into_iter();
    let ours = paths.find(|path| path.as_path == [NODE_AS]);
    // Waiting longer would not bring it back.
    ours.ok_or_else(|| Hopeless(format!("our path to {prefix} went")).into())
}

/// Waits until the router has both our routes, marked as the last resort or not, and uses another
/// path if it has one while they are.
fn our_routes_become(scene: &mut Scene, last_resort: bool) -> Result<()> {
    let limit = scene.patience();
    scene.wait(&format!("our routes are the last resort: {last_resort}"), limit, |scene| {
        for (prefix, usable) in [(OUR_PREFIX, true), (SHARED, !last_resort)] {
            let path = our_path(scene, prefix)?;
            let is_marked = path.communities.contains(LLGR_STALE);
            ensure!((is_marked, path.usable) == (last_resort, usable), "it has {path:?}");
        }
        Ok(())
    })
}

/// Routes are the last resort now, and should not have been before.
fn expect_restart_time_over(end_of_session: Instant) -> Result<()> {
    let away = end_of_session.elapsed();
    let least = Duration::from_secs(LONG_LIVED.restart_seconds.into()) - TIMER_SLACK;
    ensure!(away >= least, "the last resort after {away:?} already");
    Ok(())
}

/// Topology: node --- router --- feeder (a BIRD), eBGP over IPv4, graceful restart for 3 s and
/// long-lived graceful restart for 60 s at node and router; we announce one address alone, and one
/// that the feeder announces with a longer path; fairway is killed with SIGKILL, and started again
/// when the restart time is over.
/// Proves: the router keeps our routes, marks them with LLGR_STALE and uses the path of the feeder
/// where there is one; when we are back they are as before; the one that is ours alone is never gone.
pub(super) fn a_fairway_that_stays_away_is_the_last_resort(cell: &Cell) -> Result<()> {
    let feeder = FEEDER.parse().context("the feeder's address")?;
    let mut scene = scene_with(cell, LONG_LIVED, Some(feeder))?;
    scene.fairway.apply("shared", &service("shared", Some(SHARED_ADDRESS)))?;
    scene.route_arrives(SHARED)?;
    let of_feeder = Origination { prepends: 2, ..Origination::plain(SHARED) };
    let _feeder = scene.add_feeder(cell, of_feeder)?;
    our_routes_become(&mut scene, false)?;
    is_on_disk(&mut scene, SHARED)?;
    let mut witness = Witness::of(cell, &scene)?;
    let killed = now();
    scene.fairway.kill()?;
    becomes(&mut scene, kept_by_router, OUR_PREFIX, &all(&[OUR_PREFIX], true))?;
    our_routes_become(&mut scene, true)?;
    expect_restart_time_over(killed)?;
    scene.start_fairway()?;
    scene.established()?;
    our_routes_become(&mut scene, false)?;
    becomes(&mut scene, kept_by_router, OUR_PREFIX, &all(&[OUR_PREFIX], false))?;
    witness.expect_nothing()
}

/// Topology: node --- router, eBGP over IPv4, graceful restart for 3 s and long-lived graceful
/// restart for 60 s at both ends; what speaks BGP on the router is killed with SIGKILL, and started
/// again when the restart time is over.
/// Proves: its routes stay in our table, stale, and are marked with LLGR_STALE after the restart
/// time; when it is back they are as before, and never gone.
//+ RFC 9494 §4.2: after the restart time stale routes are kept for the long-lived stale time of their family.
//+ RFC 9494 §4.2: routes that are kept for that long carry LLGR_STALE.
pub(super) fn a_router_that_stays_away_is_the_last_resort(cell: &Cell) -> Result<()> {
    let mut scene = scene_with(cell, LONG_LIVED, None)?;
    let both = [KEPT, DROPPED];
    let crashed = now();
    scene.router.crash()?;
    becomes(&mut scene, kept_by_us, KEPT, &all(&both, true))?;
    last_resort_becomes(&mut scene, &both, &all(&both, true))?;
    expect_restart_time_over(crashed)?;
    scene.router.recover(&scene.lab.router, &both.map(Origination::plain))?;
    scene.established()?;
    last_resort_becomes(&mut scene, &[], &all(&both, false))?;
    expect_never_gone(cell, &both)
}

/// Waits until these routes in our table are the last resort, and the routes of the router are these,
/// of which none may go meanwhile.
fn last_resort_becomes(scene: &mut Scene, prefixes: &[&str], kept: &Kept) -> Result<()> {
    let expected = set(prefixes);
    let limit = scene.patience();
    scene.wait(&format!("the last resort is {expected:?}"), limit, |scene| {
        let found = kept_by_us(scene)?;
        if !found.keys().eq(kept.keys()) {
            return Err(Hopeless(format!("a route went: there is only {found:?}")).into());
        }
        let words = ["bgp", "ipv4", "unicast", "community", LLGR_STALE];
        let marked = keys(&scene.fairway.show(&words)?, "/routes")?;
        expect_equal("routes with LLGR_STALE", &marked, &expected)?;
        expect_equal("routes of the router", &found, kept)
    })
}

/// Topology: node --- router, eBGP over IPv4, graceful restart at both ends, with the N bit;
/// `fairway clear bgp` resets the session with a NOTIFICATION.
/// Proves: neither side loses a route of the other. Those of GoBGP go for the instant between its OPEN
/// and its first UPDATE: without a restart of its own it sets no F bit.
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
        if router.len() != theirs.len() {
            return Err(Hopeless(format!("our route went: the router has {router:?}")).into());
        }
        ensure!(us == ours && router == theirs, "we have {us:?}, the router {router:?}");
        let session = scene.router.session()?;
        let is_new = session.established && session.incarnation != before;
        ensure!(is_new, "the router reports {}, {}", session.state, session.incarnation);
        Ok(())
    })?;
    if cell.router != RouterKind::Gobgp {
        expect_never_gone(cell, &[KEPT, DROPPED])?;
    }
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
