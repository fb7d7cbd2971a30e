//! Which program monitors the other end of the cable, one session for each pair of addresses? Fairway,
//! BIRD or FRR's bfdd, each without BGP, on one core; and BIRD at the other end, always the same.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Timers;
use super::cable::{Cable, node_address, router_address};
use super::frr::{BFDD, Frr, ZEBRA};
use super::pinned::{OTHER_CORE, Pinned, WATCHED_CORE};
use lab::fairway::Fairway;
use lab::namespace::Namespace;
use lab::process::{Process, bounded, output_of};
use lab::wait::{PATIENCE, wait_until};
use lab::{NODE_INTERFACE, ROUTER_INTERFACE};

const BIRD: &str = "/usr/sbin/bird";

/// How long a thousand sessions may take to come up.
const LONG: Duration = Duration::from_secs(60);

/// The programs that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Fairway { realtime: bool },
    Bird,
    Bfdd,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fairway { realtime: false } => "fairway",
            Self::Fairway { realtime: true } => "fairway --bfd-realtime",
            Self::Bird => "BIRD",
            Self::Bfdd => "bfdd",
        }
    }
}

/// How often sessions came up and went down, all together, since the program began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) ups: u64,
    pub(crate) downs: u64,
}

/// A program with its sessions.
pub(crate) struct Watcher {
    program: Program,
    kind: Kind,
    directory: PathBuf,
}

enum Kind {
    Fairway(Fairway),
    Bird(Process),
    Frr(Frr),
}

impl Watcher {
    /// Starts the program at the node of the cable.
    pub(crate) fn start(program: Program, cable: &Cable, timers: Timers) -> Result<Self> {
        let place = Pinned { place: &cable.node, core: WATCHED_CORE, first: false };
        let directory = cable.node_directory(&program.name().replace(' ', ""))?;
        let kind = match program {
            Program::Fairway { realtime } => {
                let mut fairway = Fairway::prepare_in(&directory)?;
                fairway.log_level = "info";
                if realtime {
                    fairway.extra_arguments.push("--bfd-realtime".to_owned());
                }
                fairway.apply("peers", &peers(cable.pairs, timers))?;
                fairway.start(&place)?;
                Kind::Fairway(fairway)
            }
            Program::Bird => {
                let text = bird(cable.pairs, NODE_INTERFACE, timers, true);
                Kind::Bird(start_bird(&place, &directory, &text)?)
            }
            Program::Bfdd => Kind::Frr(start_frr(&cable.node, &directory, cable.pairs, timers)?),
        };
        Ok(Self { program, kind, directory })
    }

    /// The process that is compared.
    pub(crate) fn process_id(&self) -> Result<u32> {
        match &self.kind {
            Kind::Fairway(fairway) => fairway.process_id(),
            Kind::Bird(bird) => Ok(bird.id()),
            Kind::Frr(frr) => frr.process_id(),
        }
    }

    /// The thread that does BFD and nothing else; without one, the process does.
    pub(crate) fn thread(&self) -> Option<&'static str> {
        matches!(self.kind, Kind::Fairway(_)).then_some("bfd")
    }

    pub(crate) fn check_running(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Fairway(fairway) => fairway.check_running(),
            Kind::Bird(bird) => bird.check_running(),
            Kind::Frr(frr) => frr.check_running(),
        }
    }

    pub(crate) fn changes(&self) -> Result<Changes> {
        match &self.kind {
            Kind::Fairway(fairway) => Ok(counted(&fairway.show(&["bfd", "peers", "counters"])?)),
            Kind::Bird(_) => changes_in_bird(&self.directory),
            Kind::Frr(frr) => Ok(counted(&frr.ask("show bfd peers counters json")?)),
        }
    }

    /// Waits until every pair has a session that is up; what it took is not counted.
    pub(crate) fn all_up(&mut self, pairs: u16) -> Result<Changes> {
        wait_until(&format!("{pairs} sessions of {} are up", self.program.name()), LONG, || {
            self.check_running()?;
            let up = self.up()?;
            ensure!(up == usize::from(pairs), "{up} are");
            self.changes()
        })
    }

    fn up(&self) -> Result<usize> {
        let of_list = |list: &Value| {
            let sessions = list.as_array().into_iter().flatten();
            sessions.filter(|session| session.get("status") == Some(&"up".into())).count()
        };
        match &self.kind {
            Kind::Fairway(fairway) => Ok(of_list(&fairway.show(&["bfd", "peers"])?)),
            Kind::Bird(_) => up_in_bird(&self.directory),
            Kind::Frr(frr) => Ok(of_list(&frr.ask("show bfd peers json")?)),
        }
    }

    /// What it reports about its own stalls, if it does.
    pub(crate) fn remarks(&self) -> Result<String> {
        let Kind::Fairway(fairway) = &self.kind else { return Ok(String::new()) };
        let counters = fairway.show(&["bfd", "peers", "counters"])?;
        let (stalls, put_off) = (sum(&counters, "stalls"), sum(&counters, "detections-put-off"));
        Ok(format!("; {stalls} stalls of its own, {put_off} detections put off"))
    }

    /// The result of its request for real-time priority, if it made one: `granted`, or why not.
    pub(crate) fn realtime(&self) -> Result<String> {
        let Kind::Fairway(fairway) = &self.kind else { return Ok(String::new()) };
        let peers = fairway.show(&["bfd", "peers"])?;
        let answer = peers.pointer("/0/realtime").and_then(Value::as_str);
        answer.map(str::to_owned).with_context(|| format!("no realtime in {peers}"))
    }
}

/// BIRD at the router's end, on the other core: it answers however busy the program is.
pub(crate) struct OtherEnd {
    _bird: Process,
    directory: PathBuf,
}

impl OtherEnd {
    pub(crate) fn start(cable: &Cable, timers: Timers) -> Result<Self> {
        let place = Pinned { place: &cable.router.namespace, core: OTHER_CORE, first: true };
        let directory = cable.router.directory.clone();
        let text = bird(cable.pairs, ROUTER_INTERFACE, timers, false);
        Ok(Self { _bird: start_bird(&place, &directory, &text)?, directory })
    }

    /// Waits until every pair has a session that is up, as this end sees it.
    pub(crate) fn all_up(&self, pairs: u16) -> Result<()> {
        wait_until(&format!("{pairs} sessions are up at the other end"), LONG, || {
            let up = up_in_bird(&self.directory)?;
            ensure!(up == usize::from(pairs), "{up} are");
            Ok(())
        })
    }

    pub(crate) fn changes(&self) -> Result<Changes> {
        changes_in_bird(&self.directory)
    }
}

fn up_in_bird(directory: &Path) -> Result<usize> {
    let mut birdc = bounded("birdc");
    birdc.arg("-s").arg(directory.join("bird.ctl")).args(["show", "bfd", "sessions"]);
    let text = output_of(&mut birdc)?;
    Ok(text.lines().filter(|line| line.split_whitespace().nth(2) == Some("Up")).count())
}

fn changes_in_bird(directory: &Path) -> Result<Changes> {
    let log = fs::read_to_string(directory.join("bird.log")).context("BIRD's log")?;
    let count = |words: &str| log.matches(words).count() as u64;
    Ok(Changes { ups: count(" to Up\n"), downs: count(" changed state from Up to ") })
}

fn start_bird(
    place: &Pinned<'_, Namespace>,
    directory: &Path,
    configuration: &str,
) -> Result<Process> {
    let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
    fs::write(file("bird.conf"), configuration).context("writing bird.conf")?;
    let words = ["-f", "-c", &file("bird.conf"), "-s", &file("bird.ctl"), "-P", &file("bird.pid")];
    let words = words.map(str::to_owned);
    let mut bird = Process::spawn(place, Path::new(BIRD), &words, Path::new(&file("bird.log")))?;
    wait_until("BIRD answers", PATIENCE, || {
        bird.check_running()?;
        output_of(bounded("birdc").args(["-s", &file("bird.ctl"), "show", "status"]))
    })?;
    Ok(bird)
}

fn start_frr(node: &Namespace, directory: &Path, pairs: u16, timers: Timers) -> Result<Frr> {
    let mut frr = Frr::prepare(directory);
    let place = |core| Pinned { place: node, core, first: false };
    frr.start(&place(OTHER_CORE), ZEBRA, "")?;
    frr.start(&place(WATCHED_CORE), BFDD, &bfdd(pairs, timers)?)?;
    Ok(frr)
}

/// The sums over a list in FRR's form.
fn counted(list: &Value) -> Changes {
    Changes { ups: sum(list, "session-up"), downs: sum(list, "session-down") }
}

fn sum(list: &Value, key: &str) -> u64 {
    let entries = list.as_array().into_iter().flatten();
    entries.filter_map(|entry| entry.get(key)?.as_u64()).sum()
}

/// Neighbours that never dial: their BFD is all that there is.
fn peers(pairs: u16, timers: Timers) -> String {
    let mut text = timers.profile();
    for pair in 0..pairs {
        text += &format!(
            "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata:\n  name: peer-{pair}\n\
             spec:\n  myASN: 65001\n  peerASN: 65002\n  passive: true\n  bfdProfile: watch\n  \
             peerAddress: {}\n  sourceAddress: {}\n",
            router_address(pair),
            node_address(pair)
        );
    }
    text
}

fn bird(pairs: u16, interface: &str, timers: Timers, at_node: bool) -> String {
    let mut text = format!(
        "router id 10.0.0.{};\nlog stderr all;\nprotocol device {{ }}\nprotocol bfd watch {{\n  \
         debug {{ states, events }};\n  interface \"*\" {{ interval {} ms; \
         multiplier {}; }};\n",
        if at_node { 1 } else { 2 },
        timers.milliseconds(),
        timers.multiplier
    );
    for pair in 0..pairs {
        let (own, other) = match at_node {
            true => (node_address(pair), router_address(pair)),
            false => (router_address(pair), node_address(pair)),
        };
        text += &format!("  neighbor {other} dev \"{interface}\" local {own};\n");
    }
    text + "}\n"
}

fn bfdd(pairs: u16, timers: Timers) -> Result<String> {
    let mut text = "bfd\n".to_owned();
    for pair in 0..pairs {
        writeln!(
            text,
            " peer {} local-address {} interface {NODE_INTERFACE}\n  detect-multiplier {}\n  \
             transmit-interval {interval}\n  receive-interval {interval}\n exit",
            router_address(pair),
            node_address(pair),
            timers.multiplier,
            interval = timers.milliseconds(),
        )?;
    }
    Ok(text + "exit\n")
}
