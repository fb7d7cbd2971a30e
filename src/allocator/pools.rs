//! Which pool an address belongs to, and which pools a Service may be served from.
//!
//! Knows nothing of who uses what. Called by the allocator, and by the plan, which needs the pool
//! of an address to find its advertisements.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::model::{AddressRange, ClusterIndex, ObjectName, Pool, Service};

use super::Reason;

/// The pools of an index, searchable by address in O(log ranges).
#[derive(Debug, Clone)]
pub struct PoolLookup<'a> {
    pools: &'a BTreeMap<ObjectName, Pool>,
    // Ranges never overlap, so the last one that begins at or before an address is the only one
    // that can hold it.
    ranges: BTreeMap<IpAddr, (AddressRange, &'a Pool)>,
}

impl<'a> PoolLookup<'a> {
    /// Makes the pools of `index` searchable.
    pub fn new(index: &'a ClusterIndex) -> Self {
        let ranges = index
            .pools
            .values()
            .flat_map(|pool| pool.ranges.iter().map(move |range| (range.first(), (*range, pool))));
        Self { pools: &index.pools, ranges: ranges.collect() }
    }

    /// The pool that holds `address`, whether or not it would give it out.
    pub fn holding(&self, address: IpAddr) -> Option<&'a Pool> {
        let (_, (range, pool)) = self.ranges.range(..=address).next_back()?;
        range.contains(address).then_some(*pool)
    }

    /// The pool that holds `address` and lets a Service have it.
    pub fn offering(&self, address: IpAddr) -> Option<&'a Pool> {
        self.holding(address).filter(|pool| !avoids(pool, address))
    }

    /// The pools that addresses for `service` may be taken from, best first. Namespace, selector
    /// and priority of a pool's `serviceAllocation` will be weighed here.
    pub(super) fn candidates(&self, service: &Service) -> Result<Vec<&'a Pool>, Reason> {
        let pools = self.pools.values();
        match &service.requested_pool {
            Some(wanted) => {
                let named: Vec<_> = pools.filter(|pool| pool.name.name == *wanted).collect();
                if named.is_empty() { Err(Reason::UnknownPool(wanted.clone())) } else { Ok(named) }
            }
            None => {
                let automatic: Vec<_> = pools.filter(|pool| pool.auto_assign).collect();
                if automatic.is_empty() { Err(Reason::NoAutomaticPool) } else { Ok(automatic) }
            }
        }
    }

    /// The names of the pools that hold these addresses: one name, or two with a comma between
    /// when each family comes from a pool of its own.
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

/// Whether `pool` keeps `address` back because old equipment takes it for a network or broadcast
/// address.
pub(super) fn avoids(pool: &Pool, address: IpAddr) -> bool {
    pool.avoid_buggy_addresses
        && matches!(address, IpAddr::V4(address) if matches!(address.octets(), [.., 0 | 255]))
}

/// For an address that `pool` does not give out by itself: the last one of the stretch of such
/// addresses that it lies in.
pub(super) fn stretch_to_skip(pool: &Pool, address: IpAddr) -> Option<IpAddr> {
    if avoids(pool, address) {
        return Some(address);
    }
    pool.reserved.iter().find(|range| range.contains(address)).map(|range| range.last())
}
