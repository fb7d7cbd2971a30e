//! What a Service asks for: whether that can be asked at all, and whether addresses meet it.
//!
//! Knows no other Service. Called by `choice` for what is to be given, and by the allocator for
//! what a Service already has.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_sessions::types::{AddressFamily, FamilySet};

use crate::model::{FamilyPolicy, Service};

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

/// `addresses` with the preferred family first.
pub(super) fn in_family_order(service: &Service, addresses: &[IpAddr]) -> Vec<IpAddr> {
    let mut ordered = Vec::with_capacity(addresses.len());
    for family in families_in_order(service) {
        ordered.extend(addresses.iter().filter(|address| AddressFamily::of(**address) == family));
    }
    ordered
}

/// Whether the addresses a Service names could be given to it if nobody else had them.
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
    if service.requested_pool.is_some() {
        // Names the pool if there is none of that name.
        pools.candidates(service)?;
    }
    for address in requested.iter().copied() {
        let pool = pools.holding(address).ok_or(Reason::AddressInNoPool(address))?;
        if let Some(wanted) = service.requested_pool.as_ref().filter(|it| **it != pool.name.name) {
            return Err(Reason::AddressNotInPool { address, pool: wanted.clone() });
        }
        if pools.offering(address).is_none() {
            return Err(Reason::AddressAvoided { address, pool: pool.name.name.clone() });
        }
    }
    Ok(())
}

/// What of `held` the Service may keep, in the order of its families. A named address is kept
/// only if all of the request is met; of the others, each for itself.
pub(super) fn still_valid(
    service: &Service,
    held: &[IpAddr],
    pools: &PoolLookup<'_>,
) -> Vec<IpAddr> {
    if !service.requested_addresses.is_empty() {
        let kept = is_complete(service, held) && check(service, pools).is_ok();
        return if kept { in_family_order(service, held) } else { Vec::new() };
    }
    let families = families_in_order(service).into_iter();
    families
        .filter_map(|family| {
            held.iter().copied().find(|address| {
                AddressFamily::of(*address) == family
                    && pools.offering(*address).is_some_and(|pool| {
                        service.requested_pool.as_ref().is_none_or(|it| *it == pool.name.name)
                    })
            })
        })
        .collect()
}

/// Whether nothing is left to be given or to be said.
pub(super) fn is_satisfied(service: &Service, addresses: &[IpAddr]) -> bool {
    let dual = !matches!(service.families, FamilyPolicy::Single(_));
    is_complete(service, addresses) && !(dual && addresses.len() == 1)
}

/// Whether `addresses` is all that was asked for.
fn is_complete(service: &Service, addresses: &[IpAddr]) -> bool {
    let requested = &service.requested_addresses;
    if requested.is_empty() {
        return addresses.len() == families_in_order(service).len();
    }
    requested.iter().collect::<BTreeSet<_>>() == addresses.iter().collect::<BTreeSet<_>>()
}
