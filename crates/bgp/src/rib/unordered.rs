//! A table whose order nobody sees: values are found by their key in constant time, and come out sorted or not at all.
//! So its random order, which keeps a neighbour from choosing keys that collide, never becomes output. Used by the
//! tables of a session; knows no route.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// See the module.
#[derive(Debug)]
pub(super) struct Unordered<Key, Value>(HashMap<Key, Value, RandomState>);

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
        self.0.remove(key)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// What `pick` makes of each entry, in the order of keys.
    pub(super) fn sorted<Picked>(
        &self,
        pick: impl Fn(&Value) -> Option<Picked>,
    ) -> Vec<(Key, Picked)> {
        let picked = self.0.iter().filter_map(|(key, value)| Some((*key, pick(value)?)));
        let mut picked: Vec<(Key, Picked)> = picked.collect();
        picked.sort_unstable_by_key(|(key, _)| *key);
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_the_order_of_their_keys() {
        let mut table = Unordered::default();
        for number in (0..100_u32).rev() {
            *table.get_or_default(number) = number % 2;
        }
        table.remove(&4);
        let even: Vec<u32> =
            table.sorted(|it| (*it == 0).then_some(())).into_iter().map(|(key, ())| key).collect();
        assert_eq!(even, (0..100).step_by(2).filter(|it| *it != 4).collect::<Vec<_>>());
    }
}
