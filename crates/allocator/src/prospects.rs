//! What one Service could have, and which changes could provide the rest.
//!
//! Another part of [`Allocator`]; changes nothing. Called by `converge`.

use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{FamilyPolicy, Service};

use super::Allocator;
use super::choice::Choice;
use super::converge::Pass;
use super::request;
use super::sharing::Claim;
use super::waiting::Place;

impl Allocator {
    /// What the Service may have without a search: for each family what it holds, else what is in its
    /// status, else what it released.
    pub(super) fn settled(&self, service: &Service, claim: &Claim, pass: &Pass<'_>) -> Vec<IpAddr> {
        let held = self.addresses_of(&service.name);
        if request::is_satisfied(service, held) {
            return held.to_vec();
        }
        let choice = self.choice(service, claim, pass);
        let mut wanted = held.to_vec();
        let had = service.status_addresses.iter().copied().chain(self.released.of(&service.name));
        wanted.extend(had.filter(|address| choice.is_available(*address)));
        if service.requested_addresses.is_empty() {
            return request::still_valid(service, &wanted, &pass.pools);
        }
        if held.is_empty() {
            wanted.retain(|address| service.requested_addresses.contains(address));
            wanted.sort_unstable();
            wanted.dedup();
            return request::still_valid(service, &wanted, &pass.pools);
        }
        held.to_vec()
    }

    pub(super) fn choice<'a>(
        &'a self,
        service: &'a Service,
        claim: &'a Claim,
        pass: &'a Pass<'_>,
    ) -> Choice<'a> {
        let (pools, occupancy, released) = (&pass.pools, &self.occupancy, &self.released);
        Choice { pools, occupancy, released, service, claim }
    }

    /// Which changes could complete a Service that does not have all it wants, although it could have
    /// `settled`.
    pub(super) fn places(
        &self,
        service: &Service,
        claim: &Claim,
        settled: &[IpAddr],
        pass: &Pass<'_>,
    ) -> Vec<Place> {
        if !service.requested_addresses.is_empty() {
            return service.requested_addresses.iter().copied().map(Place::Address).collect();
        }
        let had = service.status_addresses.iter().copied().chain(self.released.of(&service.name));
        let mut places: Vec<_> = had.map(Place::Address).collect();
        places.extend(claim.sharing_key().map(|key| Place::SharingKey(key.to_owned())));
        let mut families = request::families_in_order(service);
        match service.families {
            FamilyPolicy::RequireDual(first) => {
                let other = settled.first().map(|address| AddressFamily::of(*address).other());
                let missing = || self.choice(service, claim, pass).missing_family(first);
                families = vec![other.unwrap_or_else(missing)];
            }
            FamilyPolicy::Single(_) | FamilyPolicy::PreferDual(_) => {
                let held = self.addresses_of(&service.name);
                families.retain(|family| !held.iter().any(|it| AddressFamily::of(*it) == *family));
            }
        }
        let Ok(candidates) = pass.pools.candidates(service) else {
            return places;
        };
        for pool in candidates.pools() {
            places.extend(families.iter().map(|it| Place::Pool(pool.name.clone(), *it)));
        }
        places
    }
}
