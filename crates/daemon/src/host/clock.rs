//! The wall clock, and the monotonic clock of the state machines, which counts from the start of the process.

use std::time::UNIX_EPOCH;

use fairway_ground as time;
use fairway_node::drain::Moment;
use tokio::time::Instant;

/// Reads both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Its monotonic time starts now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Moment {
        let monotonic = time::Instant::ZERO + self.start.elapsed();
        Moment { epoch_seconds: epoch_seconds(), monotonic }
    }

    /// Waits until `deadline`, forever if there is none. Cancel-safe.
    pub(crate) async fn wait_until(self, deadline: Option<time::Instant>) {
        match deadline {
            Some(deadline) => {
                let wait = deadline.since(time::Instant::ZERO);
                tokio::time::sleep_until(self.start + wait).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Unix time.
pub(crate) fn epoch_seconds() -> u64 {
    epoch_milliseconds() / 1_000
}

/// Unix time in milliseconds.
#[allow(clippy::disallowed_methods)]
pub(crate) fn epoch_milliseconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
