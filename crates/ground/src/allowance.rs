//! How often may something happen that others cause: a log line, a connection that is accepted?
//!
//! Some at once, and then one per interval. Knows neither logs nor sockets. Called where neighbours and files are
//! logged, and where connections are accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Bound, Instant};

/// What is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// How many at once.
    pub burst: u32,
    /// After that, one for each of these.
    pub interval: Duration,
}

/// What is left of an allowance.
#[derive(Debug, Clone, Copy)]
struct Left {
    count: u32,
    /// When one was added last.
    since: Instant,
    left_out: u64,
}

/// What is left for each of several causes. Forgets those that have used nothing for a while.
#[derive(Debug)]
pub struct Allowances<Cause> {
    allowance: Allowance,
    /// Counts what is left out.
    bound: Bound,
    causes: BTreeMap<Cause, Left>,
}

/// Causes that are remembered: as many as a machine has neighbours, and strangers that share a range.
const CAUSES_MAX: usize = 4096;

impl<Cause: Ord> Allowances<Cause> {
    /// Nothing is used yet.
    pub fn new(allowance: Allowance, bound: Bound) -> Self {
        Self { allowance, bound, causes: BTreeMap::new() }
    }

    /// Whether it may happen now: with how often it was left out since the last time. `None` if not.
    pub fn take(&mut self, now: Instant, cause: Cause) -> Option<u64> {
        if self.causes.len() >= CAUSES_MAX {
            let allowance = self.allowance;
            self.causes.retain(|_, it| !it.is_whole(now, allowance));
        }
        // All of them are busy: a new one is not held back by the others.
        if self.causes.len() >= CAUSES_MAX && !self.causes.contains_key(&cause) {
            return Some(0);
        }
        let Allowance { burst, interval } = self.allowance;
        let fresh = Left { count: burst, since: now, left_out: 0 };
        let left = self.causes.entry(cause).or_insert(fresh);
        left.grow(now, self.allowance);
        if let Some(count) = left.count.checked_sub(1) {
            if left.count == burst {
                left.since = now;
            }
            left.count = count;
            return Some(std::mem::take(&mut left.left_out));
        }
        debug_assert!(!interval.is_zero(), "an allowance grows");
        left.left_out = left.left_out.saturating_add(1);
        self.bound.count();
        None
    }
}

impl Left {
    fn grow(&mut self, now: Instant, Allowance { burst, interval }: Allowance) {
        while self.count < burst && now.since(self.since) >= interval {
            self.count = self.count.saturating_add(1);
            self.since = self.since + interval;
        }
    }

    fn is_whole(mut self, now: Instant, allowance: Allowance) -> bool {
        self.grow(now, allowance);
        self.count >= allowance.burst
    }
}

/// A count, unless it is zero: what was left out is logged only if something was.
pub fn nonzero(count: u64) -> Option<u64> {
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance = Allowance { burst: 3, interval: Duration::from_secs(10) };

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn some_at_once_and_then_one_per_interval_with_a_count_of_the_others() {
        let mut allowances = Allowances::new(ALLOWANCE, Bound::LogLine);
        let at_once: Vec<_> = (0..6).map(|_| allowances.take(at(100), 'a')).collect();
        assert_eq!(at_once, [Some(0), Some(0), Some(0), None, None, None]);
        assert_eq!(allowances.take(at(100), 'b'), Some(0), "each has its own");
        assert_eq!(allowances.take(at(109), 'a'), None);
        assert_eq!(allowances.take(at(110), 'a'), Some(4));
        assert_eq!(allowances.take(at(110), 'a'), None);
        let later: Vec<_> = (0..4).map(|_| allowances.take(at(1000), 'a')).collect();
        assert_eq!(
            later,
            [Some(1), Some(0), Some(0), None],
            "what was not used is kept to the burst"
        );
    }

    #[test]
    fn causes_are_bounded() {
        let mut allowances = Allowances::new(ALLOWANCE, Bound::LogLine);
        for cause in 0..3 * CAUSES_MAX {
            assert_eq!(allowances.take(at(1), cause), Some(0));
        }
        assert!(allowances.causes.len() <= CAUSES_MAX);
        assert_eq!(allowances.take(at(100), usize::MAX), Some(0));
        assert_eq!(allowances.causes.len(), 1);
    }
}
