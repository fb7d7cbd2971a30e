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
    /// Those that a write has found to be otherwise.
    doubtful: BTreeSet<Prefix>,
    /// The blocks that others own.
    foreign: BTreeMap<Prefix, BTreeSet<Owner>>,
    /// Where a block may be that nobody owns; `None` if that is not known.
    unowned: Option<BTreeSet<Prefix>>,
    /// How much was remembered: what was read before that may be older.
    changes: u64,
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
        memory.affinities = Some(own);
        memory.foreign = others;
        memory.doubtful.clear();
        memory.changed();
    }

    /// An affinity is so now, as the watch has seen.
    pub fn affinity_is(&self, affinity: Versioned<Affinity>) {
        let mut memory = self.memory();
        let Affinity { owner, prefix, .. } = affinity.value.clone();
        memory.changed();
        if owner != self.owner {
            memory.foreign.entry(prefix).or_default().insert(owner);
            return;
        }
        let Some(own) = &mut memory.affinities else { return };
        // A watch is late: what this node has written since is newer.
        if own.get(&prefix).is_none_or(|it| is_newer(&affinity.version, &it.version)) {
            own.insert(prefix, affinity);
        }
    }

    /// An affinity is gone, as the watch has seen: it had this version then.
    pub fn affinity_is_gone(&self, owner: &Owner, prefix: Prefix, version: &Version) {
        let mut memory = self.memory();
        memory.changed();
        if *owner == self.owner {
            let Some(own) = &mut memory.affinities else { return };
            // This node may have made another one since.
            let is_same = own.get(&prefix).is_some_and(|it| it.version.object == version.object);
            if !is_same {
                return;
            }
            own.remove(&prefix);
            // Somebody has taken it: what this node believes of the block may be wrong.
            memory.blocks.remove(&prefix);
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

    /// Reads the blocks again of which the node does not hear: those of others, whose addresses its Pods have.
    ///
    /// # Errors
    /// The store fails.
    pub async fn refresh_blocks_of_others(&self) -> Result<(), StoreError> {
        let foreign: Vec<Prefix> = {
            let memory = self.memory();
            let of_others = memory.blocks.values().map(|it| &it.value);
            let of_others = of_others.filter(|it| it.owner() != Some(&self.owner));
            of_others.map(Block::prefix).collect()
        };
        for prefix in foreign {
            self.memory().blocks.remove(&prefix);
            self.get(&Key::Block(prefix)).await?;
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

    /// The answer to a read, where it is remembered.
    fn remembered(&self, key: &Key) -> Option<Option<Versioned<Object>>> {
        let memory = self.memory();
        match key {
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
    fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    fn is_owned(&self, prefix: Prefix) -> bool {
        let is_own = self.affinities.as_ref().is_some_and(|it| it.contains_key(&prefix));
        is_own || self.foreign.contains_key(&prefix)
    }

    fn note_unowned(&mut self, prefix: Prefix) {
        if let Some(unowned) = &mut self.unowned {
            unowned.insert(prefix);
            if unowned.len() > UNOWNED_MAX {
                self.unowned = None;
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

    /// An object is so now.
    fn put(&mut self, object: &Versioned<Object>, owner: &Owner) {
        let version = object.version.clone();
        match &object.value {
            Object::Block(block) if concerns(block, owner) => {
                self.blocks.insert(block.prefix(), Versioned { value: block.clone(), version });
            }
            Object::Block(block) => {
                self.blocks.remove(&block.prefix());
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
            Key::Block(prefix) => _ = self.blocks.remove(prefix),
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
        let before = self.memory().changes;
        let found = self.inner.get(key).await?;
        let mut memory = self.memory();
        if let Some(object) = found.as_ref().filter(|_| memory.changes == before) {
            memory.put(object, &self.owner);
        }
        Ok(found)
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        if matches!(selection, Selection::AffinitiesOf(owner) if *owner == self.owner) {
            self.resolve_doubts().await?;
            if let Some(own) = &self.memory().affinities {
                return Ok(own.values().map(of_affinity).collect());
            }
        }
        let before = self.memory().changes;
        let listed = self.inner.list(selection).await?;
        if *selection == Selection::Blocks {
            let mut memory = self.memory();
            if memory.changes == before {
                memory.blocks.clear();
                memory.unowned = Some(BTreeSet::new());
                for object in &listed {
                    memory.put(object, &self.owner);
                }
            }
        }
        Ok(listed)
    }

    fn occupied(&self) -> Option<Vec<Prefix>> {
        let memory = self.memory();
        let own = memory.affinities.as_ref()?.keys();
        let unowned = memory.unowned.as_ref()?.iter();
        let all = own.chain(memory.foreign.keys()).chain(memory.blocks.keys()).chain(unowned);
        Some(all.copied().collect())
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        let key = object.key();
        let outcome = self.inner.write(object.clone(), expected).await;
        let mut memory = self.memory();
        memory.changed();
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
        memory.changed();
        match (&outcome, key) {
            (Ok(()), Key::Block(prefix)) => {
                memory.blocks.remove(prefix);
                if let Some(unowned) = &mut memory.unowned {
                    unowned.remove(prefix);
                }
            }
            (Ok(()), Key::Handle(id)) => memory.put_handle(id.clone(), None),
            (Ok(()), Key::Affinity(owner, prefix)) if *owner == self.owner => {
                if let Some(own) = &mut memory.affinities {
                    own.remove(prefix);
                }
                if !memory.is_owned(*prefix) {
                    memory.note_unowned(*prefix);
                }
            }
            (Ok(()), Key::Affinity(..)) => {}
            (Err(_), key) => memory.doubt(key, &self.owner),
        }
        outcome
    }
}
