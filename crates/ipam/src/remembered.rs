//! What a node remembers of a store that others write to as well: its own affinities and blocks, and the handles of its
//! containers.
//!
//! What is remembered is an answer to a read, and a write says which version it was decided by: what others have changed
//! since makes it fail, and is asked for then. Affinities of all owners come from a watch, and say which prefixes are
//! occupied. Knows no API server: the daemon reports what its watch saw.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairway_ground::Prefix;

use crate::affinity::Affinity;
use crate::block::{Block, Owner};
use crate::store::{Handle, Key, Object, Selection, Store, StoreError, Version, Versioned};

/// How many handles are remembered: a node has a few hundred containers. What is forgotten is asked for.
const HANDLES_MAX: usize = 8192;
/// How many prefixes without an affinity are remembered; beyond that, all blocks are listed for a claim.
const UNOWNED_MAX: usize = 65_536;

/// How many blocks are remembered that were deleted before their affinity: a node gives up a few at a time.
const DELETED_MAX: usize = 1024;

/// See the module.
#[derive(Debug)]
pub struct RememberedStore<S> {
    inner: S,
    owner: Owner,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Its own blocks, and those of others that its Pods have addresses of.
    blocks: BTreeMap<Prefix, Versioned<Block>>,
    /// Handles that were read or written; `None` for one that this node has deleted.
    handles: BTreeMap<String, Option<Versioned<Handle>>>,
    /// The same, the oldest first.
    handle_ages: VecDeque<String>,
    /// Its own affinities; `None` before the watch has named all.
    affinities: Option<BTreeMap<Prefix, Versioned<Affinity>>>,
    /// Those that a write has found to be otherwise: they are read before they are believed.
    doubtful: BTreeSet<Prefix>,
    /// Blocks likewise. What they were is announced until it is known what they are.
    doubtful_blocks: BTreeSet<Prefix>,
    /// Blocks that this node has deleted, and whose affinity is still there.
    deleted_blocks: BTreeSet<Prefix>,
    /// The blocks that others own.
    foreign: BTreeMap<Prefix, BTreeSet<Owner>>,
    /// Where a block may be that nobody owns; `None` before all blocks were listed.
    unowned: Option<BTreeSet<Prefix>>,
    /// Some of these were not noted, since they are too many.
    has_more_unowned: bool,
}

impl<S: Store> RememberedStore<S> {
    /// What the node of this name remembers of a store: nothing yet.
    pub fn new(inner: S, node: &str) -> Self {
        Self { inner, owner: Owner::Host(node.to_owned()), memory: Mutex::default() }
    }

    /// The store behind it.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// All affinities, as a watch begins.
    pub fn affinities_are(&self, affinities: impl IntoIterator<Item = Versioned<Affinity>>) {
        let mut memory = self.memory();
        let before = memory.affinities.take().unwrap_or_default();
        let foreign = std::mem::take(&mut memory.foreign);
        let (mut own, mut others) = (BTreeMap::new(), BTreeMap::<Prefix, BTreeSet<Owner>>::new());
        for affinity in affinities {
            let Affinity { owner, prefix, .. } = &affinity.value;
            if *owner == self.owner {
                own.insert(*prefix, affinity);
            } else {
                others.entry(*prefix).or_default().insert(owner.clone());
            }
        }
        for prefix in before.keys().chain(foreign.keys()) {
            if !own.contains_key(prefix) && !others.contains_key(prefix) {
                memory.note_unowned(*prefix);
            }
        }
        let unread = own.keys().filter(|it| !memory.blocks.contains_key(it));
        let unread: Vec<Prefix> = unread.copied().collect();
        memory.doubtful_blocks.extend(unread);
        memory.affinities = Some(own);
        memory.foreign = others;
        memory.doubtful.clear();
    }

    /// An affinity is so now, as the watch has seen.
    pub fn affinity_is(&self, affinity: Versioned<Affinity>) {
        let mut memory = self.memory();
        let Affinity { owner, prefix, .. } = affinity.value.clone();
        if owner != self.owner {
            memory.foreign.entry(prefix).or_default().insert(owner);
            return;
        }
        let Some(own) = &mut memory.affinities else { return };
        // A watch is late: what this node has written since is newer.
        if own.get(&prefix).is_none_or(|it| is_newer(&affinity.version, &it.version)) {
            own.insert(prefix, affinity);
            // Another process of the node may have claimed it, as calico-ipam does while a cluster is taken over.
            if !memory.blocks.contains_key(&prefix) {
                memory.doubtful_blocks.insert(prefix);
            }
        }
    }

    /// Reads the blocks of which it is not known what they are. What cannot be read is tried again the next time.
    ///
    /// # Errors
    /// The store fails.
    pub async fn settle(&self) -> Result<(), StoreError> {
        let doubtful: Vec<Prefix> = self.memory().doubtful_blocks.iter().copied().collect();
        let mut outcome = Ok(());
        for prefix in doubtful {
            match self.read(&Key::Block(prefix)).await {
                Ok(_) => {}
                Err(StoreError::Unavailable(reason)) => {
                    return Err(StoreError::Unavailable(reason));
                }
                // One that is unreadable keeps no other from it.
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// An affinity is gone, as the watch has seen: it had this version then.
    pub fn affinity_is_gone(&self, owner: &Owner, prefix: Prefix, version: &Version) {
        let mut memory = self.memory();
        if *owner == self.owner {
            let Some(own) = &mut memory.affinities else { return };
            // This node may have made another one since.
            let is_same = own.get(&prefix).is_some_and(|it| it.version.object == version.object);
            if !is_same {
                return;
            }
            own.remove(&prefix);
            // Somebody has taken it: what this node believes of the block may be wrong.
            memory.doubtful_blocks.insert(prefix);
        } else if let Some(owners) = memory.foreign.get_mut(&prefix) {
            owners.remove(owner);
            if owners.is_empty() {
                memory.foreign.remove(&prefix);
            }
        }
        if !memory.is_owned(prefix) {
            memory.note_unowned(prefix);
        }
    }

    /// Reads what the node does not hear of: all blocks once, and then those of others whose addresses its Pods have. What
    /// cannot be read stays as it is remembered.
    ///
    /// # Errors
    /// The store fails.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let is_listed = self.memory().unowned.is_some();
        if !is_listed {
            return self.read_blocks().await;
        }
        let foreign: Vec<Prefix> = {
            let memory = self.memory();
            let of_others = memory.blocks.values().map(|it| &it.value);
            let of_others = of_others.filter(|it| it.owner() != Some(&self.owner));
            let doubtful = memory.doubtful_blocks.iter().copied();
            of_others.map(Block::prefix).chain(doubtful).collect()
        };
        for prefix in foreign {
            self.read(&Key::Block(prefix)).await?;
        }
        Ok(())
    }

    /// The blocks that concern the node, as far as they are remembered, and its affinities; `None` before all are known.
    pub fn own(&self) -> Option<(Vec<Block>, Vec<Affinity>)> {
        let memory = self.memory();
        memory.unowned.as_ref()?;
        let affinities = memory.affinities.as_ref()?.values().map(|it| it.value.clone()).collect();
        Some((memory.blocks.values().map(|it| it.value.clone()).collect(), affinities))
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what a write has found to be otherwise.
    async fn resolve_doubts(&self) -> Result<(), StoreError> {
        let doubtful: Vec<Prefix> = self.memory().doubtful.iter().copied().collect();
        for prefix in doubtful {
            let found = self.inner.get(&Key::Affinity(self.owner.clone(), prefix)).await?;
            let mut memory = self.memory();
            memory.doubtful.remove(&prefix);
            let Some(own) = &mut memory.affinities else { continue };
            match found {
                Some(Versioned { value: Object::Affinity(value), version }) => {
                    own.insert(prefix, Versioned { value, version });
                }
                _ => {
                    own.remove(&prefix);
                    if !memory.is_owned(prefix) {
                        memory.note_unowned(prefix);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads all blocks, and keeps what concerns the node, and where those are that nobody owns.
    async fn read_blocks(&self) -> Result<(), StoreError> {
        let before = self.memory().versions();
        let (mut there, mut kept) = (BTreeSet::new(), Vec::new());
        let take = |object: Versioned<Object>| {
            let Object::Block(block) = &object.value else { return };
            there.insert(block.prefix());
            if block.owner().is_none() || concerns(block, &self.owner) {
                kept.push(object);
            }
        };
        self.inner.each_block(take).await?;
        self.memory().are_listed(&before, &there, &kept, &self.owner);
        Ok(())
    }

    /// Asks the store, and remembers the answer.
    async fn read(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        let found = self.inner.get(key).await?;
        let mut memory = self.memory();
        match (&found, key) {
            (Some(object), _) => memory.put(object, &self.owner),
            (None, Key::Block(prefix)) => memory.forget_block(*prefix),
            (None, _) => {}
        }
        Ok(found)
    }

    /// The answer to a read, where it is remembered.
    fn remembered(&self, key: &Key) -> Option<Option<Versioned<Object>>> {
        let memory = self.memory();
        match key {
            Key::Block(prefix) if memory.doubtful_blocks.contains(prefix) => None,
            Key::Block(prefix) => memory.blocks.get(prefix).map(|it| Some(of_block(it))),
            Key::Handle(id) => memory.handles.get(id).map(|it| it.as_ref().map(of_handle)),
            Key::Affinity(owner, prefix) if *owner == self.owner => {
                let own = memory.affinities.as_ref()?;
                Some(own.get(prefix).map(of_affinity))
            }
            Key::Affinity(..) => None,
        }
    }
}

impl Memory {
    fn versions(&self) -> BTreeMap<Prefix, Version> {
        self.blocks.iter().map(|(prefix, it)| (*prefix, it.version.clone())).collect()
    }

    /// All blocks were listed: those that are there, and what is to be kept of them. `before` is from when that began.
    fn are_listed<'a>(
        &mut self,
        before: &BTreeMap<Prefix, Version>,
        there: &BTreeSet<Prefix>,
        kept: impl IntoIterator<Item = &'a Versioned<Object>>,
        owner: &Owner,
    ) {
        for (prefix, version) in before {
            // It has gone, unless it was written since.
            let is_as_before = self.blocks.get(prefix).is_some_and(|it| it.version == *version);
            if is_as_before && !there.contains(prefix) {
                self.forget_block(*prefix);
            }
        }
        self.unowned = Some(BTreeSet::new());
        self.has_more_unowned = false;
        for object in kept {
            self.put(object, owner);
        }
    }

    fn is_owned(&self, prefix: Prefix) -> bool {
        let is_own = self.affinities.as_ref().is_some_and(|it| it.contains_key(&prefix));
        is_own || self.foreign.contains_key(&prefix)
    }

    fn note_unowned(&mut self, prefix: Prefix) {
        if let Some(unowned) = &mut self.unowned {
            match unowned.len() < UNOWNED_MAX {
                true => _ = unowned.insert(prefix),
                false => self.has_more_unowned = true,
            }
        }
    }

    fn put_handle(&mut self, id: String, handle: Option<Versioned<Handle>>) {
        if self.handles.insert(id.clone(), handle).is_none() {
            self.handle_ages.push_back(id);
        }
        while self.handle_ages.len() > HANDLES_MAX {
            if let Some(oldest) = self.handle_ages.pop_front() {
                self.handles.remove(&oldest);
            }
        }
    }

    fn forget_handle(&mut self, id: &str) {
        if self.handles.remove(id).is_some() {
            self.handle_ages.retain(|it| it != id);
        }
    }

    fn is_news(&self, prefix: Prefix, version: &Version) -> bool {
        self.blocks.get(&prefix).is_none_or(|it| is_newer(version, &it.version))
    }

    /// A block is gone, or is another one.
    fn forget_block(&mut self, prefix: Prefix) {
        self.blocks.remove(&prefix);
        self.doubtful_blocks.remove(&prefix);
        self.deleted_blocks.remove(&prefix);
    }

    /// An object is so now.
    fn put(&mut self, object: &Versioned<Object>, owner: &Owner) {
        let version = object.version.clone();
        match &object.value {
            // What was read may be older than what was written since.
            Object::Block(block) if !self.is_news(block.prefix(), &version) => {}
            Object::Block(block) if concerns(block, owner) => {
                self.forget_block(block.prefix());
                self.blocks.insert(block.prefix(), Versioned { value: block.clone(), version });
            }
            Object::Block(block) => {
                self.forget_block(block.prefix());
                if block.owner().is_none() {
                    self.note_unowned(block.prefix());
                }
            }
            Object::Handle(handle) => {
                let kept = Versioned { value: handle.clone(), version };
                self.put_handle(handle.id.clone(), Some(kept));
            }
            Object::Affinity(affinity) if affinity.owner == *owner => {
                if let Some(own) = &mut self.affinities {
                    own.insert(affinity.prefix, Versioned { value: affinity.clone(), version });
                }
            }
            Object::Affinity(_) => {}
        }
    }

    /// What is remembered of an object may be wrong.
    fn doubt(&mut self, key: &Key, owner: &Owner) {
        match key {
            Key::Block(prefix) => _ = self.doubtful_blocks.insert(*prefix),
            Key::Handle(id) => self.forget_handle(id),
            Key::Affinity(of, prefix) if of == owner => _ = self.doubtful.insert(*prefix),
            Key::Affinity(..) => {}
        }
    }
}

/// Whether a node owns a block, or its Pods have addresses of it.
fn concerns(block: &Block, owner: &Owner) -> bool {
    let is_of_node =
        |node: Option<&String>| matches!(owner, Owner::Host(host) if node == Some(host));
    let mut taken = block.taken().map(|(_, it)| it.secondary.get("node"));
    block.owner() == Some(owner) || taken.any(is_of_node)
}

/// Whether a version is the later one, as far as can be told: numbers of one object rise.
fn is_newer(version: &Version, before: &Version) -> bool {
    let numbers = (version.state.parse::<u64>(), before.state.parse::<u64>());
    match numbers {
        (Ok(state), Ok(earlier)) => state >= earlier,
        _ => true,
    }
}

fn prefix_of(object: &Versioned<Object>) -> Option<Prefix> {
    match &object.value {
        Object::Block(block) => Some(block.prefix()),
        _ => None,
    }
}

fn of_block(it: &Versioned<Block>) -> Versioned<Object> {
    Versioned { value: Object::Block(it.value.clone()), version: it.version.clone() }
}

fn of_handle(it: &Versioned<Handle>) -> Versioned<Object> {
    Versioned { value: Object::Handle(it.value.clone()), version: it.version.clone() }
}

fn of_affinity(it: &Versioned<Affinity>) -> Versioned<Object> {
    Versioned { value: Object::Affinity(it.value.clone()), version: it.version.clone() }
}

impl<S: Store> Store for RememberedStore<S> {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        if matches!(key, Key::Affinity(owner, _) if *owner == self.owner) {
            self.resolve_doubts().await?;
        }
        if let Some(answer) = self.remembered(key) {
            return Ok(answer);
        }
        self.read(key).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        if matches!(selection, Selection::AffinitiesOf(owner) if *owner == self.owner) {
            self.resolve_doubts().await?;
            if let Some(own) = &self.memory().affinities {
                return Ok(own.values().map(of_affinity).collect());
            }
        }
        let before = self.memory().versions();
        let listed = self.inner.list(selection).await?;
        if *selection == Selection::Blocks {
            let there = listed.iter().filter_map(prefix_of).collect();
            self.memory().are_listed(&before, &there, &listed, &self.owner);
        }
        Ok(listed)
    }

    fn occupied(&self) -> Option<Vec<Prefix>> {
        let memory = self.memory();
        if memory.has_more_unowned {
            return None;
        }
        let own = memory.affinities.as_ref()?.keys();
        let unowned = memory.unowned.as_ref()?.iter();
        let all = own.chain(memory.foreign.keys()).chain(memory.blocks.keys()).chain(unowned);
        Some(all.copied().collect())
    }

    fn blocks_of_node(&self) -> Option<Vec<Block>> {
        self.own().map(|(blocks, _)| blocks)
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        let key = object.key();
        let outcome = self.inner.write(object.clone(), expected).await;
        let mut memory = self.memory();
        match &outcome {
            Ok(version) => {
                let version = version.clone();
                memory.put(&Versioned { value: object, version }, &self.owner);
            }
            Err(_) => memory.doubt(&key, &self.owner),
        }
        outcome
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        let outcome = self.inner.delete(key, expected).await;
        let mut memory = self.memory();
        match (&outcome, key) {
            (Ok(()), Key::Block(prefix)) => {
                memory.forget_block(*prefix);
                if memory.deleted_blocks.len() < DELETED_MAX {
                    memory.deleted_blocks.insert(*prefix);
                }
                if let Some(unowned) = &mut memory.unowned {
                    unowned.remove(prefix);
                }
            }
            (Ok(()), Key::Handle(id)) => memory.put_handle(id.clone(), None),
            (Ok(()), Key::Affinity(owner, prefix)) if *owner == self.owner => {
                if let Some(own) = &mut memory.affinities {
                    own.remove(prefix);
                }
                let is_deleted = memory.deleted_blocks.remove(prefix);
                if !is_deleted && !memory.is_owned(*prefix) {
                    memory.note_unowned(*prefix);
                }
            }
            (Ok(()), Key::Affinity(..)) => {}
            (Err(_), key) => memory.doubt(key, &self.owner),
        }
        outcome
    }
}
