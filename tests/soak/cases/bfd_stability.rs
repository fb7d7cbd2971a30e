//! A busy machine is not a dead one: a hundred sessions on a core that busy loops want as well, and the
//! other end on the other core. With `--bfd-realtime` none may go down in an hour, or in
//! `FAIRWAY_BFD_SECONDS`; without it, and with timers for which there is no promise, the figures of some
//! minutes are reported, with those of BIRD in our place.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::Bench;
use crate::bfd::Timers;
use crate::bfd::cable::Cable;
use crate::bfd::pinned::{Hogs, expect_two_cores};
use crate::bfd::watcher::{OtherEnd, Program, Watcher};
use lab::wait::now;

const SESSIONS: u16 = 100;
const BUSY_LOOPS: usize = 32;
const PROMISED: Timers = Timers::every(50, 3);
const HARSH: Timers = Timers::every(10, 3);

const PERIOD: Duration = Duration::from_secs(3_600);
const SHORT_PERIOD: Duration = Duration::from_secs(5);
/// The time where only figures are reported, at most, and how much less for timers that are too short.
const FIGURES_PERIOD: Duration = Duration::from_secs(600);
const HARSH_SHARE: u32 = 10;

pub(super) fn run(bench: &Bench) -> Result<()> {
    expect_two_cores()?;
    let realtime = Program::Fairway { realtime: true };
    if bench.short {
        let found = measure(bench, 0, realtime, PROMISED, SHORT_PERIOD)?;
        if found.realtime == GRANTED {
            return expect_none(&found);
        }
        // A container may not be allowed to: the promise is not for there.
        bench.say(format!("nothing is promised here: {}", found.realtime));
        return Ok(());
    }
    let period = match std::env::var("FAIRWAY_BFD_SECONDS") {
        Ok(text) => Duration::from_secs(text.parse().context("FAIRWAY_BFD_SECONDS")?),
        Err(_) => PERIOD,
    };
    let promised = measure(bench, 0, realtime, PROMISED, period)?;
    let period = period.min(FIGURES_PERIOD);
    let others = [
        (Program::Fairway { realtime: false }, PROMISED, period),
        (realtime, HARSH, period / HARSH_SHARE),
        (Program::Fairway { realtime: false }, HARSH, period / HARSH_SHARE),
        (Program::Bird, HARSH, period / HARSH_SHARE),
    ];
    for (number, (program, timers, period)) in others.into_iter().enumerate() {
        measure(bench, number + 1, program, timers, period)?;
    }
    ensure!(promised.realtime == GRANTED, "it has no real-time priority: {}", promised.realtime);
    expect_none(&promised)
}

/// What fairway reports when the request was granted.
const GRANTED: &str = "granted";

/// How a program fared beside busy loops.
struct Found {
    downs: u64,
    /// The result of the request for real-time priority.
    realtime: String,
}

fn expect_none(found: &Found) -> Result<()> {
    let downs = found.downs;
    ensure!(downs == 0, "{downs} were given up, though nothing was wrong with the other end");
    Ok(())
}

/// How often a session went down while the core was busy.
fn measure(
    bench: &Bench,
    number: usize,
    program: Program,
    timers: Timers,
    period: Duration,
) -> Result<Found> {
    let directory = bench.directory.join(number.to_string());
    let cable = Cable::lay(200 + number, &directory, SESSIONS)?;
    let other_end = OtherEnd::start(&cable, timers)?;
    let mut watcher = Watcher::start(program, &cable, timers)?;
    let before = watcher.all_up(SESSIONS)?;
    let before_there = other_end.changes()?;
    let hogs = Hogs::start(BUSY_LOOPS, &directory.join("hogs.log"))?;
    let start = now();
    while start.elapsed() < period {
        bench.pause(Duration::from_secs(1).min(period))?;
        watcher.check_running()?;
    }
    drop(hogs);
    // Either end may be the one that gives up.
    let downs = watcher.changes()?.downs - before.downs;
    let downs_there = other_end.changes()?.downs - before_there.downs;
    let realtime = watcher.realtime()?;
    bench.say(format!(
        "{}: {SESSIONS} sessions at {timers}, {BUSY_LOOPS} busy loops on the same core, {} s: {downs} \
         went down, {downs_there} at the other end{}",
        program.name(),
        period.as_secs(),
        watcher.remarks()?
    ));
    Ok(Found { downs: downs.max(downs_there), realtime })
}
