//! How long does a change take to reach a router's kernel, and how large is the daemon?
//!
//! A Service's address changes in its file; the time is measured from the `rename()` of that file to the
//! moment when the router's kernel has the new route, as one open `ip monitor route` sees it. BIRD as the
//! announcer is measured the same way in the same run (its file renamed, then `configure` on an open control
//! connection), so that the figure is a ratio and not a property of the machine.
//!
//! `cargo bench --bench latency -- [--changes N] [--only WORDS]`, as root; with `--only`, the rows whose announcer has these
//! words, and nothing else.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

mod announcer;
mod weight;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use announcer::{Announcer, BirdAnnouncer, FairwayAnnouncer};
use lab::bird::{Bird, receiving};
use lab::latencies::{Latencies, Row, print_latencies};
use lab::monitor::Monitor;
use lab::routers::{Release, RouterKind, RouterSpec};
use lab::wait::{PATIENCE, wait_until};
use lab::{Family, Lab, NODE_IPV4, Wiring};

/// Announcers and their routers.
const PAIRS: &[(&str, &str)] = &[
    ("fairway", "BIRD"),
    ("BIRD", "BIRD"),
    ("fairway", "FRR"),
    ("BIRD", "FRR"),
    ("fairway, 1,000 services", "BIRD"),
    ("fairway, 10,000 services", "BIRD"),
    ("fairway, 50,000 services", "BIRD"),
];

/// Changes measured for each pair.
const CHANGES: usize = 200;
/// Changes before the measurement: caches, lazy page faults.
const WARM_UP: usize = 5;

fn main() -> Result<()> {
    ensure!(nix::unistd::Uid::effective().is_root(), "this needs root: network namespaces");
    lab::check_tools()?;
    let changes = argument("--changes").map_or(Ok(CHANGES), |it| it.parse());
    let changes = changes.context("--changes needs a number")?;
    let only = argument("--only");
    let words = only.as_deref().unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("fairway-bench-{}", std::process::id()));
    lab::make_directory(&folder)?;
    let mut rows = Vec::new();
    let pairs = PAIRS.iter().copied().filter(|(announcer, _)| announcer.contains(words));
    for (number, (announcer, router)) in pairs.enumerate() {
        eprintln!("{announcer} -> {router}: {changes} changes");
        let place = folder.join(number.to_string());
        lab::make_directory(&place)?;
        let latencies = measure(number, &place, announcer, router, changes)
            .with_context(|| format!("{announcer} -> {router}; see {}", place.display()))?;
        rows.push(Row { announcer, router, latencies });
    }
    print_latencies(&rows);
    if only.is_none() {
        let place = folder.join("weight");
        lab::make_directory(&place)?;
        weight::print(90, &place)?;
    }
    std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark")
}

/// What follows `name` on the command line.
fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

/// One announcer with one router: change, wait, record.
fn measure(
    cell: usize,
    place: &Path,
    announcer: &str,
    router: &str,
    changes: usize,
) -> Result<Latencies> {
    let lab = Lab::build(cell, place, Wiring::Direct)?;
    let _router = start_router(&lab, router)?;
    let mut announcer: Box<dyn Announcer> = match announcer {
        "BIRD" => Box::new(BirdAnnouncer::start(&lab)?),
        "fairway, 1,000 services" => Box::new(FairwayAnnouncer::start(&lab, 1_000)?),
        "fairway, 10,000 services" => Box::new(FairwayAnnouncer::start(&lab, 10_000)?),
        "fairway, 50,000 services" => Box::new(FairwayAnnouncer::start(&lab, 50_000)?),
        _ => Box::new(FairwayAnnouncer::start(&lab, 0)?),
    };
    let mut monitor = Monitor::start(&lab.router.namespace)?;
    // The first change also waits for the session.
    announcer.announce(0)?;
    monitor.wait_for(&announcer::prefix(0))?;
    let mut latencies = Latencies::default();
    for change in 1..=WARM_UP + changes {
        let renamed = announcer.announce(change)?;
        let seen = monitor.wait_for(&announcer::prefix(change))?;
        if change > WARM_UP {
            latencies.push(seen.duration_since(renamed));
        }
    }
    Ok(latencies)
}

/// Anything that must be kept running.
trait Running {}
impl<T> Running for T {}

fn start_router(lab: &Lab, name: &str) -> Result<Box<dyn Running>> {
    if name == "BIRD" {
        let bird = Bird::start(&lab.router.namespace, &lab.directory, "router", &receiving())?;
        return Ok(Box::new(bird));
    }
    let local = Wiring::Direct.router_address(Family::Ipv4)?;
    let spec = RouterSpec::between(local, "fd77::2".parse()?, NODE_IPV4.parse()?);
    let mut frr = RouterKind::Frr(Release::Bookworm).prepare(&lab.router, &spec)?;
    frr.start(&lab.router)?;
    wait_until("FRR answers", PATIENCE, || frr.session().map(drop))?;
    Ok(Box::new(frr))
}

/// The measured binary.
fn binary() -> PathBuf {
    lab::fairway::program()
}
