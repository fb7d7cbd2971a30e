//! The stored state and its history: the objects, one counter of versions, and a bounded log.
//!
//! This is the part that all replicas share (etcd). It knows no resources, only keys.

use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The key of an object; ordered as lists are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Position of its definition.
    pub(crate) resource: usize,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(resource: usize, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// One step of the history.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    /// The object before; none: it is new.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after; none: it was deleted.
    pub(crate) after: Option<Arc<Value>>,
}

/// The objects of one resource, by namespace and name.
pub(crate) type Collection = BTreeMap<Key, Arc<Value>>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Storage {
    revision: u64,
    objects: Collection,
    log: VecDeque<Change>,
    /// The state at older versions is not available any more.
    oldest: u64,
}

impl Storage {
    /// The version of the last change.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) const fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// Stores `object` under the next version, which is written into it.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        set_version(&mut object, self.revision);
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        self.record(key, before, Some(Arc::clone(&object)));
        object
    }

    /// Deletes an object; returns its last state, with the version of its deletion.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.revision += 1;
        let mut last = Value::clone(&before);
        set_version(&mut last, self.revision);
        self.record(key.clone(), Some(before), None);
        Some(Arc::new(last))
    }

    fn record(&mut self, key: Key, before: Option<Arc<Value>>, after: Option<Arc<Value>>) {
        self.log.push_back(Change { revision: self.revision, key, before, after });
    }

    /// Every step after a version, oldest first.
    pub(crate) fn changes_after(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let first = self.log.partition_point(|change| change.revision <= revision);
        self.log.range(first..)
    }

    /// One object as it was at a version.
    pub(crate) fn get_at(&self, key: &Key, revision: u64) -> Option<Arc<Value>> {
        let later = self.changes_after(revision).find(|change| change.key == *key);
        later.map_or_else(|| self.get(key).cloned(), |change| change.before.clone())
    }

    /// All objects of a resource as they were at a version, which must not be before `oldest`.
    pub(crate) fn collection_at(&self, resource: usize, revision: u64) -> Collection {
        let from = Key::new(resource, "", "");
        let here = self.objects.range(from..).take_while(|(key, _)| key.resource == resource);
        let mut collection: Collection =
            here.map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        let undone: Vec<&Change> =
            self.changes_after(revision).filter(|it| it.key.resource == resource).collect();
        for change in undone.into_iter().rev() {
            match &change.before {
                Some(before) => collection.insert(change.key.clone(), Arc::clone(before)),
                None => collection.remove(&change.key),
            };
        }
        collection
    }

    /// Forgets changes up to a version.
    pub(crate) fn forget_until(&mut self, revision: u64) {
        self.oldest = self.oldest.max(revision.min(self.revision));
        let forgotten = self.log.partition_point(|change| change.revision <= self.oldest);
        self.log.drain(..forgotten);
    }

    /// Goes back to an earlier version, as from a backup: later changes are discarded, and their versions
    /// are assigned a second time.
    pub(crate) fn restore(&mut self, revision: u64) {
        let undone = self.log.partition_point(|change| change.revision <= revision);
        for change in self.log.split_off(undone).into_iter().rev() {
            match change.before {
                Some(before) => self.objects.insert(change.key, before),
                None => self.objects.remove(&change.key),
            };
            self.revision = change.revision.saturating_sub(1);
        }
        self.oldest = self.revision;
        self.log.clear();
    }
}

fn set_version(object: &mut Value, revision: u64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
    }
}
