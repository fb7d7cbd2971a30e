//! How much of each pool is in use, for `show pools`, metrics and the status of the IPAddressPool.
//!
//! A shared address counts once. Addresses that a pool never assigns (`avoidBuggyIPs`) do not count as
//! available; those that it assigns on request only (`reserved`) do. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_ground::{AddressFamily, PerFamily};
use fairway_model::{AddressRange, ClusterIndex, ObjectName, Pool};

use super::{Outcomes, PoolLookup};

/// The usage of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolUse {
    /// The pool.
    pub pool: ObjectName,
    /// Services that have an address of it.
    pub services: usize,
    /// How many addresses can be assigned, used or not.
    pub total: PerFamily<u128>,
    /// How many are assigned.
    pub used: PerFamily<u128>,
    /// How many are left for Services that request none of them: `reserved` ones do not count.
    pub free: PerFamily<u128>,
}

impl PoolUse {
    /// All pools, in name order.
    pub fn of_all(index: &ClusterIndex, outcomes: &Outcomes) -> Vec<Self> {
        let lookup = PoolLookup::new(index);
        let mut assigned: BTreeMap<&ObjectName, Assigned> = BTreeMap::new();
        for outcome in outcomes.values() {
            let mut pools = BTreeSet::new();
            for address in &outcome.addresses {
                if let Some(pool) = lookup.holding(*address) {
                    let of_pool = assigned.entry(&pool.name).or_default();
                    of_pool.addresses.insert(*address);
                    of_pool.services += usize::from(pools.insert(&pool.name));
                }
            }
        }
        let of = |pool| Self::of(pool, &assigned.remove(&pool.name).unwrap_or_default());
        index.pools.values().map(of).collect()
    }

    fn of(pool: &Pool, assigned: &Assigned) -> Self {
        let mut of_pool = Self {
            pool: pool.name.clone(),
            services: assigned.services,
            total: PerFamily::default(),
            used: PerFamily::default(),
            free: PerFamily::default(),
        };
        for family in AddressFamily::ALL {
            *of_pool.total.of_mut(family) = total(pool, family);
            *of_pool.used.of_mut(family) = assigned.count(|it| AddressFamily::of(it) == family);
            let kept = kept_back(pool, family, assigned);
            *of_pool.free.of_mut(family) = of_pool.available(family).saturating_sub(kept);
        }
        of_pool
    }

    /// How many are left for Services that request them.
    pub fn available(&self, family: AddressFamily) -> u128 {
        self.total.of(family).saturating_sub(*self.used.of(family))
    }
}

/// The assigned addresses of a pool.
#[derive(Default)]
struct Assigned {
    addresses: BTreeSet<IpAddr>,
    services: usize,
}

impl Assigned {
    fn count(&self, which: impl Fn(IpAddr) -> bool) -> u128 {
        let count = self.addresses.iter().filter(|it| which(**it)).count();
        u128::try_from(count).unwrap_or(u128::MAX)
    }
}

fn ranges(pool: &Pool, family: AddressFamily) -> impl Iterator<Item = AddressRange> {
    pool.ranges.iter().copied().filter(move |range| range.family() == family)
}

fn total(pool: &Pool, family: AddressFamily) -> u128 {
    let sizes = ranges(pool, family).map(|range| {
        let avoided = if pool.avoid_buggy_addresses { buggy(range) } else { 0 };
        range.size().saturating_sub(u128::from(avoided))
    });
    sizes.fold(0, u128::saturating_add)
}

/// The reserved addresses that are not assigned.
fn kept_back(pool: &Pool, family: AddressFamily, assigned: &Assigned) -> u128 {
    let overlaps = pool
        .reserved
        .iter()
        .flat_map(|reserved| ranges(pool, family).filter_map(|range| range.overlap(*reserved)));
    let kept = overlaps
        .map(|overlap| overlap.size().saturating_sub(assigned.count(|it| overlap.contains(it))));
    kept.fold(0, u128::saturating_add)
}

/// Addresses of a range that end in .0 or .255.
fn buggy(range: AddressRange) -> u64 {
    let (IpAddr::V4(first), IpAddr::V4(last)) = (range.first(), range.last()) else { return 0 };
    // Of the addresses below `end`: those in .0, and those in .255.
    let below = |end: u64| end.div_ceil(256).saturating_add(end / 256);
    let end = u64::from(u32::from(last)).saturating_add(1);
    below(end).saturating_sub(below(u64::from(u32::from(first))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    fn range(text: &str) -> AddressRange {
        text.parse().unwrap()
    }

    fn pool(name: &str, ranges: &[&str]) -> Pool {
        Pool {
            name: ObjectName::new("default", name),
            labels: Default::default(),
            ranges: ranges.iter().map(|it| range(it)).collect(),
            auto_assign: true,
            avoid_buggy_addresses: true,
            reserved: vec![range("192.0.2.8/30")],
            allocation: None,
        }
    }

    #[test]
    fn shared_and_reserved_addresses_count_once_and_a_service_counts_in_each_of_its_pools() {
        let mut index = ClusterIndex::default();
        for pool in [pool("four", &["192.0.2.0/24"]), pool("six", &["2001:db8::/64"])] {
            index.pools.insert(pool.name.clone(), pool);
        }
        let given = |addresses: &[&str]| Outcome {
            addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
            pool: None,
            reason: None,
        };
        let outcomes = Outcomes::from([
            (ObjectName::new("default", "one"), given(&["192.0.2.1", "2001:db8::1"])),
            (ObjectName::new("default", "two"), given(&["192.0.2.1"])),
            (ObjectName::new("default", "asked"), given(&["192.0.2.9"])),
            (ObjectName::new("default", "stranger"), given(&["198.51.100.1"])),
            (ObjectName::new("default", "waits"), given(&[])),
        ]);
        let used = PoolUse::of_all(&index, &outcomes);
        let [four, six] = used.as_slice() else { panic!("{used:?}") };
        assert_eq!((four.pool.name.as_str(), four.services, six.services), ("four", 3, 1));
        assert_eq!((four.total.ipv4, four.used.ipv4, four.total.ipv6), (254, 2, 0));
        assert_eq!(four.available(AddressFamily::Ipv4Unicast), 252);
        assert_eq!(four.free.ipv4, 249, "three of the reserved ones are kept back");
        assert_eq!((six.total.ipv6, six.used.ipv6, six.free.ipv6), (1 << 64, 1, (1 << 64) - 1));
    }

    #[test]
    fn addresses_that_end_in_0_and_255_are_counted() {
        assert_eq!(buggy(range("192.0.2.0/24")), 2);
        assert_eq!(buggy(range("192.0.2.0/23")), 4);
        assert_eq!(buggy(range("192.0.2.1-192.0.2.254")), 0);
        assert_eq!(buggy(range("192.0.2.255-192.0.3.0")), 2);
        assert_eq!(buggy(range("0.0.0.0/0")), 2 << 24);
        assert_eq!(buggy(range("2001:db8::/64")), 0);
    }
}
