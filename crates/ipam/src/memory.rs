//! A store in memory: of a replayed case, and of tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::{Key, Object, Selection, Store, StoreError, Version, Versioned};

/// See the module.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    objects: BTreeMap<Key, (u64, Object)>,
    writes: u64,
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
        self.contents().objects.values().map(|(_, it)| it.clone()).collect()
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
        self.objects.get(key).map(|(number, _)| Version(number.to_string()))
    }

    /// A write that changes nothing leaves the version, as in an API server.
    fn put(&mut self, object: Object) -> Version {
        if let Some((number, before)) = self.objects.get(&object.key())
            && *before == object
        {
            return Version(number.to_string());
        }
        self.writes = self.writes.saturating_add(1);
        self.objects.insert(object.key(), (self.writes, object));
        Version(self.writes.to_string())
    }
}

fn versioned((number, object): &(u64, Object)) -> Versioned<Object> {
    Versioned { value: object.clone(), version: Version(number.to_string()) }
}

impl Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        Ok(self.contents().objects.get(key).map(versioned))
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        let contents = self.contents();
        let selected = contents.objects.iter().filter(|(key, _)| selection.contains(key));
        Ok(selected.map(|(_, it)| versioned(it)).collect())
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
