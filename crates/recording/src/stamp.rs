//! A moment of the daemon's clock as Unix time.

use fairway_ground::{Instant, Utc};

/// Unix time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Since 1970-01-01 00:00:00 UTC.
    pub epoch_micros: u64,
}

impl Stamp {
    /// The time at `at`, where it is `self` at `now`.
    pub(crate) fn of(self, at: Instant, now: Instant) -> Self {
        let ago = u64::try_from(now.since(at).as_micros()).unwrap_or(u64::MAX);
        Self { epoch_micros: self.epoch_micros.saturating_sub(ago) }
    }

    /// Whole seconds, as formats of 32 bits have them; they end in 2106.
    pub(crate) fn seconds(self) -> u32 {
        u32::try_from(self.epoch_micros / 1_000_000).unwrap_or(u32::MAX)
    }

    /// What is left of a second.
    pub(crate) fn micros(self) -> u32 {
        u32::try_from(self.epoch_micros % 1_000_000).unwrap_or(0)
    }

    /// `2026-11-21T22:40:01.000123Z`.
    pub(crate) fn rfc3339(self) -> String {
        let seconds = Utc(self.epoch_micros / 1_000_000).rfc3339();
        format!("{}.{:06}Z", seconds.trim_end_matches('Z'), self.micros())
    }
}
