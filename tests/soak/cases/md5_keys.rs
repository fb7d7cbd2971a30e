//! More TCP-MD5 keys than the kernel lets a listener hold: a peer without room is named in the log, is not
//! accepted without its key, and is dialled all the same; all others work.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use lab::fairway::{Fairway, log_in};
use lab::process::Process;
use lab::wait::{PATIENCE, holds_for, wait_until};
use lab::{Lab, Wiring};

const PEERS: u8 = 24;
/// Room for about a dozen keys.
const OPTION_MEMORY_BYTES: &str = "net.core.optmem_max=2048";
/// How long the suite watches that a session which must not come up does not.
const DISTRUST: Duration = Duration::from_secs(5);

/// What fairway logs of a peer with a key that cannot be set on a listener.
const COMPLAINT: &str = "cannot set the TCP-MD5 key";

pub(super) fn run(bench: &Bench) -> Result<()> {
    // Not a number that another case uses at the same time.
    let lab = Lab::build(100, &bench.directory, Wiring::Direct)?;
    lab.node.run("sysctl", &["-q", "-w", OPTION_MEMORY_BYTES])?;
    lab.node.add_address("to-router", "10.77.1.254/24")?;
    lab.router.namespace.add_address("to-node", "10.77.2.254/24")?;
    // Only the router's connections can come about: they need the listener's keys.
    lab.node.run(
        "nft",
        &["add table inet dialling; \
           add chain inet dialling output { type filter hook output priority 0; }; \
           add rule inet dialling output tcp dport 179 tcp flags & (syn | ack) == syn drop"],
    )?;
    let mut fairway = Fairway::prepare(&lab)?;
    for number in 1..=PEERS {
        lab.router.namespace.add_address("to-node", &format!("{}/32", address(number)))?;
        lab.node.add_address("to-router", &format!("{}/32", source(number)))?;
        fairway.apply(&format!("peer-{number:02}"), &peer(number))?;
    }
    fairway.start(&lab.node)?;
    let mut bird = start_bird(&lab, &bench.directory)?;
    let log = log_in(&bench.directory);
    let complaints = || -> Result<Vec<u8>> {
        let log = fs::read_to_string(&log).context("reading fairway's log")?;
        let named = |number: &u8| {
            // With the blank behind it: 10.77.1.1 also begins 10.77.1.10.
            let name = format!("peer={} ", address(*number));
            let about = |line: &&str| line.contains(COMPLAINT) && line.contains(&name);
            log.lines().any(|line| about(&line))
        };
        Ok((1..=PEERS).filter(named).collect())
    };
    let all: Vec<u8> = (1..=PEERS).collect();
    let up = |number: &u8| expect_state(&fairway, *number, true);
    let without_room = wait_until("those without an error in the log are up", PATIENCE, || {
        bird.check_running()?;
        let without_room = complaints()?;
        ensure!(!without_room.is_empty(), "all keys found room; lower {OPTION_MEMORY_BYTES}");
        all.iter().filter(|number| !without_room.contains(number)).try_for_each(up)?;
        Ok(without_room)
    })?;
    let with_room = all.len() - without_room.len();
    ensure!(with_room > 2, "hardly a key found room: {without_room:?}");
    holds_for("no peer is accepted without its key", DISTRUST, || {
        without_room.iter().try_for_each(|number| expect_state(&fairway, *number, false))
    })?;
    bench.say(format!(
        "{} of {PEERS} keys fit with {OPTION_MEMORY_BYTES}; those peers are accepted, {} are named \
         in the log and refused",
        with_room,
        without_room.len()
    ));
    lab.node.run("nft", &["delete table inet dialling"])?;
    wait_until("all sessions are up", 2 * PATIENCE, || {
        bird.check_running()?;
        all.iter().try_for_each(up)
    })?;
    ensure!(complaints()? == without_room, "the log names others now: {:?}", complaints()?);
    bench.say(format!("dialled, all {PEERS} sessions are up"));
    for number in &all {
        let shown = neighbour_text(&fairway, *number)?;
        ensure!(
            shown.contains("optmem_max") == without_room.contains(number),
            "expected show to name the peers without room for their key: {shown}"
        );
    }
    bench.say("show bgp neighbors names them, and no others");
    fairway.stop()
}

fn address(number: u8) -> String {
    format!("10.77.1.{number}")
}

/// Fairway's end: BIRD has one session at a time with any one address.
fn source(number: u8) -> String {
    format!("10.77.2.{number}")
}

fn peer(number: u8) -> String {
    let (address, source) = (address(number), source(number));
    format!(
        "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: peer-{number}\nspec:\n  \
         myASN: 65001\n  peerASN: 65002\n  peerAddress: {address}\n  sourceAddress: {source}\n  password: key-{number}\n"
    )
}

fn expect_state(fairway: &Fairway, number: u8, established: bool) -> Result<()> {
    let neighbour = fairway.neighbour(&address(number))?;
    ensure!(
        neighbour.is_established() == established,
        "the session with {} is {}",
        address(number),
        neighbour.state
    );
    Ok(())
}

fn neighbour_text(fairway: &Fairway, number: u8) -> Result<String> {
    fairway.show_text(&["bgp", "neighbors", &address(number)])
}

/// One BIRD with as many protocols as there are peers, each on an address and with a key of its own.
fn start_bird(lab: &Lab, directory: &Path) -> Result<Process> {
    let mut text = "router id 10.0.0.2;\nlog stderr all;\nprotocol device { scan time 1; }\n\
                    protocol direct { ipv4; }\n"
        .to_owned();
    for number in 1..=PEERS {
        let (address, source) = (address(number), source(number));
        text += &format!(
            "protocol bgp peer{number} {{\n  strict bind yes;\n  local {address} as 65002;\n  \
             neighbor {source} as 65001 external;\n  direct;\n  password \"key-{number}\";\n  \
             connect retry time 1;\n  connect delay time 1;\n  error wait time 1, 2;\n  \
             ipv4 {{ import all; export none; }};\n}}\n"
        );
    }
    let configuration = directory.join("bird.conf");
    fs::write(&configuration, text).context("writing bird.conf")?;
    let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let arguments =
        ["-f", "-c", &file("bird.conf"), "-s", &file("bird.ctl"), "-P", &file("bird.pid")];
    let arguments = arguments.map(str::to_owned);
    let log = lab::routers::log_in(directory);
    Process::spawn(&lab.router.namespace, Path::new("/usr/sbin/bird"), &arguments, &log)
}
