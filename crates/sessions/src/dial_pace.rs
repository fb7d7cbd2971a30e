//! When the next dial may start, so that many do not start in one moment.
//!
//! Many neighbours are often addresses of one router, whose listening socket has a short queue (BIRD 2: 8
//! connections). A SYN that finds it full is dropped, and sent again after 1 s, then 3 s. Knows
//! neither sockets nor neighbours. Called by [`super::neighbour`].

use std::time::Duration;

use tokio::time::Instant;

/// Between two dials: 4,000 dials in one second, which is faster than a router accepts them on average,
/// and few enough in a millisecond for a queue of 8.
const SPACING: Duration = Duration::from_micros(250);

/// The dials of one process.
#[derive(Debug, Default)]
pub(super) struct DialPace {
    /// When the next dial may start.
    next: Option<Instant>,
}

impl DialPace {
    /// When a dial that is due `now` may start.
    pub(super) fn slot(&mut self, now: Instant) -> Instant {
        let slot = self.next.map_or(now, |next| next.max(now));
        self.next = Some(slot + SPACING);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_dial_starts_at_once() {
        let (mut pace, now) = (DialPace::default(), Instant::now());
        assert_eq!(pace.slot(now), now);
        let later = now + Duration::from_secs(1);
        assert_eq!(pace.slot(later), later, "what was not used is not made up for");
    }

    #[test]
    fn dials_of_one_moment_are_spaced() {
        let (mut pace, now) = (DialPace::default(), Instant::now());
        let slots: Vec<_> = (0..500).map(|_| pace.slot(now) - now).collect();
        assert_eq!(slots[1], SPACING);
        assert_eq!(slots[499], SPACING * 499);
    }
}
