//! What the backend hands to the core: the desired state, and when it changed.
//!
//! Knows no neighbour. Called by the backend and by the core task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time;

use fairway_ground::Instant;
use fairway_seam::Desired;

/// The desired state on its way to the core.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    desired: Arc<Desired>,
    /// When the oldest change happened that has not been handed to the core.
    changed_at: Option<time::Instant>,
    is_taken: AtomicBool,
}

impl Handed {
    /// Replaces the state that waits, and keeps its age if the core has not taken it.
    pub(crate) fn replace(&mut self, desired: Desired) {
        let waiting = self.changed_at.filter(|_| !self.is_taken.load(Ordering::Relaxed));
        let age = desired.change_age;
        let changed_at = age.and_then(|age| time::Instant::now().checked_sub(age));
        *self = Self {
            desired: Arc::new(desired),
            changed_at: waiting.into_iter().chain(changed_at).min(),
            is_taken: AtomicBool::new(false),
        };
    }

    /// For the core.
    pub(super) fn take(&self) -> (Arc<Desired>, Option<time::Instant>) {
        // The channel's lock orders this with `replace`.
        self.is_taken.store(true, Ordering::Relaxed);
        (Arc::clone(&self.desired), self.changed_at)
    }
}

/// When `at` was, where it is `now`.
pub(super) fn instant(now: Instant, at: time::Instant) -> Instant {
    let ago = u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX);
    Instant::from_micros(now.as_micros().saturating_sub(ago))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Something changed so many minutes ago.
    fn changed(minutes: u64) -> Desired {
        let change_age = Some(Duration::from_secs(minutes * 60));
        Desired { change_age, ..Desired::default() }
    }

    #[tokio::test]
    async fn a_change_that_the_core_had_no_time_for_keeps_its_age() {
        let minutes = |handed: &Handed| handed.take().1.map(|at| at.elapsed().as_secs() / 60);
        let mut handed = Handed::default();
        handed.replace(changed(5));
        handed.replace(changed(1));
        handed.replace(Desired::default());
        assert_eq!(minutes(&handed), Some(5));
        handed.replace(changed(2));
        assert_eq!(minutes(&handed), Some(2), "the others were taken");
        handed.replace(Desired::default());
        assert_eq!(minutes(&handed), None, "and so was this, and nothing changed since");
    }
}
