//! What does the daemon cost? Memory, processor time, descriptors and log, as the kernel counts
//! them.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::wait::now;

/// The state of a process in `/proc` at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    at: Instant,
    /// Without the pages of its program, which are read from disk again when memory is short, and of which an
    /// unoptimized build has several times as many.
    pub resident_mebibytes: f64,
    /// The most since it started, or since [`reset_peak`]; without the pages of its program, too.
    pub peak_mebibytes: f64,
    pub processor_time: Duration,
    pub descriptors: usize,
}

impl Usage {
    pub fn of(process: u32) -> Result<Self> {
        let place = Path::new("/proc").join(process.to_string());
        let status = fs::read_to_string(place.join("status")).context("reading its status")?;
        let mebibytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            let kibibytes: Option<f64> =
                line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            kibibytes.map(|it| it / 1024.0).with_context(|| format!("no {name} in {status}"))
        };
        let program = mebibytes("RssFile:")?;
        let stat = fs::read_to_string(place.join("stat")).context("reading its stat")?;
        // The name may hold blanks: count from the bracket that closes it.
        let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks: u64 = ticks.sum::<Result<u64, _>>().context("processor time in stat")?;
        Ok(Self {
            at: now(),
            resident_mebibytes: mebibytes("VmRSS:")? - program,
            peak_mebibytes: mebibytes("VmHWM:")? - program,
            // Linux counts in hundredths of a second towards user space, on every architecture.
            processor_time: Duration::from_millis(ticks * 10),
            descriptors: fs::read_dir(place.join("fd")).context("listing its files")?.count(),
        })
    }

    /// Both processes together.
    pub fn and(self, other: Self) -> Self {
        Self {
            at: self.at,
            resident_mebibytes: self.resident_mebibytes + other.resident_mebibytes,
            peak_mebibytes: self.peak_mebibytes + other.peak_mebibytes,
            processor_time: self.processor_time + other.processor_time,
            descriptors: self.descriptors + other.descriptors,
        }
    }

    /// The share of one core that it used since `earlier`.
    pub fn cores_since(&self, earlier: &Self) -> f64 {
        let used = self.processor_time.saturating_sub(earlier.processor_time);
        used.as_secs_f64() / self.at.duration_since(earlier.at).as_secs_f64().max(0.001)
    }

    /// Fails when the peak is above `mebibytes`.
    pub fn expect_peak_below(&self, mebibytes: f64) -> Result<()> {
        ensure!(
            self.peak_mebibytes < mebibytes,
            "expected less than {mebibytes:.0} MiB at the peak, it was {:.1} MiB",
            self.peak_mebibytes
        );
        Ok(())
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "memory {:.1} MiB, peak {:.1} MiB, {} descriptors",
            self.resident_mebibytes, self.peak_mebibytes, self.descriptors
        )
    }
}

/// How long a process has been on a core, to the nanosecond; of one with threads only those that have
/// this name, if one is given.
pub fn time_on_core(process: u32, thread: Option<&str>) -> Result<Duration> {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    let (mut sum, mut found) = (0, false);
    for task in fs::read_dir(&tasks).context("listing its threads")?.flatten() {
        let name = fs::read_to_string(task.path().join("comm")).context("the name of a thread")?;
        if thread.is_some_and(|thread| thread != name.trim()) {
            continue;
        }
        let statistics = task.path().join("schedstat");
        let text = fs::read_to_string(&statistics).context("reading schedstat")?;
        let nanoseconds = text.split_whitespace().next().context("an empty schedstat")?;
        sum += nanoseconds.parse::<u64>().with_context(|| format!("schedstat {text}"))?;
        found = true;
    }
    ensure!(found, "process {process} has no thread {thread:?}");
    Ok(Duration::from_nanos(sum))
}
