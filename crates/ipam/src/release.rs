//! Addresses are released: those that are named, or all of a handle.
//!
//! A block is written before the handles that lead to it. One that is nobody's goes with its last address; one whose pool no
//! longer selects its node is given up then. Knows no Pod.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::block::{Block, Owner, Release, Released};
use crate::claim::ReleaseIf;
use crate::error::IpamError;
use crate::store::{self, Key, Object, Store, StoreError, Versioned};

/// What came of a request to release addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Freed {
    /// The addresses that were released.
    pub released: Vec<IpAddr>,
    /// Those that nobody had.
    pub unallocated: Vec<IpAddr>,
    /// Why those of some blocks were not.
    pub errors: Vec<IpamError>,
}

impl<S: Store> Addressing<'_, S> {
    /// Releases addresses. Those of one block are released all, or none where one has another handle or sequence number;
    /// that keeps no other block's from it.
    ///
    /// # Errors
    /// The store cannot be read. What is released by then stays so.
    pub async fn release(&self, releases: &[Release]) -> Result<Freed, IpamError> {
        let mut freed = Freed::default();
        let mut by_block: BTreeMap<Prefix, Vec<Release>> = BTreeMap::new();
        let mut seen: Vec<&Release> = Vec::with_capacity(releases.len());
        let mut blocks = None;
        for release in releases {
            if seen.contains(&release) {
                continue;
            }
            seen.push(release);
            match self.block_with(release.address, &mut blocks).await? {
                Some(prefix) => by_block.entry(prefix).or_default().push(release.clone()),
                None => freed.unallocated.push(release.address),
            }
        }
        for (prefix, releases) in by_block {
            let now = self.now.seconds();
            let cooldown = self.facts.config.cooldown;
            let outcome =
                self.release_in(prefix, |block| Ok(block.release(&releases, now, cooldown)?)).await;
            match outcome {
                Ok(Some(outcome)) => {
                    self.uncount(prefix, &outcome).await?;
                    freed.released.extend(outcome.released);
                    freed.unallocated.extend(outcome.unallocated);
                }
                Ok(None) => freed.unallocated.extend(releases.iter().map(|it| it.address)),
                Err(error) => freed.errors.push(error),
            }
        }
        Ok(freed)
    }

    /// Releases all addresses of a handle.
    ///
    /// # Errors
    /// There is none such, or the store fails: to be repeated then.
    pub async fn release_handle(&self, handle: &str) -> Result<Vec<IpAddr>, IpamError> {
        let named = self.blocks_of_handle(handle).await?;
        let mut released = Vec::new();
        for prefix in named {
            let now = self.now.seconds();
            let cooldown = self.facts.config.cooldown;
            let outcome = self
                .release_in(prefix, |block| Ok(block.release_handle(handle, now, cooldown)))
                .await?;
            // It may name a block in which it has nothing: its owner died before that was written.
            self.forget_in_handle(handle, prefix).await?;
            released.extend(outcome.unwrap_or_default().released);
        }
        Ok(released)
    }

    /// The blocks that a handle names.
    pub(crate) async fn blocks_of_handle(
        &self,
        handle: &str,
    ) -> Result<BTreeSet<Prefix>, IpamError> {
        let found = store::handle(self.store, handle).await?;
        let found = found.ok_or_else(|| IpamError::NoSuchHandle(handle.to_owned()))?;
        Ok(found.value.counts.into_keys().collect())
    }

    /// Changes a block by a release; `None` if there is no such block.
    async fn release_in(
        &self,
        prefix: Prefix,
        release: impl Fn(&mut Block) -> Result<Released, IpamError>,
    ) -> Result<Option<Released>, IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(mut block) = self.load(prefix).await? else { return Ok(None) };
            let outcome = release(&mut block.value)?;
            if outcome.released.is_empty() {
                return Ok(Some(outcome));
            }
            let owner = block.value.owner().cloned();
            match self.put_block(block).await {
                Err(StoreError::Conflict) => {}
                written => {
                    written?;
                    self.give_up_unselected(owner.as_ref(), prefix).await;
                    return Ok(Some(outcome));
                }
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    /// Writes a block; one of nobody without an address in use goes.
    pub(crate) async fn put_block(&self, block: Versioned<Block>) -> Result<(), StoreError> {
        let Versioned { value, version } = block;
        if value.owner().is_none() && value.is_empty() {
            return self.store.delete(&Key::Block(value.prefix()), &version).await;
        }
        self.store.write(Object::Block(value), Some(&version)).await.map(|_| ())
    }

    async fn give_up_unselected(&self, owner: Option<&Owner>, prefix: Prefix) {
        if let Some(owner @ Owner::Host(host)) = owner
            && self.facts.is_of_other_nodes(prefix, host)
        {
            // What fails here is done when the node asks for addresses the next time: the release itself has succeeded.
            _ = self.give_up(owner, prefix, ReleaseIf::Empty).await;
        }
    }

    async fn uncount(&self, prefix: Prefix, outcome: &Released) -> Result<(), IpamError> {
        for (handle, count) in &outcome.handles {
            self.take_from_handle(handle, &BTreeMap::from([(prefix, *count)])).await?;
        }
        Ok(())
    }

    /// The block that has the address: of its pool's size, or of any other, for which all are listed once.
    pub(crate) async fn block_with(
        &self,
        address: IpAddr,
        all: &mut Option<Vec<Prefix>>,
    ) -> Result<Option<Prefix>, StoreError> {
        let of_pool = self.facts.pool_of(address);
        if let Some(prefix) = of_pool.and_then(|it| Prefix::new(address, it.block_length).ok())
            && self.load(prefix).await?.is_some()
        {
            return Ok(Some(prefix));
        }
        let all = match all {
            Some(all) => all,
            None => {
                let blocks = store::blocks(self.store).await?;
                all.insert(blocks.into_iter().map(|it| it.value.prefix()).collect())
            }
        };
        Ok(all.iter().copied().find(|it| it.contains(address)))
    }
}
