//! A block gets an owner and loses it, in steps between which each participant may die.
//!
//! ∅ → pending → confirmed → pendingDeletion → ∅. A claim makes the affinity *pending*, then the block, which succeeds for
//! one owner alone, then sets *confirmed*. A release sets *pendingDeletion*, deletes the block, or makes it nobody's while
//! it has addresses, and deletes the affinity. The next claim or release that meets something half done completes it or
//! takes it back. Knows nothing of which block is to be claimed.

use fairway_ground::Prefix;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::affinity::{Affinity, AffinityState};
use crate::block::{Block, HostReserved, Owner};
use crate::error::IpamError;
use crate::store::{self, Key, Object, Store, StoreError, Versioned};

/// What came of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The block is the owner's, as it is now.
    Ours(Versioned<Block>),
    /// It is somebody else's, or nobody's with addresses in use.
    Lost,
}

/// Whether a claim makes the block where there is none, and what is for no Pod of it then.
#[derive(Debug, Clone, Copy)]
enum New<'a> {
    /// It makes none.
    None,
    /// If it would share no address with another.
    Checked(Option<&'a HostReserved>),
    /// That is known.
    Free(Option<&'a HostReserved>),
}

/// What a block must be for its owner to lose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseIf {
    /// It may have addresses in use: they stay.
    Always,
    /// It has none.
    Empty,
    /// It has none, and nothing has changed since it had this sequence number.
    EmptySince(u64),
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The owner has it no longer, or never had.
    Gone,
    /// It is in use, or has changed: nothing was done.
    Kept,
}

impl<S: Store> Addressing<'_, S> {
    /// Makes a block this owner's: makes it, or finishes what was begun.
    pub(crate) async fn claim(
        &self,
        owner: &Owner,
        prefix: Prefix,
        reserved: Option<&HostReserved>,
    ) -> Result<Claim, IpamError> {
        self.claim_until_settled(owner, prefix, New::Checked(reserved)).await
    }

    /// The same for a prefix that shares no address with a block of another size, so that none has to be listed.
    pub(crate) async fn claim_free(
        &self,
        owner: &Owner,
        prefix: Prefix,
        reserved: Option<&HostReserved>,
    ) -> Result<Claim, IpamError> {
        self.claim_until_settled(owner, prefix, New::Free(reserved)).await
    }

    /// Finishes a claim of a block that is there; makes none.
    pub(crate) async fn confirm(&self, owner: &Owner, prefix: Prefix) -> Result<Claim, IpamError> {
        self.claim_until_settled(owner, prefix, New::None).await
    }

    async fn claim_until_settled(
        &self,
        owner: &Owner,
        prefix: Prefix,
        new: New<'_>,
    ) -> Result<Claim, IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            match self.try_to_claim(owner, prefix, new).await {
                Err(IpamError::Store(StoreError::Conflict)) => {}
                outcome => return outcome,
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    async fn try_to_claim(
        &self,
        owner: &Owner,
        prefix: Prefix,
        new: New<'_>,
    ) -> Result<Claim, IpamError> {
        let affinity = store::affinity(self.store, owner, prefix).await?;
        let is_confirmed =
            affinity.as_ref().is_some_and(|it| it.value.state == AffinityState::Confirmed);
        let (value, expected) = match self.load(prefix).await? {
            Some(block) if block.value.owner() == Some(owner) && is_confirmed => {
                return Ok(Claim::Ours(block));
            }
            // What others have read of it must conflict: it may have been about to go.
            Some(Versioned { mut value, version }) if value.owner() == Some(owner) => {
                value.touch();
                (value, Some(version))
            }
            // What the last Pod's address left behind when it had rested.
            Some(block) if block.value.owner().is_none() && block.value.is_empty() => {
                self.store.delete(&Key::Block(prefix), &block.version).await?;
                return Err(StoreError::Conflict.into());
            }
            None if self.may_make(prefix, new).await? => {
                let reserved = match new {
                    New::Checked(reserved) | New::Free(reserved) => reserved,
                    New::None => None,
                };
                (Block::new(prefix, owner.clone(), self.now, reserved)?, None)
            }
            _ => {
                if let Some(stale) = affinity {
                    let key = Key::Affinity(owner.clone(), prefix);
                    self.store.delete(&key, &stale.version).await?;
                }
                return Ok(Claim::Lost);
            }
        };
        let pending = self.set_affinity(owner, prefix, AffinityState::Pending, affinity).await?;
        let version = self.store.write(Object::Block(value.clone()), expected.as_ref()).await?;
        self.set_affinity(owner, prefix, AffinityState::Confirmed, Some(pending)).await?;
        Ok(Claim::Ours(Versioned { value, version }))
    }

    /// Whether a new block may be made: its pool has blocks of that size, and none of another size has addresses of it, from
    /// when the pool had another size of blocks.
    async fn may_make(&self, prefix: Prefix, new: New<'_>) -> Result<bool, StoreError> {
        match new {
            New::None => Ok(false),
            New::Free(_) => Ok(true),
            New::Checked(_) if !self.facts.pools.iter().any(|it| it.serves(prefix)) => Ok(false),
            New::Checked(_) => {
                let blocks = store::blocks(self.store).await?;
                let mut prefixes = blocks.iter().map(|it| it.value.prefix());
                Ok(!prefixes.any(|it| it != prefix && it.overlaps(prefix)))
            }
        }
    }

    async fn set_affinity(
        &self,
        owner: &Owner,
        prefix: Prefix,
        state: AffinityState,
        before: Option<Versioned<Affinity>>,
    ) -> Result<Versioned<Affinity>, StoreError> {
        let value = Affinity { owner: owner.clone(), prefix, state };
        let expected = match before {
            // A mark is written again: the owner may have begun to confirm since it was read, and must notice.
            Some(before) if before.value == value && state != AffinityState::PendingDeletion => {
                return Ok(before);
            }
            before => before.map(|it| it.version),
        };
        let version = self.store.write(Object::Affinity(value.clone()), expected.as_ref()).await?;
        Ok(Versioned { value, version })
    }

    /// Takes a block from its owner. One that is somebody else's only loses the affinity.
    pub(crate) async fn give_up(
        &self,
        owner: &Owner,
        prefix: Prefix,
        release_if: ReleaseIf,
    ) -> Result<Departure, IpamError> {
        for _ in 0..ATTEMPTS_MAX {
            match self.try_to_give_up(owner, prefix, release_if).await {
                Err(IpamError::Store(StoreError::Conflict)) => {}
                outcome => return outcome,
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    async fn try_to_give_up(
        &self,
        owner: &Owner,
        prefix: Prefix,
        release_if: ReleaseIf,
    ) -> Result<Departure, IpamError> {
        let affinity = store::affinity(self.store, owner, prefix).await?;
        let block = self.load(prefix).await?.filter(|it| it.value.owner() == Some(owner));
        if block.as_ref().is_some_and(|it| !release_if.allows(&it.value)) {
            // An address was given since the first attempt, or somebody died between two steps.
            if affinity.as_ref().is_some_and(|it| it.value.state == AffinityState::PendingDeletion)
            {
                self.try_to_claim(owner, prefix, New::None).await?;
            }
            return Ok(Departure::Kept);
        }
        // Without an affinity, too: the owner may have claimed the block since that was read, and be about to confirm it.
        let marked = match block.is_some() {
            true => {
                let state = AffinityState::PendingDeletion;
                Some(self.set_affinity(owner, prefix, state, affinity).await?)
            }
            false => affinity,
        };
        if let Some(Versioned { value, version }) = block {
            self.let_block_go(value, &version).await?;
        }
        if let Some(affinity) = marked {
            self.store.delete(&Key::Affinity(owner.clone(), prefix), &affinity.version).await?;
        }
        Ok(Departure::Gone)
    }

    /// Deletes a block that is empty; makes it nobody's otherwise.
    async fn let_block_go(
        &self,
        mut block: Block,
        version: &store::Version,
    ) -> Result<(), StoreError> {
        if block.is_empty() {
            return self.store.delete(&Key::Block(block.prefix()), version).await;
        }
        block.set_owner(None, self.now.seconds());
        self.store.write(Object::Block(block), Some(version)).await?;
        Ok(())
    }
}

impl ReleaseIf {
    fn allows(self, block: &Block) -> bool {
        match self {
            Self::Always => true,
            Self::Empty => block.is_empty(),
            Self::EmptySince(sequence) => block.is_empty() && block.sequence() == sequence,
        }
    }
}
