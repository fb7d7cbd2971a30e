//! Which neighbours have something to do now, and when the others will.
//!
//! The cost of a turn depends on the work, and not on the number of neighbours: of five hundred one may
//! have sent a message. Knows no neighbour but by its key.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::{Instant, PeerKey};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Neighbours with a new event.
    touched: BTreeSet<PeerKey>,
    /// Neighbours that wait, by deadline.
    waiting: BTreeSet<(Instant, PeerKey)>,
    /// The deadline of each of them.
    until: BTreeMap<PeerKey, Instant>,
}

impl Agenda {
    /// Something happened to `key`.
    pub(super) fn touch(&mut self, key: PeerKey) {
        self.touched.insert(key);
    }

    /// The next deadline of `key` is `deadline`, which replaces an earlier one; `None` removes it.
    pub(super) fn wait(&mut self, key: PeerKey, deadline: Option<Instant>) {
        if self.until.get(&key).copied() == deadline {
            return;
        }
        if let Some(before) = self.until.remove(&key) {
            self.waiting.remove(&(before, key));
        }
        if let Some(deadline) = deadline {
            self.until.insert(key, deadline);
            self.waiting.insert((deadline, key));
        }
    }

    /// Removes `key`.
    pub(super) fn forget(&mut self, key: PeerKey) {
        self.touched.remove(&key);
        self.wait(key, None);
    }

    /// The earliest deadline; at once, if a neighbour has a new event.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let now = (!self.touched.is_empty()).then_some(Instant::ZERO);
        now.or_else(|| self.waiting.first().map(|(deadline, _)| *deadline))
    }

    /// Neighbours with an expired deadline count as touched.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((deadline, key)) = self.waiting.first().copied() {
            if deadline > now {
                return;
            }
            self.wait(key, None);
            self.touch(key);
        }
    }

    /// The neighbours to process.
    pub(super) fn touched(&self) -> impl Iterator<Item = &PeerKey> {
        self.touched.iter()
    }

    /// The next neighbour to process.
    pub(super) fn next(&mut self) -> Option<PeerKey> {
        self.touched.pop_first()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn key(number: u8) -> PeerKey {
        PeerKey::from(IpAddr::from([192, 0, 2, number]))
    }

    fn at(micros: u64) -> Option<Instant> {
        Some(Instant::from_micros(micros))
    }

    fn touched(agenda: &mut Agenda) -> Vec<PeerKey> {
        std::iter::from_fn(|| agenda.next()).collect()
    }

    #[test]
    fn only_those_with_something_to_do_are_looked_at() {
        let mut agenda = Agenda::default();
        (1..=5).for_each(|number| agenda.wait(key(number), at(u64::from(number) * 10)));
        assert_eq!(agenda.next_deadline(), at(10));
        agenda.touch(key(4));
        agenda.touch(key(4));
        assert_eq!(agenda.next_deadline(), at(0));
        agenda.wake(Instant::from_micros(20));
        assert_eq!(touched(&mut agenda), [key(1), key(2), key(4)]);
        assert_eq!(touched(&mut agenda), []);
        assert_eq!(agenda.next_deadline(), at(30));
    }

    #[test]
    fn the_last_deadline_of_a_neighbour_counts() {
        let mut agenda = Agenda::default();
        agenda.wait(key(1), at(10));
        agenda.wait(key(1), at(30));
        agenda.wait(key(2), at(20));
        assert_eq!(agenda.next_deadline(), at(20));
        agenda.wait(key(2), None);
        assert_eq!(agenda.next_deadline(), at(30));
        agenda.touch(key(1));
        agenda.forget(key(1));
        assert_eq!((agenda.next_deadline(), touched(&mut agenda)), (None, Vec::new()));
    }
}
