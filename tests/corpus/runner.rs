//! How does the corpus run? A few trials at a time, each in a folder of its own, which stays when
//! it fails. Used by `main`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, ensure};

use crate::bird;
use crate::daemon::{log_in, program};
use crate::entry::{Entry, Kind, hex};
use crate::trial::Trial;
use crate::wait::now;

/// Octets of an entry that are printed when it fails.
const PRINTED_BYTES_MAX: usize = 600;
/// Lines of a log that are printed.
const PRINTED_LINES: usize = 40;

/// Who gets the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Fairway,
    Bird,
}

/// How to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runner {
    pub(crate) subject: Subject,
    pub(crate) jobs: usize,
}

impl Runner {
    /// Runs `entries`; whether all came out as they must.
    pub(crate) fn run(self, entries: &[Entry]) -> Result<bool> {
        let started = now();
        match self.subject {
            Subject::Fairway => {
                ensure!(program().exists(), "there is no {}", program().display());
            }
            Subject::Bird => bird::check_program()?,
        }
        let pairs = entries.iter().flat_map(|entry| Kind::ALL.map(|kind| (entry, kind)));
        let trials: VecDeque<_> = pairs
            .enumerate()
            .map(|(number, (entry, kind))| Trial { entry, kind, number })
            .collect();
        let count = trials.len();
        let waiting = Mutex::new(trials);
        let failed = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let next = waiting.lock().ok().and_then(|mut queue| queue.pop_front());
                        let Some(trial) = next else { break };
                        if let Some(name) = self.attempt(&trial)
                            && let Ok(mut failed) = failed.lock()
                        {
                            failed.push(name);
                        }
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap_or_default();
        let seconds = started.elapsed().as_secs_f64();
        println!("{count} trials, {} failed, {seconds:.0} s", failed.len());
        for name in &failed {
            println!("  failed: {name}");
        }
        Ok(failed.is_empty())
    }

    /// Its name when it failed.
    fn attempt(self, trial: &Trial<'_>) -> Option<String> {
        let folder = match tempfile::Builder::new().prefix("fairway-corpus-").tempdir() {
            Ok(folder) => folder,
            Err(error) => return Some(format!("{}: no folder: {error}", trial.name())),
        };
        let outcome = match self.subject {
            Subject::Fairway => trial.run(folder.path()),
            Subject::Bird => bird::compare(trial, folder.path()),
        };
        let error = outcome.err()?;
        println!("{}", story(trial, self.subject, &error, folder.path()));
        let kept: PathBuf = folder.keep();
        println!("    its folder: {}", kept.display());
        Some(trial.name())
    }
}

/// Everything that a person needs to see what went wrong.
fn story(trial: &Trial<'_>, subject: Subject, error: &anyhow::Error, folder: &Path) -> String {
    let Trial { entry, kind, .. } = trial;
    let bytes = (entry.bytes)(&trial.scene(subject));
    let shown = bytes.get(..PRINTED_BYTES_MAX).unwrap_or(&bytes);
    let log = log_in(folder);
    let lines: Vec<_> = log.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(PRINTED_LINES)..).unwrap_or_default();
    let tail: String = tail.iter().map(|line| format!("      {line}\n")).collect();
    format!(
        "FAILED {}\n    source: {}\n    sent {}: {} octets: {}\n    expected: {}\n    \
         got: {error:#}\n    log:\n{tail}",
        trial.name(),
        entry.source,
        entry.moment.name(),
        bytes.len(),
        hex(shown),
        entry.action(*kind).words(),
    )
}
