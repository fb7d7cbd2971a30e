//! Where the addresses of a handle are.
//!
//! A handle is an index of the blocks, and is written before them: it may name a block that has no address of it, if
//! somebody died between the two, and never lacks one that has. Knows no address.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Prefix;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::error::IpamError;
use crate::store::{self, Handle, Key, Object, Store, StoreError, Version, Versioned};

/// Which handle of an ID: another one, once it was deleted and made again. What was counted in one is not taken from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(String);

impl<S: Store> Addressing<'_, S> {
    /// Makes it, with so many in each block. Returns which handle that is.
    pub(crate) async fn make_handle(
        &self,
        id: &str,
        counts: &BTreeMap<Prefix, u32>,
    ) -> Result<Generation, IpamError> {
        let new = Handle { id: id.to_owned(), counts: counts.clone() };
        match self.store.write(Object::Handle(new), None).await {
            Err(StoreError::Conflict) => Err(IpamError::HandleInUse(id.to_owned())),
            outcome => Ok(Generation(outcome?.object)),
        }
    }

    /// It has so many more in each block. Returns which handle that is.
    pub(crate) async fn add_to_handle(
        &self,
        id: &str,
        counts: &BTreeMap<Prefix, u32>,
    ) -> Result<Generation, IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            // Most handles are new: one write makes them.
            let new = Handle { id: id.to_owned(), counts: counts.clone() };
            match self.store.write(Object::Handle(new), None).await {
                Err(StoreError::Conflict) => {}
                outcome => return Ok(Generation(outcome?.object)),
            }
            let Some(Versioned { value: mut handle, version }) =
                store::handle(self.store, id).await?
            else {
                continue;
            };
            for (prefix, count) in counts {
                let counted = handle.counts.entry(*prefix).or_default();
                *counted = counted.saturating_add(*count);
            }
            match self.store.write(Object::Handle(handle), Some(&version)).await {
                Err(StoreError::Conflict) => {}
                outcome => return Ok(Generation(outcome?.object)),
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    /// Which handle has this ID now.
    pub(crate) async fn generation(&self, id: &str) -> Result<Option<Generation>, StoreError> {
        let found = store::handle(self.store, id).await?;
        Ok(found.map(|it| Generation(it.version.object)))
    }

    /// It has so many less, if it still is this one; without addresses it goes.
    pub(crate) async fn take_from_handle(
        &self,
        id: &str,
        generation: &Generation,
        counts: &BTreeMap<Prefix, u32>,
    ) -> Result<(), IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            let read = store::handle(self.store, id).await?;
            let Some(Versioned { value: mut handle, version }) =
                read.filter(|it| it.version.object == generation.0)
            else {
                return Ok(());
            };
            for (prefix, count) in counts {
                if let Some(counted) = handle.counts.get_mut(prefix) {
                    *counted = counted.saturating_sub(*count);
                }
            }
            handle.counts.retain(|_, count| *count > 0);
            match self.put_handle(handle, Some(&version)).await {
                Err(StoreError::Conflict) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    /// It has in each block that it names what that block says.
    pub(crate) async fn settle_handle(&self, id: &str) -> Result<(), IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(Versioned { value, version }) = store::handle(self.store, id).await? else {
                return Ok(());
            };
            let prefixes = value.counts.keys().copied().collect();
            match self.recount_handle(value, Some(&version), &prefixes).await {
                Err(IpamError::Store(StoreError::Conflict)) => {}
                outcome => return outcome,
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    /// It has as many in these blocks as they say, unless it or they change meanwhile. Without a version, there was none.
    pub(crate) async fn recount_handle(
        &self,
        mut handle: Handle,
        version: Option<&Version>,
        prefixes: &BTreeSet<Prefix>,
    ) -> Result<(), IpamError> {
        for prefix in prefixes {
            let block = self.load(*prefix).await?;
            let held = block.as_ref().map_or(0, |it| it.value.addresses_of(&handle.id).count());
            if let Some(mut block) = block {
                // Somebody may have counted an address already, and be about to write the block: that write must fail.
                block.value.touch();
                self.put_block(block).await?;
            }
            handle.counts.insert(*prefix, u32::try_from(held).unwrap_or(u32::MAX));
        }
        handle.counts.retain(|_, count| *count > 0);
        Ok(self.put_handle(handle, version).await?)
    }

    async fn put_handle(
        &self,
        handle: Handle,
        expected: Option<&Version>,
    ) -> Result<(), StoreError> {
        match (handle.counts.is_empty(), expected) {
            (true, None) => Ok(()),
            (true, Some(version)) => self.store.delete(&Key::Handle(handle.id), version).await,
            (false, version) => self.store.write(Object::Handle(handle), version).await.map(|_| ()),
        }
    }
}
