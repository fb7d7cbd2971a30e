//! Why addresses are not given, released or found.

use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::block::{BlockSizeError, ReleaseError};
use crate::facts::ConfigError;
use crate::pool::{ChoiceError, Use};
use crate::store::StoreError;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IpamError {
    /// No pool has it.
    #[error("{0} is in no enabled IPPool")]
    NotInPool(IpAddr),
    /// No pool has them.
    #[error("{0} is in no IPPool")]
    PrefixNotInPool(Prefix),
    /// Somebody has it, or had it a short time ago.
    #[error("{0} is assigned already, or was released a short time ago")]
    AlreadyAssigned(IpAddr),
    /// With strictAffinity.
    #[error("{address} is in block {block}, which is not of this node, and strictAffinity is true")]
    AffinityMismatch {
        /// The address.
        address: IpAddr,
        /// Its block.
        block: Prefix,
    },
    /// The pool had blocks of another size before.
    #[error("{address} is in no block, and block {block} would overlap one of another size")]
    Overlap {
        /// The address.
        address: IpAddr,
        /// Its block.
        block: Prefix,
    },
    /// It owns as many as it may.
    #[error(
        "the node owns {0} blocks of this family, as many as it may, and they have no free address"
    )]
    BlockLimit(u32),
    /// It may claim none.
    #[error("the node's blocks have no free address, and autoAllocateBlocks is false")]
    NoClaim,
    /// There is no pool.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// Nothing is known of it.
    #[error("there is no node {0:?}")]
    NodeUnknown(String),
    /// It is for something else.
    #[error("IPPool {pool} is not for {purpose:?}")]
    UseNotAllowed {
        /// The pool.
        pool: String,
        /// What the address is for.
        purpose: Use,
    },
    /// Windows cannot route single addresses of another node.
    #[error("on Windows, strictAffinity has to be true")]
    StrictRequired,
    /// It has others.
    #[error("handle {handle:?} has {count} addresses of this family, as many as it may")]
    HandleLimit {
        /// The handle.
        handle: String,
        /// How many it has.
        count: usize,
    },
    /// It was to be made.
    #[error("handle {0:?} is there already")]
    HandleInUse(String),
    /// No address is of it.
    #[error("there is no handle {0:?}")]
    NoSuchHandle(String),
    /// Nobody has it.
    #[error("{0} is not assigned")]
    NotAssigned(IpAddr),
    /// Nobody has it any more.
    #[error("{0} was released a short time ago")]
    Cooling(IpAddr),
    /// Nothing of the block's part of the request was released.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// Its addresses are in use.
    #[error("block {0} has addresses in use")]
    NotEmpty(Prefix),
    /// It is within a block.
    #[error("{prefix} is smaller than a block of its IPPool, which has the length {block_length}")]
    TooSmall {
        /// What was asked for.
        prefix: Prefix,
        /// The length of a block.
        block_length: u8,
    },
    /// It has more blocks than can be visited.
    #[error("{0} has more than 65536 blocks")]
    TooLarge(Prefix),
    /// It may not be stored.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The pool has a size of blocks that is not served.
    #[error(transparent)]
    BlockSize(#[from] BlockSizeError),
    /// Others changed the same object each time.
    #[error("gave up after {0} attempts, since others change the same objects")]
    Contended(u32),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IpamError {
    /// One word for it, as programs read it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotInPool(_) | Self::PrefixNotInPool(_) => "not-in-pool",
            Self::AlreadyAssigned(_) => "already-assigned",
            Self::AffinityMismatch { .. } => "affinity-mismatch",
            Self::BlockLimit(_) => "block-limit",
            Self::NoClaim => "no-claim",
            Self::Choice(error) => error.word(),
            Self::NodeUnknown(_) => "node-unknown",
            Self::UseNotAllowed { .. } => "use-not-allowed",
            Self::StrictRequired => "strict-required",
            Self::HandleLimit { .. } => "handle-limit",
            Self::HandleInUse(_) => "handle-in-use",
            Self::NoSuchHandle(_) => "no-such-handle",
            Self::NotAssigned(_) => "not-assigned",
            Self::Cooling(_) => "cooling",
            Self::Release(ReleaseError::Sequence(_)) => "bad-sequence",
            Self::Release(ReleaseError::Handle(_)) => "bad-handle",
            Self::NotEmpty(_) => "not-empty",
            Self::TooSmall { .. } => "too-small",
            Self::TooLarge(_) => "too-large",
            Self::Config(_) | Self::BlockSize(_) | Self::Overlap { .. } => "bad-config",
            Self::Contended(_) | Self::Store(StoreError::Conflict) => "contended",
            Self::Store(StoreError::Unavailable(_)) => "unavailable",
            Self::Store(StoreError::Unreadable(_)) => "unreadable",
        }
    }
}

impl ChoiceError {
    /// One word for it, as programs read it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::UseRequired => "use-required",
            Self::UnknownPool(_) => "unknown-pool",
            Self::WrongFamily(_) => "wrong-family",
            Self::NoQualifiedPool => "no-qualified-pool",
            Self::NoPoolForNode => "no-pool-for-node",
            Self::BadSelector { .. } => "bad-selector",
        }
    }
}
