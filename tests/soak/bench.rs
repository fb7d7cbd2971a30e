//! What does every case get? A directory, a seed, a runtime for scripted peers, and a way to report what
//! was measured.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::{Handle, Runtime};

use lab::suite::Cell;
use lab::wait::{is_interrupted, now};

/// Where a case works.
pub(crate) struct Bench {
    name: &'static str,
    pub(crate) directory: PathBuf,
    pub(crate) seed: u64,
    /// A few seconds instead of minutes.
    pub(crate) short: bool,
    runtime: Runtime,
    latest: Arc<AtomicU64>,
}

/// How often the runtime's own pulse is measured.
const PULSE: Duration = Duration::from_millis(50);

impl Bench {
    pub(crate) fn set_up(name: &'static str, seed: u64, short: bool, cell: &Cell) -> Result<Self> {
        let directory = cell.directory.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("a runtime for scripted peers")?;
        let latest = Arc::new(AtomicU64::new(0));
        runtime.spawn(feel_pulse(Arc::clone(&latest)));
        Ok(Self { name, directory, seed, short, runtime, latest })
    }

    /// The longest time that the scripted peers themselves were held up, by a machine that is busy with other
    /// work.
    pub(crate) fn own_lateness(&self) -> Duration {
        Duration::from_millis(self.latest.load(Ordering::Relaxed))
    }

    /// Where scripted peers run.
    pub(crate) fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Lets the scripted peers go on with their work; an error when the run is to end.
    pub(crate) fn pause(&self, length: Duration) -> Result<()> {
        self.runtime.block_on(async { tokio::time::sleep(length).await });
        ensure!(!is_interrupted(), "interrupted");
        Ok(())
    }

    /// One line of what was measured.
    pub(crate) fn say(&self, what: impl Display) {
        println!("{}: {what}", self.name);
    }
}

/// Measures how late a timer of ours fires.
async fn feel_pulse(latest: Arc<AtomicU64>) {
    loop {
        let start = now();
        tokio::time::sleep(PULSE).await;
        let late = start.elapsed().saturating_sub(PULSE).as_millis();
        latest.fetch_max(u64::try_from(late).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
