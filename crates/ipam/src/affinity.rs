//! How far an owner is with a block that it claims or gives up.
//!
//! ∅ → pending → confirmed → pendingDeletion → ∅; [`crate::claim`] takes the steps.

use fairway_ground::Prefix;

use crate::block::Owner;

/// How far an owner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AffinityState {
    /// It tries to get the block.
    Pending,
    /// It has it.
    Confirmed,
    /// It gives it up.
    PendingDeletion,
}

/// What an owner has to do with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affinity {
    /// Who.
    pub owner: Owner,
    /// The block.
    pub prefix: Prefix,
    /// How far it is.
    pub state: AffinityState,
}
