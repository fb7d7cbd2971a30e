//! Which addresses one Service should get, given what the others have.
//!
//! Changes nothing and remembers nothing: a cool-down or a list of addresses to avoid will be one
//! more reason to pass an address over in [`Choice::lowest_in`]. Called by the allocator.

use std::net::IpAddr;

use fairway_sessions::types::AddressFamily;

use crate::model::{FamilyPolicy, Pool, Service};

use super::Reason;
use super::occupancy::Occupancy;
use super::pools::{PoolLookup, stretch_to_skip};
use super::request;
use super::sharing::Claim;

/// Addresses for one Service, and what it did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) reason: Option<Reason>,
}

impl Found {
    /// One address for a Service that would rather have two.
    fn one_family(address: IpAddr, missing: Reason) -> Self {
        let got = AddressFamily::of(address);
        let reason = Some(Reason::OneFamily { got, missing: Box::new(missing) });
        Self { addresses: vec![address], reason }
    }
}

/// Everything the choice for one Service depends on.
pub(super) struct Choice<'a> {
    pub(super) pools: &'a PoolLookup<'a>,
    pub(super) occupancy: &'a Occupancy,
    pub(super) service: &'a Service,
    pub(super) claim: &'a Claim,
}

impl Choice<'_> {
    /// All addresses that the Service should have. `kept` is what it has and may keep.
    pub(super) fn make(&self, kept: &[IpAddr]) -> Result<Found, Reason> {
        if !self.service.requested_addresses.is_empty() {
            return self.requested();
        }
        let candidates = match (self.pools.candidates(self.service), self.service.families, kept) {
            (Ok(candidates), ..) => candidates,
            // Nowhere to look for the other family, which is no reason to lose the one it has.
            (Err(missing), FamilyPolicy::PreferDual(_), [kept]) => {
                return Ok(Found::one_family(*kept, missing));
            }
            (Err(missing), ..) => return Err(missing),
        };
        match self.service.families {
            FamilyPolicy::Single(family) => match kept.first() {
                Some(kept) => Ok(Found { addresses: vec![*kept], reason: None }),
                None => self
                    .lowest_in(&candidates, family)
                    .map(|address| Found { addresses: vec![address], reason: None }),
            },
            FamilyPolicy::PreferDual(first) => self.dual(&candidates, first, kept, false),
            FamilyPolicy::RequireDual(first) => self.dual(&candidates, first, kept, true),
        }
    }

    fn requested(&self) -> Result<Found, Reason> {
        request::check(self.service, self.pools)?;
        let requested = &self.service.requested_addresses;
        for address in requested.iter().copied() {
            let conflict = self.occupancy.conflict(address, &self.service.name, self.claim);
            if let Some((user, conflict)) = conflict {
                return Err(Reason::AddressInUse { address, user, conflict });
            }
        }
        let alone = match (self.service.families, requested.as_slice()) {
            (FamilyPolicy::PreferDual(_), [only]) => Some(Reason::OneFamilyRequested(*only)),
            _ => None,
        };
        let addresses = request::in_family_order(self.service, requested);
        Ok(Found { addresses, reason: alone })
    }

    fn dual(
        &self,
        candidates: &[&Pool],
        first: AddressFamily,
        kept: &[IpAddr],
        both_needed: bool,
    ) -> Result<Found, Reason> {
        let both = kept.is_empty().then(|| {
            candidates.iter().find_map(|pool| {
                let first_address = self.lowest_in(&[*pool], first).ok()?;
                let other_address = self.lowest_in(&[*pool], first.other()).ok()?;
                Some(vec![first_address, other_address])
            })
        });
        if let Some(addresses) = both.flatten() {
            return Ok(Found { addresses, reason: None });
        }
        // No pool has both, or one family is settled: each family from wherever it is to be had,
        // the pool of the other family before the rest.
        let home = kept.first().and_then(|address| self.pools.holding(*address));
        let mut ordered = candidates.to_vec();
        ordered.sort_by_key(|pool| home.is_none_or(|home| home.name != pool.name));
        let find = |family| {
            let kept = kept.iter().copied().find(|address| AddressFamily::of(*address) == family);
            kept.map_or_else(|| self.lowest_in(&ordered, family), Ok)
        };
        match (find(first), find(first.other())) {
            (Ok(address), Ok(other)) => Ok(Found { addresses: vec![address, other], reason: None }),
            (Ok(address), Err(missing)) | (Err(missing), Ok(address)) if !both_needed => {
                Ok(Found::one_family(address, missing))
            }
            (Err(missing), _) | (_, Err(missing)) => Err(missing),
        }
    }

    /// The lowest address of the first pool that has one to give; ranges in the order written.
    fn lowest_in(&self, pools: &[&Pool], family: AddressFamily) -> Result<IpAddr, Reason> {
        let found = pools.iter().find_map(|pool| {
            let skip = |address| stretch_to_skip(pool, address);
            let ranges = pool.ranges.iter().filter(|range| range.family() == family);
            ranges.copied().find_map(|range| {
                self.occupancy.lowest(range, &skip, &self.service.name, self.claim)
            })
        });
        found.ok_or_else(|| {
            let names = |pools: Vec<&&Pool>| {
                pools.into_iter().map(|pool| pool.name.name.clone()).collect::<Vec<_>>()
            };
            let holding: Vec<_> = pools.iter().filter(|pool| pool.has_family(family)).collect();
            if holding.is_empty() {
                Reason::NoPoolOfFamily { family, pools: names(pools.iter().collect()) }
            } else {
                Reason::NoFreeAddress { family, pools: names(holding) }
            }
        })
    }
}
