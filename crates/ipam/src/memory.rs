//! A store in memory: of a replayed case, and of tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{Key, Object, Selection, Store, StoreError, Version, Versioned};

/// See the module.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    objects: BTreeMap<Key, Kept>,
    writes: u64,
}

/// An object, with the numbers of the writes that made it and that last changed it.
#[derive(Debug)]
struct Kept {
    made: u64,
    changed: u64,
    object: Object,
}

impl Kept {
    fn version(&self) -> Version {
        Version { object: self.made.to_string(), state: self.changed.to_string() }
    }

    fn versioned(&self) -> Versioned<Object> {
        Versioned { value: self.object.clone(), version: self.version() }
    }
}

impl MemoryStore {
    /// One that has these objects.
    pub fn new(objects: impl IntoIterator<Item = Object>) -> Self {
        let store = Self::default();
        for object in objects {
            store.contents().put(object);
        }
        store
    }

    /// What it has, in the order of keys.
    pub fn objects(&self) -> Vec<Object> {
        self.contents().objects.values().map(|it| it.object.clone()).collect()
    }

    /// The same, with versions.
    #[cfg(test)]
    pub(crate) fn versioned(&self) -> Vec<Versioned<Object>> {
        self.contents().objects.values().map(Kept::versioned).collect()
    }

    /// How many writes and deletions took place.
    pub fn writes(&self) -> u64 {
        self.contents().writes
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn version(&self, key: &Key) -> Option<Version> {
        self.objects.get(key).map(Kept::version)
    }

    /// A write that changes nothing leaves the version, as in an API server.
    fn put(&mut self, object: Object) -> Version {
        let key = object.key();
        let before = self.objects.get(&key);
        if let Some(before) = before.filter(|it| it.object == object) {
            return before.version();
        }
        self.writes = self.writes.saturating_add(1);
        let made = before.map_or(self.writes, |it| it.made);
        let kept = Kept { made, changed: self.writes, object };
        let version = kept.version();
        self.objects.insert(key, kept);
        version
    }
}

impl Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        Ok(self.contents().objects.get(key).map(Kept::versioned))
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        let contents = self.contents();
        let selected = contents.objects.iter().filter(|(key, _)| selection.contains(key));
        Ok(selected.map(|(_, it)| it.versioned()).collect())
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        let mut contents = self.contents();
        match contents.version(&object.key()).as_ref() == expected {
            true => Ok(contents.put(object)),
            false => Err(StoreError::Conflict),
        }
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        let mut contents = self.contents();
        if contents.version(key).as_ref() != Some(expected) {
            return Err(StoreError::Conflict);
        }
        contents.objects.remove(key);
        contents.writes = contents.writes.saturating_add(1);
        Ok(())
    }
}
