//! What a node reaches the store by: straight, or by what it remembers, which a watch tells late.

use std::sync::Arc;

use fairway_ground::Prefix;

use super::shaky_store::ShakyStore;
use crate::{
    Affinity, Key, Object, Owner, RememberedStore, Selection, Store, StoreError, Version, Versioned,
};

/// What a watch of affinities tells.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Is(Versioned<Affinity>),
    Gone(Owner, Prefix, Version),
}

/// See the module.
#[derive(Clone)]
pub(super) enum NodeStore {
    Straight(Arc<ShakyStore>),
    Remembered(Arc<RememberedStore<Arc<ShakyStore>>>),
}

/// What a node remembers, and how far its watch has come.
pub(super) struct Watched {
    pub(super) store: Arc<RememberedStore<Arc<ShakyStore>>>,
    seen: usize,
}

impl Watched {
    /// A daemon starts. Its watch has told it everything of that moment, or nothing yet.
    pub(super) fn new(store: &Arc<ShakyStore>, node: &str, is_told: bool) -> Self {
        let remembered = Arc::new(RememberedStore::new(Arc::clone(store), node));
        let mut watched = Self { store: remembered, seen: 0 };
        if is_told {
            watched.list_again();
        }
        watched
    }

    /// A watch that has ended begins with a list.
    pub(super) fn list_again(&mut self) {
        self.seen = self.store.inner().events().len();
        self.store.affinities_are(self.store.inner().affinities());
    }

    /// The next events of the watch.
    pub(super) fn see(&mut self, count: usize) {
        for event in self.store.inner().events().into_iter().skip(self.seen).take(count) {
            self.seen += 1;
            match event {
                Event::Is(affinity) => self.store.affinity_is(affinity),
                Event::Gone(owner, prefix, version) => {
                    self.store.affinity_is_gone(&owner, prefix, &version);
                }
            }
        }
    }

    /// Once the watch has told all, the node's affinities are as it remembers them.
    pub(super) fn check(&mut self, node: &str) -> Result<(), String> {
        self.see(usize::MAX);
        let owner = Owner::Host(node.to_owned());
        let Some((_, remembered)) = self.store.own() else { return Ok(()) };
        let there: Vec<Affinity> =
            self.store.inner().affinities().into_iter().map(|it| it.value).collect();
        let there: Vec<Affinity> = there.into_iter().filter(|it| it.owner == owner).collect();
        match remembered == there {
            true => Ok(()),
            false => Err(format!("{node} remembers {remembered:?}, and there are {there:?}")),
        }
    }
}

impl Store for NodeStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        match self {
            Self::Straight(it) => it.get(key).await,
            Self::Remembered(it) => it.get(key).await,
        }
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        match self {
            Self::Straight(it) => it.list(selection).await,
            Self::Remembered(it) => it.list(selection).await,
        }
    }

    fn occupied(&self) -> Option<Vec<Prefix>> {
        match self {
            Self::Straight(_) => None,
            Self::Remembered(it) => it.occupied(),
        }
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        match self {
            Self::Straight(it) => it.write(object, expected).await,
            Self::Remembered(it) => it.write(object, expected).await,
        }
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        match self {
            Self::Straight(it) => it.delete(key, expected).await,
            Self::Remembered(it) => it.delete(key, expected).await,
        }
    }
}
