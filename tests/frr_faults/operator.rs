//! What if FRR is somebody's already: their BGP with our AS, their names, another Fairway? Nothing of theirs changes,
//! every peer is reached, and what is ours goes with us.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Cell;
use crate::scene::{ROUTER, Scene, expect_none_gone};
use lab::fairway::Fairway;
use lab::process::{bounded, output_of};
use lab::resources::Peer;
use lab::wait::{PATIENCE, holds_for};
use lab::{Family, Wiring, make_directory};

/// FRR 10.3 takes seconds for a load where eight stories share two cores.
const SOON: Duration = Duration::from_secs(20);

const SOME: usize = 10;

/// Longer than Fairway lets an FRR load its own configuration, and than it waits between two looks.
const WHILE: Duration = Duration::from_secs(4);

/// An operator's BGP with the AS of the node, with names that look like ours, and a static route.
pub(crate) const OPERATOR: &[&str] = &[
    "ip route 192.0.2.0/24 Null0",
    "ip prefix-list FW-firewall seq 5 permit 192.0.2.0/24",
    "route-map FW-edge-in permit 10",
    "match ip address prefix-list FW-firewall",
    "exit",
    "route-map fairway-transit permit 10",
    "exit",
    "router bgp 65001",
    "bgp router-id 192.0.2.250",
    "neighbor 10.77.0.66 remote-as 65066",
    "neighbor 10.77.0.66 description theirs",
    "address-family ipv4 unicast",
    "network 192.0.2.0/24",
    "network 203.0.113.0/24",
    "neighbor 10.77.0.66 route-map FW-edge-in in",
    "exit-address-family",
    "exit",
];

/// The running configuration without what has the mark of an owner, and without our view.
pub(crate) fn without_ours(text: &str) -> String {
    let mut kept = String::new();
    let mut is_ours = false;
    for line in text.lines() {
        let begins = !line.starts_with([' ', '!']) && line != "exit";
        if begins {
            let names = |word: &str| {
                let digits = word.strip_prefix("fairway-").and_then(|it| it.split('-').next());
                digits
                    .is_some_and(|it| it.len() == 8 && it.bytes().all(|it| it.is_ascii_hexdigit()))
            };
            is_ours = line.split(' ').any(names) || line.ends_with(" view fairway");
        }
        if !is_ours && line != "!" {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Whether FRR has exactly the lines that it had, in their order; the error names those that it has not.
pub(crate) fn same_lines(before: &str, after: &str) -> Result<()> {
    let only = |one: &str, other: &str| -> Vec<String> {
        let there: Vec<&str> = other.lines().collect();
        one.lines().filter(|it| !there.contains(it)).map(str::to_owned).collect()
    };
    let (lost, new) = (only(before, after), only(after, before));
    ensure!(
        before == after,
        "lost {lost:?}, new {new:?}; if both are empty, the order or a count differs\nbefore\n{before}\nafter\n{after}"
    );
    Ok(())
}

impl Scene {
    /// Fairway drains the node, and ends.
    pub(crate) fn leave_for_good(&mut self) -> Result<()> {
        output_of(&mut self.fairway.drain(&["--wait", "100ms"]))?;
        self.fairway.stop()
    }

    pub(crate) fn expect_running(&self, expected: &str) -> Result<()> {
        let text = without_ours(&self.speaker.running_configuration()?);
        let expected = without_ours(expected);
        same_lines(&expected, &text)
    }
}

pub(crate) fn an_operators_bgp_stays_as_it_was(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    scene.speaker.configure(OPERATOR)?;
    let before = scene.speaker.running_configuration()?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    scene.expect_running(&before)?;
    let theirs = scene.speaker.vtysh(&["show bgp vrf default ipv4 unicast"])?;
    ensure!(!theirs.contains("198.18."), "their table has our Services:\n{theirs}");

    // Without an order to leave, exactly ours remains, and the session with it.
    let session = scene.session_of_view()?;
    scene.fairway.kill()?;
    scene.expect_running(&before)?;
    let all = (0..SOME).map(crate::scene::prefix).collect();
    holds_for("the router has all routes", Duration::from_secs(2), || scene.expect_routes(&all))?;
    scene.start_fairway()?;
    scene.all_is_in_force()?;
    ensure!(scene.session_of_view()? == session, "the session was reset");

    scene.leave_for_good()?;
    same_lines(&before, &scene.speaker.running_configuration()?)
}

pub(crate) fn peers_behind_the_default_route_come_up(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open_wired(cell, Wiring::MiddleHop)?;
    for (family, far, near) in
        [("-4", "10.78.0.0/24", "10.77.0.254"), ("-6", "fd78::/64", "fd77::fe")]
    {
        scene.lab.node.ip(&[family, "route", "del", far])?;
        scene.lab.node.ip(&[family, "route", "add", "default", "via", near])?;
    }
    scene.start_speaker()?;
    let before = scene.speaker.running_configuration()?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    scene.leave_for_good()?;
    let after = scene.speaker.running_configuration()?;
    same_lines(&before, &after)?;

    // Beside somebody's BGP, no setting of zebra is needed.
    scene.speaker.configure(OPERATOR)?;
    let before = scene.speaker.running_configuration()?;
    scene.start_fairway()?;
    output_of(&mut scene.fairway.drain(&["--undo"]))?;
    scene.router_has(SOME)?;
    scene.expect_running(&before)?;
    scene.leave_for_good()
}

pub(crate) fn an_operators_neighbor_is_never_taken_over(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    let theirs = format!("neighbor {ROUTER} remote-as 65002");
    scene.speaker.configure(&[OPERATOR, &["router bgp 65001", &theirs]].concat())?;
    let before = scene.speaker.running_configuration()?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_fairway()?;
    scene.fault_is_shown(&["BGPPeer router", ROUTER, "router bgp 65001"], SOON)?;
    scene.expect_running(&before)?;
    scene.speaker.configure(&["router bgp 65001", &format!("no {theirs}")])?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()
}

pub(crate) fn a_second_fairway_stands_aside(cell: &Cell) -> Result<()> {
    second_stands_aside(cell, &[])
}

pub(crate) fn a_second_fairway_beside_an_operator_stands_aside(cell: &Cell) -> Result<()> {
    second_stands_aside(cell, OPERATOR)
}

fn second_stands_aside(cell: &Cell, operator: &[&str]) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_speaker()?;
    scene.speaker.configure(operator)?;
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    let before = scene.speaker.running_configuration()?;
    let directory = cell.directory.join("second");
    make_directory(&directory)?;
    let mut second = Fairway::prepare_in(&directory)?;
    second.apply("peer", &Peer { my_as: 65009, ..Peer::towards(scene.spec()) }.yaml())?;
    let folder = scene.speaker.directory().display().to_string();
    second.extra_arguments =
        ["--bgp", "frr", "--frr-socket-dir", &folder].map(str::to_owned).to_vec();
    let config = second.directory_of("config");
    second.start_as(&scene.lab.node, &["run", "--config", &config, "--node", "node-b"])?;
    scene.wait("the second one says why", SOON, |_| {
        let text = second.show_text(&["config"])?;
        ensure!(text.contains("another Fairway"), "it says:\n{text}");
        Ok(())
    })?;
    holds_for("FRR is as it was", WHILE, || {
        same_lines(&before, &scene.speaker.running_configuration()?)
    })?;
    scene.all_is_in_force()?;

    // The first one ends without taking its lines along: they are still somebody's.
    scene.fairway.kill()?;
    let owner = before
        .split_whitespace()
        .find_map(|word| word.strip_prefix("fairway-")?.get(..8))
        .context("a name of the first one")?;
    lab::wait::wait_until("the second one says whose FRR it is", SOON, || {
        let text = second.show_text(&["config"])?;
        ensure!(text.contains(&format!("frr-forget --owner {owner}")), "it says:\n{text}");
        Ok(())
    })?;
    let after = scene.speaker.running_configuration()?;
    same_lines(&before, &after)?;

    let refused = forget(&scene, &["--owner", owner]);
    let words = format!("{:#}", refused.err().context("a running Fairway is no obstacle")?);
    ensure!(words.contains("another Fairway on this machine"), "{words}");
    second.stop()?;
    forget(&scene, &["--owner", owner])?;
    second.start_as(&scene.lab.node, &["run", "--config", &config, "--node", "node-b"])?;
    lab::wait::wait_until("the second one has it", 2 * PATIENCE, || {
        let text = scene.speaker.running_configuration()?;
        ensure!(text.contains("router bgp 65009") && !text.contains(owner), "FRR has\n{text}");
        Ok(())
    })?;
    second.stop()
}

/// A router that we created may be somebody's by the time FRR has started again.
pub(crate) fn a_router_that_became_the_operators_stays_theirs(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.all_is_in_force()?;
    scene.speaker.kill("bgpd")?;
    // From its first instant on: Fairway would create the router again before an operator could type it.
    let theirs = "router bgp 65001\n neighbor 10.77.0.66 remote-as 65066\n";
    scene.speaker.keep_own_file("bgpd", theirs)?;
    scene.restart_daemon("bgpd")?;
    scene.speaker.configure(OPERATOR)?;
    let before = scene.speaker.running_configuration()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    scene.expect_running(&before)?;
    let text = scene.speaker.running_configuration()?;
    ensure!(text.contains("router bgp 65001 view fairway"), "FRR has\n{text}");
    // They give up their BGP.
    scene.speaker.configure(&["no router bgp 65001"])?;
    scene.wait("ours is the default instance again", 2 * PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        ensure!(!text.contains(" view fairway"), "FRR has\n{text}");
        scene.speaker.expect_lines(&["router bgp 65001"])
    })?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()
}

/// `fairway frr-forget WORDS`.
pub(crate) fn forget(scene: &Scene, words: &[&str]) -> Result<String> {
    let mut command = bounded(lab::fairway::existing_program()?);
    command.arg("frr-forget").arg("--frr-socket-dir").arg(scene.speaker.directory());
    command.arg("--frr-config-dir").arg(scene.speaker.directory());
    output_of(command.args(words))
}

pub(crate) fn what_is_forgotten_leaves_nothing(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    for theirs in [&[][..], OPERATOR] {
        scene.speaker.configure(&[theirs, &["ip prefix-list THEIRS seq 5 permit any"]].concat())?;
        let before = scene.speaker.running_configuration()?;
        scene.apply_services("web", 0, SOME)?;
        let replaced = "router bgp 65001\n bgp router-id 10.77.0.1\nexit\n\
                        ip prefix-list THEIRS seq 5 deny 10.0.0.0/8\nip nht resolve-via-default";
        scene.fairway.apply("extras", &extras(replaced))?;
        scene.start_fairway()?;
        scene.router_has(SOME)?;
        scene.wait("FRR has the extras", PATIENCE, |scene| {
            scene.speaker.expect_lines(&["ip prefix-list THEIRS seq 5 deny 10.0.0.0/8"])
        })?;
        scene.fairway.kill()?;
        // Somebody has saved it all.
        let saved = scene.speaker.running_configuration()?;
        let file = scene.speaker.directory().join("frr.conf");
        std::fs::write(&file, &saved)?;
        forget(&scene, &["--node", "node-a"])?;
        let left = without_separators(&std::fs::read_to_string(&file)?);
        let expected = without_separators(&before);
        ensure!(left == expected, "the file: expected\n{expected}\nit has\n{left}");
        let kept = file.with_extension("conf.before-frr-forget");
        ensure!(std::fs::read_to_string(kept)? == saved, "the file as it was is lost");
        let after = scene.speaker.running_configuration()?;
        same_lines(&before, &after)?;
        forget(&scene, &["--node", "node-a"]).context("when nothing is left")?;
    }
    // FRR that is down is said.
    scene.speaker.stop()?;
    let refused = forget(&scene, &["--node", "node-a"]);
    let words = format!("{:#}", refused.err().context("FRR is down")?);
    ensure!(words.contains("bgpd is unreachable"), "{words}");
    Ok(())
}

fn without_separators(text: &str) -> String {
    text.lines().filter(|it| it.trim() != "!").map(|it| it.to_owned() + "\n").collect()
}

fn extras(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bgpextras\ndata:\n  extras: |\n{lines}"
    )
}

pub(crate) fn extras_go_with_their_config_map(cell: &Cell) -> Result<()> {
    let mut scene = Scene::with_services(cell, SOME)?;
    scene.all_is_in_force()?;
    scene.speaker.configure(&["ip prefix-list THEIRS seq 5 permit 10.0.0.0/8"])?;
    let before = scene.speaker.running_configuration()?;
    let lines = "ip prefix-list THEIRS permit 10.0.0.0/8\n\
                 ip prefix-list EXTRA permit 10.0.0.0/8\naccess-list EXTRA permit 10.0.0.0/8\n\
                 route-map EXTRA permit 10\n match ip address prefix-list EXTRA\nexit\n\
                 router bgp 65001\n bgp bestpath as-path multipath-relax\nexit";
    for is_down in [false, true] {
        scene.fairway.apply("extras", &extras(lines))?;
        scene.wait("FRR has the extras", PATIENCE, |scene| {
            scene.speaker.expect_lines(&["bgp bestpath as-path multipath-relax"])?;
            let text = scene.speaker.running_configuration()?;
            ensure!(text.contains("access-list EXTRA"), "FRR has\n{text}");
            Ok(())
        })?;
        scene.all_is_in_force()?;
        if is_down {
            scene.fairway.kill()?;
        }
        scene.fairway.remove("extras")?;
        if is_down {
            scene.start_fairway()?;
        }
        scene.wait("FRR is as it was", PATIENCE, |scene| {
            same_lines(&before, &scene.speaker.running_configuration()?)
        })?;
    }
    scene.all_is_in_force()
}

pub(crate) fn names_of_an_earlier_version_are_taken_over(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.start_speaker()?;
    scene.apply_services("web", 0, SOME)?;
    let text = scene.fairway.render()?;
    let mark = text
        .split_whitespace()
        .filter_map(|word| word.get(.."fairway-00000000-".len()))
        .find(|it| it.starts_with("fairway-"))
        .context("a name of ours")?;
    // The daemon derives the router ID from the addresses of its machine.
    let earlier = text.replace(mark, "FW-");
    let lines = earlier.lines().map(|line| match line.contains("bgp router-id") {
        true => " bgp router-id 10.77.0.1\n".to_owned(),
        false => format!("{line}\n"),
    });
    scene.speaker.load(&lines.collect::<String>())?;
    scene.speaker.expect_lines(&["set community 65001:7"])?;
    scene.speaker.configure(&["route-map FW-edge-in permit 10", "exit"])?;
    scene.router_has(SOME)?;
    let (session, mut withdrawals) = (scene.session()?, scene.watch()?);
    scene.start_fairway()?;
    scene.wait("the names are those of today", PATIENCE, |scene| {
        let text = scene.speaker.running_configuration()?;
        let old: Vec<&str> = text.lines().filter(|line| line.contains("FW-")).collect();
        ensure!(old == ["route-map FW-edge-in permit 10"], "{old:?} of\n{text}");
        Ok(())
    })?;
    scene.all_is_in_force()?;
    scene.fault_is_shown(&["route-map FW-edge-in"], SOON)?;
    scene.apply_services("more", SOME, 1)?;
    scene.router_has(SOME + 1)?;
    scene.expect_same_session(session)?;
    expect_none_gone(&mut withdrawals)?;
    let routes = scene.router.prefixes(Family::Ipv4)?;
    ensure!(routes.len() > SOME, "{routes:?}");
    Ok(())
}

/// What `plan --against-frr` prints before the first contact is what Fairway then sends.
pub(crate) fn the_first_contact_is_known_before(cell: &Cell) -> Result<()> {
    let mut scene = Scene::open(cell)?;
    scene.apply_services("web", 0, SOME)?;
    scene.start_speaker()?;
    scene.speaker.configure(OPERATOR)?;
    let before = scene.speaker.running_configuration()?;
    let lines = against_frr(&scene)?;
    ensure!(lines.contains("router bgp 65001 view fairway"), "it prints\n{lines}");
    ensure!(scene.speaker.running_configuration()? == before, "FRR was changed");
    scene.start_fairway()?;
    scene.router_has(SOME)?;
    scene.all_is_in_force()?;
    ensure!(against_frr(&scene)?.is_empty(), "{}", against_frr(&scene)?);
    let running = scene.speaker.running_configuration()?;
    // A new neighbor is shut down until it is complete.
    let is_temporary = |line: &str| line.ends_with(" shutdown");
    let shown = |line: &str| running.lines().any(|it| it.trim() == line);
    let lines = lines.lines().map(str::trim).filter(|it| !it.starts_with('!'));
    let other: Vec<&str> = lines.filter(|it| !is_temporary(it) && !shown(it)).collect();
    ensure!(other.is_empty(), "FRR was not sent {other:?}; it has\n{running}");
    scene.leave_for_good()?;
    scene.expect_running(&before)
}

/// The lines that `fairway plan --against-frr` prints.
fn against_frr(scene: &Scene) -> Result<String> {
    let program = lab::fairway::existing_program()?.display().to_string();
    let config = scene.lab.directory.join("config").display().to_string();
    let sockets = scene.speaker.directory().display().to_string();
    let words = ["plan", "--against-frr", "--node", "node-a", "--config", &config];
    scene.lab.node.run(&program, &[&words[..], &["--frr-socket-dir", &sockets]].concat())
}
