//! What is known of the cluster where addresses are given: pools, nodes, namespaces, reservations, the configuration.
//!
//! Knows no block: those are in the store, and are read when they are needed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use fairway_model::Labels;

use crate::moment::Seconds;
use crate::pool::Pool;
use crate::walk::Ranges;

/// How many blocks a node may own of one family where nothing says otherwise.
const BLOCKS_MAX_DEFAULT: u32 = 20;
/// The longest time for which an address rests.
const COOLDOWN_SECONDS_MAX: Seconds = 1200;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The pools.
    pub pools: Vec<Pool>,
    /// The labels of each node.
    pub nodes: BTreeMap<String, Labels>,
    /// The labels of each namespace.
    pub namespaces: BTreeMap<String, Labels>,
    /// What is given to nobody who does not ask for it.
    pub reservations: Vec<Prefix>,
    /// The configuration.
    pub config: Config,
}

/// IPAMConfig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// No node takes addresses from another's block.
    pub is_strict: bool,
    /// Nodes claim blocks when they need them.
    pub allocates_blocks: bool,
    /// How many blocks a node may own of one family; 0 for the default, which is 20.
    pub blocks_per_host_max: u32,
    /// How long an address rests after its release; 0 to 1200.
    pub cooldown: Seconds,
}

/// Why a configuration is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nodes would live on others' blocks alone.
    #[error("strictAffinity and autoAllocateBlocks are both false; at least one has to be true")]
    NeitherStrictNorAutomatic,
    /// A node at its limit would borrow.
    #[error(
        "maxBlocksPerHost is {0}, and strictAffinity false; a limit needs strictAffinity: true"
    )]
    LimitWithoutStrict(u32),
    /// Too long.
    #[error("ipCooldownSeconds is {0}; expected 0 to {COOLDOWN_SECONDS_MAX}")]
    Cooldown(Seconds),
}

impl Default for Config {
    fn default() -> Self {
        Self { is_strict: false, allocates_blocks: true, blocks_per_host_max: 0, cooldown: 0 }
    }
}

impl Config {
    /// Whether it may be stored.
    ///
    /// # Errors
    /// Why not.
    pub fn check(self) -> Result<Self, ConfigError> {
        if !self.is_strict && !self.allocates_blocks {
            return Err(ConfigError::NeitherStrictNorAutomatic);
        }
        if !self.is_strict && self.blocks_per_host_max > 0 {
            return Err(ConfigError::LimitWithoutStrict(self.blocks_per_host_max));
        }
        if self.cooldown > COOLDOWN_SECONDS_MAX {
            return Err(ConfigError::Cooldown(self.cooldown));
        }
        Ok(self)
    }

    /// How many blocks a node may own of one family, where a request has a limit of its own.
    pub(crate) fn blocks_max(self, requested: Option<u32>) -> u32 {
        let limits = [Some(self.blocks_per_host_max), requested];
        limits.into_iter().flatten().filter(|it| *it > 0).min().unwrap_or(BLOCKS_MAX_DEFAULT)
    }
}

impl Facts {
    /// The pool that has the address, disabled or not.
    pub fn pool_of(&self, address: IpAddr) -> Option<&Pool> {
        self.pools.iter().find(|it| it.prefix.contains(address))
    }

    /// The enabled pool that has the address.
    pub(crate) fn enabled_pool_of(&self, address: IpAddr) -> Option<&Pool> {
        self.pools.iter().filter(|it| it.is_usable()).find(|it| it.prefix.contains(address))
    }

    /// The pool that a block is of, disabled or not.
    pub(crate) fn pool_of_block(&self, block: Prefix) -> Option<&Pool> {
        self.pool_of(block.address())
    }

    /// The reserved addresses of one family.
    pub(crate) fn reserved(&self, family: AddressFamily) -> Ranges {
        Ranges::new(self.reservations.iter().copied().filter(|it| it.family() == family))
    }

    /// Whether the pool of a block is there, and is for other nodes. A selector that cannot be read is for all.
    pub(crate) fn is_of_other_nodes(&self, block: Prefix, host: &str) -> bool {
        let (Some(pool), Some(labels)) = (self.pool_of_block(block), self.nodes.get(host)) else {
            return false;
        };
        !pool.selects_node(labels).unwrap_or(true)
    }
}
