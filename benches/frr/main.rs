//! How fast is FRR when Fairway configures it, and what does it cost? With five hundred Services announced,
//! the time is measured from the `rename()` of a changed file to the last route in the kernel of a router
//! beside FRR. In the same run frr-reload.py is measured, as MetalLB runs it (`--test`, then `--reload`),
//! with the text that MetalLB has for the same Services and with the one that Fairway renders.
//!
//! Then two hundred Services change one by one, fifty a second: how often FRR was configured, whether a
//! session was reset, and the memory of both before and after.
//!
//! `--starts` measures instead how long an announcer takes from its start to the sessions ([`starts`]);
//! `--sizes small` only with few peers.
//!
//! `cargo bench --bench frr -- [--changes N] [--reloads N] [--only WORD] [--starts [--sizes small]]`,
//! as root.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

mod announcer;
mod sink;
mod starts;
mod state;
mod storm;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use announcer::{Announcer, Author, FairwayAnnouncer, ReloadAnnouncer, WINDOW};
use lab::bird::Bird;
use lab::latencies::Latencies;
use lab::monitor::Monitor;
use lab::routers::{Release, RouterKind};
use lab::{Lab, Wiring};
use state::{State, batch_addresses, has_tone, moved_address};

/// Changes of each kind with Fairway; frr-reload.py gets fewer, since it takes seconds for some.
const CHANGES: usize = 50;
const RELOADS: usize = 5;
/// Pause between two changes, so that the interval between two applications is not measured.
const PAUSE: Duration = Duration::from_millis(300);
/// Rounds before the measurement, where there are many.
const WARM_UP: usize = 2;

/// The measurements of each announcer.
#[derive(Default)]
struct Measured {
    one: Latencies,
    new: Latencies,
    changed: Latencies,
    gone: Latencies,
}

impl Measured {
    fn kinds(&self) -> [(&'static str, &Latencies); 4] {
        [
            ("one Service changed", &self.one),
            ("100 new Services", &self.new),
            ("100 changed communities", &self.changed),
            ("100 withdrawn", &self.gone),
        ]
    }
}

/// A way to have FRR announce routes.
enum Contestant {
    /// Fairway, with this FRR.
    Fairway(Release),
    /// frr-reload.py, with FRR 8.4 and the text of one of the two.
    Reload(Author),
}

const CONTESTANTS: &[(&str, Contestant)] = &[
    ("fairway, FRR 8.4", Contestant::Fairway(Release::Bookworm)),
    ("fairway, FRR 10.3", Contestant::Fairway(Release::Trixie)),
    ("frr-reload.py, MetalLB's kind of text", Contestant::Reload(Author::MetalLb)),
    ("frr-reload.py, Fairway's text", Contestant::Reload(Author::Fairway)),
];

struct Row {
    name: &'static str,
    measured: Measured,
    /// For frr-reload.py: both runs of each change.
    runs: Vec<[Duration; 2]>,
}

fn main() -> Result<()> {
    ensure!(nix::unistd::Uid::effective().is_root(), "this needs root: network namespaces");
    lab::check_tools()?;
    lab::namespace::remove_leftovers()?;
    let number = |option, default| {
        let number = value_after(option)?.map(|value| value.parse()).transpose();
        Ok::<usize, anyhow::Error>(number.context("a number")?.unwrap_or(default))
    };
    let (changes, reloads) = (number("--changes", CHANGES)?, number("--reloads", RELOADS)?);
    let wanted = value_after("--only")?;
    for release in [Release::Bookworm, Release::Trixie] {
        println!("{} {}", RouterKind::Frr(release).word(), RouterKind::Frr(release).version()?);
    }
    let folder = std::env::temp_dir().join(format!("fairway-bench-frr-{}", std::process::id()));
    if std::env::args().any(|argument| argument == "--starts") {
        let small = value_after("--sizes")?.is_some_and(|sizes| sizes == "small");
        starts::run(&folder, wanted.as_deref(), small)?;
        return std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark");
    }
    let mut rows = Vec::new();
    let mut storms = Vec::new();
    for (cell, (name, contestant)) in CONTESTANTS.iter().enumerate() {
        if !wanted.as_ref().is_none_or(|word| name.contains(word.as_str())) {
            continue;
        }
        let scene = Scene::set_up(cell, &folder)?;
        eprintln!("{name}; see {}", scene.lab.directory.display());
        let row = match contestant {
            Contestant::Fairway(release) => {
                let mut announcer = FairwayAnnouncer::start(&scene.lab, *release)?;
                let mut monitor = scene.all_announced()?;
                let measured = measure(&mut announcer, &mut monitor, changes).context(*name)?;
                storms.push((*name, storm::measure(&mut announcer, &mut monitor).context(*name)?));
                announcer.fairway.stop()?;
                Row { name, measured, runs: Vec::new() }
            }
            Contestant::Reload(author) => {
                let mut announcer = ReloadAnnouncer::start(&scene.lab, *author)?;
                let mut monitor = scene.all_announced()?;
                let measured = measure(&mut announcer, &mut monitor, reloads).context(*name)?;
                Row { name, measured, runs: announcer.runs }
            }
        };
        // The following ones may take minutes.
        for (kind, latencies) in row.measured.kinds() {
            eprintln!("  {kind}: p50 {:.1} ms", latencies.percentile(50));
        }
        rows.push(row);
    }
    print(&rows);
    storm::print(&storms);
    std::fs::remove_dir_all(&folder).context("removing the folder of the benchmark")
}

fn value_after(option: &str) -> Result<Option<String>> {
    let mut arguments = std::env::args();
    if !arguments.any(|argument| argument == option) {
        return Ok(None);
    }
    arguments.next().map(Some).with_context(|| format!("{option} needs a value"))
}

/// The lab and its router. The router is dropped before its namespace.
struct Scene {
    _router: Bird,
    lab: Lab,
}

impl Scene {
    fn set_up(cell: usize, folder: &Path) -> Result<Self> {
        lab::make_directory(folder)?;
        let place = folder.join(cell.to_string());
        lab::make_directory(&place)?;
        let lab = Lab::build(cell, &place, Wiring::Direct)?;
        let configuration = state::router_configuration();
        let router = Bird::start(&lab.router.namespace, &place, "router", &configuration)?;
        Ok(Self { _router: router, lab })
    }

    /// A monitor, once every standing route is there.
    fn all_announced(&self) -> Result<Monitor> {
        let limit = 4 * lab::wait::PATIENCE;
        lab::wait::wait_until("every route is at the router", limit, || {
            let routes = self.lab.router.namespace.ip(&["route", "show", "proto", "bird"])?;
            let count = routes.lines().count();
            ensure!(count == state::STANDING + 1, "{count} are");
            Ok(())
        })?;
        Monitor::start(&self.lab.router.namespace)
    }
}

/// Repeats changes of every kind.
fn measure(
    announcer: &mut dyn Announcer,
    monitor: &mut Monitor,
    changes: usize,
) -> Result<Measured> {
    let mut measured = Measured::default();
    let mut state = State::FIRST;
    let batch = batch_addresses();
    let warm_up = if changes > RELOADS { WARM_UP } else { 0 };
    for round in 0..warm_up + changes {
        let counts = round >= warm_up;
        let mut change = |state: &State,
                          into: &mut Latencies,
                          addresses: &BTreeSet<String>,
                          is_it: &dyn Fn(&str) -> bool|
         -> Result<()> {
            std::thread::sleep(PAUSE);
            monitor.forget();
            let start = announcer.announce(state)?;
            let seen = monitor.wait_for_all(addresses, is_it)?;
            let last = seen.into_values().max().context("no route was waited for")?;
            if counts {
                into.push(last.saturating_duration_since(start));
            }
            Ok(())
        };
        state.moved += 1;
        let moved = BTreeSet::from([moved_address(state.moved)]);
        let is_there = |line: &str| !line.starts_with("Deleted");
        change(&state, &mut measured.one, &moved, &is_there)?;
        state.has_batch = true;
        let tone = state.tone;
        change(&state, &mut measured.new, &batch, &|line| is_there(line) && has_tone(line, tone))?;
        state.tone = tone.other();
        change(&state, &mut measured.changed, &batch, &|line| {
            is_there(line) && has_tone(line, tone.other())
        })?;
        state.has_batch = false;
        change(&state, &mut measured.gone, &batch, &|line| !is_there(line))?;
    }
    Ok(measured)
}

fn print(rows: &[Row]) {
    println!(
        "\nFrom rename() of the changed file to the last route in the router's kernel, with {} Services \
         announced, milliseconds. MetalLB waits {:.0} s before it writes a file: that column is the p50 with \
         the window added, which is not measured.\n",
        state::STANDING,
        WINDOW.as_secs_f64()
    );
    println!(
        "| announcer | change | n | p50 | p99 | max | with the window | p50 beside fairway, FRR 8.4 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for row in rows {
        let is_reload = row.name.starts_with("frr-reload");
        for (kind, latencies) in row.measured.kinds() {
            let ours = rows.first().and_then(|first| {
                first.measured.kinds().into_iter().find(|(name, _)| *name == kind)
            });
            let p50 = latencies.percentile(50);
            let window = WINDOW.as_secs_f64() * 1000.0;
            let ratio = ours.map_or(f64::NAN, |(_, ours)| p50 / ours.percentile(50));
            let ratio_with =
                ours.map_or(f64::NAN, |(_, ours)| (p50 + window) / ours.percentile(50));
            let (with, ratio) = if is_reload {
                (format!("{:.0}", p50 + window), format!("{ratio:.0}, with it {ratio_with:.0}"))
            } else {
                (String::new(), format!("{ratio:.2}"))
            };
            println!(
                "| {} | {kind} | {} | {p50:.1} | {:.1} | {:.1} | {with} | {ratio} |",
                row.name,
                latencies.count(),
                latencies.percentile(99),
                latencies.percentile(100),
            );
        }
    }
    for row in rows.iter().filter(|row| !row.runs.is_empty()) {
        let mean = |of: fn(&[Duration; 2]) -> Duration| {
            let sum: Duration = row.runs.iter().map(of).sum();
            sum.as_secs_f64() / row.runs.len() as f64
        };
        println!(
            "\n{}: --test {:.2} s, --reload {:.2} s on average of all changes",
            row.name,
            mean(|[test, _]| *test),
            mean(|[_, reload]| *reload)
        );
    }
}
