//! `show pools`: what each pool holds and how much of it is used.
//!
//! A shared address counts once. What a pool never gives out (`avoidBuggyIPs`) is not counted as
//! available; what it only gives to who asks (`reserved`) is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_sessions::types::{AddressFamily, Prefix};
use serde_json::Value;

use crate::allocator::PoolLookup;
use crate::model::{AddressRange, ObjectName, Pool, ServiceAllocation};

use super::Snapshot;
use super::columns::aligned;
use super::object::Object;

/// One pool and the addresses of it that are in use.
pub(super) struct Item<'a> {
    pub(super) pool: &'a Pool,
    assigned: BTreeSet<IpAddr>,
}

impl Item<'_> {
    pub(super) fn used(&self, family: AddressFamily) -> u128 {
        let of_family = self.assigned.iter().filter(|it| AddressFamily::of(**it) == family);
        u128::try_from(of_family.count()).unwrap_or(u128::MAX)
    }

    /// How many can be given out, used or not.
    pub(super) fn total(&self, family: AddressFamily) -> u128 {
        let ranges = self.pool.ranges.iter().filter(|range| range.family() == family);
        let sizes = ranges.map(|range| {
            let avoided = if self.pool.avoid_buggy_addresses { buggy(*range) } else { 0 };
            range.size().saturating_sub(u128::from(avoided))
        });
        sizes.fold(0, u128::saturating_add)
    }

    fn available(&self, family: AddressFamily) -> u128 {
        self.total(family).saturating_sub(self.used(family))
    }

    /// How many are left for who asks for none of them: what is `reserved` is not.
    pub(super) fn free(&self, family: AddressFamily) -> u128 {
        let overlaps = self.pool.reserved.iter().flat_map(|reserved| {
            let ranges = self.pool.ranges.iter().filter(|range| range.family() == family);
            ranges.filter_map(|range| range.overlap(*reserved))
        });
        let reserved = overlaps.map(|overlap| {
            let used = self.assigned.iter().filter(|it| overlap.contains(**it)).count();
            overlap.size().saturating_sub(u128::try_from(used).unwrap_or(u128::MAX))
        });
        self.available(family).saturating_sub(reserved.fold(0, u128::saturating_add))
    }

    fn ranges(&self) -> Vec<String> {
        self.pool.ranges.iter().map(|range| range_text(*range)).collect()
    }
}

/// Addresses of a range that end in .0 or .255.
fn buggy(range: AddressRange) -> u64 {
    let (IpAddr::V4(first), IpAddr::V4(last)) = (range.first(), range.last()) else { return 0 };
    // Of the addresses below `end`: those in .0, and those in .255.
    let below = |end: u64| end.div_ceil(256).saturating_add(end / 256);
    let end = u64::from(u32::from(last)).saturating_add(1);
    below(end).saturating_sub(below(u64::from(u32::from(first))))
}

/// A range as a prefix where it is one.
fn range_text(range: AddressRange) -> String {
    let lengths = 0..=range.family().address_bits();
    let mut prefixes = lengths.filter_map(|length| Prefix::new(range.first(), length).ok());
    let same =
        prefixes.find(|it| it.address() == range.first() && it.last_address() == range.last());
    same.map_or_else(|| range.to_string(), |prefix| prefix.to_string())
}

/// All pools, in name order.
pub(super) fn items<'a>(snapshot: &Snapshot<'a>) -> Vec<Item<'a>> {
    let lookup = PoolLookup::new(snapshot.index);
    let mut assigned: BTreeMap<&ObjectName, BTreeSet<IpAddr>> = BTreeMap::new();
    for address in snapshot.outcomes.values().flat_map(|outcome| &outcome.addresses) {
        if let Some(pool) = lookup.holding(*address) {
            assigned.entry(&pool.name).or_default().insert(*address);
        }
    }
    let pools = snapshot.index.pools.values();
    let of =
        |pool: &'a Pool| Item { pool, assigned: assigned.remove(&pool.name).unwrap_or_default() };
    pools.map(of).collect()
}

/// What stands for everybody.
const ALL: &str = "<all>";

/// Whom a pool is kept for, in few words.
fn kept_for(allocation: &ServiceAllocation) -> String {
    let mut words: Vec<String> = Vec::new();
    if !allocation.namespaces.is_empty() {
        let names: Vec<_> = allocation.namespaces.iter().map(String::as_str).collect();
        words.push(format!("namespaces {}", names.join(",")));
    }
    if !allocation.namespace_selectors.is_empty() {
        words.push("namespaces by label".to_owned());
    }
    if !allocation.service_selectors.is_empty() {
        words.push("services by label".to_owned());
    }
    if words.is_empty() {
        words.push(ALL.to_owned());
    }
    words.join("; ")
}

/// One row for each pool.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let items = items(snapshot);
    if items.is_empty() {
        return "No pools found.\n".to_owned();
    }
    let heads =
        ["NAME", "ADDRESSES", "IPV4 USED/TOTAL", "IPV6 USED/TOTAL", "AUTO ASSIGN", "KEPT FOR"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(items.iter().map(|item| {
        let usage = |family| format!("{}/{}", item.used(family), item.total(family));
        [
            item.pool.name.name.clone(),
            item.ranges().join(","),
            usage(AddressFamily::Ipv4Unicast),
            usage(AddressFamily::Ipv6Unicast),
            item.pool.auto_assign.to_string(),
            match &item.pool.allocation {
                None => ALL.to_owned(),
                Some(it) if it.priority == 0 => kept_for(it),
                Some(it) => format!("{}; priority {}", kept_for(it), it.priority),
            },
        ]
    }));
    aligned(&rows)
}

/// One object for each pool, with the counters of MetalLB's status, and how many are free for who
/// asks for no address; those saturate at the largest int64.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    let counter = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
    let object = |item: &Item<'_>| {
        let (ipv4, ipv6) = (AddressFamily::Ipv4Unicast, AddressFamily::Ipv6Unicast);
        Object::new()
            .field("namespace", item.pool.name.namespace.as_str())
            .field("name", item.pool.name.name.as_str())
            .field("addresses", item.ranges())
            .field("autoAssign", item.pool.auto_assign)
            .optional("keptFor", item.pool.allocation.as_ref().map(kept_for))
            .optional("priority", item.pool.allocation.as_ref().map(|it| it.priority))
            .field("assignedIPv4", counter(item.used(ipv4)))
            .field("availableIPv4", counter(item.available(ipv4)))
            .field("assignedIPv6", counter(item.used(ipv6)))
            .field("availableIPv6", counter(item.available(ipv6)))
            .field("freeIPv4", counter(item.free(ipv4)))
            .field("freeIPv6", counter(item.free(ipv6)))
    };
    let items: Vec<Value> = items(snapshot).iter().map(|item| object(item).into()).collect();
    Object::new().field("items", items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_is_a_prefix_where_it_is_one() {
        assert_eq!(range_text(range("192.0.2.0-192.0.2.255")), "192.0.2.0/24");
        assert_eq!(range_text(range("192.0.2.7-192.0.2.7")), "192.0.2.7/32");
        assert_eq!(range_text(range("192.0.2.1-192.0.2.9")), "192.0.2.1-192.0.2.9");
        assert_eq!(range_text(range("::/0")), "::/0");
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
