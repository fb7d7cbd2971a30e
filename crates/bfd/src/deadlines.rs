//! The earliest deadline: a heap with one movable deadline for each slot.
//!
//! Its memory is proportional to the slots, so that nothing is allocated at runtime.

use fairway_ground::Instant;

/// Marks a slot without a deadline.
const NOWHERE: usize = usize::MAX;

/// At most one deadline for each slot.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// No entry is earlier than the one at half its index.
    heap: Vec<(Instant, usize)>,
    /// The position in the heap of each slot's deadline.
    places: Vec<usize>,
}

impl Deadlines {
    /// Makes room for this many slots.
    pub(crate) fn reserve(&mut self, slots: usize) {
        if slots > self.places.len() {
            self.places.resize(slots, NOWHERE);
            self.heap.reserve(slots.saturating_sub(self.heap.len()));
        }
    }

    /// The earliest deadline and its slot.
    pub(crate) fn first(&self) -> Option<(Instant, usize)> {
        self.heap.first().copied()
    }

    /// Sets, moves or removes the deadline of a slot.
    pub(crate) fn set(&mut self, slot: usize, at: Option<Instant>) {
        let Some(&place) = self.places.get(slot) else {
            return; // No room: `reserve` must be called first.
        };
        match (self.heap.get_mut(place), at) {
            // The case of most received packets: our next transmission is due before the remote system is
            // late.
            (Some(entry), Some(at)) if entry.0 == at => {}
            (Some(entry), Some(at)) => {
                entry.0 = at;
                self.sift(place);
            }
            (Some(_), None) => {
                self.heap.swap_remove(place);
                self.put(slot, NOWHERE);
                self.sift(place);
            }
            (None, Some(at)) => {
                let place = self.heap.len();
                self.heap.push((at, slot));
                self.sift(place);
            }
            (None, None) => {}
        }
    }

    /// Moves the entry to its position in the heap, and updates the index.
    fn sift(&mut self, from: usize) {
        let mut place = from;
        while let Some(above) = place.checked_sub(1).map(|it| it / 2)
            && self.at(place) < self.at(above)
        {
            self.swap(place, above);
            place = above;
        }
        loop {
            let left = place.saturating_mul(2).saturating_add(1);
            let right = left.saturating_add(1);
            let below = if self.at(right) < self.at(left) { right } else { left };
            if self.at(below) >= self.at(place) {
                break;
            }
            self.swap(place, below);
            place = below;
        }
        self.note(place);
    }

    /// A missing entry sorts last.
    fn at(&self, place: usize) -> Instant {
        self.heap.get(place).map_or(Instant::from_micros(u64::MAX), |(at, _)| *at)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note(one);
        self.note(other);
    }

    fn note(&mut self, place: usize) {
        if let Some(&(_, slot)) = self.heap.get(place) {
            self.put(slot, place);
        }
    }

    fn put(&mut self, slot: usize, place: usize) {
        if let Some(it) = self.places.get_mut(slot) {
            *it = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use fairway_ground::Rng;

    #[test]
    fn the_first_is_always_the_earliest_of_all_that_were_set() {
        const SLOTS: u64 = 20;
        let (mut rng, mut deadlines) = (Rng::seeded(5), Deadlines::default());
        let mut model = BTreeMap::new();
        deadlines.reserve(20);
        for _ in 0..20_000 {
            let slot = usize::try_from(rng.next_u64() % SLOTS).unwrap();
            let at = Instant::from_micros(rng.next_u64() % 50);
            if rng.next_u64().is_multiple_of(3) {
                deadlines.set(slot, None);
                model.remove(&slot);
            } else {
                deadlines.set(slot, Some(at));
                model.insert(slot, at);
            }
            assert_eq!(deadlines.first().map(|(at, _)| at), model.values().min().copied());
            if let Some((at, slot)) = deadlines.first() {
                assert_eq!(model.get(&slot), Some(&at));
            }
        }
    }

    #[test]
    fn nothing_is_allocated_once_there_is_room() {
        let mut deadlines = Deadlines::default();
        deadlines.reserve(8);
        let room = deadlines.heap.capacity();
        for turn in 0..100 {
            for slot in 0..8 {
                deadlines.set(slot, Some(Instant::from_micros(100 - turn)));
            }
        }
        assert_eq!(deadlines.heap.capacity(), room);
        deadlines.set(8, Some(Instant::ZERO));
        assert!(deadlines.first().is_some_and(|(_, slot)| slot < 8));
    }
}
