//! Who has an address, where a handle's addresses are, and how full pools are.

use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::addressing::Addressing;
use crate::assign::Assigned;
use crate::block::{Attributes, Block};
use crate::error::IpamError;
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
        let mut found = Vec::new();
        for prefix in self.blocks_of_handle(handle).await? {
            if let Some(block) = self.load(prefix).await? {
                let assigned = |address| Assigned { address, block: prefix };
                found.extend(block.value.addresses_of(handle).map(assigned));
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
        let mut usages = Vec::new();
        for pool in pools {
            let reserved = self.facts.reserved(pool.family());
            let of_pool = blocks.iter().map(|it| &it.value);
            let of_pool = of_pool.filter(|it| pool.contains(it.prefix().address()));
            let of_blocks: Vec<Usage> =
                of_pool.clone().map(|it| block_usage(it, &reserved)).collect();
            let in_use = of_blocks.iter().map(|it| it.in_use).sum();
            let is_reserved = |it: &IpAddr| reserved.contain(*it);
            let taken = of_pool.flat_map(|it| it.taken().map(|(address, _)| address));
            let reserved_in_use = taken.filter(is_reserved).count() as u128;
            let reserved_count = self.reserved_count(*pool).saturating_sub(reserved_in_use);
            let capacity = address_count(*pool);
            usages.push((usage(*pool, capacity, in_use, reserved_count), of_blocks));
        }
        Ok(usages)
    }

    /// How many addresses of a pool are reserved.
    fn reserved_count(&self, pool: Prefix) -> u128 {
        let within = self.facts.reservations.iter().copied().filter_map(|it| {
            let is_whole = it.length() <= pool.length();
            (it.overlaps(pool)).then_some(if is_whole { pool } else { it })
        });
        Ranges::new(within).address_count()
    }
}

fn block_usage(block: &Block, reserved: &Ranges) -> Usage {
    let capacity = address_count(block.prefix());
    let free = block.free_count() as u128;
    let reserved_count = block.free().filter(|it| reserved.contain(*it)).count() as u128;
    usage(block.prefix(), capacity, capacity.saturating_sub(free), reserved_count)
}

fn usage(prefix: Prefix, capacity: u128, in_use: u128, reserved: u128) -> Usage {
    let available = capacity.saturating_sub(in_use).saturating_sub(reserved);
    Usage { prefix, capacity, in_use, reserved, available }
}
