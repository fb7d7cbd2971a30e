//! What if FRR refuses a line, or an operator writes lines, too? What was valid stays in force, the line and
//! its origin are named, and lines that are not ours are left alone.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::Cell;
use crate::scene::{ROUTER, Scene, expect_none_gone, prefix};
use lab::wait::PATIENCE;

const SOON: Duration = Duration::from_secs(8);

const SOME: usize = 10;

/// A line that no daemon accepts.
const NONSENSE: &str = "neighbor 10.77.0.2 paint-it black";

fn extras(line: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bgpextras\ndata:\n  extras: |\n    \
         router bgp 65001\n     {line}\n    exit\n"
    )
}

pub(crate) fn broken_extras_leave_the_last_good_state(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    let good = format!("neighbor {ROUTER} advertisement-interval 7");
    scene.fairway.apply("extras", &extras(&good))?;
    scene.wait("FRR has the extras", PATIENCE, |scene| scene.speaker.expect_lines(&[&good]))?;
    let (before, mut withdrawals) = (scene.session()?, scene.watch()?);
    scene.fairway.apply("extras", &extras(NONSENSE))?;
    scene.fault_is_shown(&[NONSENSE], SOON)?;
    scene.fault_is_shown(&["bgpextras"], SOON)?;
    // It is shown when FRR refuses, and put right right after that.
    scene.wait("the good extras are back", SOON, |scene| scene.speaker.expect_lines(&[&good]))?;
    scene.router_has(SOME)?;
    scene.expect_same_session(before)?;
    let mended = format!("neighbor {ROUTER} advertisement-interval 8");
    scene.fairway.apply("extras", &extras(&mended))?;
    scene.wait("FRR has the mended extras", PATIENCE, |scene| {
        scene.speaker.expect_lines(&[&mended])
    })?;
    scene.all_is_in_force()?;
    scene.fairway.remove("extras")?;
    scene.wait("the extras are gone", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        ensure!(!text.contains("advertisement-interval"), "FRR has\n{text}");
        Ok(())
    })?;
    scene.expect_same_session(before)?;
    expect_none_gone(&mut withdrawals)
}

pub(crate) fn broken_extras_delay_no_route(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.fairway.apply("extras", &extras(NONSENSE))?;
    scene.fault_is_shown(&[NONSENSE], SOON)?;
    scene.apply_services("more", SOME, 1)?;
    scene.router_has(SOME + 1)
}

pub(crate) fn a_hand_edit_is_healed(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    let before = scene.session()?;
    let gone = format!("no network {}", prefix(3));
    let family = ["router bgp 65001", "address-family ipv4 unicast"];
    scene.speaker.configure(&[family.as_slice(), &[gone.as_str()]].concat())?;
    scene.wait("the router lost the route", PATIENCE, |scene| {
        ensure!(scene.expect_community(3).is_err(), "it is still there, or again");
        Ok(())
    })?;
    scene.router_has(SOME)?;
    scene.expect_community(3)?;
    scene.expect_same_session(before)
}

/// The operator's own lines in the same FRR: filters, a neighbour and a network.
const FOREIGN: &[&str] = &[
    "ip prefix-list THEIRS seq 5 permit 192.0.2.0/24",
    "route-map THEIRS permit 10",
    "description theirs",
    "exit",
    "router bgp 65001",
    "no bgp ebgp-requires-policy",
    "neighbor 10.77.0.66 remote-as 65066",
    "neighbor 10.77.0.66 description theirs",
    "address-family ipv4 unicast",
    "network 192.0.2.0/24",
    "exit-address-family",
    "exit",
];

/// As the running configuration has them.
const FOREIGN_LINES: &[&str] = &[
    "ip prefix-list THEIRS seq 5 permit 192.0.2.0/24",
    "route-map THEIRS permit 10",
    "neighbor 10.77.0.66 remote-as 65066",
    "neighbor 10.77.0.66 description theirs",
    "network 192.0.2.0/24",
];

pub(crate) fn what_others_configured_stays(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    scene.speaker.configure(FOREIGN)?;
    scene.speaker.expect_lines(FOREIGN_LINES)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.router_gets(0)?;
    scene.speaker.expect_lines(FOREIGN_LINES)?;
    scene.apply_services("more", SOME, 1)?;
    scene.router_gets(SOME)?;
    scene.fairway.remove("more")?;
    let withdrawn = prefix(SOME);
    scene.wait("FRR has withdrawn it", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        ensure!(!text.contains(&withdrawn), "it still has it");
        Ok(())
    })?;
    scene.speaker.expect_lines(FOREIGN_LINES)?;
    scene.fairway.kill()?;
    scene.start_fairway()?;
    scene.apply_services("more", SOME + 1, 1)?;
    scene.router_gets(SOME + 1)?;
    scene.speaker.expect_lines(FOREIGN_LINES)
}
