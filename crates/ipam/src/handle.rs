//! Where the addresses of a handle are.
//!
//! A handle is an index of the blocks, and is written before them: it may name a block that has no address of it, if
//! somebody died between the two, and never lacks one that has. Knows no address.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Prefix;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::error::IpamError;
use crate::store::{self, Handle, Key, Object, Store, StoreError, Version};

impl<S: Store> Addressing<'_, S> {
    /// It has so many more in each block.
    pub(crate) async fn add_to_handle(
        &self,
        id: &str,
        counts: &BTreeMap<Prefix, u32>,
    ) -> Result<(), IpamError> {
        // Most handles are new: one write makes them.
        let new = Handle { id: id.to_owned(), counts: counts.clone() };
        match self.store.write(Object::Handle(new), None).await {
            Err(StoreError::Conflict) => {}
            outcome => return Ok(outcome.map(|_| ())?),
        }
        self.change_handle(id, |handle| {
            for (prefix, count) in counts {
                let counted = handle.counts.entry(*prefix).or_default();
                *counted = counted.saturating_add(*count);
            }
        })
        .await
    }

    /// It has so many less.
    pub(crate) async fn take_from_handle(
        &self,
        id: &str,
        counts: &BTreeMap<Prefix, u32>,
    ) -> Result<(), IpamError> {
        self.change_handle(id, |handle| {
            for (prefix, count) in counts {
                if let Some(counted) = handle.counts.get_mut(prefix) {
                    *counted = counted.saturating_sub(*count);
                }
            }
        })
        .await
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

    /// Changes a handle; one without addresses is deleted.
    async fn change_handle(&self, id: &str, change: impl Fn(&mut Handle)) -> Result<(), IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            let read = store::handle(self.store, id).await?;
            let expected = read.as_ref().map(|it| it.version.clone());
            let before = read.map(|it| it.value);
            let mut after = before
                .clone()
                .unwrap_or_else(|| Handle { id: id.to_owned(), counts: BTreeMap::new() });
            change(&mut after);
            after.counts.retain(|_, count| *count > 0);
            if before.as_ref() == Some(&after) {
                return Ok(());
            }
            match self.put_handle(after, expected.as_ref()).await {
                Err(StoreError::Conflict) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
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
