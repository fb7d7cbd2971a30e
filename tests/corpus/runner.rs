//! How does one trial run, and what is reported of one that fails? Used by `main`.

use std::path::Path;

use anyhow::{Result, anyhow};

use crate::bird;
use crate::daemon::log_in;
use crate::entry::hex;
use crate::trial::Trial;

/// Octets of an entry that are printed when it fails.
const PRINTED_BYTES_MAX: usize = 600;
/// Lines of a log that are printed.
const PRINTED_LINES: usize = 40;

/// Which program gets the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Fairway,
    Bird,
}

/// Runs a trial in `folder`.
pub(crate) fn run(trial: &Trial<'_>, subject: Subject, folder: &Path) -> Result<()> {
    let outcome = match subject {
        Subject::Fairway => trial.run(folder),
        Subject::Bird => bird::compare(trial, folder),
    };
    outcome.map_err(|error| anyhow!("{}", story(trial, subject, &error, folder)))
}

/// Everything that a person needs to see the cause.
fn story(trial: &Trial<'_>, subject: Subject, error: &anyhow::Error, folder: &Path) -> String {
    let Trial { entry, kind, .. } = trial;
    let bytes = (entry.bytes)(&trial.scene(subject));
    let shown = bytes.get(..PRINTED_BYTES_MAX).unwrap_or(&bytes);
    let log = log_in(folder);
    let lines: Vec<_> = log.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(PRINTED_LINES)..).unwrap_or_default();
    let tail: String = tail.iter().map(|line| format!("      {line}\n")).collect();
    format!(
        "{}\n    source: {}\n    sent {}: {} octets: {}\n    expected: {}\n    \
         got: {error:#}\n    log:\n{tail}",
        trial.name(),
        entry.source,
        entry.moment.name(),
        bytes.len(),
        hex(shown),
        entry.action(*kind).words(),
    )
}
