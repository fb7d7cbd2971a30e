//! How long something took, as a histogram: how often up to which bound, and the sum.
//!
//! Knows no clock. The core task notes, metrics show.

use std::time::Duration;

/// The bounds, in microseconds: from a fraction of the usual to what somebody calls to ask about.
const BOUNDS_MICROS: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// Times that were noted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latencies {
    /// How many were above the bound before and not above this one.
    counts: [u64; BOUNDS_MICROS.len()],
    count: u64,
    sum: Duration,
}

impl Latencies {
    /// Something took so long.
    pub fn note(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut bounds = BOUNDS_MICROS.iter().zip(&mut self.counts);
        if let Some((_, count)) = bounds.find(|(bound, _)| micros <= **bound) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(time);
    }

    /// How many took at most this long, for each bound; the last, without a bound, are all.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = BOUNDS_MICROS.iter().zip(&self.counts).scan(0u64, |sum, (bound, count)| {
            *sum = sum.saturating_add(*count);
            Some((Some(Duration::from_micros(*bound)), *sum))
        });
        bounds.chain([(None, self.count)])
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How long they took together.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_for_its_bound_and_all_above() {
        let mut latencies = Latencies::default();
        for micros in [0, 250, 251, 10_000_000, 10_000_001] {
            latencies.note(Duration::from_micros(micros));
        }
        let counts: Vec<u64> = latencies.cumulative().map(|(_, count)| count).collect();
        assert_eq!((counts[0], counts[1], counts[13], counts[14]), (2, 3, 3, 4));
        assert_eq!((counts[15], latencies.count()), (5, 5));
        assert_eq!(latencies.sum(), Duration::from_micros(20_000_502));
    }
}
