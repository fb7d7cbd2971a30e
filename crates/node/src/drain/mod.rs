//! Whether this node is in service, and what becomes of it when somebody takes it out.
//!
//! ```text
//!  InService ──begin──► Draining ──the wait is over──► Drained
//!      ▲                   │ begin: another wait          │
//!      └───────undo────────┴──────────────undo────────────┘
//! ```
//!
//! Two may take it out, each for itself: the operator by `fairway drain`, until `--undo`, and a mark
//! of the Node, as long as it is there. The node is out of service while one of them wants it to be.
//!
//! Pure: `now` is an argument. Knows no file, timer or route; the loop asks when it is to be woken,
//! tells the backend what [`Drain::state`] says, and keeps [`Drain::record`] on disk.

mod file;

use std::fmt;
use std::time::Duration;

use fairway_ground::{Instant, Utc};
use fairway_seam::DrainState;
use serde::{Deserialize, Serialize};

pub use file::{DRAIN_FILE, decode, encode};

/// The time for people, and the time for waiting: the first may be set while the second runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Unix time.
    pub epoch_seconds: u64,
    /// Never goes back.
    pub monotonic: Instant,
}

/// What people and programs are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DrainStatus {
    /// Traffic is welcome.
    #[default]
    InService,
    /// Neighbours are asked to prefer others.
    Draining {
        /// When that was asked for, Unix time.
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
    /// What neighbours are to see.
    pub fn state(self) -> DrainState {
        match self {
            Self::InService => DrainState::InService,
            Self::Draining { .. } => DrainState::Draining,
            Self::Drained { .. } => DrainState::Drained,
        }
    }

    /// What comes of two who want this of one node: whoever waits less decides.
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

/// What is on disk: how far each of the two has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainRecord {
    /// By order of the operator.
    #[serde(flatten)]
    pub command: DrainStatus,
    /// By the mark of the Node.
    #[serde(default, skip_serializing_if = "DrainStatus::is_in_service")]
    pub mark: DrainStatus,
}

/// What has just changed, for the log and for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DrainStep {
    /// Nothing: it is so already.
    None,
    /// Neighbours are asked to prefer others from now on.
    Began,
    /// The wait ends at another time than before.
    Moved,
    /// Everything is withdrawn.
    Drained,
    /// Everything is announced as before.
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

/// What the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainOrder {
    /// Out of service: everything is withdrawn after the wait.
    Begin {
        /// How long neighbours have to find other ways.
        wait: Duration,
    },
    /// Back into service.
    Undo,
}

/// What one of the two wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Claim {
    status: DrainStatus,
    /// The end of the wait, while draining.
    deadline: Option<Instant>,
}

impl Claim {
    /// Goes on for the rest of the wait. A clock that was set back makes it no longer than it was.
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
            // Nothing is announced again to be withdrawn again.
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

/// The machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drain {
    command: Claim,
    mark: Claim,
    /// The wait that the mark asked for last, in this run.
    marked_wait: Option<Duration>,
}

impl Drain {
    /// Goes on with what an earlier run was told, for the rest of the wait.
    pub fn resume(now: Moment, record: DrainRecord) -> Self {
        let claim = |status| Claim::resume(now, status);
        let (command, mark) = (claim(record.command), claim(record.mark));
        let mut drain = Self { command, mark, marked_wait: None };
        drain.tick(now);
        drain
    }

    /// Does what the operator wants.
    pub fn obey(&mut self, now: Moment, order: DrainOrder) -> DrainStep {
        let before = self.status();
        match order {
            DrainOrder::Begin { wait } => self.command.begin(now, wait),
            DrainOrder::Undo => self.command = Claim::default(),
        }
        self.settle(now, before)
    }

    /// The Node is known, and marked with this wait or not at all. A mark that is there already when
    /// a run begins goes on where the run before left it.
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

    /// It may be time to withdraw.
    pub fn tick(&mut self, now: Moment) -> DrainStep {
        self.settle(now, self.status())
    }

    /// What is withdrawn stays so until nobody wants it any more, whatever waits are left.
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

    /// What neighbours are to see.
    pub fn state(&self) -> DrainState {
        self.status().state()
    }

    /// What people are told.
    pub fn status(&self) -> DrainStatus {
        self.command.status.and(self.mark.status)
    }

    /// What the next run is to know.
    pub fn record(&self) -> DrainRecord {
        DrainRecord { command: self.command.status, mark: self.mark.status }
    }
}

#[cfg(test)]
mod tests;
