//! Our discriminators: random, unique, and not reused soon (RFC 5880 §6.3, §6.8.1).

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use crate::echo::random_words;
use fairway_ground::Rng;

/// How many discriminators of deleted sessions are reserved: late packets still carry them.
const RETIRED_MAX: usize = 256;

/// The session of each discriminator.
#[derive(Debug, Default)]
pub(super) struct Discriminators {
    slots: BTreeMap<u32, usize>,
    retired: VecDeque<u32>,
}

impl Discriminators {
    /// A discriminator for the session in this slot.
    pub(super) fn draw(&mut self, slot: usize, rng: &mut Rng) -> NonZeroU32 {
        loop {
            let (drawn, _) = random_words(rng);
            let is_free = !self.slots.contains_key(&drawn) && !self.retired.contains(&drawn);
            if let Some(name) = NonZeroU32::new(drawn).filter(|_| is_free) {
                self.slots.insert(drawn, slot);
                return name;
            }
        }
    }

    /// The slot of the session with this discriminator.
    pub(super) fn slot(&self, name: u32) -> Option<usize> {
        self.slots.get(&name).copied()
    }

    /// The session with this discriminator was deleted.
    pub(super) fn retire(&mut self, name: NonZeroU32) {
        self.slots.remove(&name.get());
        if self.retired.len() >= RETIRED_MAX {
            self.retired.pop_front();
        }
        self.retired.push_back(name.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RFC 5880 §6.3 MUST: the local discriminator is unique among all sessions, and not zero.
    //= RFC 5880 §6.8.1 SHOULD: it is random.
    #[test]
    fn no_two_sessions_have_one_name_and_none_comes_back_soon() {
        let (mut names, mut rng) = (Discriminators::default(), Rng::seeded(3));
        // As if the generator returned the same values again and again.
        let stuck = rng.clone();
        let first = names.draw(0, &mut stuck.clone());
        assert_ne!(names.draw(1, &mut stuck.clone()), first);
        names.retire(first);
        assert_ne!(names.draw(2, &mut stuck.clone()), first);
        assert_eq!((names.slot(first.get()), names.slot(0)), (None, None));
        for slot in 3..1_000 {
            let name = names.draw(slot, &mut rng);
            assert_eq!(names.slot(name.get()), Some(slot));
            names.retire(name);
        }
        assert_eq!(names.draw(0, &mut stuck.clone()), first, "after {RETIRED_MAX} others");
        assert_eq!(names.retired.len(), RETIRED_MAX);
    }
}
