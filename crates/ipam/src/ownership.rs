//! Owners get and lose blocks because somebody says so, not because an address is needed.

use fairway_ground::Prefix;

use crate::addressing::Addressing;
use crate::block::Owner;
use crate::claim::{Claim, Departure, ReleaseIf};
use crate::error::IpamError;
use crate::store::{self, Store};
use crate::walk::blocks_in;

/// The most blocks of one claim.
const BLOCKS_MAX: u32 = 65_536;

/// What came of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// The blocks that are the owner's.
    pub claimed: Vec<Prefix>,
    /// Those that are somebody else's.
    pub failed: Vec<Prefix>,
}

/// Whose affinities to which blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Which<'a> {
    owner: Option<&'a Owner>,
    within: Option<Prefix>,
}

impl Which<'_> {
    fn contains(self, owner: &Owner, block: Prefix) -> bool {
        let is_within = |it: Prefix| it.contains(block.address()) && it.length() <= block.length();
        self.owner.is_none_or(|it| it == owner) && self.within.is_none_or(is_within)
    }
}

impl<S: Store> Addressing<'_, S> {
    /// Makes all blocks of a prefix this owner's.
    ///
    /// # Errors
    /// It is in no enabled pool, or smaller than a block of it, or has more than 65,536.
    pub async fn claim_affinity(&self, prefix: Prefix, owner: &Owner) -> Result<Claims, IpamError> {
        let pool = self.facts.enabled_pool_of(prefix.address());
        let pool = pool.filter(|it| it.prefix.length() <= prefix.length());
        let block_length = pool.ok_or(IpamError::PrefixNotInPool(prefix))?.block_length;
        if prefix.length() > block_length {
            return Err(IpamError::TooSmall { prefix, block_length });
        }
        let blocks =
            blocks_in(prefix, block_length, BLOCKS_MAX).ok_or(IpamError::TooLarge(prefix))?;
        let mut claims = Claims::default();
        for block in blocks {
            match self.claim(owner, block, None).await? {
                Claim::Ours(_) => claims.claimed.push(block),
                Claim::Lost => claims.failed.push(block),
            }
        }
        Ok(claims)
    }

    /// Takes the blocks of a prefix from this owner; those of others stay theirs.
    ///
    /// # Errors
    /// It is in no pool, or smaller than a block of it; or a block is in use and `must_be_empty`.
    pub async fn release_affinity(
        &self,
        prefix: Prefix,
        owner: &Owner,
        must_be_empty: bool,
    ) -> Result<(), IpamError> {
        let pool = self.facts.pool_of_block(prefix);
        let block_length = pool.ok_or(IpamError::PrefixNotInPool(prefix))?.block_length;
        if prefix.length() > block_length {
            return Err(IpamError::TooSmall { prefix, block_length });
        }
        let which = Which { owner: Some(owner), within: Some(prefix) };
        self.release_affinities(which, must_be_empty).await
    }

    /// Takes all its blocks from an owner. Addresses in use stay.
    ///
    /// # Errors
    /// A block is in use and `must_be_empty`; the others are taken all the same.
    pub async fn release_host_affinities(
        &self,
        owner: &Owner,
        must_be_empty: bool,
    ) -> Result<(), IpamError> {
        self.release_affinities(Which { owner: Some(owner), within: None }, must_be_empty).await
    }

    /// Takes the blocks within a prefix from their owners.
    ///
    /// # Errors
    /// A block is in use and `must_be_empty`; the others are taken all the same.
    pub async fn release_affinities_within(
        &self,
        prefix: Prefix,
        must_be_empty: bool,
    ) -> Result<(), IpamError> {
        self.release_affinities(Which { owner: None, within: Some(prefix) }, must_be_empty).await
    }

    async fn release_affinities(
        &self,
        which: Which<'_>,
        must_be_empty: bool,
    ) -> Result<(), IpamError> {
        let release_if = if must_be_empty { ReleaseIf::Empty } else { ReleaseIf::Always };
        let mut outcome = Ok(());
        for (owner, prefix) in self.owned(which).await? {
            if self.give_up(&owner, prefix, release_if).await? == Departure::Kept {
                outcome = outcome.and(Err(IpamError::NotEmpty(prefix)));
            }
        }
        outcome
    }

    /// What has an affinity or says in the block that it has.
    async fn owned(&self, which: Which<'_>) -> Result<Vec<(Owner, Prefix)>, IpamError> {
        let affinities = store::affinities(self.store, which.owner).await?;
        let mut owned: Vec<(Owner, Prefix)> =
            affinities.into_iter().map(|it| (it.value.owner, it.value.prefix)).collect();
        for block in store::blocks(self.store).await? {
            if let Some(owner) = block.value.owner() {
                owned.push((owner.clone(), block.value.prefix()));
            }
        }
        owned.retain(|(owner, prefix)| which.contains(owner, *prefix));
        owned.sort_unstable();
        owned.dedup();
        Ok(owned)
    }
}
