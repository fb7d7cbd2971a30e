//! What if Fairway itself ends, starts again, or leaves its part to FRR and takes it back? No router is
//! affected.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::operator::OPERATOR;
use crate::scene::{ROUTER, Scene, expect_none_gone, prefix};
use lab::resources::{pool, service};
use lab::routers::{GracefulRestart, Release, RouterKind};
use lab::wait::{PATIENCE, holds_for};
use lab::{Family, fairway};

const SOME: usize = 50;

/// How long FRR is watched while it is alone.
const ALONE: Duration = Duration::from_secs(3);

/// Ends Fairway in some way, and starts it again.
fn frr_goes_on_speaking(cell: &Cell, end: fn(&mut Scene) -> Result<()>) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.all_is_in_force()?;
    let all: BTreeSet<String> = (0..SOME).map(prefix).collect();
    let (before, mut withdrawals) = (scene.session()?, scene.watch()?);
    let told_before = scene.told()?.len();
    end(&mut scene)?;
    holds_for("the router has all routes", ALONE, || scene.expect_routes(&all))?;
    scene.start_fairway()?;
    scene.all_is_in_force()?;
    // It has acted on what it found when it acts on what comes after.
    scene.apply_services("more", SOME, 1)?;
    scene.router_has(SOME + 1)?;
    scene.expect_same_session(before)?;
    expect_none_gone(&mut withdrawals)?;
    let told = scene.told()?.split_off(told_before);
    let is_one = matches!(told.as_slice(), [line] if line.contains("commands=1 "));
    ensure!(is_one, "expected FRR to be told one line, of the new route; it was {told:?}");
    Ok(())
}

pub(crate) fn fairway_killed_leaves_frr_speaking(cell: &Cell) -> Result<()> {
    frr_goes_on_speaking(cell, |scene| scene.fairway.kill())
}

pub(crate) fn fairway_ended_leaves_frr_speaking(cell: &Cell) -> Result<()> {
    frr_goes_on_speaking(cell, |scene| scene.fairway.stop())
}

pub(crate) fn what_went_meanwhile_is_withdrawn_and_nothing_else(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.apply_services("more", SOME, 2)?;
    scene.router_has(SOME + 2)?;
    let (before, mut withdrawals) = (scene.session()?, scene.watch()?);
    scene.fairway.kill()?;
    scene.fairway.remove("more")?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    let ours = |prefix: &str| prefix.starts_with("198.18.");
    // The kernel hears of it after BIRD's table.
    scene.wait("two routes went", PATIENCE, |_| {
        let gone = withdrawals.lines(ours)?;
        ensure!(gone.len() == 2, "these went: {gone:?}");
        Ok(())
    })?;
    scene.all_is_in_force()?;
    let gone = withdrawals.lines(ours)?;
    ensure!(gone.len() == 2, "expected two routes to go, these went: {gone:?}");
    scene.expect_same_session(before)
}

/// In the order of their files, which is not that of their names.
const PLAIN: [&str; 3] = ["zebra", "mango", "apple"];

/// The router's own restart is not part of it.
const KEEPS: GracefulRestart =
    GracefulRestart { restart_seconds: 60, notifications: true, long_lived_seconds: None };

pub(crate) fn a_node_goes_over_to_frr_and_back(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open_beside(cell, RouterKind::Frr(Release::Bookworm), Some(KEEPS))?;
    scene.fairway.apply("pool", &pool("main", &["198.18.0.0/28"]))?;
    scene.start_native()?;
    // Each takes the next address that is free, so without a memory they would change.
    for (count, name) in (1..).zip(PLAIN) {
        scene.fairway.apply(name, &service(name, None))?;
        scene.wait(&format!("the router has the address of {name}"), PATIENCE, |scene| {
            let routes = scene.router.prefixes(Family::Ipv4)?;
            ensure!(routes.len() == count, "it has {routes:?}");
            Ok(())
        })?;
    }
    let all = scene.router.prefixes(Family::Ipv4)?;
    let assigned = scene.assigned()?;
    has_end_of_rib(&mut scene)?;
    let mut withdrawals = scene.watch()?;

    scene.fairway.stop()?;
    scene.start_speaker()?;
    scene.start_fairway()?;
    scene.settles(&all)?;
    ensure!(scene.session()? == 1, "FRR has no session");
    expect_none_gone(&mut withdrawals).context("from native to FRR")?;
    ensure!(scene.assigned()? == assigned, "addresses have changed");

    scene.fairway.stop()?;
    scene.speaker.stop()?;
    scene.start_native()?;
    scene.settles(&all)?;
    expect_none_gone(&mut withdrawals).context("from FRR to native")?;
    ensure!(scene.assigned()? == assigned, "addresses have changed");
    Ok(())
}

fn has_end_of_rib(scene: &mut Scene) -> Result<()> {
    scene.wait("the router has received everything", PATIENCE, |scene| {
        ensure!(scene.router.has_end_of_rib(Family::Ipv4)?, "not yet");
        Ok(())
    })
}

impl Scene {
    /// Waits for the session that follows, with these routes and none that is only kept.
    fn settles(&mut self, all: &BTreeSet<String>) -> Result<()> {
        self.wait("the router has received everything again", 2 * PATIENCE, |scene| {
            ensure!(scene.router.session()?.established, "there is no session");
            ensure!(scene.router.has_end_of_rib(Family::Ipv4)?, "no End-of-RIB");
            let kept = scene.router.kept(Family::Ipv4)?;
            ensure!(kept.values().all(|stale| !stale), "some are stale: {kept:?}");
            ensure!(kept.keys().eq(all), "it has {kept:?}");
            Ok(())
        })
    }

    /// Each time that lines were sent to FRR, as Fairway's log has it.
    fn told(&self) -> Result<Vec<String>> {
        let log = fairway::log_in(&self.lab.directory);
        let text = std::fs::read_to_string(log).context("fairway's log")?;
        let lines = text.lines().filter(|line| line.contains("FRR configured"));
        Ok(lines.map(str::to_owned).collect())
    }

    /// The Services and their addresses.
    fn assigned(&self) -> Result<String> {
        self.fairway.show_text(&["services"])
    }
}

pub(crate) fn a_reload_of_frr_is_healed(cell: &Cell) -> Result<()> {
    reload_is_healed(cell, &[])
}

pub(crate) fn a_reload_of_frr_beside_an_operator_is_healed(cell: &Cell) -> Result<()> {
    reload_is_healed(cell, OPERATOR)
}

/// `systemctl reload frr` makes the running configuration that of the file: ours goes, and comes back.
fn reload_is_healed(cell: &Cell, theirs: &[&str]) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    if !theirs.is_empty() {
        scene.speaker.configure(theirs)?;
    }
    let file = scene.speaker.running_configuration()?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    let told = scene.told()?.len();
    scene.speaker.reload(&file)?;
    // FRR 10.3 keeps a view beside the operator's router, and with it the session: only this tells that lines were gone.
    scene.wait("Fairway configures FRR again", PATIENCE, |scene| {
        ensure!(scene.told()?.len() > told, "the reload left our lines as they were");
        Ok(())
    })?;
    scene.wait("FRR has our neighbor again", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        ensure!(text.contains(&format!("neighbor {ROUTER} remote-as ")), "FRR has\n{text}");
        Ok(())
    })?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    // Where there is nobody else's, the default instance is ours.
    if theirs.is_empty() { Ok(()) } else { scene.expect_running(&file) }
}

/// The file that is reloaded has a router where ours is.
pub(crate) fn a_router_that_a_reload_makes_the_operators_stays_theirs(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    let lines =
        ["router bgp 65099", "bgp router-id 192.0.2.9", "neighbor 192.0.2.66 remote-as 65066"];
    scene.speaker.configure(&lines)?;
    let file = scene.speaker.running_configuration()?;
    scene.speaker.configure(&["no router bgp 65099"])?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    scene.speaker.expect_lines(&["router bgp 65001"])?;
    scene.speaker.reload(&file)?;
    scene.wait("ours is beside theirs", 2 * PATIENCE, |scene| {
        scene.speaker.expect_lines(&["router bgp 65001 view fairway"])
    })?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    scene.expect_running(&file)
}
