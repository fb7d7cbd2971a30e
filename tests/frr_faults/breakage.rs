//! What if FRR is away, dies or hangs, or the disk is full? It is reported, no announcement is lost by it,
//! and everything recovers without an operator.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{ROUTER, Scene, prefix};
use lab::process::{bounded, output_of};
use lab::resources::Peer;
use lab::wait::{PATIENCE, wait_until};
use lab::{Family, make_directory};

/// How soon it is reported.
const SOON: Duration = Duration::from_secs(8);

const SOME: usize = 10;
const MANY: usize = 500;

pub(crate) fn frr_that_comes_later_is_told_all(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.fault_is_shown(&["bgpd"], SOON)?;
    let log = std::fs::read_to_string(lab::fairway::log_in(&scene.lab.directory))?;
    let is_said = |line: &str| line.contains("WARN") && line.contains("bgpd is unreachable");
    let times = log.lines().filter(|line| is_said(line)).count();
    ensure!(times == 1, "expected one warning that FRR is absent, the log has {times}:\n{log}");
    scene.start_speaker()?;
    scene.router_has(SOME)?;
    scene.expect_community(0)?;
    scene.all_is_in_force()
}

pub(crate) fn bgpd_killed_amid_five_hundred_changes_is_told_all_again(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.apply_services("more", SOME, MANY)?;
    scene.wait("FRR has the first of the new routes", PATIENCE, |scene| {
        let last = prefix(SOME);
        let text = scene.speaker.running_configuration()?;
        ensure!(text.contains(&format!("network {last} ")), "no {last}");
        Ok(())
    })?;
    scene.speaker.kill("bgpd")?;
    scene.fault_is_shown(&["bgpd"], SOON)?;
    scene.restart_daemon("bgpd")?;
    scene.router_has(SOME + MANY)?;
    // The router may have had all of them before the kill, and not have noticed yet that its session is gone.
    scene.wait("the last route has its community", PATIENCE, |scene| {
        scene.expect_community(SOME + MANY - 1)
    })?;
    scene.router_has(SOME + MANY)?;
    scene.all_is_in_force()
}

/// Between the first command and the last, for certain.
pub(crate) fn bgpd_killed_while_it_hangs_is_told_all_again(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.speaker.freeze("bgpd")?;
    scene.apply_services("more", SOME, MANY)?;
    scene.fault_is_shown(&["bgpd"], SOON)?;
    scene.speaker.kill("bgpd")?;
    scene.restart_daemon("bgpd")?;
    scene.router_has(SOME + MANY)?;
    scene.all_is_in_force()?;
    wait_until("the end of the session and the next one are logged", PATIENCE, || {
        let log = std::fs::read_to_string(lab::fairway::log_in(&scene.lab.directory))?;
        let told: Vec<_> = log.lines().filter(|line| line.contains(" session ")).collect();
        let has = |line: &str, words: [&str; 2]| words.iter().all(|it| line.contains(it));
        let expected =
            [["INFO", " session up"], ["WARN", " session down"], ["INFO", " session up"]];
        let is_so = told.len() == expected.len()
            && told.iter().zip(expected).all(|(line, words)| has(line, words));
        ensure!(is_so, "the log has {told:?}");
        Ok(())
    })
}

pub(crate) fn a_daemon_that_hangs_is_named_and_told_later(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    let before = scene.session()?;
    scene.speaker.freeze("bgpd")?;
    scene.apply_services("more", SOME, 1)?;
    scene.fault_is_shown(&["bgpd"], SOON)?;
    let neighbor = scene.fairway.show_text(&["bgp", "neighbors", ROUTER])?;
    ensure!(neighbor.contains("BGP state = Unknown"), "show says:\n{neighbor}");
    let metrics = scene.http("metrics")?;
    ensure!(!metrics.contains("metallb_bgp_session_up{"), "it is not known:\n{metrics}");
    scene.wait("it is not ready", SOON, |scene| {
        let ready = scene.http("readyz")?;
        ensure!(ready.contains("not ready: FRR's bgpd is unreachable"), "readyz: {ready}");
        Ok(())
    })?;
    let routes = scene.router.prefixes(Family::Ipv4)?;
    ensure!(!routes.contains(&prefix(SOME)), "bgpd has spoken although it was frozen");
    scene.speaker.thaw("bgpd")?;
    scene.router_has(SOME + 1)?;
    scene.all_is_in_force()?;
    ensure!(scene.http("readyz")? == "ok\n", "not ready");
    ensure!(scene.http("metrics")?.contains("metallb_bgp_session_up{"), "no sample");
    scene.expect_same_session(before)
}

/// A state directory on a file system of its own, which is full. Unmounted at the end.
struct FullDisk(String);

impl FullDisk {
    fn below(scene: &Scene) -> Result<Self> {
        let folder = scene.lab.directory.join("state");
        make_directory(&folder)?;
        let path = folder.display().to_string();
        let mount = ["-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", &path];
        output_of(bounded("mount").args(mount))?;
        let disk = Self(path);
        // The last write fails, as it should.
        let fill = std::fs::write(folder.join("ballast"), vec![0; 64 * 1024]);
        ensure!(fill.is_err() || std::fs::write(folder.join("more"), "x").is_err(), "not full");
        Ok(disk)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        if let Err(error) = output_of(bounded("umount").args(["--lazy", &self.0])) {
            eprintln!("warning: {} stays mounted: {error:#}", self.0);
        }
    }
}

pub(crate) fn a_full_disk_delays_no_route_and_is_said(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    let disk = FullDisk::below(&scene)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_speaker()?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.apply_services("more", SOME, 1)?;
    scene.router_has(SOME + 1)?;
    let log = lab::fairway::log_in(&scene.lab.directory);
    scene.wait("the log says that the disk is full", SOON, |_| {
        let text = std::fs::read_to_string(&log).context("fairway's log")?;
        let is_said = |line: &str| line.contains("ERROR") && line.contains("No space left");
        text.lines().any(is_said).then_some(()).context("it does not")
    })?;
    scene.fairway.stop()?;
    drop(disk);
    Ok(())
}

/// vtysh was killed between the marks of a configuration: bgpd starts no new neighbor, for ten minutes.
pub(crate) fn a_load_that_was_cut_short_holds_no_peer(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_speaker()?;
    scene.speaker.begin_load()?;
    scene.start_fairway()?;
    scene.fault_is_shown(&["configuration that has not ended"], SOON)?;
    // Ended once nothing was added for twenty seconds.
    scene.router_has(SOME)?;
    scene.all_is_in_force()
}

/// FRR does not dial a neighbor to which it has no route.
pub(crate) fn a_peer_without_a_route_says_so(cell: &Cell) -> Result<()> {
    const FAR: &str = "203.0.113.77";
    let mut scene = Scene::with_services(cell, SOME)?;
    let far = Peer {
        name: "far",
        address: FAR.parse().context("an address")?,
        multihop: true,
        ..Peer::towards(scene.spec())
    };
    scene.fairway.apply("far", &far.yaml())?;
    scene.wait("show and explain say that there is no route", 2 * PATIENCE, |scene| {
        let reason = "no route to the neighbor";
        let neighbor = scene.fairway.show_text(&["bgp", "neighbors", FAR])?;
        ensure!(neighbor.contains(reason), "show says:\n{neighbor}");
        let explained = scene.fairway.explain("service", "service-0")?;
        ensure!(explained.contains(reason), "explain says:\n{explained}");
        Ok(())
    })
}
