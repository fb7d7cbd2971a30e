//! Two hundred Services that change one by one, fifty a second: the load on FRR and Fairway.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::announcer::FairwayAnnouncer;
use crate::state::{ROUTER, STORM, storm_address};
use lab::frr_speaker::resident_kib;
use lab::latencies::Latencies;
use lab::monitor::Monitor;
use lab::{fairway, resources};

/// Fifty a second.
const PACE: Duration = Duration::from_millis(20);

/// Fairway's log message for each application.
const CONFIGURED: &str = "FRR configured";

/// The measurements.
pub(crate) struct Storm {
    latencies: Latencies,
    applications: usize,
    /// Sessions that were re-established, by FRR's count.
    resets: u64,
    before: Weight,
    after: Weight,
}

/// Resident memory, KiB.
#[derive(Clone, Copy)]
struct Weight {
    fairway: u64,
    bgpd: u64,
}

/// Creates the Services, then moves each once; the time of each starts with its own rename.
pub(crate) fn measure(announcer: &mut FairwayAnnouncer, monitor: &mut Monitor) -> Result<Storm> {
    for number in 0..STORM {
        apply(announcer, number, 0)?;
    }
    let at = |round| (0..STORM).map(|number| storm_address(number, round)).collect();
    let is_there = |line: &str| !line.starts_with("Deleted");
    monitor.wait_for_all(&at(0), is_there)?;
    let before = announcer.weigh()?;
    let applications = announcer.applications()?;
    let sessions = announcer.speaker.connections_established(ROUTER)?;
    monitor.forget();
    let start = Instant::now();
    let mut renamed = BTreeMap::new();
    for number in 0..STORM {
        let due = start + PACE * u32::try_from(number).context("a number of Services")?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        renamed.insert(storm_address(number, 1), apply(announcer, number, 1)?);
    }
    let seen = monitor.wait_for_all(&at(1), is_there)?;
    let mut latencies = Latencies::default();
    for (address, moment) in &renamed {
        let seen = seen.get(address).context("a Service that was waited for")?;
        latencies.push(seen.saturating_duration_since(*moment));
    }
    Ok(Storm {
        latencies,
        applications: announcer.applications()? - applications,
        resets: announcer.speaker.connections_established(ROUTER)? - sessions,
        before,
        after: announcer.weigh()?,
    })
}

fn apply(announcer: &FairwayAnnouncer, number: usize, round: usize) -> Result<Instant> {
    let text = resources::service(&format!("storm-{number}"), Some(&storm_address(number, round)));
    announcer.fairway.apply_timed(&format!("storm-{number}"), &text)
}

impl FairwayAnnouncer {
    fn weigh(&self) -> Result<Weight> {
        let fairway = resident_kib(self.fairway.process_id()?)?;
        Ok(Weight { fairway, bgpd: self.speaker.memory_kib("bgpd")? })
    }

    /// How often FRR was configured.
    fn applications(&self) -> Result<usize> {
        let log = fairway::log_in(&self.place);
        let text = std::fs::read_to_string(log).context("fairway's log")?;
        Ok(text.lines().filter(|line| line.contains(CONFIGURED)).count())
    }
}

/// A table that can be pasted into a page.
pub(crate) fn print(storms: &[(&str, Storm)]) {
    println!("\n{STORM} Services changed one by one, {:.0} a second:\n", 1.0 / PACE.as_secs_f64());
    println!(
        "| | times that FRR was configured | sessions reset | to the router, p50 ms | p99 ms | \
         fairway, MiB before and after | bgpd, MiB before and after |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, storm) in storms {
        let both = |of: fn(&Weight) -> u64| {
            let [before, after] = [&storm.before, &storm.after].map(|it| of(it) as f64 / 1024.0);
            format!("{before:.1}, {after:.1}")
        };
        let (fairway, bgpd) = (both(|it| it.fairway), both(|it| it.bgpd));
        println!(
            "| {name} | {} | {} | {:.1} | {:.1} | {fairway} | {bgpd} |",
            storm.applications,
            storm.resets,
            storm.latencies.percentile(50),
            storm.latencies.percentile(99),
        );
    }
}
