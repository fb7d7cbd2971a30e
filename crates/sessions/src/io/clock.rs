//! Between tokio's clock and the microseconds of the pure machines.

use crate::time::Instant;

/// Reads the clock; the pure machines never do.
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

    /// The moment to sleep until.
    pub(super) fn at(self, instant: Instant) -> tokio::time::Instant {
        let offset = instant.since(Instant::ZERO);
        // A deadline past the end of the clock never comes; a day is as good.
        let far = std::time::Duration::from_secs(24 * 3600);
        self.start.checked_add(offset).unwrap_or_else(|| tokio::time::Instant::now() + far)
    }
}
