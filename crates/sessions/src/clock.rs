//! Converts between tokio's clock and the microseconds of the pure state machines.

use fairway_ground::Instant;

/// Reads the clock; the pure state machines never do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: tokio::time::Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }

    pub(super) fn now(self) -> Instant {
        let elapsed = self.start.elapsed().as_micros();
        Instant::from_micros(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// The time to sleep until.
    pub(super) fn at(self, instant: Instant) -> tokio::time::Instant {
        let offset = instant.since(Instant::ZERO);
        // A deadline beyond the end of the clock is never reached; a day is sufficient.
        let far = std::time::Duration::from_secs(24 * 3600);
        self.start.checked_add(offset).unwrap_or_else(|| tokio::time::Instant::now() + far)
    }
}
