//! A rate limit for requests: a burst, and then a number per second.
//!
//! Answers whether one more may be sent, and when to ask again. Knows neither the requests nor their results.
//! Everything that writes many objects or posts Events owns one.

use std::time::Duration;

use fairway_ground::Instant;

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The cost of one request.
    interval: Duration,
    /// The size of the burst.
    whole: Duration,
    /// When the whole burst is available again.
    full_at: Instant,
}

impl Budget {
    /// A full bucket. Both arguments are at least 1.
    pub fn new(burst: u32, per_second: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self { interval, whole: interval * burst.max(1), full_at: Instant::ZERO }
    }

    /// Takes one, if one is left.
    pub fn take(&mut self, now: Instant) -> bool {
        let may = self.next_at(now) <= now;
        if may {
            self.full_at = self.full_at.max(now) + self.interval;
        }
        may
    }

    /// When the next one is available: `now`, or later.
    pub fn next_at(&self, now: Instant) -> Instant {
        let spent = (self.full_at.max(now) + self.interval).since(now);
        now + spent.saturating_sub(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_micros(milliseconds * 1_000)
    }

    #[test]
    fn what_is_spent_comes_back_with_time_and_never_more_than_that() {
        let mut budget = Budget::new(3, 10);
        let mut spend = |milliseconds| {
            let now = at(milliseconds);
            (0..10).take_while(|_| budget.take(now)).count()
        };
        assert_eq!(spend(5_000), 3, "it was full for long, and is no fuller for that");
        assert_eq!((spend(5_099), spend(5_100), spend(5_350)), (0, 1, 2));
        assert_eq!(spend(9_000), 3);
    }

    #[test]
    fn it_says_when_to_ask_again() {
        let mut budget = Budget::new(2, 4);
        assert_eq!(budget.next_at(at(70)), at(70));
        assert!(budget.take(at(70)) && budget.take(at(70)));
        assert_eq!(budget.next_at(at(100)), at(320));
        assert!(!budget.take(at(319)) && budget.take(at(320)));
    }
}
