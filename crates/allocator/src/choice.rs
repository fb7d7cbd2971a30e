//! Which addresses one Service should get, given what the others have.
//!
//! Changes nothing and remembers nothing. Called by the allocator.
//!
//! Pools are tried tier by tier: those restricted to the Service, then those open to all. If two families
//! are wanted, the first pool of a tier with both gives them; with PreferDualStack, a tier without such a
//! pool gives one family. Both families come from one pool, as in MetalLB; only for a Service that names
//! two pools, each comes from the first of them that has it. A recently released address is used only if
//! a tier has no other.

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
            return self.requested(kept);
        }
        if request::is_satisfied(self.service, kept) {
            return Ok(Found::all(kept.to_vec()));
        }
        if let (FamilyPolicy::PreferDual(_), Some(kept)) = (self.service.families, kept.first()) {
            return Ok(match self.beside(*kept) {
                // The first one stays the first one.
                Ok(other) => Found::all(vec![*kept, other]),
                Err(missing) => Found::one_family(*kept, missing),
            });
        }
        let candidates = self.pools.candidates(self.service)?;
        match self.service.families {
            FamilyPolicy::Single(family) => match self.any(&candidates.tiers, family) {
                Some(address) => Ok(Found::all(vec![address])),
                None => Err(missing(&candidates.all(), family)),
            },
            FamilyPolicy::PreferDual(first) => self.prefer_dual(&candidates, first),
            FamilyPolicy::RequireDual(first) => {
                self.require_dual(&candidates, first, kept.first().copied())
            }
        }
    }

    /// The family that must become available in `pools`, which have not both, for a Service that needs
    /// both and has `settled`.
    pub(super) fn missing_family(
        &self,
        pools: &[&Pool],
        first: AddressFamily,
        settled: Option<IpAddr>,
    ) -> AddressFamily {
        let is_here = |address: IpAddr| pools.iter().any(|pool| pool.contains(address));
        match settled.filter(|address| is_here(*address)) {
            Some(address) => AddressFamily::of(address).other(),
            None if self.take(pools, first).is_some() => first.other(),
            None => first,
        }
    }

    /// The pools that together give both families: two that the Service names, else each by itself.
    pub(super) fn groups<'p, 'a>(&self, pools: &'p [&'a Pool]) -> Vec<&'p [&'a Pool]> {
        if self.service.spans_pools() { vec![pools] } else { pools.chunks(1).collect() }
    }

    /// The pools that the other family of `kept` may come from.
    pub(super) fn around(&self, kept: IpAddr) -> Vec<&Pool> {
        if self.service.spans_pools() {
            self.pools.candidates(self.service).map_or_else(|_| Vec::new(), |it| it.all())
        } else {
            self.pools.holding(kept).into_iter().collect()
        }
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

    fn requested(&self, kept: &[IpAddr]) -> Result<Found, Reason> {
        request::check(self.service, self.pools)?;
        let requested = &self.service.requested_addresses;
        if let Some(refusal) = requested.iter().find_map(|address| self.refusal(*address)) {
            return Err(refusal);
        }
        let alone = match (self.service.families, requested.as_slice()) {
            (FamilyPolicy::PreferDual(_), [only]) => Some(Reason::OneFamilyRequested(*only)),
            _ => None,
        };
        // Those that it has keep their order.
        let has_all = kept.len() == requested.len() && requested.iter().all(|it| kept.contains(it));
        let addresses = if has_all { kept.to_vec() } else { requested.clone() };
        Ok(Found { addresses, reason: alone })
    }

    /// The other family for a Service that has one, or why there is none.
    fn beside(&self, kept: IpAddr) -> Result<IpAddr, Reason> {
        let (pools, family) = (self.around(kept), AddressFamily::of(kept).other());
        self.take(&pools, family).ok_or_else(|| missing(&pools, family))
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
                let family = AddressFamily::of(one).other();
                return Ok(Found::one_family(one, missing(&self.around(one), family)));
            }
        }
        Err(missing(&candidates.all(), first))
    }

    fn require_dual(
        &self,
        candidates: &Candidates<'_>,
        first: AddressFamily,
        kept: Option<IpAddr>,
    ) -> Result<Found, Reason> {
        if let Some((kept, Ok(other))) = kept.map(|kept| (kept, self.beside(kept))) {
            return Ok(Found::all(request::new_pair(kept, other)));
        }
        let pair = candidates.tiers.iter().find_map(|tier| self.pair(tier, first));
        pair.map(Found::all).ok_or_else(|| self.no_pair(candidates, first))
    }

    /// One address of each family from one group of pools, from one without a recent holder if possible.
    fn pair(&self, tier: &[&Pool], first: AddressFamily) -> Option<Vec<IpAddr>> {
        let groups = self.groups(tier);
        let from = |find: &dyn Fn(&[&Pool], AddressFamily) -> Option<IpAddr>| {
            let both = |it: &&[&Pool]| Some((find(it, first)?, find(it, first.other())?));
            groups.iter().find_map(|it| both(it).map(|(one, other)| request::new_pair(one, other)))
        };
        from(&|pools, family| self.fresh(pools, family))
            .or_else(|| from(&|pools, family| self.take(pools, family)))
    }

    /// An address of the first tier that has one.
    fn any(&self, tiers: &[Vec<&Pool>], family: AddressFamily) -> Option<IpAddr> {
        tiers.iter().find_map(|tier| self.take(tier, family))
    }

    /// The lowest address of the first pool that has one; if none has, the one that was released
    /// longest ago.
    fn take(&self, pools: &[&Pool], family: AddressFamily) -> Option<IpAddr> {
        self.fresh(pools, family).or_else(|| {
            let mut homes = pools.iter().map(|pool| (pool.name.clone(), family));
            homes.find_map(|home| self.released.oldest_usable(&home))
        })
    }

    fn fresh(&self, pools: &[&Pool], family: AddressFamily) -> Option<IpAddr> {
        pools.iter().find_map(|pool| self.lowest_in(pool, family))
    }

    /// The lowest available address; ranges in the order written.
    fn lowest_in(&self, pool: &Pool, family: AddressFamily) -> Option<IpAddr> {
        let mut ranges = pool.ranges.iter().filter(|range| range.family() == family);
        ranges.find_map(|range| {
            let avoids_buggy = pool.avoid_buggy_addresses;
            self.occupancy.lowest(*range, avoids_buggy, self.pools, self.claim)
        })
    }

    /// Why no group of pools has both families. Depends on the pools alone, as [`missing`] does.
    fn no_pair(&self, candidates: &Candidates<'_>, first: AddressFamily) -> Reason {
        let all = candidates.all();
        for family in [first, first.other()] {
            if let reason @ Reason::NoPoolOfFamily { .. } = missing(&all, family) {
                return reason;
            }
        }
        let has = |group: &&[&Pool], family| group.iter().any(|pool| pool.has_family(family));
        let is_any = candidates.tiers.iter().any(|tier| {
            let mut groups = self.groups(tier).into_iter();
            groups.any(|group| has(&group, first) && has(&group, first.other()))
        });
        let pools = names(&all);
        if is_any { Reason::NoFreePair { pools } } else { Reason::NoPoolOfBoth { pools } }
    }
}

/// Why `pools` have no address of `family`. Depends on the pools alone, not on assignments, so that it
/// need not be recomputed with every change.
fn missing(pools: &[&Pool], family: AddressFamily) -> Reason {
    let holding: Vec<_> = pools.iter().copied().filter(|pool| pool.has_family(family)).collect();
    if holding.is_empty() {
        Reason::NoPoolOfFamily { family, pools: names(pools) }
    } else {
        Reason::NoFreeAddress { family, pools: names(&holding) }
    }
}

fn names(pools: &[&Pool]) -> Vec<String> {
    pools.iter().map(|pool| pool.name.name.clone()).collect()
}
