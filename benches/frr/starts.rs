//! How long does it take from the start of an announcer to the sessions and routes at FRR's neighbours, and what does
//! it cost? Fairway, `vtysh -f` and frr-reload.py each configure a fresh FRR that has no configuration, for one to two
//! hundred neighbours and ten to two thousand Services. The start of FRR itself is not measured. Called by `main`.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::announcer::FRR_RELOAD;
use crate::sink::{self, Event, Sink};
use lab::fairway::Fairway;
use lab::frr_speaker::Speaker;
use lab::process::{Process, tail};
use lab::resources::{self, Advertisement};
use lab::routers::Release;
use lab::usage::Usage;
use lab::wait::{PATIENCE, wait_until};
use lab::{Lab, ROUTER_INTERFACE, Wiring};

const PEERS: [usize; 3] = [1, 20, 200];
const SERVICES: [usize; 3] = [10, 200, 2000];
/// How many of each are left with `--sizes small`.
const SMALL: usize = 2;

/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(180);
/// FRR's age when the announcer is started: Fairway configures none that is younger than 3 s.
const AGE: Duration = Duration::from_secs(4);
/// After so much silence of the neighbours, the end of the announcer's work is looked for.
const SILENCE: Duration = Duration::from_millis(50);

/// Cells of the other parts of the benchmark have lower numbers.
const FIRST_CELL: usize = 100;
const VTYSH: &str = "/usr/bin/vtysh";
/// Fairway's log message for each application.
const CONFIGURED: &str = "FRR configured";

/// What configures FRR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    /// Fairway, with this FRR.
    Fairway(Release),
    /// `vtysh -f`, with this FRR and Fairway's text.
    Vtysh(Release),
    /// This FRR's own frr-reload.py, with Fairway's text.
    Reload(Release),
}

const CONTESTANTS: [(&str, Contestant); 6] = [
    ("fairway, FRR 8.4", Contestant::Fairway(Release::Bookworm)),
    ("fairway, FRR 10.3", Contestant::Fairway(Release::Trixie)),
    ("vtysh -f, FRR 8.4", Contestant::Vtysh(Release::Bookworm)),
    ("vtysh -f, FRR 10.3", Contestant::Vtysh(Release::Trixie)),
    ("frr-reload.py, FRR 8.4", Contestant::Reload(Release::Bookworm)),
    ("frr-reload.py, FRR 10.3", Contestant::Reload(Release::Trixie)),
];

/// The number of neighbours, and of routes for each.
#[derive(Clone, Copy)]
struct Size {
    peers: usize,
    services: usize,
}

/// Times since the start of the announcer; none for what did not happen within the limit.
#[derive(Clone, Copy, Default)]
struct Times {
    first_session: Option<Duration>,
    all_sessions: Option<Duration>,
    all_routes: Option<Duration>,
}

struct Outcome {
    times: Times,
    /// Established sessions that ended.
    lost: usize,
    /// Processor time until the announcer had finished.
    bgpd: Duration,
    announcer: Duration,
}

/// Measures every announcer whose name contains `only`, and prints the table.
pub(crate) fn run(folder: &Path, only: Option<&str>, small: bool) -> Result<()> {
    lab::make_directory(folder)?;
    let count = if small { SMALL } else { PEERS.len() };
    let mut rows = Vec::new();
    let mut cell = FIRST_CELL;
    for peers in PEERS.into_iter().take(count) {
        for services in SERVICES.into_iter().take(count) {
            let size = Size { peers, services };
            for (name, contestant) in CONTESTANTS {
                if !only.is_none_or(|word| name.contains(word)) {
                    continue;
                }
                let place = folder.join(format!("start-{cell}"));
                eprintln!("{name}, {peers} peers, {services} Services; see {}", place.display());
                // A run that fails must not cost the others their rows: all of them take an hour.
                match measure(cell, &place, contestant, size) {
                    Ok(outcome) => {
                        eprintln!("  {}", line(name, size, &outcome));
                        rows.push((name, size, outcome));
                    }
                    Err(error) => eprintln!("  failed: {error:#}"),
                }
                cell += 1;
            }
        }
    }
    print(&rows);
    ensure!(cell == FIRST_CELL + rows.len(), "some runs have failed, and have no row");
    Ok(())
}

/// One run, in namespaces of its own.
fn measure(cell: usize, place: &Path, contestant: Contestant, size: Size) -> Result<Outcome> {
    lab::make_directory(place)?;
    let lab = Lab::build(cell, place, Wiring::Direct)?;
    add_addresses(&lab, size)?;
    let (Contestant::Fairway(release) | Contestant::Vtysh(release) | Contestant::Reload(release)) =
        contestant;
    let mut speaker = Speaker::prepare(release, &place.join("node"))?;
    speaker.start(&lab.node)?;
    let fairway = Fairway::prepare(&lab)?;
    for (name, text) in files(size) {
        fairway.apply(name, &text)?;
    }
    let (program, arguments) = contestant.command(&speaker, &fairway)?;
    let addresses = (0..size.peers).map(address).collect::<Result<Vec<_>>>()?;
    let sink = Sink::start(&lab.router.namespace, addresses, size.services)?;
    wait_for_age(&speaker)?;

    let process_of_bgpd = bgpd(&speaker)?;
    let bgpd_before = Usage::of(process_of_bgpd)?.processor_time;
    let children_before = time_of_ended_children()?;
    let log = place.join("announcer.log");
    let mut progress = Progress::begin(size.peers);
    let process = match contestant {
        Contestant::Fairway(_) => Process::spawn(&lab.node, &program, &arguments, &log)?,
        Contestant::Vtysh(_) | Contestant::Reload(_) => {
            Process::spawn(&speaker.within(&lab.node), &program, &arguments, &log)?
        }
    };
    let mut announcer = Announcer { contestant, process, log };
    progress.follow(&sink, &mut announcer)?;
    speaker.check_running()?;

    let bgpd = Usage::of(process_of_bgpd)?.processor_time.saturating_sub(bgpd_before);
    let announcer = announcer.processor_time(children_before)?;
    if let Some(reason) = &progress.last_loss {
        eprintln!("  {} sessions were lost, the last by: {reason}", progress.lost);
    }
    Ok(Outcome { times: progress.times, lost: progress.lost, bgpd, announcer })
}

impl Contestant {
    /// Its program and arguments. Rendering the text is not measured.
    fn command(self, speaker: &Speaker, fairway: &Fairway) -> Result<(PathBuf, Vec<String>)> {
        let folder = speaker.directory().display().to_string();
        let file = speaker.directory().join("frr.conf");
        let [seen, name] = ["", "frr.conf"].map(|name| speaker.seen(name));
        if !matches!(self, Self::Fairway(_)) {
            fs::write(&file, fairway.render()?).context("writing frr.conf")?;
        }
        let [config, socket, state] =
            ["config", "fairway.sock", "state"].map(|name| fairway.directory_of(name));
        let (program, words) = match self {
            Self::Fairway(_) => {
                let mut words = vec!["run", "--config", &config, "--node", "node-a"];
                words.extend(["--socket", &socket, "--state-dir", &state, "--log-level", "info"]);
                words.extend(["--bgp", "frr", "--frr-socket-dir", &folder]);
                (lab::fairway::existing_program()?, words)
            }
            Self::Vtysh(_) => {
                let words = vec!["--vty_socket", &seen, "--config_dir", &seen, "-f", &name];
                (VTYSH.into(), words)
            }
            Self::Reload(_) => {
                let mut words = vec!["--reload", "--stdout", "--bindir", "/usr/bin"];
                words.extend(["--confdir", &seen, "--rundir", &seen]);
                words.extend(["--vty_socket", &seen, &name]);
                (FRR_RELOAD.into(), words)
            }
        };
        Ok((program, words.into_iter().map(str::to_owned).collect()))
    }
}

/// The announcer that runs, or has ended.
struct Announcer {
    contestant: Contestant,
    process: Process,
    log: PathBuf,
}

impl Announcer {
    /// Fairway has finished when it has compared FRR's configuration with its own, the others when they end.
    fn has_finished(&mut self) -> Result<bool> {
        match self.contestant {
            Contestant::Fairway(_) => {
                self.process.check_running()?;
                let text = fs::read_to_string(&self.log).context("fairway's log")?;
                Ok(text.contains(CONFIGURED))
            }
            // The only reason to fail is an end.
            Contestant::Vtysh(_) | Contestant::Reload(_) => {
                Ok(self.process.check_running().is_err())
            }
        }
    }

    /// Its processor time, with that of the programs that it ran. One that has not ended is ended.
    fn processor_time(mut self, children_before: Duration) -> Result<Duration> {
        if let Contestant::Fairway(_) = self.contestant {
            return Ok(Usage::of(self.process.id())?.processor_time);
        }
        let status = self.process.stop(PATIENCE)?;
        if !status.success() {
            eprintln!("  the announcer ended with {status}:\n{}", tail(&self.log, 10));
        }
        Ok(time_of_ended_children()?.saturating_sub(children_before))
    }
}

/// What the neighbours have seen since the start.
struct Progress {
    start: Instant,
    peers: usize,
    established: BTreeSet<usize>,
    complete: BTreeSet<usize>,
    times: Times,
    lost: usize,
    last_loss: Option<String>,
}

impl Progress {
    /// The clock starts.
    fn begin(peers: usize) -> Self {
        Self {
            start: Instant::now(),
            peers,
            established: BTreeSet::new(),
            complete: BTreeSet::new(),
            times: Times::default(),
            lost: 0,
            last_loss: None,
        }
    }

    /// Follows the neighbours until all routes are there and the announcer has finished, or the time is up.
    fn follow(&mut self, sink: &Sink, announcer: &mut Announcer) -> Result<()> {
        while self.start.elapsed() < LIMIT {
            match sink.events.recv_timeout(SILENCE) {
                Ok((moment, peer, event)) => self.note(moment, peer, event),
                Err(RecvTimeoutError::Timeout) => {
                    if announcer.has_finished()? && self.times.all_routes.is_some() {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the neighbors have ended"),
            }
        }
        Ok(())
    }

    fn note(&mut self, moment: Instant, peer: usize, event: Event) {
        let time = moment.saturating_duration_since(self.start);
        match event {
            Event::Established => {
                self.times.first_session.get_or_insert(time);
                self.established.insert(peer);
                if self.established.len() == self.peers {
                    self.times.all_sessions.get_or_insert(time);
                }
            }
            Event::Complete => {
                self.complete.insert(peer);
                if self.complete.len() == self.peers {
                    self.times.all_routes.get_or_insert(time);
                }
            }
            Event::Lost(reason) => {
                self.established.remove(&peer);
                self.complete.remove(&peer);
                self.lost += 1;
                self.last_loss = Some(reason);
            }
        }
    }
}

/// The address of neighbour `number`, from 0; the node has lower ones.
fn address(number: usize) -> Result<Ipv4Addr> {
    let last = u8::try_from(20 + number).context("more neighbors than addresses")?;
    Ok(Ipv4Addr::new(10, 77, 0, last))
}

/// Gives the router all addresses of the neighbours at once.
fn add_addresses(lab: &Lab, size: Size) -> Result<()> {
    let lines = (0..size.peers)
        .map(|number| Ok(format!("address add {}/24 dev {ROUTER_INTERFACE}\n", address(number)?)));
    let file = lab.directory.join("addresses");
    fs::write(&file, lines.collect::<Result<String>>()?).context("a list of addresses")?;
    lab.router.namespace.ip(&["-batch", &file.to_string_lossy()]).map(drop)
}

/// The resources: files with their text.
fn files(size: Size) -> [(&'static str, String); 3] {
    let peers = (0..size.peers).map(|number| {
        format!(
            "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {{name: p{number}}}\n\
             spec: {{myASN: 65001, peerASN: {}, peerAddress: 10.77.0.{}, connectTime: 1s}}\n",
            sink::ASN,
            20 + number
        )
    });
    let services = (0..size.services).map(|number| {
        let service = format!("198.18.{}.{}", number / 250, number % 250 + 1);
        "---\n".to_owned() + &resources::service(&format!("s{number}"), Some(&service))
    });
    let pool = resources::pool("pool", &["198.18.0.0/16"])
        + "---\n"
        + &Advertisement { name: "all", pools: &["pool"], ..<_>::default() }.yaml();
    [("peers", peers.collect()), ("pool", pool), ("services", services.collect())]
}

fn wait_for_age(speaker: &Speaker) -> Result<()> {
    let socket = speaker.directory().join("bgpd.vty");
    wait_until("FRR is up for some seconds", PATIENCE, || {
        let age = fs::metadata(&socket)?.modified()?.elapsed()?;
        ensure!(age >= AGE, "its socket is {:.1} s old", age.as_secs_f64());
        Ok(())
    })
}

/// The process id of bgpd.
fn bgpd(speaker: &Speaker) -> Result<u32> {
    let file = speaker.directory().join("bgpd.pid");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    text.trim().parse().with_context(|| format!("the process id of bgpd: {text:?}"))
}

/// Processor time of all children that have ended, and of theirs.
fn time_of_ended_children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking for processor times")?;
    let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(Duration::from_micros(u64::try_from(microseconds).context("a negative time")?))
}

/// A table that can be pasted into a page.
fn print(rows: &[(&str, Size, Outcome)]) {
    println!(
        "\nFrom the start of the announcer, beside an FRR without a configuration, seconds:\n"
    );
    println!(
        "| peers | Services | announcer | first session | all sessions | all routes | \
         sessions lost | bgpd, processor time | announcer, processor time |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, size, outcome) in rows {
        println!("{}", line(name, *size, outcome));
    }
}

/// A row of the table.
fn line(name: &str, size: Size, outcome: &Outcome) -> String {
    let Size { peers, services } = size;
    let Times { first_session, all_sessions, all_routes } = outcome.times;
    let [first, sessions, routes] = [first_session, all_sessions, all_routes].map(|time| {
        let limit = || format!("> {}", LIMIT.as_secs());
        time.map_or_else(limit, |time| format!("{:.2}", time.as_secs_f64()))
    });
    format!(
        "| {peers} | {services} | {name} | {first} | {sessions} | {routes} | {} | {:.2} | {:.2} |",
        outcome.lost,
        outcome.bgpd.as_secs_f64(),
        outcome.announcer.as_secs_f64()
    )
}
