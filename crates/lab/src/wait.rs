//! How does a test wait? By polling until a deadline, and by nothing else: there is no fixed sleep in the
//! suite. Used by every process, router and case.

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Long enough for a ConnectRetry of about 5 s and a router that starts on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(15);

const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(80);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// SIGINT and SIGTERM make every cell end and clean up after itself.
pub fn end_on_signals() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let mut interrupted = signal(SignalKind::interrupt()).context("handling SIGINT")?;
    let mut terminated = signal(SignalKind::terminate()).context("handling SIGTERM")?;
    drop(inside);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        });
        INTERRUPTED.store(true, Ordering::SeqCst);
    });
    Ok(())
}

pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Ends a suite with success, with failure, or with an error.
pub fn exit_code(suite: &str, outcome: Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) if is_interrupted() => ExitCode::from(130),
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{suite}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// An error that waiting longer cannot fix: a process is gone.
#[derive(Debug)]
pub struct Hopeless(pub String);

impl fmt::Display for Hopeless {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Hopeless {}

#[allow(clippy::disallowed_methods, reason = "real peers live in real time")]
pub fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "the pause between two polls of a wait")]
fn pause(length: Duration) {
    std::thread::sleep(length);
}

/// Polls until `look` succeeds. Its last error becomes part of ours when the time is up.
pub fn wait_until<T>(
    expected: &str,
    limit: Duration,
    look: impl FnMut() -> Result<T>,
) -> Result<T> {
    poll(expected, limit, LONGEST_PAUSE, look)
}

/// The same, with no pause longer than this one: for what is measured.
pub fn poll<T>(
    expected: &str,
    limit: Duration,
    longest_pause: Duration,
    mut look: impl FnMut() -> Result<T>,
) -> Result<T> {
    let start = now();
    let mut length = SHORTEST_PAUSE;
    loop {
        let error = match look() {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        if is_interrupted() {
            bail!("interrupted while waiting for: {expected}");
        }
        if error.is::<Hopeless>() {
            return Err(error.context(format!("while waiting for: {expected}")));
        }
        if start.elapsed() >= limit {
            return Err(anyhow!(
                "expected within {:.0} s: {expected}; in the end: {error:#}",
                limit.as_secs_f64()
            ));
        }
        pause(length);
        length = (length * 2).min(longest_pause);
    }
}

/// Polls for the whole of `period`; `look` must succeed each time.
pub fn holds_for(
    expected: &str,
    period: Duration,
    mut look: impl FnMut() -> Result<()>,
) -> Result<()> {
    let start = now();
    while start.elapsed() < period {
        if is_interrupted() {
            bail!("interrupted while watching: {expected}");
        }
        look().map_err(|error| {
            let after = start.elapsed().as_secs_f64();
            anyhow!("expected for {:.0} s: {expected}; after {after:.1} s: {error:#}", {
                period.as_secs_f64()
            })
        })?;
        pause(LONGEST_PAUSE);
    }
    Ok(())
}
