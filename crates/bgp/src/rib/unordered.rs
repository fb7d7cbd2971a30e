//! A table whose order nobody sees: values are found by their key in constant time, and entries come out sorted. So its
//! order, which the random seed of its hashes makes another one in each process, never becomes output. The seed keeps
//! a neighbour from choosing keys that collide, unless it can time each of them. Used by the tables of a session; knows
//! no route.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// A table of this many entries is never made smaller.
const SMALL: usize = 1024;

/// See the module.
pub(super) struct Unordered<Key, Value>(HashMap<Key, Value, RandomState>);

impl<Key, Value> fmt::Debug for Unordered<Key, Value> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} entries", self.0.len())
    }
}

impl<Key, Value> Default for Unordered<Key, Value> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<Key: Hash + Ord + Copy, Value> Unordered<Key, Value> {
    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.0.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Value> {
        self.0.get_mut(key)
    }

    /// The value, which is there from now on.
    pub(super) fn get_or_default(&mut self, key: Key) -> &mut Value
    where
        Value: Default,
    {
        self.0.entry(key).or_default()
    }

    pub(super) fn insert(&mut self, key: Key, value: Value) {
        self.0.insert(key, value);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Value> {
        let removed = self.0.remove(key);
        // What a million routes took is given back when they are gone.
        let (used, room) = (self.0.len(), self.0.capacity());
        if room > SMALL && used < room / 8 {
            self.0.shrink_to(used.saturating_mul(2));
        }
        removed
    }

    /// Forgets all entries, and gives back what they took.
    pub(super) fn clear(&mut self) {
        self.0 = HashMap::default();
    }

    /// What `pick` makes of each entry, in the order of keys.
    pub(super) fn sorted<Picked>(
        &self,
        pick: impl Fn(&Key, &Value) -> Option<Picked>,
    ) -> Vec<(Key, Picked)> {
        let picked = self.0.iter().filter_map(|(key, value)| Some((*key, pick(key, value)?)));
        let mut picked: Vec<(Key, Picked)> = picked.collect();
        picked.sort_unstable_by_key(|(key, _)| *key);
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_entries_took_is_given_back() {
        let mut table = Unordered::default();
        (0..100_000_u32).for_each(|number| table.insert(number, number));
        let full = table.0.capacity();
        for number in 10..100_000 {
            table.remove(&number);
        }
        assert!(table.0.capacity() < full / 20, "{} of {full}", table.0.capacity());
        assert_eq!(table.sorted(|_, it| Some(*it)).len(), 10);
    }

    #[test]
    fn entries_come_out_in_the_order_of_their_keys() {
        let mut table = Unordered::default();
        for number in (0..100_u32).rev() {
            *table.get_or_default(number) = number % 2;
        }
        table.remove(&4);
        let even: Vec<u32> = table
            .sorted(|_, it| (*it == 0).then_some(()))
            .into_iter()
            .map(|(key, ())| key)
            .collect();
        assert_eq!(even, (0..100).step_by(2).filter(|it| *it != 4).collect::<Vec<_>>());
    }
}
