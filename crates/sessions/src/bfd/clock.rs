//! The clocks of the BFD thread: a monotonic one for the sessions, and the wall clock, which the kernel uses
//! for time stamps of received packets.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairway_ground::Instant;

/// Reads the clock; the sessions never do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: std::time::Instant,
}

#[allow(clippy::disallowed_methods, reason = "the edge reads the clock")]
impl Clock {
    pub(super) fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    pub(super) fn now(self) -> Instant {
        let elapsed = self.start.elapsed().as_micros();
        Instant::from_micros(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// The current time of both clocks.
    pub(super) fn moment(self) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { now: self.now(), wall }
    }
}

/// A point in time on both clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// Since the Unix epoch.
    wall: Duration,
}

impl Moment {
    /// When a datagram was received that was read now with time stamp `stamp`, from a socket that was empty
    /// at `empty_at`.
    ///
    /// The wall clock may be set between stamp and reading. So the stamp is limited to the certain range:
    /// after the socket was last seen empty, and not in the future.
    pub(super) fn arrival(self, stamp: Option<Duration>, empty_at: Instant) -> Instant {
        let age = stamp.map_or(Duration::ZERO, |stamp| self.wall.saturating_sub(stamp));
        let age = age.min(self.now.since(empty_at)).as_micros();
        let age = u64::try_from(age).unwrap_or(u64::MAX);
        Instant::from_micros(self.now.as_micros().saturating_sub(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn what_waited_in_the_socket_counts_from_when_it_came() {
        let moment = Moment { now: at(10_000_000), wall: Duration::from_secs(1_000) };
        let stamp = Duration::from_millis(999_700);
        assert_eq!(moment.arrival(Some(stamp), at(0)), at(9_700_000));
        assert_eq!(moment.arrival(None, at(0)), at(10_000_000));
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_arrivals_no_further_than_to_when_the_socket_was_empty() {
        let moment = Moment { now: at(10_000_000), wall: Duration::from_secs(1_000) };
        let empty_at = at(9_950_000);
        let forward = Duration::from_secs(10);
        assert_eq!(moment.arrival(Some(forward), empty_at), empty_at);
        let back = Duration::from_secs(5_000);
        assert_eq!(moment.arrival(Some(back), empty_at), at(10_000_000));
    }
}
