//! Addresses are released: those that are named, or all of a handle.
//!
//! A block is written before the handles that lead to it. One that is nobody's goes with its last address; one whose pool no
//! longer selects its node is given up then. Knows no Pod.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::Prefix;
use futures_util::future::join_all;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::block::{Block, Owner, Release, Released};
use crate::claim::ReleaseIf;
use crate::error::IpamError;
use crate::handle::Generation;
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
        let mut by_block: BTreeMap<Prefix, BTreeSet<Release>> = BTreeMap::new();
        let mut places = Places::default();
        let mut unplaced = BTreeSet::new();
        for release in releases {
            match self.block_with(release.address, &mut places).await? {
                Some(prefix) => _ = by_block.entry(prefix).or_default().insert(release.clone()),
                None => {
                    if unplaced.insert(release.address) {
                        freed.unallocated.push(release.address);
                    }
                }
            }
        }
        let mut uncounted: BTreeMap<(String, Generation), BTreeMap<Prefix, u32>> = BTreeMap::new();
        for (prefix, releases) in by_block {
            let releases: Vec<Release> = releases.into_iter().collect();
            let now = self.now.seconds();
            let cooldown = self.facts.config.cooldown;
            let outcome =
                self.release_in(prefix, |block| Ok(block.release(&releases, now, cooldown)?)).await;
            match outcome {
                Ok(Some((outcome, generations))) => {
                    for (handle, count) in &outcome.handles {
                        let Some(generation) = generations.get(handle) else { continue };
                        let place = uncounted.entry((handle.clone(), generation.clone()));
                        place.or_default().insert(prefix, *count);
                    }
                    freed.released.extend(outcome.released);
                    freed.unallocated.extend(outcome.unallocated);
                }
                Ok(None) => freed.unallocated.extend(releases.iter().map(|it| it.address)),
                Err(error) => freed.errors.push(error),
            }
        }
        let uncounted = uncounted.iter().map(|((handle, generation), counts)| {
            self.take_from_handle(handle, generation, counts)
        });
        join_all(uncounted).await.into_iter().collect::<Result<(), _>>()?;
        Ok(freed)
    }

    /// Releases all addresses of a handle.
    ///
    /// # Errors
    /// There is none such, or the store fails: to be repeated then.
    pub async fn release_handle(&self, handle: &str) -> Result<Vec<IpAddr>, IpamError> {
        let mut released = Vec::new();
        for _ in 0..ATTEMPTS_MAX {
            let Some(read) = store::handle(self.store, handle).await? else {
                return match released.is_empty() {
                    true => Err(IpamError::NoSuchHandle(handle.to_owned())),
                    false => Ok(released),
                };
            };
            for prefix in read.value.counts.keys() {
                released.extend(self.release_handle_in(*prefix, handle).await?);
            }
            // Somebody may have counted an address since: what that leads to is released, too.
            match self.store.delete(&Key::Handle(handle.to_owned()), &read.version).await {
                Err(StoreError::Conflict) => {}
                outcome => return Ok(outcome.map(|()| released)?),
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    /// Releases what a handle has in a block. Where that is nothing, the block is written all the same: somebody may have
    /// counted an address already, and be about to write it, and that write must fail.
    async fn release_handle_in(
        &self,
        prefix: Prefix,
        handle: &str,
    ) -> Result<Vec<IpAddr>, IpamError> {
        let (now, cooldown) = (self.now.seconds(), self.facts.config.cooldown);
        let outcome = self
            .release_in(prefix, |block| {
                let outcome = block.release_handle(handle, now, cooldown);
                if outcome.released.is_empty() {
                    block.touch();
                }
                Ok(outcome)
            })
            .await?;
        Ok(outcome.map(|(outcome, _)| outcome.released).unwrap_or_default())
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

    /// Changes a block by a release; `None` if there is no such block. Returns which handles led to it before.
    async fn release_in(
        &self,
        prefix: Prefix,
        release: impl Fn(&mut Block) -> Result<Released, IpamError>,
    ) -> Result<Option<(Released, BTreeMap<String, Generation>)>, IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(mut block) = self.load(prefix).await? else { return Ok(None) };
            let before = block.value.sequence();
            let outcome = release(&mut block.value)?;
            let mut generations = BTreeMap::new();
            if block.value.sequence() == before {
                return Ok(Some((outcome, generations)));
            }
            for handle in outcome.handles.keys() {
                if let Some(generation) = self.generation(handle).await? {
                    generations.insert(handle.clone(), generation);
                }
            }
            let owner = block.value.owner().cloned();
            match self.put_block(block).await {
                Err(StoreError::Conflict) => {}
                written => {
                    written?;
                    self.give_up_unselected(owner.as_ref(), prefix).await;
                    return Ok(Some((outcome, generations)));
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

    /// The block that has the address: the one of its pool's size, unless only another one says that it is taken.
    pub(crate) async fn block_with(
        &self,
        address: IpAddr,
        places: &mut Places,
    ) -> Result<Option<Prefix>, StoreError> {
        let of_pool = self.facts.pool_of(address);
        let expected = of_pool.and_then(|it| Prefix::new(address, it.block_length).ok());
        if let Some(prefix) = expected {
            if !places.known.contains_key(&prefix) && !places.are_all_known {
                let block = self.load(prefix).await?;
                places.known.insert(prefix, block.map(|it| it.value));
            }
            if places.is_taken_in(prefix, address) {
                return Ok(Some(prefix));
            }
        }
        if !places.are_all_known {
            let blocks = self.load_all().await?;
            places.known =
                blocks.into_iter().map(|it| (it.value.prefix(), Some(it.value))).collect();
            places.are_all_known = true;
        }
        let with = |it: &&Prefix| it.contains(address);
        let taken = places.known.keys().filter(with).find(|it| places.is_taken_in(**it, address));
        let any = || expected.filter(|it| places.known.contains_key(it));
        Ok(taken.copied().or_else(any).or_else(|| places.known.keys().find(with).copied()))
    }
}

/// The blocks that were read to find where addresses are.
#[derive(Default)]
pub(crate) struct Places {
    known: BTreeMap<Prefix, Option<Block>>,
    are_all_known: bool,
}

impl Places {
    fn is_taken_in(&self, prefix: Prefix, address: IpAddr) -> bool {
        let block = self.known.get(&prefix).and_then(Option::as_ref);
        block.is_some_and(|it| it.inspect(address).is_some())
    }
}
