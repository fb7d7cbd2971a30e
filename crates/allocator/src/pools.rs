//! The pools as the allocator sees them: which one holds an address, and which may be used.
//!
//! Knows nothing of assignments. Called by the allocator, and by the plan, which needs the pool of an
//! address to find its advertisements.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::AddressFamily;
use fairway_model::{AddressRange, ClusterIndex, ObjectName, Pool, Service};

use super::Reason;
use super::runs::AddressRuns;

/// Derived data for look-ups, made once for each change of the pools.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolIndex {
    /// Ranges never overlap, so the last one that begins at or before an address is the only one that
    /// can hold it.
    ranges: BTreeMap<IpAddr, (AddressRange, ObjectName)>,
    /// All reserved addresses that pools hold.
    reserved: AddressRuns,
    /// Automatic pools that are restricted to some Services, best first.
    pinned: Vec<ObjectName>,
    /// Automatic pools for all Services, best first.
    open: Vec<ObjectName>,
    /// Whether the labels of a namespace matter to any pool.
    selects_namespaces: bool,
}

impl PoolIndex {
    fn new(facts: &ClusterIndex) -> Self {
        let mut index = Self::default();
        let mut pinned = Vec::new();
        for pool in facts.pools.values() {
            for range in &pool.ranges {
                index.ranges.insert(range.first(), (*range, pool.name.clone()));
                for (first, last) in reserved_of(pool, *range) {
                    index.reserved.insert(first, last);
                }
            }
            match &pool.allocation {
                Some(allocation) => {
                    index.selects_namespaces |= !allocation.namespace_selectors.is_empty();
                    // 0 means no priority, not the best one; equal ones are ordered by name.
                    pinned.push((allocation.priority == 0, allocation.priority, pool));
                }
                None if pool.auto_assign => index.open.push(pool.name.clone()),
                None => {}
            }
        }
        pinned.retain(|(.., pool)| pool.auto_assign);
        pinned.sort_by_key(|(is_last, priority, pool)| (*is_last, *priority, &pool.name));
        index.pinned = pinned.into_iter().map(|(.., pool)| pool.name.clone()).collect();
        index
    }

    /// Whether a change of a Namespace can matter.
    pub(super) fn selects_namespaces(&self) -> bool {
        self.selects_namespaces
    }
}

/// What `pool` reserves of one of its ranges.
fn reserved_of(pool: &Pool, range: AddressRange) -> impl Iterator<Item = (IpAddr, IpAddr)> {
    let overlapping = pool.reserved.iter().filter(move |reserved| reserved.overlaps(range));
    overlapping.map(move |it| (it.first().max(range.first()), it.last().min(range.last())))
}

/// The pools that a Service may get addresses from without naming any. Each tier is preferred to the
/// next; inside a tier the first pool is the best.
pub(super) struct Candidates<'a> {
    pub(super) tiers: [Vec<&'a Pool>; 2],
}

impl<'a> Candidates<'a> {
    /// All of them, best first.
    pub(super) fn all(&self) -> Vec<&'a Pool> {
        self.tiers.concat()
    }
}

/// The pools of an index, searchable by address in O(log ranges).
#[derive(Debug, Clone)]
pub struct PoolLookup<'a> {
    facts: &'a ClusterIndex,
    index: Arc<PoolIndex>,
}

impl<'a> PoolLookup<'a> {
    /// Makes the pools of `facts` searchable.
    pub fn new(facts: &'a ClusterIndex) -> Self {
        Self { facts, index: Arc::new(PoolIndex::new(facts)) }
    }

    /// As [`Self::new`], with data derived from the same pools before.
    pub(super) fn again(facts: &'a ClusterIndex, index: &Arc<PoolIndex>) -> Self {
        Self { facts, index: Arc::clone(index) }
    }

    pub(super) fn index(&self) -> &Arc<PoolIndex> {
        &self.index
    }

    /// The pool that holds `address`, whether or not it would assign it.
    pub fn holding(&self, address: IpAddr) -> Option<&'a Pool> {
        self.range_of(address).map(|(_, pool)| pool)
    }

    fn range_of(&self, address: IpAddr) -> Option<(AddressRange, &'a Pool)> {
        let (_, (range, name)) = self.index.ranges.range(..=address).next_back()?;
        let pool = self.facts.pools.get(name)?;
        range.contains(address).then_some((*range, pool))
    }

    /// The pool that holds `address` and lets some Service have it.
    pub fn offering(&self, address: IpAddr) -> Option<&'a Pool> {
        self.holding(address).filter(|pool| !avoids(pool, address))
    }

    /// Whether no valid pool holds `address`, and an invalid one might.
    pub(super) fn may_be_unknown(&self, address: IpAddr) -> bool {
        !self.facts.unknown_pools.is_empty() && self.holding(address).is_none()
    }

    /// Whether `pool` is for all Services, or restricted to `service` among others.
    pub(super) fn is_for(&self, pool: &Pool, service: &Service) -> bool {
        let Some(allocation) = &pool.allocation else { return true };
        allocation.matches(service, &self.facts.namespace_labels(&service.name.namespace))
    }

    /// Whether the pool of `address` assigns it only on request, or never.
    pub(super) fn keeps_back(&self, address: IpAddr) -> bool {
        self.index.reserved.contains(address) || self.offering(address).is_none()
    }

    /// Whether `address` is one that its pool avoids, in the same range of the pool as `beside`.
    pub(super) fn avoids_in_range_of(&self, address: IpAddr, beside: IpAddr) -> bool {
        is_buggy(address)
            && self
                .range_of(beside)
                .is_some_and(|(range, pool)| pool.avoid_buggy_addresses && range.contains(address))
    }

    /// What every pool reserves.
    pub(super) fn reserved(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        let pools = self.facts.pools.values();
        pools.flat_map(|pool| pool.ranges.iter().flat_map(|range| reserved_of(pool, *range)))
    }

    /// The pool that assigns `address` automatically when it is unused, and its family.
    pub(super) fn home_of(&self, address: IpAddr) -> Option<(ObjectName, AddressFamily)> {
        let pool = self.holding(address).filter(|_| !self.keeps_back(address))?;
        Some((pool.name.clone(), AddressFamily::of(address)))
    }

    /// The pools that addresses for `service` may be taken from.
    pub(super) fn candidates(&self, service: &Service) -> Result<Candidates<'a>, Reason> {
        if !service.requested_pools.is_empty() {
            let named = service.requested_pools.iter().map(|wanted| self.named(wanted, service));
            let named: Vec<Vec<_>> = named.collect::<Result<_, _>>()?;
            return Ok(Candidates { tiers: [named.concat(), Vec::new()] });
        }
        let get = |names: &[ObjectName]| -> Vec<&'a Pool> {
            names.iter().filter_map(|name| self.facts.pools.get(name)).collect()
        };
        let (mut pinned, open) = (get(&self.index.pinned), get(&self.index.open));
        let has_pinned = !pinned.is_empty();
        pinned.retain(|pool| self.is_for(pool, service));
        match (pinned.is_empty() && open.is_empty(), has_pinned) {
            (false, _) => Ok(Candidates { tiers: [pinned, open] }),
            (true, true) => Err(Reason::NoPoolForService),
            (true, false) => Err(Reason::NoAutomaticPool),
        }
    }

    /// The pools that are called `wanted`, in any namespace.
    fn named(&self, wanted: &str, service: &Service) -> Result<Vec<&'a Pool>, Reason> {
        let pools = self.facts.pools.values();
        let mut named: Vec<_> = pools.filter(|pool| pool.name.name == *wanted).collect();
        if named.is_empty() {
            return Err(Reason::UnknownPool(wanted.to_owned()));
        }
        named.retain(|pool| self.is_for(pool, service));
        if named.is_empty() { Err(Reason::PoolNotForService(wanted.to_owned())) } else { Ok(named) }
    }

    /// The names of the pools that hold these addresses: one name, or two separated by a comma when each
    /// family comes from a pool of its own.
    pub(super) fn names(&self, addresses: &[IpAddr]) -> String {
        let mut names: Vec<&str> = Vec::new();
        for pool in addresses.iter().filter_map(|address| self.holding(*address)) {
            if !names.contains(&pool.name.name.as_str()) {
                names.push(&pool.name.name);
            }
        }
        names.join(",")
    }
}

/// Whether old equipment takes `address` for a network or broadcast address.
pub(super) fn is_buggy(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if matches!(address.octets(), [.., 0 | 255]))
}

/// Whether `pool` never assigns `address`, because of such equipment.
fn avoids(pool: &Pool, address: IpAddr) -> bool {
    pool.avoid_buggy_addresses && is_buggy(address)
}
