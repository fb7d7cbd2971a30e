//! When is the segment told, unasked, where an address is? Paced for each interface, the newest address first.
//!
//! Knows no frames. Owned by the responder, once for each interface.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{Instant, Rng};

/// After a take-over, between announcements: Linux ignores another one for a second after a change of an
/// entry (`locktime`), a switch may lose some, and hosts that slept may wake.
const INTERVALS: [Duration; 4] = [
    Duration::from_millis(1_100),
    Duration::from_millis(1_100),
    Duration::from_millis(1_800),
    Duration::from_millis(4_000),
];
/// What is announced again is announced at once and after the intervals from here on: three times.
const REPEATED_FROM: usize = 2;
/// So that the addresses of several nodes are not announced at the same moment again and again.
const SPREAD: Duration = Duration::from_millis(200);
/// Between announcements of different addresses: a thousand addresses take a second.
const SPACING: Duration = Duration::from_millis(1);
/// How far announcements may come before their time: a handful of addresses is announced at once.
const BURST: Duration = Duration::from_millis(32);

/// Where the announcements of an address stand.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// PacedAnnouncements so far since the take-over.
    round: usize,
    /// The order of take-overs.
    sequence: u64,
    /// When the next one is due; `None` while it is in `ready`.
    due: Option<Instant>,
}

/// The announcements of an interface.
#[derive(Debug, Default)]
pub(super) struct PacedAnnouncements {
    places: BTreeMap<IpAddr, Place>,
    waiting: BTreeSet<(Instant, IpAddr)>,
    /// Due; those of the fewest announcements first, of these the newest.
    ready: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
    /// The earliest time of the next one, if all were evenly spaced.
    paced: Instant,
}

impl PacedAnnouncements {
    /// `address` is to be announced from now on, by a take-over that comes after all of smaller numbers.
    pub(super) fn begin(&mut self, address: IpAddr, sequence: u64) {
        self.begin_with(address, sequence, 0);
    }

    /// The same, for an address that hosts know already: some of them may have heard otherwise since.
    pub(super) fn repeat(&mut self, address: IpAddr, sequence: u64) {
        let round = self.places.get(&address).map_or(REPEATED_FROM, |it| it.round);
        self.begin_with(address, sequence, round.min(REPEATED_FROM));
    }

    fn begin_with(&mut self, address: IpAddr, sequence: u64, round: usize) {
        self.end(address);
        self.places.insert(address, Place { round, sequence, due: None });
        self.ready.insert((round, Reverse(sequence), address));
    }

    /// `address` is no longer announced.
    pub(super) fn end(&mut self, address: IpAddr) {
        let Some(place) = self.places.remove(&address) else { return };
        match place.due {
            Some(due) => self.waiting.remove(&(due, address)),
            None => self.ready.remove(&(place.round, Reverse(place.sequence), address)),
        };
    }

    /// The next address to announce now.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        rng: &mut Rng,
        refresh: Option<Duration>,
    ) -> Option<IpAddr> {
        while let Some((due, address)) = self.waiting.first().copied().filter(|it| it.0 <= now) {
            self.waiting.remove(&(due, address));
            if let Some(place) = self.places.get_mut(&address) {
                place.due = None;
                self.ready.insert((place.round, Reverse(place.sequence), address));
            }
        }
        if self.ready.is_empty() || self.paced > now + BURST {
            return None;
        }
        let (_, _, address) = self.ready.pop_first()?;
        self.paced = self.paced.max(now) + SPACING;
        let place = self.places.get_mut(&address)?;
        let interval = INTERVALS.get(place.round).copied().or(refresh);
        place.round = place.round.saturating_add(1).min(INTERVALS.len());
        match interval {
            Some(interval) => {
                let due = now + interval + SPREAD.saturating_sub(rng.jittered(SPREAD));
                place.due = Some(due);
                self.waiting.insert((due, address));
            }
            None => {
                self.places.remove(&address);
            }
        }
        Some(address)
    }

    /// When [`Self::poll`] may return something.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.ready.is_empty() {
            return self.waiting.first().map(|(due, _)| *due);
        }
        // The burst ends where announcements are this far ahead.
        let early = Instant::ZERO + self.paced.since(Instant::ZERO + BURST);
        Some(early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0xC633_6400 + number).into()
    }

    /// All announcements up to `end`, each at the time of its deadline.
    fn run(
        announcements: &mut PacedAnnouncements,
        end: Duration,
        refresh: Option<Duration>,
    ) -> Vec<(Duration, IpAddr)> {
        let mut rng = Rng::seeded(1);
        let mut now = Instant::ZERO;
        let mut sent = Vec::new();
        while now <= Instant::ZERO + end {
            while let Some(address) = announcements.poll(now, &mut rng, refresh) {
                sent.push((now.since(Instant::ZERO), address));
            }
            let Some(next) = announcements.next_deadline() else { break };
            assert!(next > now, "a deadline that was reached does nothing");
            now = next;
        }
        sent
    }

    #[test]
    fn an_address_is_announced_at_once_and_then_five_times_in_all() {
        let mut announcements = PacedAnnouncements::default();
        announcements.begin(address(1), 1);
        let sent = run(&mut announcements, Duration::from_secs(600), None);
        let times: Vec<Duration> = sent.iter().map(|(time, _)| *time).collect();
        assert_eq!(times.len(), 5);
        assert_eq!(times[0], Duration::ZERO);
        for (pair, interval) in times.windows(2).zip(INTERVALS) {
            let gap = pair[1] - pair[0];
            assert!(
                gap >= interval && gap <= interval + SPREAD,
                "{gap:?} in place of {interval:?}"
            );
        }
        assert!(announcements.next_deadline().is_none());
    }

    #[test]
    fn with_a_refresh_announcements_go_on() {
        let mut announcements = PacedAnnouncements::default();
        announcements.begin(address(1), 1);
        let minute = Some(Duration::from_secs(60));
        let sent = run(&mut announcements, Duration::from_secs(309), minute);
        assert_eq!(sent.len(), 5 + 5);
    }

    #[test]
    fn a_thousand_addresses_take_a_second_and_the_newest_goes_first() {
        let mut announcements = PacedAnnouncements::default();
        for number in 0..1_000 {
            announcements.begin(address(number), u64::from(number));
        }
        let sent = run(&mut announcements, Duration::from_secs(1), None);
        let mut first: BTreeMap<IpAddr, Duration> = BTreeMap::new();
        for (time, address) in &sent {
            first.entry(*address).or_insert(*time);
        }
        assert_eq!(first.len(), 1_000);
        assert_eq!(sent[0].1, address(999));
        assert!(first.values().all(|time| *time < Duration::from_secs(1)));
        for window in sent.windows(100) {
            let time = window[99].0 - window[0].0;
            assert!(time >= Duration::from_millis(60), "100 announcements in {time:?}");
        }
    }

    #[test]
    fn what_is_repeated_is_announced_three_times() {
        let mut announcements = PacedAnnouncements::default();
        announcements.repeat(address(1), 1);
        assert_eq!(run(&mut announcements, Duration::from_secs(600), None).len(), 3);
        // One that was just taken over has more to come.
        announcements.begin(address(1), 2);
        announcements.repeat(address(1), 3);
        assert_eq!(run(&mut announcements, Duration::from_secs(600), None).len(), 5);
    }

    #[test]
    fn an_address_that_is_given_up_is_not_announced() {
        let mut announcements = PacedAnnouncements::default();
        announcements.begin(address(1), 1);
        announcements.begin(address(2), 2);
        announcements.end(address(1));
        assert_eq!(run(&mut announcements, Duration::ZERO, None), [(Duration::ZERO, address(2))]);
        announcements.end(address(2));
        assert!(announcements.next_deadline().is_none());
    }
}
