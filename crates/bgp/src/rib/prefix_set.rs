//! Some of the prefixes of the table, by their numbers: two octets for each of few, a bit for each of many. Knows no route and
//! no peer. Used where a set may be about all of a million prefixes: by [`super::AdjRibOut`] for what a slow peer lags by, by
//! [`super::LocRib`] for prefixes without a route, and for what a peer was told by an earlier policy.

use roaring::RoaringBitmap;

use super::prefix_table::PrefixId;

/// See the module.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct PrefixSet(RoaringBitmap);

impl PrefixSet {
    /// All below `end`.
    pub fn below(end: PrefixId) -> Self {
        let mut all = RoaringBitmap::new();
        all.insert_range(..end.number());
        Self(all)
    }

    /// Removes `end` and what is above it.
    pub fn keep_below(&mut self, end: PrefixId) {
        self.0.remove_range(end.number()..);
    }

    /// Removes all that `other` has.
    pub fn subtract(&mut self, other: &Self) {
        self.0 -= &other.0;
    }

    /// Whether it has this one.
    pub fn contains(&self, id: PrefixId) -> bool {
        self.0.contains(id.number())
    }

    /// Adds one.
    pub fn insert(&mut self, id: PrefixId) {
        self.0.insert(id.number());
    }

    /// Removes one.
    pub fn remove(&mut self, id: PrefixId) {
        self.0.remove(id.number());
    }

    /// The first one that is not below `id`.
    pub fn first_from(&self, id: PrefixId) -> Option<PrefixId> {
        self.0.range(id.number()..).next().map(PrefixId::new)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = PrefixId> + '_ {
        self.0.iter().map(PrefixId::new)
    }
}

impl FromIterator<PrefixId> for PrefixSet {
    fn from_iter<I: IntoIterator<Item = PrefixId>>(ids: I) -> Self {
        Self(ids.into_iter().map(PrefixId::number).collect())
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
