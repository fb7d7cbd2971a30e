//! `show pools`: the ranges of each pool, and how much of it is used.
//!
//! Renders what [`PoolUse`] counts.

use fairway_allocator::PoolUse;
use fairway_ground::{AddressFamily, Prefix};
use fairway_model::{AddressRange, Pool, ServiceAllocation};
use serde_json::Value;

use super::Snapshot;
use super::columns::aligned;
use super::object::Object;

/// One pool and how much of it is in use.
pub(super) struct Item<'a> {
    pub(super) pool: &'a Pool,
    pub(super) usage: PoolUse,
}

impl Item<'_> {
    /// Its addresses, as prefixes where they are.
    pub(super) fn ranges(&self) -> Vec<String> {
        self.pool.ranges.iter().map(|range| range_text(*range)).collect()
    }
}

/// A range as a prefix, if it is one.
fn range_text(range: AddressRange) -> String {
    let lengths = 0..=range.family().address_bits();
    let mut prefixes = lengths.filter_map(|length| Prefix::new(range.first(), length).ok());
    let same =
        prefixes.find(|it| it.address() == range.first() && it.last_address() == range.last());
    same.map_or_else(|| range.to_string(), |prefix| prefix.to_string())
}

/// All pools, in name order.
pub(super) fn items<'a>(snapshot: &Snapshot<'a>) -> Vec<Item<'a>> {
    let usage = PoolUse::of_all(snapshot.index, snapshot.outcomes);
    let pools = snapshot.index.pools.values();
    pools.zip(usage).map(|(pool, usage)| Item { pool, usage }).collect()
}

/// Stands for all namespaces and Services.
const ALL: &str = "<all>";

/// The Services that a pool is dedicated to, in short form.
pub(super) fn kept_for(allocation: &ServiceAllocation) -> String {
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

/// One row per pool.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let items = items(snapshot);
    if items.is_empty() {
        return "No pools found.\n".to_owned();
    }
    let heads =
        ["NAME", "ADDRESSES", "IPV4 USED/TOTAL", "IPV6 USED/TOTAL", "AUTO ASSIGN", "KEPT FOR"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(items.iter().map(|item| {
        let shown =
            |family| format!("{}/{}", item.usage.used.of(family), item.usage.total.of(family));
        [
            item.pool.name.name.clone(),
            item.ranges().join(","),
            shown(AddressFamily::Ipv4Unicast),
            shown(AddressFamily::Ipv6Unicast),
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

/// One object per pool, with the counters of MetalLB's status, and the number of addresses that are free for
/// automatic assignment; they saturate at the largest int64.
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
            .field("assignedIPv4", counter(item.usage.used.ipv4))
            .field("availableIPv4", counter(item.usage.available(ipv4)))
            .field("assignedIPv6", counter(item.usage.used.ipv6))
            .field("availableIPv6", counter(item.usage.available(ipv6)))
            .field("freeIPv4", counter(item.usage.free.ipv4))
            .field("freeIPv6", counter(item.usage.free.ipv6))
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
}
