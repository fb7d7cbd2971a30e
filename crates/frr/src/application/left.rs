//! Which lines does zebra keep although mgmtd, which gave them to it, has removed them?
//!
//! 10.3's mgmtd drops a commit when a connection to it closes, and may have told zebra of it or not. zebra knows no
//! command to remove such a line, so mgmtd is sent the line and then its removal once more. Called by
//! [`super::recording`].

use std::collections::BTreeMap;
use std::time::Duration;

use super::recording::shows;
use super::{LOOK_INTERVAL, Now};
use crate::configuration::{Configuration, without_secrets};
use crate::daemon::Daemon;
use crate::record::{EntryKey, Record};

/// How much later than mgmtd zebra may be.
const LATE_MAX: Duration = Duration::from_secs(1);
/// How often a line is sent at this interval before it is a fault, and is sent with each look only.
const ATTEMPTS_MAX: u8 = 10;

/// The lines.
#[derive(Debug, Default)]
pub(super) struct Left(BTreeMap<EntryKey, Attempts>);

#[derive(Debug)]
struct Attempts {
    count: u8,
    next_at: Now,
    is_due: bool,
}

impl Left {
    /// Compares what the daemons show.
    pub(super) fn read(
        &mut self,
        now: Now,
        record: &Record,
        running: &BTreeMap<Daemon, Configuration>,
    ) {
        self.0.retain(|key, _| record.0.contains_key(key));
        for key in record.0.keys().filter(|key| is_left(key, record, running)) {
            let next_at = now.saturating_add(LATE_MAX);
            let new = || Attempts { count: 0, next_at, is_due: false };
            let attempts = self.0.entry(key.clone()).or_insert_with(new);
            attempts.is_due = now >= attempts.next_at;
        }
    }

    /// Whether zebra keeps a line; then, whether mgmtd is to be sent it now.
    pub(super) fn has(
        &self,
        key: &EntryKey,
        record: &Record,
        running: &BTreeMap<Daemon, Configuration>,
    ) -> Option<bool> {
        self.0.get(key).filter(|_| is_left(key, record, running)).map(|it| it.is_due)
    }

    /// When zebra is to be looked at again.
    pub(super) fn next_look(
        &self,
        record: &Record,
        running: &BTreeMap<Daemon, Configuration>,
    ) -> Option<Now> {
        let waiting = self.0.iter().filter(|(_, it)| !it.is_due);
        let waiting = waiting.filter(|(key, _)| is_left(key, record, running));
        waiting.map(|(_, it)| it.next_at).min()
    }

    /// A daemon accepted a line.
    pub(super) fn added(&mut self, now: Now, key: &EntryKey) {
        if let Some(attempts) = self.0.get_mut(key) {
            attempts.count = attempts.count.saturating_add(1);
            let wait = if attempts.count < ATTEMPTS_MAX { LATE_MAX } else { LOOK_INTERVAL };
            (attempts.next_at, attempts.is_due) = (now.saturating_add(wait), false);
        }
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = String> {
        let stubborn = self.0.iter().filter(|(_, it)| it.count >= ATTEMPTS_MAX);
        stubborn.map(|((_, (_, line)), _)| {
            let line = without_secrets(line);
            format!("FRR's zebra still has `{line}`, which FRR's mgmtd removed; restart FRR")
        })
    }
}

fn is_left(
    (daemon, place): &EntryKey,
    record: &Record,
    running: &BTreeMap<Daemon, Configuration>,
) -> bool {
    let shown = |daemon| running.get(&daemon).is_some_and(|it| shows(it, place));
    *daemon == Daemon::Mgmtd
        && shown(Daemon::Zebra)
        && !shown(Daemon::Mgmtd)
        && !record.contains(Daemon::Zebra, place)
}
