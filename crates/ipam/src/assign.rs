//! A node's Pods get addresses: out of its own blocks, out of a new one, out of another node's.
//!
//! Several orders are served at once, and share the write of each block. Knows no Pod and no CNI.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};

use crate::addressing::{ATTEMPTS_MAX, Addressing};
use crate::block::{Attributes, Block, HostReserved, Owner};
use crate::claim::{Claim, Departure, ReleaseIf};
use crate::error::IpamError;
use crate::moment::Seconds;
use crate::pool::{Pool, Request, Use, choose};
use crate::store::{self, Object, Store, StoreError, Versioned};
use crate::walk::{Ranges, first_free};

/// For how long a node has a new block before another may take it while it is empty: the node is about to use it.
const YOUNG_SECONDS: Seconds = 60;

/// Whose addresses, and out of which pools: what orders that are served at once have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The node.
    pub host: String,
    /// The family.
    pub family: AddressFamily,
    /// The pools that are named; empty for any.
    pub named: Vec<Prefix>,
    /// What for.
    pub purpose: Option<Use>,
    /// The namespace of the Pod.
    pub namespace: Option<String>,
    /// How many blocks the node may own, where the request says.
    pub blocks_max: Option<u32>,
    /// What is for no Pod of each new block.
    pub host_reserved: Option<HostReserved>,
}

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

impl Scope {
    fn owner(&self) -> Owner {
        owner_for(&self.host, self.purpose)
    }
}

/// Who has the blocks that addresses for this are given out of: a node, but for Services no node.
fn owner_for(host: &str, purpose: Option<Use>) -> Owner {
    match purpose {
        Some(Use::LoadBalancer) => Owner::Virtual(host.to_owned()),
        _ => Owner::Host(host.to_owned()),
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
            self.fill(block, Some(&search.owner), orders, &search.reserved).await?;
        }
        if are_served(orders) {
            return Ok(());
        }
        while !are_served(orders) {
            let Some(block) = self.next_new_block(&mut search).await? else { break };
            self.fill(block, Some(&search.owner), orders, &search.reserved).await?;
        }
        if !self.facts.config.is_strict {
            for block in search.foreign_blocks() {
                if are_served(orders) {
                    break;
                }
                self.fill(block, None, orders, &search.reserved).await?;
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
        let prefix =
            Prefix::new(address, pool.block_length).map_err(|_| IpamError::NotInPool(address))?;
        let owner = owner_for(host, purpose);
        for _ in 0..ATTEMPTS_MAX {
            let block = match self.load(prefix).await? {
                Some(block) => block,
                None => match self.claim(&owner, prefix, host_reserved).await? {
                    Claim::Ours(block) => block,
                    // Somebody was faster: the block is there now.
                    Claim::Lost => continue,
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
        reserved: &Ranges,
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
                let is_reserved = |it| reserved.contain(it);
                let addresses = block.value.assign(order.missing(), attributes, is_reserved);
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
        for (handle, count) in counts {
            self.add_to_handle(handle, &BTreeMap::from([(prefix, *count)])).await?;
        }
        match self.store.write(Object::Block(value), Some(&version)).await {
            Err(StoreError::Conflict) => {
                for (handle, count) in counts {
                    self.take_from_handle(handle, &BTreeMap::from([(prefix, *count)])).await?;
                }
                Err(StoreError::Conflict.into())
            }
            // Without an answer it may have been written: the handles have to lead to it.
            outcome => Ok(outcome.map(|_| ())?),
        }
    }

    /// Which pools serve this, and which blocks the node has in them.
    async fn search<'s>(&'s self, scope: &'s Scope) -> Result<Search<'s>, IpamError> {
        let Scope { host, family, .. } = scope;
        let owner = scope.owner();
        let without_labels = BTreeMap::new();
        let node = match &owner {
            Owner::Host(host) => self.facts.nodes.get(host),
            Owner::Virtual(_) => Some(&without_labels),
        };
        let node = node.ok_or_else(|| IpamError::NodeUnknown(host.clone()))?;
        let labels = |it: &String| self.facts.namespaces.get(it).unwrap_or(&without_labels);
        let reserved_count =
            scope.host_reserved.as_ref().map_or(0, |it| it.start.saturating_add(it.end));
        let request = Request {
            family: *family,
            named: &scope.named,
            purpose: scope.purpose,
            node,
            namespace: scope.namespace.as_ref().map(labels),
            host_reserved: reserved_count,
        };
        let pools = choose(&self.facts.pools, request)?;
        let own: BTreeSet<Prefix> = store::affinities(self.store, Some(&owner))
            .await?
            .into_iter()
            .map(|it| it.value.prefix)
            .filter(|it| it.family() == *family)
            .collect();
        let is_in_pools = |it: &Prefix| pools.iter().any(|pool| pool.prefix.contains(it.address()));
        let untried = own.iter().rev().copied().filter(is_in_pools).collect();
        Ok(Search {
            scope,
            owner,
            pools,
            reserved: self.facts.reserved(*family),
            own,
            untried,
            others: None,
        })
    }

    /// Gives its empty blocks up that are in pools for other nodes.
    async fn leave_pools_of_others(&self, search: &mut Search<'_>) {
        let elsewhere: Vec<Prefix> =
            search.own.iter().copied().filter(|it| !search.untried.contains(it)).collect();
        for prefix in elsewhere {
            if self.facts.is_of_other_nodes(prefix, &search.scope.host) {
                // One that cannot be given up now is given up another time: it must not stop this request.
                let outcome = self.give_up(&search.owner, prefix, ReleaseIf::Empty).await;
                if matches!(outcome, Ok(Departure::Gone)) {
                    search.own.remove(&prefix);
                }
            }
        }
    }

    /// Whether an address could be given now. Changes nothing.
    ///
    /// # Errors
    /// Why none could.
    pub async fn has_room(&self, scope: &Scope) -> Result<bool, IpamError> {
        let mut search = self.search(scope).await?;
        for prefix in std::mem::take(&mut search.untried) {
            let is_usable = match self.load(prefix).await? {
                None => !search.reserved.cover(prefix),
                Some(block) => {
                    let is_own = block.value.owner() == Some(&search.owner);
                    is_own && block.value.has_room(|it| search.reserved.contain(it))
                }
            };
            if is_usable {
                return Ok(true);
            }
        }
        self.may_claim(&search)?;
        search.others = Some(Others::new(self.load_all().await?, scope.family));
        if search.next_free().is_some() || search.next_unused(self.now.seconds()).is_some() {
            return Ok(true);
        }
        let foreign = search.foreign_blocks();
        let has_room =
            |it: &Versioned<Block>| it.value.has_room(|address| search.reserved.contain(address));
        Ok(!self.facts.config.is_strict && foreign.iter().any(has_room))
    }

    fn may_claim(&self, search: &Search<'_>) -> Result<(), IpamError> {
        let config = self.facts.config;
        if !config.allocates_blocks {
            return Err(IpamError::NoClaim);
        }
        let owned = u32::try_from(search.own.len()).unwrap_or(u32::MAX);
        match owned < config.blocks_max(search.scope.blocks_max) {
            true => Ok(()),
            false => Err(IpamError::BlockLimit(owned)),
        }
    }

    /// The next of its own blocks. One that was claimed by half is made whole.
    async fn next_own_block(
        &self,
        search: &mut Search<'_>,
    ) -> Result<Option<Versioned<Block>>, IpamError> {
        while let Some(prefix) = search.untried.pop() {
            if search.reserved.cover(prefix) {
                continue;
            }
            match self.claim(&search.owner, prefix, search.scope.host_reserved.as_ref()).await? {
                Claim::Ours(block) => return Ok(Some(block)),
                Claim::Lost => _ = search.own.remove(&prefix),
            }
        }
        Ok(None)
    }

    /// A block that nobody had, or that its owner did not use; `None` if there is none.
    async fn next_new_block(
        &self,
        search: &mut Search<'_>,
    ) -> Result<Option<Versioned<Block>>, IpamError> {
        self.may_claim(search)?;
        if search.others.is_none() {
            search.others = Some(Others::new(self.load_all().await?, search.scope.family));
        }
        let reserved = search.scope.host_reserved.as_ref();
        while let Some(prefix) = search.next_free() {
            if let Claim::Ours(block) = self.claim(&search.owner, prefix, reserved).await? {
                search.own.insert(prefix);
                return Ok(Some(block));
            }
        }
        while let Some((owner, prefix, sequence)) = search.next_unused(self.now.seconds()) {
            self.give_up(&owner, prefix, ReleaseIf::EmptySince(sequence)).await?;
            if let Claim::Ours(block) = self.claim(&search.owner, prefix, reserved).await? {
                search.own.insert(prefix);
                return Ok(Some(block));
            }
        }
        Ok(None)
    }
}

/// Where a request looks for addresses.
struct Search<'a> {
    scope: &'a Scope,
    owner: Owner,
    pools: Vec<&'a Pool>,
    reserved: Ranges,
    /// All blocks of the node of this family: they count for the limit.
    own: BTreeSet<Prefix>,
    /// Those in the pools that were not looked at, the last one first.
    untried: Vec<Prefix>,
    /// What there is besides, once it was listed.
    others: Option<Others>,
}

/// All blocks of a family.
struct Others {
    blocks: Vec<Versioned<Block>>,
    occupied: Ranges,
    /// Those that were offered as unused.
    offered: BTreeSet<Prefix>,
}

impl Others {
    fn new(blocks: Vec<Versioned<Block>>, family: AddressFamily) -> Self {
        let is_of_family = |it: &Versioned<Block>| it.value.prefix().family() == family;
        let blocks: Vec<_> = blocks.into_iter().filter(is_of_family).collect();
        let occupied = Ranges::new(blocks.iter().map(|it| it.value.prefix()));
        Self { blocks, occupied, offered: BTreeSet::new() }
    }
}

impl Search<'_> {
    /// The next block that nobody has.
    fn next_free(&mut self) -> Option<Prefix> {
        let others = self.others.as_mut()?;
        let found = self.pools.iter().find_map(|pool| {
            let Pool { prefix, block_length, .. } = pool;
            let host = &self.scope.host;
            first_free(*prefix, *block_length, host, &others.occupied, &self.reserved)
        })?;
        others.occupied.add(found);
        Some(found)
    }

    /// The next block that another node has for no Pod, its owner and its sequence number.
    fn next_unused(&mut self, now: Seconds) -> Option<(Owner, Prefix, u64)> {
        let others = self.others.as_mut()?;
        for block in others.blocks.iter().map(|it| &it.value) {
            let Some(owner @ Owner::Host(_)) = block.owner().filter(|it| **it != self.owner) else {
                continue;
            };
            let is_young =
                block.claimed_at().is_some_and(|it| now.saturating_sub(it) <= YOUNG_SECONDS);
            let has_room = || block.has_room(|it| self.reserved.contain(it));
            let serves = self.pools.iter().any(|it| it.serves(block.prefix()));
            if serves && !is_young && block.is_empty() && has_room() {
                let prefix = block.prefix();
                if others.offered.insert(prefix) {
                    return Some((owner.clone(), prefix, block.sequence()));
                }
            }
        }
        None
    }

    /// The blocks of others in these pools that have free addresses, those of the first pool first, from where the node
    /// begins to look.
    fn foreign_blocks(&mut self) -> Vec<Versioned<Block>> {
        let Some(others) = self.others.take() else { return Vec::new() };
        let mut blocks = others.blocks;
        blocks.retain(|it| it.value.owner() != Some(&self.owner) && it.value.free_count() > 0);
        let place = |it: &Versioned<Block>| {
            let prefix = it.value.prefix();
            self.pools.iter().position(|pool| pool.prefix.contains(prefix.address()))
        };
        blocks.retain(|it| place(it).is_some());
        blocks.sort_by_key(place);
        blocks
    }
}
