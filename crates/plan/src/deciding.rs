//! Which address of a Service decides who answers for all of them on layer 2?
//!
//! Knows pools and the order in a status. Used by the election, and by what a machine abstains from.

use std::net::IpAddr;

use fairway_allocator::PoolLookup;
use fairway_model::{Pool, Service};

/// The addresses of each pool, the one that decides first.
pub(super) fn by_pool<'p>(
    service: &Service,
    addresses: &[IpAddr],
    pools: &PoolLookup<'p>,
) -> Vec<(&'p Pool, Vec<IpAddr>)> {
    let mut by_pool: Vec<(&Pool, Vec<IpAddr>)> = Vec::new();
    for address in in_order_of_status(service, addresses) {
        let Some(pool) = pools.offering(address) else { continue };
        match by_pool.iter_mut().find(|(it, _)| it.name == pool.name) {
            Some((_, others)) => others.push(address),
            None => by_pool.push((pool, vec![address])),
        }
    }
    by_pool
}

/// The first address decides, and MetalLB takes it from the Service's status: so does Fairway, once
/// the status has the same addresses. Until then, and without a cluster, it is the IPv4 one: hosts with the same files
/// may have got their addresses in another order.
fn in_order_of_status(service: &Service, addresses: &[IpAddr]) -> Vec<IpAddr> {
    let status = &service.status_addresses;
    let is_current =
        status.len() == addresses.len() && status.iter().all(|it| addresses.contains(it));
    let mut ordered = if is_current { status.clone() } else { addresses.to_vec() };
    if !is_current {
        ordered.sort_by_key(IpAddr::is_ipv6);
    }
    ordered
}
