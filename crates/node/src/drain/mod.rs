//! Whether this node is in service, and how it is taken out of service.
//!
//! ```text
//!  InService ──begin──► Draining ──the wait is over──► Drained
//!      ▲                   │ begin: another wait          │
//!      └───────undo────────┴──────────────undo────────────┘
//! ```
//!
//! Two sources may drain it, independently: the operator with `fairway drain`, until `--undo`, and a
//! mark on the Node, as long as it exists. The node is out of service while either of them drains it.
//!
//! Pure: `now` is an argument. Knows no file, timer or route; the loop asks for the next deadline,
//! passes [`Drain::state`] to the backend, and keeps [`Drain::record`] on disk.

mod file;

use std::fmt;
use std::time::Duration;

use fairway_ground::{Instant, Utc};
use fairway_seam::DrainState;
use serde::{Deserialize, Serialize};

pub use file::{DRAIN_FILE, decode, encode};

/// Wall-clock time and monotonic time: the first may be set while the second runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Unix time.
    pub epoch_seconds: u64,
    /// Never goes back.
    pub monotonic: Instant,
}

/// The status for people and programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DrainStatus {
    /// Traffic is accepted.
    #[default]
    InService,
    /// Neighbours are asked to prefer other paths.
    Draining {
        /// When that began, Unix time.
        since_epoch_seconds: u64,
        /// When everything is withdrawn.
        until_epoch_seconds: u64,
    },
    /// Nothing is announced.
    Drained {
        /// Since when, Unix time.
        since_epoch_seconds: u64,
    },
}

impl DrainStatus {
    /// The state that neighbours see.
    pub fn state(self) -> DrainState {
        match self {
            Self::InService => DrainState::InService,
            Self::Draining { .. } => DrainState::Draining,
            Self::Drained { .. } => DrainState::Drained,
        }
    }

    /// The combination of two drains of one node: the shorter wait wins.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::InService, it) | (it, Self::InService) => it,
            (
                Self::Draining { since_epoch_seconds: since, until_epoch_seconds: until },
                Self::Draining { since_epoch_seconds, until_epoch_seconds },
            ) => Self::Draining {
                since_epoch_seconds: since.min(since_epoch_seconds),
                until_epoch_seconds: until.min(until_epoch_seconds),
            },
            (
                Self::Drained { since_epoch_seconds: since },
                Self::Drained { since_epoch_seconds },
            ) => Self::Drained { since_epoch_seconds: since.min(since_epoch_seconds) },
            (it @ Self::Drained { .. }, _) | (_, it @ Self::Drained { .. }) => it,
        }
    }

    fn is_in_service(&self) -> bool {
        *self == Self::InService
    }
}

impl fmt::Display for DrainStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InService => f.write_str("this node is in service"),
            Self::Draining { since_epoch_seconds, until_epoch_seconds } => write!(
                f,
                "this node is draining since {}, until {}",
                Utc(since_epoch_seconds),
                Utc(until_epoch_seconds)
            ),
            Self::Drained { since_epoch_seconds } => {
                write!(f, "this node is drained since {}", Utc(since_epoch_seconds))
            }
        }
    }
}

/// The content of the file: the progress of both sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainRecord {
    /// The drain by the operator.
    #[serde(flatten)]
    pub command: DrainStatus,
    /// The drain by the mark of the Node.
    #[serde(default, skip_serializing_if = "DrainStatus::is_in_service")]
    pub mark: DrainStatus,
}

/// What has just changed, for the log and for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DrainStep {
    /// Nothing changed.
    None,
    /// Neighbours are asked to prefer other paths from now on.
    Began,
    /// The wait ends at a different time.
    Moved,
    /// Everything is withdrawn.
    Drained,
    /// Everything is announced again.
    Undone,
}

impl DrainStep {
    fn between(before: DrainStatus, after: DrainStatus) -> Self {
        use DrainStatus::{Drained, Draining, InService};
        match (before, after) {
            (
                Draining { until_epoch_seconds: before, .. },
                Draining { until_epoch_seconds: after, .. },
            ) if before != after => Self::Moved,
            (InService, InService) | (Draining { .. }, Draining { .. }) => Self::None,
            (Drained { .. }, Drained { .. }) => Self::None,
            (_, InService) => Self::Undone,
            (_, Draining { .. }) => Self::Began,
            (_, Drained { .. }) => Self::Drained,
        }
    }
}

/// The operator's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainOrder {
    /// Out of service: everything is withdrawn after the wait.
    Begin {
        /// How long neighbours have to find other paths.
        wait: Duration,
    },
    /// Back into service.
    Undo,
}

/// The drain of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Claim {
    status: DrainStatus,
    /// The end of the wait, while draining.
    deadline: Option<Instant>,
}

impl Claim {
    /// Resumes for the rest of the wait. A clock that was set back does not extend it.
    fn resume(now: Moment, status: DrainStatus) -> Self {
        let DrainStatus::Draining { since_epoch_seconds, until_epoch_seconds } = status else {
            return Self { status, deadline: None };
        };
        let whole = until_epoch_seconds.saturating_sub(since_epoch_seconds);
        let rest = until_epoch_seconds.saturating_sub(now.epoch_seconds).min(whole);
        Self { status, deadline: Some(now.monotonic + Duration::from_secs(rest)) }
    }

    fn begin(&mut self, now: Moment, wait: Duration) {
        let since = match self.status {
            DrainStatus::InService => now.epoch_seconds,
            DrainStatus::Draining { since_epoch_seconds, .. } => since_epoch_seconds,
            // Routes are not announced just to be withdrawn again.
            DrainStatus::Drained { .. } => return,
        };
        let rounded_up = u64::from(wait.subsec_nanos() > 0);
        let seconds = wait.as_secs().saturating_add(rounded_up);
        self.status = DrainStatus::Draining {
            since_epoch_seconds: since,
            until_epoch_seconds: now.epoch_seconds.saturating_add(seconds),
        };
        self.deadline = Some(now.monotonic + wait);
    }

    fn is_over(&self, now: Moment) -> bool {
        match self.status {
            DrainStatus::InService => false,
            DrainStatus::Draining { .. } => self.deadline.is_none_or(|it| it <= now.monotonic),
            DrainStatus::Drained { .. } => true,
        }
    }

    fn complete(&mut self, now: Moment) {
        if let DrainStatus::Draining { .. } = self.status {
            let status = DrainStatus::Drained { since_epoch_seconds: now.epoch_seconds };
            *self = Self { status, deadline: None };
        }
    }
}

/// The state machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drain {
    command: Claim,
    mark: Claim,
    /// The last wait of the mark, in this run.
    marked_wait: Option<Duration>,
}

impl Drain {
    /// Resumes the drains of an earlier run, for the rest of the wait.
    pub fn resume(now: Moment, record: DrainRecord) -> Self {
        let claim = |status| Claim::resume(now, status);
        let (command, mark) = (claim(record.command), claim(record.mark));
        let mut drain = Self { command, mark, marked_wait: None };
        drain.tick(now);
        drain
    }

    /// Executes the order of the operator.
    pub fn obey(&mut self, now: Moment, order: DrainOrder) -> DrainStep {
        let before = self.status();
        match order {
            DrainOrder::Begin { wait } => self.command.begin(now, wait),
            DrainOrder::Undo => self.command = Claim::default(),
        }
        self.settle(now, before)
    }

    /// The Node is known, with a mark that has this wait or without one. A mark that exists when a run
    /// begins resumes where the earlier run stopped.
    pub fn follow_mark(&mut self, now: Moment, wait: Option<Duration>) -> DrainStep {
        let before = self.status();
        let is_resumed = self.marked_wait.is_none() && !self.mark.status.is_in_service();
        match wait {
            Some(wait) if self.marked_wait != Some(wait) && !is_resumed => {
                self.mark.begin(now, wait);
            }
            Some(_) => {}
            None => self.mark = Claim::default(),
        }
        self.marked_wait = wait;
        self.settle(now, before)
    }

    /// The deadline may have passed: withdraws if so.
    pub fn tick(&mut self, now: Moment) -> DrainStep {
        self.settle(now, self.status())
    }

    /// Withdrawn routes stay withdrawn until no source drains the node, whatever waits are left.
    fn settle(&mut self, now: Moment, before: DrainStatus) -> DrainStep {
        if self.command.is_over(now) || self.mark.is_over(now) {
            self.command.complete(now);
            self.mark.complete(now);
        }
        DrainStep::between(before, self.status())
    }

    /// When [`Drain::tick`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.command.deadline.into_iter().chain(self.mark.deadline).min()
    }

    /// The state that neighbours see.
    pub fn state(&self) -> DrainState {
        self.status().state()
    }

    /// The status for people.
    pub fn status(&self) -> DrainStatus {
        self.command.status.and(self.mark.status)
    }

    /// The record for the next run.
    pub fn record(&self) -> DrainRecord {
        DrainRecord { command: self.command.status, mark: self.mark.status }
    }
}

#[cfg(test)]
mod tests;
