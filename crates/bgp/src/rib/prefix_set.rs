//! Some of the prefixes of the table, by their numbers: one bit for each. Knows no route and no peer. Used where a set may be
//! about all of a million prefixes: by [`super::AdjRibOut`] for what a slow peer lags by, and for what a peer was told by an
//! earlier policy.

use super::prefix_table::PrefixId;

/// See the module. Takes as many bits as the largest number in it says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PrefixSet {
    words: Vec<u64>,
}

const WORD_BITS: usize = u64::BITS as usize;

fn word(id: PrefixId) -> usize {
    id.place() / WORD_BITS
}

fn bit(id: PrefixId) -> u64 {
    1 << (id.place() % WORD_BITS)
}

fn id(word: usize, bit: u32) -> Option<PrefixId> {
    let bit = usize::try_from(bit).ok()?;
    PrefixId::at(word.checked_mul(WORD_BITS)?.checked_add(bit)?)
}

impl PrefixSet {
    /// All below `end`.
    pub fn below(end: PrefixId) -> Self {
        let mut all = Self { words: vec![u64::MAX; word(end).saturating_add(1)] };
        all.keep_below(end);
        all
    }

    /// Removes `end` and what is above it.
    pub fn keep_below(&mut self, end: PrefixId) {
        self.words.truncate(word(end).saturating_add(1));
        if let Some(last) = self.words.get_mut(word(end)) {
            *last &= bit(end).wrapping_sub(1);
        }
    }

    /// Removes all that `other` has.
    pub fn subtract(&mut self, other: &Self) {
        for (bits, others) in self.words.iter_mut().zip(&other.words) {
            *bits &= !others;
        }
    }

    /// Whether it has this one.
    pub fn contains(&self, id: PrefixId) -> bool {
        self.words.get(word(id)).is_some_and(|bits| bits & bit(id) != 0)
    }

    /// Adds one.
    pub fn insert(&mut self, id: PrefixId) {
        if self.words.len() <= word(id) {
            self.words.resize(word(id).saturating_add(1), 0);
        }
        if let Some(bits) = self.words.get_mut(word(id)) {
            *bits |= bit(id);
        }
    }

    /// Removes one.
    pub fn remove(&mut self, id: PrefixId) {
        if let Some(bits) = self.words.get_mut(word(id)) {
            *bits &= !bit(id);
        }
    }

    /// The first one that is not below `id`.
    pub fn first_from(&self, id: PrefixId) -> Option<PrefixId> {
        let mut words = self.words.iter().enumerate().skip(word(id)).map(|(place, bits)| {
            let below = if place == word(id) { bit(id).wrapping_sub(1) } else { 0 };
            (place, bits & !below)
        });
        let (word, bits) = words.find(|(_, bits)| *bits != 0)?;
        self::id(word, bits.trailing_zeros())
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = PrefixId> + '_ {
        let first = self.first_from(PrefixId::FIRST);
        std::iter::successors(first, |id| self.first_from(id.next()))
    }
}

impl FromIterator<PrefixId> for PrefixSet {
    fn from_iter<I: IntoIterator<Item = PrefixId>>(ids: I) -> Self {
        let mut set = Self::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use fairway_ground::Rng;

    fn random(rng: &mut Rng) -> PrefixId {
        PrefixId::new(u32::try_from(rng.next_u64() % 300).unwrap())
    }

    #[test]
    fn a_set_of_bits_is_a_set() {
        let mut rng = Rng::seeded(7);
        for _ in 0..2_000 {
            let [mut plain, other]: [BTreeSet<PrefixId>; 2] =
                [(); 2].map(|()| (0..rng.next_u64() % 40).map(|_| random(&mut rng)).collect());
            let mut set: PrefixSet = plain.iter().copied().collect();
            let end = random(&mut rng);
            match rng.next_u64() % 4 {
                0 => {
                    set.keep_below(end);
                    plain.retain(|id| *id < end);
                }
                1 => {
                    set.subtract(&other.iter().copied().collect());
                    plain = &plain - &other;
                }
                2 => {
                    set.remove(end);
                    plain.remove(&end);
                }
                _ => {
                    set = PrefixSet::below(end);
                    let below: BTreeSet<PrefixId> = (0..300).map(PrefixId::new).collect();
                    plain = below.into_iter().filter(|id| *id < end).collect();
                }
            }
            assert!(set.iter().eq(plain.iter().copied()));
            assert!((0..300).map(PrefixId::new).all(|id| set.contains(id) == plain.contains(&id)));
            assert_eq!(set.first_from(end), plain.range(end..).next().copied());
        }
    }
}
