//! Addresses are given and released over a store, at one moment, by what is known of the cluster then.
//!
//! [`Addressing`] is what each operation begins with; they are where they belong: [`crate::claim`], [`crate::assign`],
//! [`crate::release`] and others. None waits for anything but the store: where it answers at once, so do they.

use fairway_ground::Prefix;

use crate::block::Block;
use crate::facts::Facts;
use crate::moment::Moment;
use crate::store::{self, Store, StoreError, Versioned};

/// How often a change is tried that others forestall: they may be as many as the nodes of a large cluster.
pub(crate) const ATTEMPTS_MAX: u32 = 100;

/// See the module.
#[derive(Debug)]
pub struct Addressing<'a, S> {
    /// Where blocks, affinities and handles are.
    pub store: &'a S,
    /// What is known of the cluster.
    pub facts: &'a Facts,
    /// Now.
    pub now: Moment,
}

impl<S> Clone for Addressing<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Addressing<'_, S> {}

impl<S: Store> Addressing<'_, S> {
    /// A block. What has rested for long enough is free in it.
    pub(crate) async fn load(
        &self,
        prefix: Prefix,
    ) -> Result<Option<Versioned<Block>>, StoreError> {
        Ok(store::block(self.store, prefix).await?.map(|it| self.collected(it)))
    }

    /// All blocks, likewise.
    pub(crate) async fn load_all(&self) -> Result<Vec<Versioned<Block>>, StoreError> {
        let blocks = store::blocks(self.store).await?;
        Ok(blocks.into_iter().map(|it| self.collected(it)).collect())
    }

    fn collected(&self, mut block: Versioned<Block>) -> Versioned<Block> {
        block.value.collect(self.now.seconds(), self.facts.config.cooldown);
        block
    }
}
