//! What a Service requests: whether the request is valid, and whether addresses meet it.
//!
//! Knows no other Service. Called by `choice` for new addresses, and by the allocator for existing
//! ones.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::{AddressFamily, FamilySet};
use fairway_model::{FamilyPolicy, Service};

use super::Reason;
use super::pools::PoolLookup;

/// The families a Service wants, the preferred one first.
pub(super) fn families_in_order(service: &Service) -> Vec<AddressFamily> {
    match service.families {
        FamilyPolicy::Single(family) => vec![family],
        FamilyPolicy::PreferDual(first) | FamilyPolicy::RequireDual(first) => {
            vec![first, first.other()]
        }
    }
}

/// Two addresses that are new to a Service: IPv4 first, whichever family it prefers. MetalLB lists them so, and the
/// first one of a status decides which node answers on layer 2.
pub(super) fn new_pair(one: IpAddr, other: IpAddr) -> Vec<IpAddr> {
    let mut pair = vec![one, other];
    pair.sort_by_key(IpAddr::is_ipv6);
    pair
}

/// Whether the requested addresses could be assigned if no other Service had them.
pub(super) fn check(service: &Service, pools: &PoolLookup<'_>) -> Result<(), Reason> {
    let requested = &service.requested_addresses;
    let families: FamilySet = requested.iter().map(|it| AddressFamily::of(*it)).collect();
    let one_each = families.iter().count() == requested.len();
    let matching = match service.families {
        FamilyPolicy::Single(family) => families == FamilySet::only(family),
        FamilyPolicy::PreferDual(_) => !families.is_empty(),
        FamilyPolicy::RequireDual(_) => families == FamilySet::BOTH,
    };
    if !matching || !one_each {
        let (requested, wanted) = (requested.clone(), service.families);
        return Err(Reason::Families { requested, wanted });
    }
    if !service.requested_pools.is_empty()
        && !requested.iter().all(|address| keeps_unknown(service, *address, pools))
    {
        // Names the pool if it does not exist, or is not for this Service.
        pools.candidates(service)?;
    }
    requested.iter().try_for_each(|address| allowed(service, *address, pools))?;
    together(service, requested, pools)
}

/// Whether the Service may have all of `addresses` at once, each of which it may have: they are of one
/// pool, unless it names two. An address of an invalid pool may be of any.
pub(super) fn together(
    service: &Service,
    addresses: &[IpAddr],
    pools: &PoolLookup<'_>,
) -> Result<(), Reason> {
    if service.spans_pools() {
        return Ok(());
    }
    let mut homes = addresses.iter().filter_map(|it| Some((*it, pools.holding(*it)?)));
    let Some((one, home)) = homes.next() else { return Ok(()) };
    match homes.find(|(_, pool)| pool.name != home.name) {
        None => Ok(()),
        Some((other, second)) => Err(Reason::TwoPools {
            addresses: [one, other],
            pools: [home, second].map(|pool| pool.name.name.clone()),
        }),
    }
}

/// Whether the pools let `service` have `address`.
pub(super) fn allowed(
    service: &Service,
    address: IpAddr,
    pools: &PoolLookup<'_>,
) -> Result<(), Reason> {
    if keeps_unknown(service, address, pools) {
        return Ok(());
    }
    let pool = pools.holding(address).ok_or(Reason::AddressInNoPool(address))?;
    let holder = pool.name.name.clone();
    let wanted = &service.requested_pools;
    if !wanted.is_empty() && !wanted.contains(&holder) {
        return Err(Reason::AddressNotInPool { address, pool: wanted.join(" or "), holder });
    }
    if pools.offering(address).is_none() {
        return Err(Reason::AddressAvoided { address, pool: holder });
    }
    if pools.is_for(pool, service) { Ok(()) } else { Err(Reason::PoolNotForService(holder)) }
}

/// Whether the Service has `address`, and it may be of an invalid pool: then it is unknown whether it
/// is allowed.
fn keeps_unknown(service: &Service, address: IpAddr, pools: &PoolLookup<'_>) -> bool {
    pools.may_be_unknown(address) && service.status_addresses.contains(&address)
}

/// What the Service may have of `wanted`, one address of each of its families, in the order that they have. A
/// requested address counts only if the whole request is met; of others the first that is allowed
/// counts, and those that it may have beside that one.
pub(super) fn still_valid(
    service: &Service,
    wanted: &[IpAddr],
    pools: &PoolLookup<'_>,
) -> Vec<IpAddr> {
    if !service.requested_addresses.is_empty() {
        let is_met = is_complete(service, wanted) && check(service, pools).is_ok();
        return if is_met { wanted.to_vec() } else { Vec::new() };
    }
    let families = families_in_order(service);
    let mut allowed: Vec<_> = wanted.to_vec();
    allowed.retain(|it| families.contains(&AddressFamily::of(*it)));
    allowed.retain(|it| self::allowed(service, *it, pools).is_ok());
    if let Some(first) = allowed.first().copied() {
        allowed.retain(|it| together(service, &[first, *it], pools).is_ok());
    }
    one_of_each_family(service, &allowed)
}

/// The first of `addresses` of each family that the Service wants, in the order that they have.
pub(super) fn one_of_each_family(service: &Service, addresses: &[IpAddr]) -> Vec<IpAddr> {
    let families = families_in_order(service);
    let is_first = |position: usize, address: &IpAddr| {
        let family = AddressFamily::of(*address);
        let mut before = addresses.iter().take(position);
        families.contains(&family) && before.all(|it| AddressFamily::of(*it) != family)
    };
    let numbered = addresses.iter().enumerate();
    numbered.filter(|(position, it)| is_first(*position, it)).map(|(_, it)| *it).collect()
}

/// Whether there is nothing left to assign or to report.
pub(super) fn is_satisfied(service: &Service, addresses: &[IpAddr]) -> bool {
    let dual = !matches!(service.families, FamilyPolicy::Single(_));
    is_complete(service, addresses) && !(dual && addresses.len() == 1)
}

/// Whether `addresses` is the whole request.
fn is_complete(service: &Service, addresses: &[IpAddr]) -> bool {
    let requested = &service.requested_addresses;
    if requested.is_empty() {
        return addresses.len() == families_in_order(service).len();
    }
    requested.iter().collect::<BTreeSet<_>>() == addresses.iter().collect::<BTreeSet<_>>()
}
