//! Until when this machine may answer: others take its addresses over when it has not run for a while, and it
//! cannot know that it has not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Shared by the task that answers and the one that knows the members. Open for ever as long as nobody sets a
/// time.
#[derive(Debug, Clone)]
pub struct Fence {
    start: Instant,
    until_microseconds: Arc<AtomicU64>,
}

impl Default for Fence {
    fn default() -> Self {
        let until_microseconds = Arc::new(AtomicU64::new(u64::MAX));
        Self { start: Instant::now(), until_microseconds }
    }
}

impl Fence {
    /// Nothing is answered from that time on.
    pub fn close_at(&self, time: Instant) {
        let until = time.saturating_duration_since(self.start).as_micros();
        self.until_microseconds.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether this machine may answer now. Reads the clock.
    pub(super) fn is_open(&self) -> bool {
        self.start.elapsed().as_micros() < self.until_microseconds.load(Ordering::Relaxed).into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_fence_closes_at_its_time_and_opens_with_a_later_one() {
        let fence = Fence::default();
        assert!(fence.is_open());
        fence.close_at(Instant::now());
        assert!(!fence.is_open());
        fence.close_at(Instant::now() + Duration::from_secs(3_600));
        assert!(fence.is_open());
    }
}
