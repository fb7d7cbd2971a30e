//! A block gets an owner and loses it, in steps between which each participant may die.
//!
//! ∅ → pending → confirmed → pendingDeletion → ∅. A claim makes the affinity *pending*, then the block, which succeeds for
//! one owner alone, then sets *confirmed*. A release sets *pendingDeletion*, deletes the block, or makes it nobody's while
//! it has addresses, and deletes the affinity. The next claim or release that meets something half done completes it or takes it back. Knows
//! nothing of which block is to be claimed.

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
        for _ in 0..ATTEMPTS_MAX {
            match self.try_to_claim(owner, prefix, reserved).await {
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
        reserved: Option<&HostReserved>,
    ) -> Result<Claim, IpamError> {
        let affinity = store::affinity(self.store, owner, prefix).await?;
        let is_confirmed =
            affinity.as_ref().is_some_and(|it| it.value.state == AffinityState::Confirmed);
        let mut block = self.load(prefix).await?;
        let is_ours = block.as_ref().is_some_and(|it| it.value.owner() == Some(owner));
        if block.is_some() && !is_ours {
            if let Some(stale) = affinity {
                let key = Key::Affinity(owner.clone(), prefix);
                self.store.delete(&key, &stale.version).await?;
            }
            return Ok(Claim::Lost);
        }
        if let Some(block) = block.take_if(|_| is_ours && is_confirmed) {
            return Ok(Claim::Ours(block));
        }

        let pending = self.set_affinity(owner, prefix, AffinityState::Pending, affinity).await?;
        let (value, expected) = match block {
            // What others have read of it must conflict: it may have been about to go.
            Some(Versioned { mut value, version }) => {
                value.touch();
                (value, Some(version))
            }
            None => (Block::new(prefix, owner.clone(), self.now, reserved)?, None),
        };
        let version = self.store.write(Object::Block(value.clone()), expected.as_ref()).await?;
        self.set_affinity(owner, prefix, AffinityState::Confirmed, Some(pending)).await?;
        Ok(Claim::Ours(Versioned { value, version }))
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
            Some(before) if before.value == value => return Ok(before),
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
                self.set_affinity(owner, prefix, AffinityState::Confirmed, affinity).await?;
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
