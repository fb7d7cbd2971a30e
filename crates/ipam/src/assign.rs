//! A node's Pods get addresses: out of its own blocks, out of a new one, out of another node's.
//!
//! Several orders are served at once, and share the write of each block. Knows no Pod and no CNI.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::Prefix;

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::block::{Attributes, Block, HostReserved, Owner};
use crate::claim::Claim;
use crate::error::IpamError;
use crate::pool::{ChoiceError, Use};
use crate::release::Places;
use crate::search::{Scope, Withheld, owner_for};
use crate::store::{Object, Store, StoreError, Versioned};

/// Addresses for one handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Whose they are to be.
    pub attributes: Attributes,
    /// How many.
    pub count: usize,
    /// What it has got.
    pub got: Vec<Assigned>,
}

/// An address that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assigned {
    /// The address.
    pub address: IpAddr,
    /// Its block.
    pub block: Prefix,
}

/// What came of serving orders out of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// They got what it had.
    Served,
    /// It is somebody else's by now, or gone.
    Lost,
}

impl Order {
    fn missing(&self) -> usize {
        self.count.saturating_sub(self.got.len())
    }
}

fn are_served(orders: &[Order]) -> bool {
    orders.iter().all(|it| it.missing() == 0)
}

impl<S: Store> Addressing<'_, S> {
    /// Serves orders for addresses. Where no more are to be had, an order gets less than it asks for, which is no error.
    ///
    /// # Errors
    /// Why no more are given; what an order has got is its own all the same.
    pub async fn assign(&self, scope: &Scope, orders: &mut [Order]) -> Result<(), IpamError> {
        let mut search = self.search(scope).await?;
        self.leave_pools_of_others(&mut search).await;
        while !are_served(orders) {
            let Some(block) = self.next_own_block(&mut search).await? else { break };
            self.fill(block, Some(&search.owner), orders, search.withheld()).await?;
        }
        if are_served(orders) {
            return Ok(());
        }
        while !are_served(orders) {
            let Some(block) = self.next_new_block(&mut search).await? else { break };
            let prefix = block.value.prefix();
            let filled = self.fill(block, Some(&search.owner), orders, search.withheld()).await?;
            if filled == Filled::Lost {
                search.own.remove(&prefix);
            }
        }
        if !self.facts.config.is_strict {
            for block in search.foreign_blocks() {
                if are_served(orders) {
                    break;
                }
                self.fill(block, None, orders, search.withheld()).await?;
            }
        }
        Ok(())
    }

    /// Makes sure that the node owns a block of the pools, whether or not it has a free address. Returns it.
    ///
    /// # Errors
    /// Why it has none.
    pub async fn ensure_block(&self, scope: &Scope) -> Result<Option<Prefix>, IpamError> {
        let mut search = self.search(scope).await?;
        self.leave_pools_of_others(&mut search).await;
        if let Some(block) = self.next_own_block(&mut search).await? {
            return Ok(Some(block.value.prefix()));
        }
        Ok(self.next_new_block(&mut search).await?.map(|it| it.value.prefix()))
    }

    /// Gives the address that is asked for.
    ///
    /// # Errors
    /// Why not.
    pub async fn assign_address(
        &self,
        address: IpAddr,
        host: &str,
        attributes: &Attributes,
        purpose: Option<Use>,
        host_reserved: Option<&HostReserved>,
    ) -> Result<Assigned, IpamError> {
        let pool = self.facts.enabled_pool_of(address).ok_or(IpamError::NotInPool(address))?;
        if let Some(purpose) = purpose.filter(|it| !pool.uses.contains(it)) {
            return Err(IpamError::UseNotAllowed { pool: pool.name.clone(), purpose });
        }
        let reserved_count = host_reserved.map_or(0, |it| it.start.saturating_add(it.end));
        if !pool.has_room_for(reserved_count) {
            return Err(ChoiceError::NoQualifiedPool.into());
        }
        let of_pool =
            Prefix::new(address, pool.block_length).map_err(|_| IpamError::NotInPool(address))?;
        let owner = owner_for(host, purpose);
        for _ in 0..ATTEMPTS_MAX {
            // One of another size has it where the pool had another size of blocks before.
            let found = self.block_with(address, &mut Places::default()).await?;
            let prefix = found.unwrap_or(of_pool);
            let block = match self.load(prefix).await? {
                Some(block) if block.value.owner().is_some_and(|it| *it != owner) => block,
                Some(block) if block.value.owner().is_none() && !block.value.is_empty() => block,
                // Its own may be claimed by half.
                _ => match self.claim(&owner, prefix, host_reserved).await? {
                    Claim::Ours(block) => block,
                    // Somebody was faster: the block is there now; or there is one of another size in its place.
                    Claim::Lost if self.load(prefix).await?.is_some() => continue,
                    Claim::Lost => return Err(IpamError::Overlap { address, block: prefix }),
                },
            };
            if self.facts.config.is_strict && block.value.owner() != Some(&owner) {
                return Err(IpamError::AffinityMismatch { address, block: prefix });
            }
            match self.give(block, address, attributes).await {
                Err(IpamError::Store(StoreError::Conflict)) => {}
                outcome => return outcome.map(|()| Assigned { address, block: prefix }),
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    async fn give(
        &self,
        mut block: Versioned<Block>,
        address: IpAddr,
        attributes: &Attributes,
    ) -> Result<(), IpamError> {
        block
            .value
            .assign_address(address, attributes)
            .map_err(|_| IpamError::AlreadyAssigned(address))?;
        let counts = attributes.handle.iter().map(|it| (it.clone(), 1)).collect();
        self.write_block(block, &counts).await
    }

    /// Serves orders out of one block; of nobody else than `owner`, if there is one.
    async fn fill(
        &self,
        block: Versioned<Block>,
        owner: Option<&Owner>,
        orders: &mut [Order],
        withheld: Withheld<'_>,
    ) -> Result<Filled, IpamError> {
        let prefix = block.value.prefix();
        let mut read = Some(block);
        for _ in 0..ATTEMPTS_MAX {
            let Some(mut block) = read.take() else { return Ok(Filled::Lost) };
            if owner.is_some() && block.value.owner() != owner {
                return Ok(Filled::Lost);
            }
            let mut given: Vec<Vec<IpAddr>> = Vec::with_capacity(orders.len());
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for order in &*orders {
                let attributes = &order.attributes;
                let is_withheld = |it| withheld.contain(prefix, it);
                let addresses = block.value.assign(order.missing(), attributes, is_withheld);
                if let Some(handle) = attributes.handle.as_ref().filter(|_| !addresses.is_empty()) {
                    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
                    let counted = counts.entry(handle.clone()).or_default();
                    *counted = counted.saturating_add(count);
                }
                given.push(addresses);
            }
            if given.iter().all(Vec::is_empty) {
                return Ok(Filled::Served);
            }
            match self.write_block(block, &counts).await {
                Err(IpamError::Store(StoreError::Conflict)) => {
                    read = self.load(prefix).await?;
                }
                outcome => {
                    outcome?;
                    for (order, addresses) in orders.iter_mut().zip(given) {
                        let assigned = |address| Assigned { address, block: prefix };
                        order.got.extend(addresses.into_iter().map(assigned));
                    }
                    return Ok(Filled::Served);
                }
            }
        }
        Err(IpamError::Contended(ATTEMPTS_MAX))
    }

    /// Writes a block after the handles of what was given in it. If it has changed, the handles are as before.
    async fn write_block(
        &self,
        block: Versioned<Block>,
        counts: &BTreeMap<String, u32>,
    ) -> Result<(), IpamError> {
        let Versioned { value, version } = block;
        let prefix = value.prefix();
        let mut counted = Vec::with_capacity(counts.len());
        for (handle, count) in counts {
            let counts = BTreeMap::from([(prefix, *count)]);
            let generation = self.add_to_handle(handle, &counts).await?;
            counted.push((handle, generation, counts));
        }
        match self.store.write(Object::Block(value), Some(&version)).await {
            Err(StoreError::Conflict) => {
                for (handle, generation, counts) in counted {
                    self.take_from_handle(handle, &generation, &counts).await?;
                }
                Err(StoreError::Conflict.into())
            }
            // Without an answer it may have been written: the handles have to lead to it.
            outcome => Ok(outcome.map(|_| ())?),
        }
    }
}
