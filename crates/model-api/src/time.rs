//! Timestamps of objects: microseconds since 1970, written as RFC 3339.

use fairway_ground::Utc;

/// Microseconds since 1970-01-01T00:00:00Z. The caller's clock, real or virtual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// `micros` microseconds after 1970.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The same, `seconds` later; saturates at the end of time.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }

    /// As in `metadata.creationTimestamp`: UTC, whole seconds (`2026-11-22T01:02:03Z`).
    pub fn rfc3339(self) -> String {
        Utc(self.0 / 1_000_000).rfc3339()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds: u64| Timestamp::default().plus_seconds(seconds).rfc3339();
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_795_312_390), "2026-11-22T01:53:10Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}
