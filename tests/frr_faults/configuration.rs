//! What if FRR refuses a line, or an operator writes lines, too? What was valid stays in force, the line and
//! its origin are named, and lines that are not ours are left alone.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::Cell;
use crate::scene::{ROUTER, Scene, expect_none_gone, prefix};
use lab::wait::PATIENCE;

/// FRR 10.3 takes seconds for a load where eight stories share two cores.
const SOON: Duration = Duration::from_secs(20);

const SOME: usize = 10;

/// A line that no daemon accepts.
const NONSENSE: &str = "neighbor 10.77.0.2 paint-it black";

/// A ConfigMap with these lines in the router.
fn extras(lines: &[&str]) -> String {
    raw_extras(&[&["router bgp 65001"], lines, &["exit"]].concat())
}

fn raw_extras(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bgpextras\ndata:\n  extras: |\n{lines}"
    )
}

pub(crate) fn a_bad_line_of_extras_takes_no_other_along(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    let interval = |seconds: &str| format!("neighbor {ROUTER} advertisement-interval {seconds}");
    // FRR shows this one in the address family.
    let weight = format!("neighbor {ROUTER} weight 7");
    scene.fairway.apply("extras", &extras(&[&interval("7"), NONSENSE, &weight]))?;
    scene.wait("FRR has the good extras", PATIENCE, |scene| {
        scene.speaker.expect_lines(&[&interval("7"), &weight])
    })?;
    scene.fault_is_shown(&["bgpextras", "a line is not in force", NONSENSE], SOON)?;
    let (before, mut withdrawals) = (scene.session()?, scene.watch()?);
    // A value that is refused leaves the earlier one.
    scene.fairway.apply("extras", &extras(&[&interval("70000"), &weight]))?;
    scene.fault_is_shown(&["bgpextras", "advertisement-interval 70000"], SOON)?;
    scene.speaker.expect_lines(&[&interval("7"), &weight])?;
    scene.router_has(SOME)?;
    scene.expect_same_session(before)?;
    scene.fairway.apply("extras", &extras(&[&interval("8"), &weight]))?;
    scene.wait("FRR has the mended extras", PATIENCE, |scene| {
        scene.speaker.expect_lines(&[&interval("8"), &weight])
    })?;
    scene.all_is_in_force()?;
    scene.speaker.expect_lines(&[&interval("8"), &weight])?;
    scene.fairway.remove("extras")?;
    scene.wait("the extras are gone", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        let is_left = text.contains("advertisement-interval") || text.contains("weight");
        ensure!(!is_left, "FRR has\n{text}");
        Ok(())
    })?;
    scene.expect_same_session(before)?;
    expect_none_gone(&mut withdrawals)
}

/// Many lines of route maps are sent at once: FRR does not say then which one it rejects.
pub(crate) fn one_bad_line_of_many_is_named(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    let entry = |number: usize| {
        let metric = if number == 30 { "paint-it".to_owned() } else { number.to_string() };
        [format!("route-map THEIRS permit {number}"), format!(" set metric {metric}")]
    };
    let lines: Vec<String> = (1..=60).flat_map(entry).chain(["exit".to_owned()]).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    scene.fairway.apply("extras", &raw_extras(&lines))?;
    // FRR 10.3 takes up to four seconds on a busy machine for each of the three loads that find the line.
    let words = ["bgpextras", "route-map THEIRS permit 30", "metric paint-it"];
    scene.fault_is_shown(&words, 2 * PATIENCE)?;
    scene.wait("FRR has all other lines", PATIENCE, |scene| {
        scene.speaker.expect_lines(&["set metric 29", "set metric 31", "set metric 60"])
    })?;
    scene.fairway.remove("extras")?;
    scene.wait("the extras are gone", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        ensure!(!text.contains("THEIRS"), "FRR has\n{text}");
        Ok(())
    })?;
    scene.all_is_in_force()
}

pub(crate) fn broken_extras_delay_no_route(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.fairway.apply("extras", &extras(&[NONSENSE]))?;
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
    // The router may not hear of it: FRR collects changes for longer than Fairway takes to heal one.
    scene.wait("it is said that FRR is configured again", PATIENCE, |scene| {
        let log = std::fs::read_to_string(lab::fairway::log_in(&scene.lab.directory))?;
        ensure!(log.contains("FRR configured again"), "not yet");
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
