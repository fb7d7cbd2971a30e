//! Where a request for addresses looks: in the node's own blocks, in one that nobody has or uses, in those of others.
//!
//! Knows no order and gives no address: [`crate::assign`] does that with the blocks that are found.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};

use crate::addressing::Addressing;
use crate::block::{Block, HostReserved, Owner};
use crate::claim::{Claim, Departure, ReleaseIf};
use crate::error::IpamError;
use crate::gateway::Edges;
use crate::moment::Seconds;
use crate::pool::{Pool, Request, Use, choose};
use crate::store::{self, Store, Versioned};
use crate::walk::{Ranges, first_free};

/// For how long a node has a new block before another may take it while it is empty: the node is about to use it.
const YOUNG_SECONDS: Seconds = 60;

/// A node claims its next block once less than one of so many parts of a block is free.
const STOCK_SHARE: usize = 4;

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
    /// The Pods are on links with the prefix of their block: see [`crate::gateway`].
    pub edges: Edges,
}

impl Scope {
    fn owner(&self) -> Owner {
        owner_for(&self.host, self.purpose)
    }
}

/// Who has the blocks that addresses for this are given out of: a node, but for Services no node.
pub(crate) fn owner_for(host: &str, purpose: Option<Use>) -> Owner {
    match purpose {
        Some(Use::LoadBalancer) => Owner::Virtual(host.to_owned()),
        _ => Owner::Host(host.to_owned()),
    }
}

/// Where a request looks for addresses.
pub(crate) struct Search<'a> {
    scope: &'a Scope,
    pub(crate) owner: Owner,
    pools: Vec<&'a Pool>,
    reserved: Ranges,
    /// All blocks of the node of this family: they count for the limit.
    pub(crate) own: BTreeSet<Prefix>,
    /// Those in the pools that were not looked at, the last one first.
    untried: Vec<Prefix>,
    /// What there is besides, as far as the store knows it without a question.
    occupied: Option<Ranges>,
    /// All of that, once it was listed.
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
    fn new(blocks: Vec<Versioned<Block>>, family: AddressFamily, pools: &[&Pool]) -> Self {
        let is_of_family = |it: &Versioned<Block>| it.value.prefix().family() == family;
        let blocks: Vec<_> = blocks.into_iter().filter(is_of_family).collect();
        // What nobody has and is empty goes when it is claimed: one of the pools' size is.
        let serves = |it: &Block| pools.iter().any(|pool| pool.serves(it.prefix()));
        let is_left = |it: &Block| it.owner().is_none() && it.is_empty() && serves(it);
        let occupied = blocks.iter().map(|it| &it.value).filter(|it| !is_left(it));
        let occupied = Ranges::new(occupied.map(Block::prefix));
        Self { blocks, occupied, offered: BTreeSet::new() }
    }
}

/// The addresses that nobody gets who does not ask for them.
#[derive(Clone, Copy)]
pub(crate) struct Withheld<'a> {
    reserved: &'a Ranges,
    edges: Edges,
}

impl Withheld<'_> {
    /// Whether an address of this block is one.
    pub(crate) fn contain(self, block: Prefix, address: IpAddr) -> bool {
        self.reserved.contain(address) || self.edges.withhold(block, address)
    }

    /// Whether a block has another one.
    fn leave_room_in(self, block: &Block) -> bool {
        block.has_room(|it| self.contain(block.prefix(), it))
    }
}

impl Search<'_> {
    pub(crate) fn withheld(&self) -> Withheld<'_> {
        Withheld { reserved: &self.reserved, edges: self.scope.edges }
    }

    /// The next block that nobody has.
    fn next_free(&mut self) -> Option<Prefix> {
        let listed = self.others.as_mut().map(|it| &mut it.occupied);
        let occupied = listed.or(self.occupied.as_mut())?;
        let found = self.pools.iter().find_map(|pool| {
            let Pool { prefix, block_length, .. } = pool;
            first_free(*prefix, *block_length, &self.scope.host, occupied, &self.reserved)
        })?;
        occupied.add(found);
        Some(found)
    }

    /// A block that says that it is the node's, and to which the node has no affinity: somebody has deleted that.
    fn next_without_affinity(&mut self) -> Option<Prefix> {
        let others = self.others.as_mut()?;
        let of_node = others.blocks.iter().map(|it| &it.value);
        let of_node = of_node.filter(|it| it.owner() == Some(&self.owner) && it.free_count() > 0);
        let is_in_pools = |it: &Prefix| self.pools.iter().any(|pool| pool.serves(*it));
        let mut prefixes = of_node.map(Block::prefix).filter(is_in_pools);
        let found = prefixes.find(|it| !self.own.contains(it) && !others.offered.contains(it))?;
        others.offered.insert(found);
        Some(found)
    }

    /// The next block that another node has for no Pod, its owner and its sequence number.
    fn next_unused(&mut self, now: Seconds) -> Option<(Owner, Prefix, u64)> {
        let withheld = Withheld { reserved: &self.reserved, edges: self.scope.edges };
        let others = self.others.as_mut()?;
        for block in others.blocks.iter().map(|it| &it.value) {
            let Some(owner @ Owner::Host(_)) = block.owner().filter(|it| **it != self.owner) else {
                continue;
            };
            let is_young =
                block.claimed_at().is_some_and(|it| now.saturating_sub(it) <= YOUNG_SECONDS);
            let has_room = || withheld.leave_room_in(block);
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
    pub(crate) fn foreign_blocks(&mut self) -> Vec<Versioned<Block>> {
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

impl<S: Store> Addressing<'_, S> {
    /// Which pools serve this, and which blocks the node has in them.
    pub(crate) async fn search<'s>(&'s self, scope: &'s Scope) -> Result<Search<'s>, IpamError> {
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
            occupied: self.store.occupied().map(|prefixes| {
                Ranges::new(prefixes.into_iter().filter(|it| it.family() == *family))
            }),
            others: None,
        })
    }

    /// Gives its empty blocks up that are in pools for other nodes.
    pub(crate) async fn leave_pools_of_others(&self, search: &mut Search<'_>) {
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
        let in_pools = std::mem::take(&mut search.untried);
        for prefix in search.own.clone() {
            let block = self.load(prefix).await?.map(|it| it.value);
            let is_lost = block.as_ref().is_some_and(|it| it.owner() != Some(&search.owner));
            let is_empty = block.as_ref().is_none_or(Block::is_empty);
            if !in_pools.contains(&prefix) {
                // An assignment would give it up first.
                if is_empty && self.facts.is_of_other_nodes(prefix, &scope.host) {
                    search.own.remove(&prefix);
                }
                continue;
            }
            let has_room = match block {
                None => !search.reserved.cover(prefix),
                Some(block) => !is_lost && search.withheld().leave_room_in(&block),
            };
            if has_room {
                return Ok(true);
            }
            if is_lost {
                search.own.remove(&prefix);
            }
        }
        if self.may_claim(&search).is_ok() && search.next_free().is_some() {
            return Ok(true);
        }
        search.others = Some(Others::new(self.load_all().await?, scope.family, &search.pools));
        if search.next_without_affinity().is_some() {
            return Ok(true);
        }
        self.may_claim(&search)?;
        if search.next_free().is_some() || search.next_unused(self.now.seconds()).is_some() {
            return Ok(true);
        }
        let foreign = search.foreign_blocks();
        let withheld = search.withheld();
        let has_room = |it: &Versioned<Block>| withheld.leave_room_in(&it.value);
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
    pub(crate) async fn next_own_block(
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

    /// Claims a block where those that the node has in these pools have few free addresses left, so that the next Pod need not
    /// wait for one. Takes none from another node. Returns what was claimed.
    ///
    /// # Errors
    /// The store fails, or there are no such pools.
    pub async fn keep_stock(&self, scope: &Scope) -> Result<Option<Prefix>, IpamError> {
        let mut search = self.search(scope).await?;
        let own = std::mem::take(&mut search.untried);
        let (mut free_count, mut enough) = (0_usize, 1);
        for prefix in own.iter().filter(|it| !search.reserved.cover(**it)) {
            let Some(block) = self.load(*prefix).await? else { continue };
            if block.value.owner() == Some(&search.owner) {
                let free = block.value.free().filter(|it| !search.withheld().contain(*prefix, *it));
                free_count = free_count.saturating_add(free.count());
                let size = block.value.free_count().saturating_add(block.value.taken().count());
                enough = enough.max(size / STOCK_SHARE);
            }
        }
        // A node without a block has no Pods either.
        if own.is_empty() || free_count >= enough {
            return Ok(None);
        }
        if search.occupied.is_none() {
            search.others = Some(Others::new(self.load_all().await?, scope.family, &search.pools));
        }
        Ok(self.next_free_block(&mut search).await?.map(|it| it.value.prefix()))
    }

    /// A block that nobody had, as far as is known; `None` if there is none, or the node may claim none.
    pub(crate) async fn next_free_block(
        &self,
        search: &mut Search<'_>,
    ) -> Result<Option<Versioned<Block>>, IpamError> {
        if self.may_claim(search).is_err() {
            return Ok(None);
        }
        let reserved = search.scope.host_reserved.as_ref();
        while let Some(prefix) = search.next_free() {
            if let Claim::Ours(block) = self.claim_free(&search.owner, prefix, reserved).await? {
                search.own.insert(prefix);
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// A block that nobody had, or that its owner did not use; `None` if there is none.
    pub(crate) async fn next_new_block(
        &self,
        search: &mut Search<'_>,
    ) -> Result<Option<Versioned<Block>>, IpamError> {
        if let Some(block) = self.next_free_block(search).await? {
            return Ok(Some(block));
        }
        if search.others.is_none() {
            search.others =
                Some(Others::new(self.load_all().await?, search.scope.family, &search.pools));
        }
        while let Some(prefix) = search.next_without_affinity() {
            if let Claim::Ours(block) = self.confirm(&search.owner, prefix).await? {
                search.own.insert(prefix);
                return Ok(Some(block));
            }
        }
        self.may_claim(search)?;
        if let Some(block) = self.next_free_block(search).await? {
            return Ok(Some(block));
        }
        let reserved = search.scope.host_reserved.as_ref();
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
