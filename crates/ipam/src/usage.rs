//! Who has an address, where a handle's addresses are, and how full pools are.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::addressing::Addressing;
use crate::assign::Assigned;
use crate::block::{Attributes, Block};
use crate::error::IpamError;
use crate::facts::Facts;
use crate::gateway::Edges;
use crate::pool::{Pool, Use};
use crate::release::Places;
use crate::store::Store;
use crate::walk::{Ranges, address_count};

/// What is known of an address that somebody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// Whose it is.
    pub attributes: Attributes,
    /// The sequence number of its block before it was given.
    pub sequence: u64,
    /// Its block.
    pub block: Prefix,
}

/// How full a pool or a block is. `in_use`, `reserved` and `available` are all its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// What is counted.
    pub prefix: Prefix,
    /// All addresses.
    pub capacity: u128,
    /// Those that somebody has, or had a short time ago.
    pub in_use: u128,
    /// Those of the others that are reserved.
    pub reserved: u128,
    /// The others.
    pub available: u128,
}

impl<S: Store> Addressing<'_, S> {
    /// Who has an address.
    ///
    /// # Errors
    /// Nobody has it.
    pub async fn inspect(&self, address: IpAddr) -> Result<Inspected, IpamError> {
        let prefix = self.block_with(address, &mut Places::default()).await?;
        let prefix = prefix.ok_or(IpamError::NotAssigned(address))?;
        let block = self.load(prefix).await?.ok_or(IpamError::NotAssigned(address))?;
        let found = block.value.inspect(address).ok_or(IpamError::NotAssigned(address))?;
        let (attributes, sequence) = found;
        if attributes.released_at.is_some() {
            return Err(IpamError::Cooling(address));
        }
        Ok(Inspected { attributes: attributes.clone(), sequence, block: prefix })
    }

    /// The addresses of a handle.
    ///
    /// # Errors
    /// There is none such.
    pub async fn addresses_of_handle(&self, handle: &str) -> Result<Vec<Assigned>, IpamError> {
        let found = self.assignments_of_handle(handle).await?;
        Ok(found.into_iter().map(|(assigned, _)| assigned).collect())
    }

    /// The same, with what is noted of each.
    pub(crate) async fn assignments_of_handle(
        &self,
        handle: &str,
    ) -> Result<Vec<(Assigned, Attributes)>, IpamError> {
        let mut found = Vec::new();
        for prefix in self.blocks_of_handle(handle).await? {
            if let Some(block) = self.load(prefix).await? {
                let of_handle =
                    block.value.taken().filter(|(_, it)| it.handle.as_deref() == Some(handle));
                found.extend(of_handle.map(|(address, attributes)| {
                    (Assigned { address, block: prefix }, attributes.clone())
                }));
            }
        }
        Ok(found)
    }

    /// How full pools are, and each block of them.
    ///
    /// # Errors
    /// The store fails.
    pub async fn usage(&self, pools: &[Prefix]) -> Result<Vec<(Usage, Vec<Usage>)>, IpamError> {
        let blocks = self.load_all().await?;
        let blocks: Vec<&Block> = blocks.iter().map(|it| &it.value).collect();
        Ok(pools.iter().map(|it| usage(*it, &blocks, self.facts)).collect())
    }
}

/// How full each pool is that Pods get addresses of: free addresses of blocks that mean something on a link count as reserved, since only
/// plugins without a gateway have them given.
pub(crate) fn of_pools(blocks: &BTreeMap<Prefix, Block>, facts: &Facts) -> Vec<Usage> {
    let of_pool = |pool: &Pool| {
        let blocks = blocks.values().filter(|it| pool.prefix.contains(it.prefix().address()));
        let blocks: Vec<&Block> = blocks.collect();
        let (usage, _) = usage(pool.prefix, &blocks, facts);
        let reserved = facts.reserved(pool.prefix.family());
        let edges = blocks.iter().flat_map(|block| {
            let is_edge = |it: &IpAddr| Edges::Withheld.withhold(block.prefix(), *it);
            block.free().filter(is_edge).filter(|it| !reserved.contain(*it))
        });
        let edges = edges.count() as u128;
        counted(usage.prefix, usage.capacity, usage.in_use, usage.reserved.saturating_add(edges))
    };
    let is_for_pods = |it: &&Pool| it.is_usable() && it.uses.contains(&Use::Workload);
    facts.pools.iter().filter(is_for_pods).map(of_pool).collect()
}

/// How full a pool is, and each block of it.
pub fn usage(pool: Prefix, blocks: &[&Block], facts: &Facts) -> (Usage, Vec<Usage>) {
    let reserved = facts.reserved(pool.family());
    let of_pool = blocks.iter().filter(|it| pool.contains(it.prefix().address()));
    let of_blocks: Vec<Usage> = of_pool.clone().map(|it| block_usage(it, &reserved)).collect();
    let in_use = of_blocks.iter().map(|it| it.in_use).sum();
    let taken = of_pool.flat_map(|it| it.taken().map(|(address, _)| address));
    let reserved_in_use = taken.filter(|it| reserved.contain(*it)).count() as u128;
    let within = facts.reservations.iter().copied().filter(|it| it.overlaps(pool));
    let within = within.map(|it| if it.length() <= pool.length() { pool } else { it });
    let reserved_count = Ranges::new(within).address_count().saturating_sub(reserved_in_use);
    (counted(pool, address_count(pool), in_use, reserved_count), of_blocks)
}

fn block_usage(block: &Block, reserved: &Ranges) -> Usage {
    let capacity = address_count(block.prefix());
    let free = block.free_count() as u128;
    let reserved_count = block.free().filter(|it| reserved.contain(*it)).count() as u128;
    counted(block.prefix(), capacity, capacity.saturating_sub(free), reserved_count)
}

fn counted(prefix: Prefix, capacity: u128, in_use: u128, reserved: u128) -> Usage {
    let available = capacity.saturating_sub(in_use).saturating_sub(reserved);
    Usage { prefix, capacity, in_use, reserved, available }
}
