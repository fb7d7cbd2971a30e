//! Which addresses one Service should get, given what the others have.
//!
//! Changes nothing and remembers nothing. Called by the allocator.
//!
//! Pools are tried tier by tier: those restricted to the Service, then those open to all. In a tier,
//! the first pool with both families comes first, if both are wanted; then each family from
//! any pool of the tier. `Ours:` MetalLB takes both families from one pool or assigns only one; and
//! if no single tier has both for RequireDualStack, they come from two. A recently released address
//! is used only if a tier has no other.

use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{FamilyPolicy, Pool, Service};

use super::Reason;
use super::occupancy::Occupancy;
use super::pools::{Candidates, PoolLookup};
use super::released::Released;
use super::request;
use super::sharing::Claim;

/// Addresses for one Service, and what it did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) reason: Option<Reason>,
}

impl Found {
    fn all(addresses: Vec<IpAddr>) -> Self {
        Self { addresses, reason: None }
    }

    /// One address for a Service that prefers two.
    fn one_family(address: IpAddr, missing: Reason) -> Self {
        let got = AddressFamily::of(address);
        let reason = Some(Reason::OneFamily { got, missing: Box::new(missing) });
        Self { addresses: vec![address], reason }
    }
}

/// The inputs of the choice for one Service.
pub(super) struct Choice<'a> {
    pub(super) pools: &'a PoolLookup<'a>,
    pub(super) occupancy: &'a Occupancy,
    pub(super) released: &'a Released,
    pub(super) service: &'a Service,
    pub(super) claim: &'a Claim,
}

impl Choice<'_> {
    /// All addresses that the Service should have. `kept` is what it has and may keep.
    pub(super) fn make(&self, kept: &[IpAddr]) -> Result<Found, Reason> {
        if !self.service.requested_addresses.is_empty() {
            return self.requested();
        }
        if request::is_satisfied(self.service, kept) {
            return Ok(Found::all(kept.to_vec()));
        }
        let candidates = match (self.pools.candidates(self.service), self.service.families, kept) {
            (Ok(candidates), ..) => candidates,
            // No pool has the other family, which is no reason to lose the one it has.
            (Err(missing), FamilyPolicy::PreferDual(_), [kept]) => {
                return Ok(Found::one_family(*kept, missing));
            }
            (Err(missing), ..) => return Err(missing),
        };
        match (self.service.families, kept.first()) {
            (FamilyPolicy::Single(family), _) => match self.any(&candidates.tiers, family) {
                Some(address) => Ok(Found::all(vec![address])),
                None => Err(missing(&candidates, family)),
            },
            (policy, Some(kept)) => self.second(&candidates, policy, *kept),
            (FamilyPolicy::PreferDual(first), None) => self.prefer_dual(&candidates, first),
            (FamilyPolicy::RequireDual(first), None) => self.require_dual(&candidates, first),
        }
    }

    /// A family of which no pool has an address, where both are needed: that one must become available.
    pub(super) fn missing_family(&self, first: AddressFamily) -> AddressFamily {
        let candidates = self.pools.candidates(self.service);
        let has_first = candidates.is_ok_and(|it| self.any(&it.tiers, first).is_some());
        if has_first { first.other() } else { first }
    }

    /// Whether other Services leave `address` to the Service.
    pub(super) fn is_available(&self, address: IpAddr) -> bool {
        self.refusal(address).is_none()
    }

    fn refusal(&self, address: IpAddr) -> Option<Reason> {
        let service = &self.service.name;
        if let Some((user, conflict)) = self.occupancy.conflict(address, service, self.claim) {
            return Some(Reason::in_use(address, service, user, conflict));
        }
        let former = self.released.kept_for(address, service)?.clone();
        Some(Reason::AddressCooling { address, former })
    }

    /// `Ours:` requested addresses may be from two pools, as automatic ones may.
    fn requested(&self) -> Result<Found, Reason> {
        request::check(self.service, self.pools)?;
        let requested = &self.service.requested_addresses;
        if let Some(refusal) = requested.iter().find_map(|address| self.refusal(*address)) {
            return Err(refusal);
        }
        let alone = match (self.service.families, requested.as_slice()) {
            (FamilyPolicy::PreferDual(_), [only]) => Some(Reason::OneFamilyRequested(*only)),
            _ => None,
        };
        let addresses = request::in_family_order(self.service, requested);
        Ok(Found { addresses, reason: alone })
    }

    /// The other family for a Service that has one: from the same pool, if possible.
    fn second(
        &self,
        candidates: &Candidates<'_>,
        policy: FamilyPolicy,
        kept: IpAddr,
    ) -> Result<Found, Reason> {
        let family = AddressFamily::of(kept).other();
        let home = self.pools.holding(kept);
        let is_home = |pool: &&Pool| home.is_some_and(|home| home.name == pool.name);
        let at_home = candidates.pools().filter(is_home).collect();
        let other = self.take(&at_home, family).or_else(|| self.any(&candidates.tiers, family));
        match (other, policy) {
            (Some(other), _) => {
                Ok(Found::all(request::in_family_order(self.service, &[kept, other])))
            }
            (None, FamilyPolicy::RequireDual(_)) => Err(no_pair(candidates, family)),
            (None, _) => Ok(Found::one_family(kept, missing(candidates, family))),
        }
    }

    fn prefer_dual(
        &self,
        candidates: &Candidates<'_>,
        first: AddressFamily,
    ) -> Result<Found, Reason> {
        for tier in &candidates.tiers {
            if let Some(addresses) = self.pair(tier, first) {
                return Ok(Found::all(addresses));
            }
            let one = self.take(tier, first).or_else(|| self.take(tier, first.other()));
            if let Some(one) = one {
                return self.second(candidates, self.service.families, one);
            }
        }
        Err(missing(candidates, first))
    }

    fn require_dual(
        &self,
        candidates: &Candidates<'_>,
        first: AddressFamily,
    ) -> Result<Found, Reason> {
        if let Some(addresses) = candidates.tiers.iter().find_map(|tier| self.pair(tier, first)) {
            return Ok(Found::all(addresses));
        }
        let any =
            |family| self.any(&candidates.tiers, family).ok_or_else(|| no_pair(candidates, family));
        Ok(Found::all(vec![any(first)?, any(first.other())?]))
    }

    /// One address of each family from one tier, from one pool if possible.
    fn pair(&self, tier: &Vec<&Pool>, first: AddressFamily) -> Option<Vec<IpAddr>> {
        let of_one = |find: &dyn Fn(&Pool, AddressFamily) -> Option<IpAddr>| {
            tier.iter().find_map(|pool| Some(vec![find(pool, first)?, find(pool, first.other())?]))
        };
        let fresh = of_one(&|pool, family| self.lowest_in(pool, family));
        fresh
            .or_else(|| of_one(&|pool, family| self.take(&vec![pool], family)))
            .or_else(|| Some(vec![self.take(tier, first)?, self.take(tier, first.other())?]))
    }

    /// An address of the first tier that has one.
    fn any(&self, tiers: &[Vec<&Pool>], family: AddressFamily) -> Option<IpAddr> {
        tiers.iter().find_map(|tier| self.take(tier, family))
    }

    /// The lowest address of the first pool that has one; if none has, the one that was released
    /// longest ago.
    fn take(&self, pools: &Vec<&Pool>, family: AddressFamily) -> Option<IpAddr> {
        let fresh = pools.iter().find_map(|pool| self.lowest_in(pool, family));
        fresh.or_else(|| {
            let mut homes = pools.iter().map(|pool| (pool.name.clone(), family));
            homes.find_map(|home| self.released.oldest_usable(&home))
        })
    }

    /// The lowest available address; ranges in the order written.
    fn lowest_in(&self, pool: &Pool, family: AddressFamily) -> Option<IpAddr> {
        let mut ranges = pool.ranges.iter().filter(|range| range.family() == family);
        ranges.find_map(|range| {
            let avoids_buggy = pool.avoid_buggy_addresses;
            self.occupancy.lowest(*range, avoids_buggy, self.pools, self.claim)
        })
    }
}

/// Why there is no address of `family`. Depends on the pools alone, not on assignments, so that it
/// need not be recomputed with every change.
fn missing(candidates: &Candidates<'_>, family: AddressFamily) -> Reason {
    let names = |pools: Vec<&Pool>| pools.into_iter().map(|pool| pool.name.name.clone()).collect();
    let holding: Vec<_> = candidates.pools().filter(|pool| pool.has_family(family)).collect();
    if holding.is_empty() {
        Reason::NoPoolOfFamily { family, pools: names(candidates.pools().collect()) }
    } else {
        Reason::NoFreeAddress { family, pools: names(holding) }
    }
}

/// Why there are not both, likewise. `family` is a missing one.
fn no_pair(candidates: &Candidates<'_>, family: AddressFamily) -> Reason {
    for family in [family, family.other()] {
        if let reason @ Reason::NoPoolOfFamily { .. } = missing(candidates, family) {
            return reason;
        }
    }
    let pools = candidates.pools().map(|pool| pool.name.name.clone()).collect();
    Reason::NoFreePair { pools }
}
