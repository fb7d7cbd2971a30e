//! When an object may be written: never twice over the same version, never in a hot loop.
//!
//! Answers whether a write may be sent now, and when to ask again. Knows neither its content nor its reason.
//! The controller owns one for Services and one for pools.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fairway_ground::Instant;
use fairway_model::ObjectName;

/// How often one Service is written in [`WINDOW`] at most, even against another writer.
pub const WRITES_MAX: usize = 10;
/// The time in which writes are counted.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Writes in progress at a time: enough to fill a connection, without overloading the API server.
pub(super) const IN_FLIGHT_MAX: usize = 32;
/// The first pause after a write without an answer; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteReply {
    /// Written.
    Done,
    /// 409: the object has changed, and the watch brings the new version.
    Conflict,
    /// 404.
    Missing,
    /// No answer, or a refusal. It may have been written.
    Failed,
}

/// Whether a write may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    Now,
    /// Not before.
    At(Instant),
    /// Not before a new version of the object is received, or another write is answered.
    Later,
}

#[derive(Debug, Clone, Default)]
struct History {
    is_in_flight: bool,
    /// The version that was overwritten by this or another writer.
    spent: Option<String>,
    /// The version of the write in progress.
    version: String,
    failures: u32,
    not_before: Instant,
    recent: VecDeque<Instant>,
    /// The object was deleted while a write was in progress.
    is_gone: bool,
}

/// The writes of one process, of one kind.
#[derive(Debug, Clone)]
pub(super) struct Writes {
    /// How often one object is written in [`WINDOW`] at most.
    writes_max: usize,
    histories: BTreeMap<ObjectName, History>,
    in_flight: usize,
}

impl Writes {
    /// None yet; `writes_max`, at least 1, is how often one object is written in [`WINDOW`] at most.
    pub(super) fn new(writes_max: usize) -> Self {
        Self { writes_max, histories: BTreeMap::new(), in_flight: 0 }
    }

    /// Whether no other write may be sent before one is answered.
    pub(super) fn are_enough(&self) -> bool {
        self.in_flight >= IN_FLIGHT_MAX
    }

    /// Whether `name`, received in `version`, may be written.
    pub(super) fn may_write(&self, now: Instant, name: &ObjectName, version: &str) -> Permission {
        let Some(history) = self.histories.get(name) else { return Permission::Now };
        if history.is_in_flight || history.spent.as_deref() == Some(version) {
            return Permission::Later;
        }
        let oldest = history.recent.iter().rev().nth(self.writes_max.saturating_sub(1));
        let at = oldest.map_or(history.not_before, |it| history.not_before.max(*it + WINDOW));
        if at <= now { Permission::Now } else { Permission::At(at) }
    }

    /// A write is sent.
    pub(super) fn begin(&mut self, now: Instant, name: &ObjectName, version: &str) {
        let history = self.histories.entry(name.clone()).or_default();
        history.is_in_flight = true;
        version.clone_into(&mut history.version);
        history.recent.push_back(now);
        while history.recent.len() > self.writes_max {
            history.recent.pop_front();
        }
        self.in_flight = self.in_flight.saturating_add(1);
    }

    /// A write is answered.
    pub(super) fn end(&mut self, now: Instant, name: &ObjectName, reply: WriteReply) {
        let Some(history) = self.histories.get_mut(name).filter(|it| it.is_in_flight) else {
            return;
        };
        self.in_flight = self.in_flight.saturating_sub(1);
        history.is_in_flight = false;
        if history.is_gone {
            self.histories.remove(name);
            return;
        }
        match reply {
            WriteReply::Done | WriteReply::Conflict | WriteReply::Missing => {
                history.failures = 0;
                history.spent = Some(std::mem::take(&mut history.version));
            }
            WriteReply::Failed => {
                let pause = PAUSE_MIN.saturating_mul(1 << history.failures.min(6)).min(PAUSE_MAX);
                history.failures = history.failures.saturating_add(1);
                history.not_before = now + pause;
            }
        }
    }

    /// The object was deleted.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        match self.histories.get_mut(name) {
            Some(history) if history.is_in_flight => history.is_gone = true,
            _ => {
                self.histories.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_gone_nothing_is_remembered_once_its_write_is_answered() {
        let (now, name) = (Instant::ZERO, ObjectName::new("default", "web"));
        let mut writes = Writes::new(WRITES_MAX);
        writes.begin(now, &name, "1");
        writes.forget(&name);
        assert_eq!(writes.may_write(now, &name, "2"), Permission::Later, "one at a time");
        writes.end(now, &name, WriteReply::Missing);
        assert!(writes.histories.is_empty() && writes.in_flight == 0);
        assert_eq!(writes.may_write(now, &name, "2"), Permission::Now);
    }
}
