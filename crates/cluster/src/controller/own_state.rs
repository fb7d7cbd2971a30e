//! The ConfigurationState of the controller: when to write it.
//!
//! Returns the next write. The object is not watched, so it is written again by each new leader, and now and
//! then; the same content again is not a change for the API server. The controller owns one.

use std::time::Duration;

use fairway_ground::Instant;
use fairway_model::ObjectName;

use crate::configuration_state::{Component, configuration_object, configuration_status};
use crate::lease::WRITE_TIMEOUT;
use crate::write::{ObjectWrite, OwnPod, WriteHow, WrittenKind};
use crate::writes::WriteReply;

/// How long a deleted object stays missing at most.
const REPAIR_INTERVAL: Duration = Duration::from_secs(600);
/// The pause between two writes, even while findings come and go.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after a failed write.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// A write in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The object without its status.
    Object,
    /// The status, with this summary.
    Status(String),
}

/// The state of the ConfigurationState.
#[derive(Debug, Clone)]
pub(super) struct OwnState {
    namespace: String,
    pod: Option<OwnPod>,
    /// The faults, and since when, in seconds since 1970.
    summary: (String, u64),
    is_there: bool,
    /// The content of the status.
    said: Option<String>,
    in_flight: Option<Step>,
    next_at: Instant,
}

impl OwnState {
    /// Nothing is written yet.
    pub(super) fn new(namespace: String, pod: Option<OwnPod>) -> Self {
        Self {
            namespace,
            pod,
            summary: (String::new(), 0),
            is_there: false,
            said: None,
            in_flight: None,
            next_at: Instant::ZERO,
        }
    }

    /// Sets the current faults; the previous leader may have written others.
    pub(super) fn begin_tenure(&mut self, now: Instant, summary: String, epoch_seconds: u64) {
        self.summary = (summary, epoch_seconds);
        (self.is_there, self.said, self.next_at) = (false, None, now);
    }

    /// Sets the current faults.
    pub(super) fn set(&mut self, now: Instant, summary: String, epoch_seconds: u64) {
        if summary != self.summary.0 {
            self.summary = (summary, epoch_seconds);
            self.next_at = self.next_at.min(now + PAUSE);
        }
    }

    /// Handles the result of a write.
    pub(super) fn end(&mut self, now: Instant, reply: WriteReply) {
        let step = self.in_flight.take();
        self.next_at = match (step, reply) {
            (None, _) => return,
            (Some(Step::Object), WriteReply::Done) => {
                self.is_there = true;
                now
            }
            (Some(Step::Status(said)), WriteReply::Done) => {
                let is_all = said == self.summary.0;
                self.said = Some(said);
                now + if is_all { REPAIR_INTERVAL } else { PAUSE }
            }
            (Some(_), WriteReply::Missing) => {
                self.is_there = false;
                now + PAUSE
            }
            (Some(_), WriteReply::Conflict | WriteReply::Failed) => now + RETRY_INTERVAL,
        };
    }

    /// When the next write is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.in_flight.is_none().then_some(self.next_at)
    }

    /// The next write.
    pub(super) fn next_write(&mut self, now: Instant) -> Option<ObjectWrite> {
        if self.in_flight.is_some() || now < self.next_at {
            return None;
        }
        let (summary, since) = &self.summary;
        let is_said = self.said.as_ref() == Some(summary);
        let (component, namespace) = (Component::Controller, self.namespace.as_str());
        let (step, how) = if !self.is_there || is_said {
            // The content is complete, so this is the regular repeat.
            self.said = None;
            let object = configuration_object(&component, namespace, self.pod.as_ref());
            (Step::Object, WriteHow::Apply(object))
        } else {
            let status = configuration_status(&component, namespace, summary, *since);
            (Step::Status(summary.clone()), WriteHow::ApplyStatus(status))
        };
        self.in_flight = Some(step);
        let name = ObjectName::new(namespace, component.object_name());
        let (kind, not_after) = (WrittenKind::ConfigurationState, now + WRITE_TIMEOUT);
        Some(ObjectWrite { kind, name, how, not_after })
    }
}
