//! Of a peer for which very much waits already: which other prefixes have changed, and of which of them was it told
//! something? Two bits for each prefix, where a route that waits takes some forty octets: two hundred peers that are behind
//! by a table of a million would take eight gigabytes. Knows no route. Used by [`super::AdjRibOut`].

use super::prefix_set::PrefixSet;
use super::prefix_table::PrefixId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lagging {
    changed: PrefixSet,
    /// Of those that have changed.
    told: PrefixSet,
    count: usize,
    /// The place behind the prefix that was taken out last.
    next: PrefixId,
}

impl Lagging {
    /// How many prefixes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn contains(&self, id: PrefixId) -> bool {
        self.changed.contains(id)
    }

    /// Whether the peer was told something of a prefix; `None` if the prefix is not among these.
    pub(super) fn is_told(&self, id: PrefixId) -> Option<bool> {
        self.contains(id).then(|| self.told.contains(id))
    }

    /// A prefix has changed, of which the peer was told something, or nothing. What it was told is not affected if the
    /// prefix is here already.
    pub(super) fn insert(&mut self, id: PrefixId, is_told: bool) {
        if self.contains(id) {
            return;
        }
        self.changed.insert(id);
        if is_told {
            self.told.insert(id);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Takes one prefix out, and whether the peer was told something of it. They go round, so that none waits forever.
    pub(super) fn pop(&mut self) -> Option<(PrefixId, bool)> {
        let behind = self.changed.first_from(self.next);
        let id = behind.or_else(|| self.changed.first_from(PrefixId::FIRST))?;
        self.next = id.next();
        let is_told = self.told.contains(id);
        self.changed.remove(id);
        self.told.remove(id);
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            *self = Self::default();
        }
        Some((id, is_told))
    }

    /// All of them.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = PrefixId> + '_ {
        self.changed.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use fairway_ground::Rng;

    #[test]
    fn each_prefix_comes_out_once_with_what_was_known_when_it_came() {
        let mut rng = Rng::seeded(5);
        let (mut lagging, mut plain) = (Lagging::default(), BTreeMap::new());
        for _ in 0..50_000 {
            let number = u32::try_from(rng.next_u64() % 2_000).unwrap();
            let (id, is_told) = (PrefixId::new(number), rng.next_u64().is_multiple_of(2));
            if rng.next_u64().is_multiple_of(2) {
                lagging.insert(id, is_told);
                plain.entry(id).or_insert(is_told);
            } else if let Some((id, is_told)) = lagging.pop() {
                assert_eq!(plain.remove(&id), Some(is_told));
            } else {
                assert!(plain.is_empty());
            }
            assert_eq!(lagging.is_told(id), plain.get(&id).copied());
            assert_eq!(lagging.count(), plain.len());
        }
        assert!(lagging.prefixes().eq(plain.keys().copied()));
        while let Some((id, is_told)) = lagging.pop() {
            assert_eq!(plain.remove(&id), Some(is_told));
        }
        assert!(plain.is_empty() && lagging.changed == PrefixSet::default());
    }

    #[test]
    fn one_that_comes_back_again_and_again_does_not_keep_others_waiting() {
        let mut lagging = Lagging::default();
        let [flapping, near, far] = [3, 5, 900].map(PrefixId::new);
        [flapping, near, far].into_iter().for_each(|id| lagging.insert(id, true));
        for expected in [flapping, near, far, flapping, flapping] {
            assert_eq!(lagging.pop(), Some((expected, true)));
            lagging.insert(flapping, true);
        }
    }
}
