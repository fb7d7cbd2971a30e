//! How long to wait before the next attempt: longer after each failure, never zero.

use std::time::Duration;

use fairway_ground::Rng;

/// The first wait, and the unit that doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait after sessions that were refused or broke.
const IDLE_HOLD_MAX: Duration = Duration::from_secs(30);
/// A session that lasted this long proves that the earlier fault is over.
const STABLE: Duration = Duration::from_secs(60);

/// Counts failures of one neighbour. TCP that does not come up and sessions that break are
/// counted apart: a router that was away for an hour deserves a quick second try.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    connects_failed: u32,
    sessions_failed: u32,
}

impl Backoff {
    /// ConnectRetryTime: 1 s, doubling up to `limit`, with jitter (RFC 4271 §8, §10).
    pub(super) fn after_connect_failed(&mut self, limit: Duration, rng: &mut Rng) -> Duration {
        let wait = doubled(self.connects_failed).min(limit);
        self.connects_failed = self.connects_failed.saturating_add(1);
        rng.jittered(wait)
    }

    /// IdleHoldTime: 1 s, doubling up to 30 s, with jitter (RFC 4271 §8.1.1,
    /// DampPeerOscillations). `lasted` is how long the session had been Established.
    pub(super) fn after_session_ended(
        &mut self,
        lasted: Option<Duration>,
        rng: &mut Rng,
    ) -> Duration {
        if lasted.is_some_and(|lasted| lasted >= STABLE) {
            self.sessions_failed = 0;
        }
        let wait = doubled(self.sessions_failed).min(IDLE_HOLD_MAX);
        self.sessions_failed = self.sessions_failed.saturating_add(1);
        rng.jittered(wait)
    }

    /// TCP came up.
    pub(super) fn connected(&mut self) {
        self.connects_failed = 0;
    }
}

fn doubled(times: u32) -> Duration {
    // 2^16 s is more than any limit: a connect time is 65535 s at most.
    FIRST.saturating_mul(1 << times.min(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 4271 §10 SHOULD: ConnectRetryTimer has jitter.
    #[test]
    fn waits_grow_to_their_limit_and_are_never_zero() {
        let mut rng = Rng::seeded(1);
        let mut backoff = Backoff::default();
        let limit = Duration::from_secs(5);
        for attempt in 0..100 {
            let wait = backoff.after_connect_failed(limit, &mut rng);
            assert!(wait >= FIRST * 3 / 4 && wait <= limit, "attempt {attempt}: {wait:?}");
            let wait = backoff.after_session_ended(None, &mut rng);
            assert!(wait >= FIRST * 3 / 4 && wait <= IDLE_HOLD_MAX, "attempt {attempt}: {wait:?}");
        }
        assert!(backoff.after_session_ended(None, &mut rng) > Duration::from_secs(20));
        assert!(backoff.after_session_ended(Some(STABLE), &mut rng) <= FIRST);
        backoff.connected();
        assert!(backoff.after_connect_failed(limit, &mut rng) <= FIRST);
    }
}
