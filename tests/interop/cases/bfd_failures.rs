//! What does BFD do about a router that is gone, and about one that only restarts? Rows of the matrix.
//! All hold times are far longer than any case: what ends a session here is BFD.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::bfd::{INTERVAL_MILLISECONDS, MULTIPLIER, all_up, ours, peer, plain, profile, spec};
use super::scene::{Cell, Scene};
use super::shown::{expect_at, keys, neighbour, set, table_becomes};
use lab::cut::Cut;
use lab::resources::Peer;
use lab::routers::bfd::BfdSpec;
use lab::routers::{GracefulRestart, Origination, RouterKind};
use lab::wait::{Hopeless, PATIENCE, holds_for};
use lab::withdrawals::Withdrawals;
use lab::{Family, fairway};

const OURS: &str = "203.0.113.10/32";
const THEIRS: &str = "10.90.1.0/24";

/// Cease, BFD Down (RFC 9384), as FRR writes it.
const BFD_DOWN: &str = "060A";
const EXPIRED: &str = "control detection time expired";
const SIGNALED: &str = "neighbor signaled session down";

/// Longer than any restart of these cases takes.
const RESTART: GracefulRestart =
    GracefulRestart { restart_seconds: 60, notifications: true, long_lived_seconds: None };

/// By far enough for the detection time of these cases, and for a busy machine beside.
fn detection() -> Duration {
    let milliseconds = INTERVAL_MILLISECONDS * u32::from(MULTIPLIER);
    Duration::from_millis(u64::from(milliseconds)) + Duration::from_millis(1500)
}

/// Waits until BFD has ended the session at our end, for this reason, and the router's route is gone.
fn ended_by_bfd(scene: &mut Scene, diagnostic: &str) -> Result<()> {
    is_over(scene)?;
    expect_at(&neighbour(scene)?, "/lastErrorCodeSubcode", &BFD_DOWN.into())?;
    let ours = ours(scene)?;
    expect_at(&ours, "/diagnostic", &diagnostic.into())?;
    ensure!(ours.get("status") != Some(&"up".into()), "BFD is up: {ours}");
    Ok(())
}

fn is_over(scene: &mut Scene) -> Result<()> {
    scene.wait("the session is over and the route is gone", detection(), |scene| {
        let neighbour = scene.fairway.neighbour(&scene.neighbour)?;
        ensure!(!neighbour.is_established(), "the session is {}", neighbour.state);
        let table = keys(&scene.fairway.show(&["bgp", "ipv4", "unicast"])?, "/routes")?;
        ensure!(table == set(&[OURS]), "the table is {table:?}");
        Ok(())
    })
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; what either sends is dropped on the way,
/// then it is not.
/// Proves: both ends give the session up by BFD, and it comes back by itself.
//+ RFC 9384 §3: a session that BFD ends is ended with Cease and BFD Down.
pub(super) fn bfd_notices_a_cut_cable(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    Cut::Both.apply(&scene.lab)?;
    ended_by_bfd(&mut scene, EXPIRED)?;
    scene.wait("the router has given the session up, too", PATIENCE, |scene| {
        let session = scene.router.session()?;
        ensure!(!session.established, "it says {}", session.state);
        let prefixes = scene.router.prefixes(Family::Ipv4)?;
        ensure!(!prefixes.contains(OURS), "it has {prefixes:?}");
        Ok(())
    })?;
    Cut::heal(&scene.lab)?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; what the router sends is dropped on the
/// way.
/// Proves: we notice it, and report it in a NOTIFICATION and by BFD.
pub(super) fn bfd_notices_a_cable_cut_towards_the_node(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    Cut::TowardsNode.apply(&scene.lab)?;
    ended_by_bfd(&mut scene, EXPIRED)?;
    scene.wait("the router has noticed it", PATIENCE, |scene| {
        let session = scene.router.session()?;
        ensure!(!session.established, "it says {}", session.state);
        Ok(())
    })?;
    Cut::heal(&scene.lab)?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; what we send is dropped on the way.
/// Proves: the router notices it and signals it by BFD, and that is as good as our own notice.
pub(super) fn bfd_notices_a_cable_cut_towards_the_router(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    Cut::TowardsRouter.apply(&scene.lab)?;
    if matches!(cell.router, RouterKind::Bird(_)) || scene.speaker.is_some() {
        // With its session of BGP it ends that of BFD, and begins another one; as FRR does here.
        is_over(&mut scene)?;
    } else {
        ended_by_bfd(&mut scene, SIGNALED)?;
        expect_at(&ours(&scene)?, "/remote-diagnostic", &EXPIRED.into())?;
    }
    Cut::heal(&scene.lab)?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; the router's processes are stopped with
/// SIGSTOP, so that its kernel still acknowledges; then they go on.
/// Proves: we give it up long before its hold time, and take it back.
pub(super) fn bfd_notices_a_frozen_router(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    scene.router.freeze()?;
    ended_by_bfd(&mut scene, EXPIRED)?;
    scene.router.thaw()?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; all processes of the router are killed
/// with SIGKILL, and it is started again.
/// Proves: BFD falls silent and that counts; the router comes back with other discriminators.
pub(super) fn bfd_finds_a_killed_router_again(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    let before = ours(&scene)?.get("remote-id").cloned().context("no remote-id")?;
    // Its kernel would close the connection for it: that would be no test of BFD.
    Cut::TowardsNode.apply(&scene.lab)?;
    // Dropped, they are killed.
    scene.router.daemons().clear();
    ended_by_bfd(&mut scene, EXPIRED)?;
    Cut::heal(&scene.lab)?;
    scene.start_router()?;
    all_up(&mut scene, Family::Ipv4)?;
    let after = ours(&scene)?;
    ensure!(after.get("remote-id") != Some(&before), "the same discriminator: {after}");
    Ok(())
}

/// A session with BFD and graceful restart at both ends.
fn restarting(cell: &Cell, graceful: bool) -> Result<Scene> {
    plain(cell, |router| {
        router.graceful_restart = Some(RESTART);
        router.bfd = Some(BfdSpec { graceful, ..spec() });
    })
}

/// The router's route in our table, and whether it is stale; a route that went is a permanent error.
fn is_stale(scene: &Scene) -> Result<bool> {
    let table = scene.fairway.show(&["bgp", "ipv4", "unicast"])?;
    let paths = table.get("routes").and_then(|routes| routes.get(THEIRS));
    let Some(paths) = paths.and_then(Value::as_array) else {
        return Err(Hopeless(format!("{THEIRS} went: {table}")).into());
    };
    let stale = |path: &Value| path.get("stale").and_then(Value::as_bool).unwrap_or(false);
    Ok(paths.iter().any(stale))
}

fn becomes_stale(scene: &mut Scene, expected: bool) -> Result<()> {
    scene.wait(&format!("{THEIRS} is stale: {expected}"), PATIENCE, |scene| {
        let stale = is_stale(scene)?;
        ensure!(stale == expected, "stale: {stale}");
        Ok(())
    })
}

/// Fairway logs every route that goes, if only for an instant.
fn expect_never_gone(cell: &Cell) -> Result<()> {
    let log = fairway::log_in(&cell.directory);
    let log = std::fs::read_to_string(&log).context("fairway's log")?;
    let words = format!("prefix={THEIRS} ");
    let gone = log.lines().find(|line| line.contains(&words) && line.contains("gone"));
    ensure!(gone.is_none(), "the route went: {gone:?}");
    Ok(())
}

fn is_down(scene: &mut Scene) -> Result<()> {
    scene.wait("BFD is down at our end", PATIENCE, |scene| {
        let ours = ours(scene)?;
        ensure!(ours.get("status") == Some(&"down".into()), "it is {ours}");
        Ok(())
    })
}

/// Topology: node --- router, eBGP over IPv4, BFD and graceful restart at both ends; what speaks BGP on
/// the router is killed with SIGKILL, and with it goes its BFD; then it is started again.
/// Proves: its routes stay, stale, although BFD is down: its BFD may have restarted, too.
//+ RFC 5882 §4.3.2.1: a BFD session that fails during a restart aborts it.
pub(super) fn bfd_leaves_the_routes_of_a_crashed_router(cell: &Cell) -> Result<()> {
    let mut scene = restarting(cell, false)?;
    scene.router.crash()?;
    becomes_stale(&mut scene, true)?;
    is_down(&mut scene)?;
    becomes_stale(&mut scene, true)?;
    scene.router.recover(&scene.lab.router, &[Origination::plain(THEIRS)])?;
    all_up(&mut scene, Family::Ipv4)?;
    becomes_stale(&mut scene, false)?;
    expect_never_gone(cell)
}

/// Topology: node --- router, eBGP over IPv4, BFD and graceful restart at both ends; the router's
/// processes are stopped with SIGSTOP, then they go on.
/// Proves: BFD is the first to notice; the session ends, and the routes stay, stale.
pub(super) fn bfd_leaves_the_routes_of_a_frozen_router(cell: &Cell) -> Result<()> {
    let mut scene = restarting(cell, false)?;
    scene.router.freeze()?;
    scene.wait("the session is over", detection(), |scene| {
        let neighbour = scene.fairway.neighbour(&scene.neighbour)?;
        ensure!(!neighbour.is_established(), "it is {}", neighbour.state);
        Ok(())
    })?;
    becomes_stale(&mut scene, true)?;
    scene.router.thaw()?;
    // It has not restarted, and does not advertise that it went on forwarding.
    all_up(&mut scene, Family::Ipv4)?;
    becomes_stale(&mut scene, false)
}

/// Topology: node --- router, eBGP over IPv4, BFD and graceful restart at both ends; the router signals that
/// its BFD would outlive its BGP, and is stopped with SIGSTOP.
/// Proves: then it no longer forwards, and its routes go.
//+ RFC 5882 §4.3.1: a BFD session that does not share fate with the control plane and fails ends a restart that is under way, and the routes go.
pub(super) fn bfd_that_would_outlive_bgp_ends_its_routes(cell: &Cell) -> Result<()> {
    let mut scene = restarting(cell, true)?;
    scene.router.freeze()?;
    ended_by_bfd(&mut scene, EXPIRED)?;
    scene.router.thaw()?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}

/// Waits until fairway has written what it announces: the next run will know that it restarted.
fn is_on_disk(scene: &mut Scene) -> Result<()> {
    scene.wait("our route is on disk", PATIENCE, |scene| {
        ensure!(scene.fairway.keeps_announced(OURS)?, "it is not");
        Ok(())
    })
}

/// Our route never leaves the router's kernel while fairway ends in this way and is started again.
fn comes_back_unnoticed(
    cell: &Cell,
    scene: &mut Scene,
    end: impl FnOnce(&mut Scene) -> Result<()>,
) -> Result<()> {
    is_on_disk(scene)?;
    let log = cell.directory.join("withdrawals.log");
    let mut witness = Withdrawals::of_kernel(&scene.lab.router.namespace, &log)?;
    scene.wait("our route is in the router's kernel", PATIENCE, |scene| {
        scene.kernel_next_hops(OURS)?.context("it is not").map(drop)
    })?;
    end(scene)?;
    // FRR goes on without us, so that no change is visible.
    if scene.speaker.is_none() {
        scene.wait("the router has noticed", PATIENCE, |scene| {
            let session = scene.router.session()?;
            ensure!(!session.established, "it says {}", session.state);
            Ok(())
        })?;
    }
    // More than a detection time.
    holds_for("the route stays", detection(), || {
        scene.kernel_next_hops(OURS)?.context("it went").map(drop)
    })?;
    scene.start_fairway()?;
    all_up(scene, Family::Ipv4)?;
    let gone = witness.lines(|prefix| prefix == OURS)?;
    ensure!(gone.is_empty(), "our route went: {gone:?}");
    Ok(())
}

/// Topology: node --- router, eBGP over IPv4, BFD and graceful restart at both ends; fairway gets SIGTERM
/// and is started again.
/// Proves: it takes BFD down before it leaves, so that the router keeps our route all the time.
pub(super) fn bfd_lets_a_planned_restart_of_ours_pass(cell: &Cell) -> Result<()> {
    let graceful = matches!(cell.router, RouterKind::Bird(_));
    let mut scene = restarting(cell, graceful)?;
    comes_back_unnoticed(cell, &mut scene, |scene| scene.fairway.stop())
}

/// Topology: node --- router, eBGP over IPv4, BFD and graceful restart at both ends, the router configured
/// so that our BFD says nothing of our forwarding; fairway is killed with SIGKILL and started again.
/// Proves: the router keeps our route all the time.
pub(super) fn bfd_lets_a_crash_of_ours_pass_where_the_router_is_told_so(cell: &Cell) -> Result<()> {
    let mut scene = restarting(cell, true)?;
    comes_back_unnoticed(cell, &mut scene, |scene| scene.fairway.kill())
}

/// Topology: node --- router, eBGP over IPv4, BFD at both ends; the BGPPeer loses its profile, and gets it
/// back.
/// Proves: we take BFD down administratively, and both sides keep the session.
pub(super) fn bfd_that_we_take_away_ends_no_session(cell: &Cell) -> Result<()> {
    let mut scene = plain(cell, |_| ())?;
    let before = scene.fairway.neighbour(&scene.neighbour)?.connections_established;
    let without = Peer { bfd_profile: None, ..peer(&scene) };
    scene.apply_peer(&without)?;
    scene.wait("the session of BFD is gone", PATIENCE, |scene| {
        let peers =
            scene.fairway.show(&["bgp", "summary"]).and(scene.fairway.show(&["bfd", "peers"]))?;
        ensure!(peers.as_array().is_some_and(Vec::is_empty), "it is {peers}");
        Ok(())
    })?;
    holds_for("the session stays", detection(), || {
        let neighbour = scene.fairway.neighbour(&scene.neighbour)?;
        ensure!(neighbour.is_established(), "fairway says {}", neighbour.state);
        ensure!(neighbour.connections_established == before, "it is another one");
        Ok(())
    })?;
    table_becomes(&mut scene, Family::Ipv4, &[THEIRS, OURS])?;
    scene.fairway.apply("bfd", &profile().yaml())?;
    scene.apply_peer(&peer(&scene))?;
    all_up(&mut scene, Family::Ipv4).map(drop)
}
