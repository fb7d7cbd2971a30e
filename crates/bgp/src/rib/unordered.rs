//! A table whose order nobody sees: values are found by their key in constant time, and nobody walks over them. So its
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

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Value> {
        self.0.get_mut(key)
    }

    /// The value, which `make` makes if it is not there.
    pub(super) fn get_or_insert_with(
        &mut self,
        key: Key,
        make: impl FnOnce() -> Value,
    ) -> &mut Value {
        self.0.entry(key).or_insert_with(make)
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
        assert_eq!((table.get(&9), table.get(&10)), (Some(&9), None));
    }
}
