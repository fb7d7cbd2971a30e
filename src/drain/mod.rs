//! Whether this node is in service, and what becomes of it when the operator takes it out.
//!
//! ```text
//!  InService ──begin──► Draining ──the wait is over──► Drained
//!      ▲                   │ begin: another wait          │
//!      └───────undo────────┴──────────────undo────────────┘
//! ```
//!
//! Pure: `now` is an argument. Knows no file, timer or route; the loop of `fairway run` asks when it
//! is to be woken, tells the backend what [`Drain::state`] says, and keeps [`DrainStatus`] on disk.

use std::fmt;
use std::time::Duration;

use fairway_sessions::backend::DrainState;
use fairway_sessions::time::Instant;
use serde::{Deserialize, Serialize};

use crate::controller::state::{FormatError, decode_document, encode_document};
use crate::utc::Utc;

/// The file of the state directory.
pub const DRAIN_FILE: &str = "drain.json";
/// The format that this build reads and writes.
const DRAIN_VERSION: u64 = 1;

/// The time for people, and the time for waiting: the first may be set while the second runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Unix time.
    pub epoch_seconds: u64,
    /// Never goes back.
    pub monotonic: Instant,
}

/// What people and programs are told of it, and what is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DrainStatus {
    /// Traffic is welcome.
    #[default]
    InService,
    /// Neighbours are asked to prefer others.
    Draining {
        /// When the operator asked for it, Unix time.
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

/// The machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drain {
    status: DrainStatus,
    /// The end of the wait, while draining.
    deadline: Option<Instant>,
}

impl Drain {
    /// Goes on with what an earlier run was told, for the rest of the wait. A clock that was set
    /// back meanwhile makes it no longer than it was.
    pub fn resume(now: Moment, status: DrainStatus) -> Self {
        let DrainStatus::Draining { since_epoch_seconds, until_epoch_seconds } = status else {
            return Self { status, deadline: None };
        };
        let whole = until_epoch_seconds.saturating_sub(since_epoch_seconds);
        let rest = until_epoch_seconds.saturating_sub(now.epoch_seconds).min(whole);
        let deadline = now.monotonic + Duration::from_secs(rest);
        let mut drain = Self { status, deadline: Some(deadline) };
        drain.tick(now);
        drain
    }

    /// Does what the operator wants.
    pub fn obey(&mut self, now: Moment, order: DrainOrder) -> DrainStep {
        match (order, self.status) {
            (DrainOrder::Undo, DrainStatus::InService)
            | (DrainOrder::Begin { .. }, DrainStatus::Drained { .. }) => DrainStep::None,
            (DrainOrder::Undo, _) => {
                *self = Self::default();
                DrainStep::Undone
            }
            (DrainOrder::Begin { wait }, DrainStatus::InService) => {
                self.wait(now, now.epoch_seconds, wait, DrainStep::Began)
            }
            (DrainOrder::Begin { wait }, DrainStatus::Draining { since_epoch_seconds, .. }) => {
                self.wait(now, since_epoch_seconds, wait, DrainStep::Moved)
            }
        }
    }

    fn wait(&mut self, now: Moment, since: u64, wait: Duration, step: DrainStep) -> DrainStep {
        let rounded_up = u64::from(wait.subsec_nanos() > 0);
        let seconds = wait.as_secs().saturating_add(rounded_up);
        self.status = DrainStatus::Draining {
            since_epoch_seconds: since,
            until_epoch_seconds: now.epoch_seconds.saturating_add(seconds),
        };
        self.deadline = Some(now.monotonic + wait);
        // A wait of nothing is over.
        match self.tick(now) {
            DrainStep::None => step,
            drained => drained,
        }
    }

    /// It may be time to withdraw.
    pub fn tick(&mut self, now: Moment) -> DrainStep {
        if self.deadline.is_none_or(|deadline| now.monotonic < deadline) {
            return DrainStep::None;
        }
        self.deadline = None;
        self.status = DrainStatus::Drained { since_epoch_seconds: now.epoch_seconds };
        DrainStep::Drained
    }

    /// When [`Drain::tick`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What neighbours are to see.
    pub fn state(&self) -> DrainState {
        self.status.state()
    }

    /// What people are told.
    pub fn status(&self) -> DrainStatus {
        self.status
    }
}

/// The text of the file.
pub fn encode(status: DrainStatus) -> String {
    // A status is an object of words and numbers, which has a JSON form.
    let body = serde_json::to_value(status).ok().and_then(|it| it.as_object().cloned());
    encode_document(DRAIN_VERSION, body.unwrap_or_default())
}

/// What [`encode`] wrote.
pub fn decode(text: &str) -> Result<DrainStatus, FormatError> {
    Ok(serde_json::from_value(decode_document(text, DRAIN_VERSION)?)?)
}

#[cfg(test)]
mod tests;
