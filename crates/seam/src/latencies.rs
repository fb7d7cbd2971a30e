//! A histogram of durations: the number up to each bound, and the sum.
//!
//! Knows no clock. Filled by the core task, shown by metrics.

use std::time::Duration;

/// The bounds, in microseconds: from a fraction of the usual to what an operator would report as a problem.
const BOUNDS_MICROS: [u64; 15] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// Recorded durations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latencies {
    /// The number of durations above the previous bound and not above this one.
    counts: [u64; BOUNDS_MICROS.len()],
    count: u64,
    sum: Duration,
}

impl Latencies {
    /// Records a duration.
    pub fn note(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut bounds = BOUNDS_MICROS.iter().zip(&mut self.counts);
        if let Some((_, count)) = bounds.find(|(bound, _)| micros <= **bound) {
            *count = count.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(time);
    }

    /// The number of durations up to each bound; the last, without a bound, is the total.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = BOUNDS_MICROS.iter().zip(&self.counts).scan(0u64, |sum, (bound, count)| {
            *sum = sum.saturating_add(*count);
            Some((Some(Duration::from_micros(*bound)), *sum))
        });
        bounds.chain([(None, self.count)])
    }

    /// The number of recorded durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations.
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
