//! What blocks, affinities and handles are kept in, behind four calls.
//!
//! Each object has a version. A write or a deletion names the version that it was decided by and fails with a conflict when
//! the object has changed since, so that two writers never undo each other's change. A store hides objects that are marked
//! as deleted. Knows no API server, file or clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use fairway_ground::Prefix;

use crate::affinity::Affinity;
use crate::block::{Block, Owner};

/// What a store has an object under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The block of this prefix.
    Block(Prefix),
    /// What this owner has to do with the block of this prefix.
    Affinity(Owner, Prefix),
    /// The handle of this ID, in lower case.
    Handle(String),
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A block.
    Block(Block),
    /// An affinity.
    Affinity(Affinity),
    /// A handle.
    Handle(Handle),
}

/// Where the addresses of a handle are: an index of the blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// Its ID, in lower case.
    pub id: String,
    /// How many addresses it has in each block.
    pub counts: BTreeMap<Prefix, u32>,
}

/// Which objects to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All blocks.
    Blocks,
    /// All affinities.
    Affinities,
    /// Those of one owner.
    AffinitiesOf(Owner),
    /// All handles.
    Handles,
}

/// The state of an object, as its store names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Which object: another one, once it was deleted and made again under the same key.
    pub object: String,
    /// Which state of it.
    pub state: String,
}

/// An object as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The object.
    pub value: T,
    /// Its version.
    pub version: Version,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The object has another version, is gone, or is there already. Nothing has changed.
    #[error("the object was changed by somebody else")]
    Conflict,
    /// There is no answer. Whether a write took place is unknown.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// The object is there, and cannot be read; or it cannot be written as it would be.
    #[error("{0}")]
    Unreadable(String),
}

/// A store.
pub trait Store: Sync {
    /// The object, unless there is none.
    fn get(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Option<Versioned<Object>>, StoreError>> + Send;

    /// The objects, in the order of their keys.
    fn list(
        &self,
        selection: &Selection,
    ) -> impl Future<Output = Result<Vec<Versioned<Object>>, StoreError>> + Send;

    /// Each block, in any order, without all of them in memory at once where that can be had.
    fn each_block(
        &self,
        mut take: impl FnMut(Versioned<Object>) + Send,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move {
            self.list(&Selection::Blocks).await?.into_iter().for_each(&mut take);
            Ok(())
        }
    }

    /// The prefixes in which there may be blocks, if the store knows that without a question; those that it names are not free
    /// to be claimed.
    fn occupied(&self) -> Option<Vec<Prefix>> {
        None
    }

    /// The blocks that this node owns, and those of others that its Pods have addresses of, if the store knows them without
    /// a question.
    fn blocks_of_node(&self) -> Option<Vec<Block>> {
        None
    }

    /// Writes the object if it has this version, or makes it if it has none; one that is only marked as deleted is none.
    /// Returns the new version, which is the old one where nothing has changed.
    fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> impl Future<Output = Result<Version, StoreError>> + Send;

    /// Deletes the object if it has this version.
    fn delete(
        &self,
        key: &Key,
        expected: &Version,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl<S: Store + Send> Store for Arc<S> {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        S::get(self, key).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        S::list(self, selection).await
    }

    async fn each_block(
        &self,
        take: impl FnMut(Versioned<Object>) + Send,
    ) -> Result<(), StoreError> {
        S::each_block(self, take).await
    }

    fn occupied(&self) -> Option<Vec<Prefix>> {
        S::occupied(self)
    }

    fn blocks_of_node(&self) -> Option<Vec<Block>> {
        S::blocks_of_node(self)
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        S::write(self, object, expected).await
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        S::delete(self, key, expected).await
    }
}

impl Object {
    /// What it is kept under.
    pub fn key(&self) -> Key {
        match self {
            Self::Block(it) => Key::Block(it.prefix()),
            Self::Affinity(it) => Key::Affinity(it.owner.clone(), it.prefix),
            Self::Handle(it) => Key::Handle(it.id.clone()),
        }
    }
}

impl Selection {
    /// Whether the object of this key is one of them.
    pub fn contains(&self, key: &Key) -> bool {
        match (self, key) {
            (Self::Blocks, Key::Block(_))
            | (Self::Affinities, Key::Affinity(..))
            | (Self::Handles, Key::Handle(_)) => true,
            (Self::AffinitiesOf(owner), Key::Affinity(of, _)) => of == owner,
            _ => false,
        }
    }
}

/// The block of this prefix.
pub(crate) async fn block(
    store: &impl Store,
    prefix: Prefix,
) -> Result<Option<Versioned<Block>>, StoreError> {
    Ok(store.get(&Key::Block(prefix)).await?.and_then(as_block))
}

/// All blocks.
pub(crate) async fn blocks(store: &impl Store) -> Result<Vec<Versioned<Block>>, StoreError> {
    Ok(store.list(&Selection::Blocks).await?.into_iter().filter_map(as_block).collect())
}

/// The affinity of this owner to the block of this prefix.
pub(crate) async fn affinity(
    store: &impl Store,
    owner: &Owner,
    prefix: Prefix,
) -> Result<Option<Versioned<Affinity>>, StoreError> {
    Ok(store.get(&Key::Affinity(owner.clone(), prefix)).await?.and_then(as_affinity))
}

/// The affinities of this owner, or all.
pub(crate) async fn affinities(
    store: &impl Store,
    owner: Option<&Owner>,
) -> Result<Vec<Versioned<Affinity>>, StoreError> {
    let selection = owner.map_or(Selection::Affinities, |it| Selection::AffinitiesOf(it.clone()));
    Ok(store.list(&selection).await?.into_iter().filter_map(as_affinity).collect())
}

/// The handle of this ID.
pub(crate) async fn handle(
    store: &impl Store,
    id: &str,
) -> Result<Option<Versioned<Handle>>, StoreError> {
    Ok(store.get(&Key::Handle(id.to_owned())).await?.and_then(as_handle))
}

/// All handles.
pub(crate) async fn handles(store: &impl Store) -> Result<Vec<Versioned<Handle>>, StoreError> {
    Ok(store.list(&Selection::Handles).await?.into_iter().filter_map(as_handle).collect())
}

fn as_block(Versioned { value, version }: Versioned<Object>) -> Option<Versioned<Block>> {
    match value {
        Object::Block(value) => Some(Versioned { value, version }),
        _ => None,
    }
}

fn as_affinity(Versioned { value, version }: Versioned<Object>) -> Option<Versioned<Affinity>> {
    match value {
        Object::Affinity(value) => Some(Versioned { value, version }),
        _ => None,
    }
}

fn as_handle(Versioned { value, version }: Versioned<Object>) -> Option<Versioned<Handle>> {
    match value {
        Object::Handle(value) => Some(Versioned { value, version }),
        _ => None,
    }
}
