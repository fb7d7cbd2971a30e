//! What one Service could have, and which changes could provide the rest.
//!
//! Another part of [`Allocator`]; changes nothing. Called by `converge`.

use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{FamilyPolicy, Pool, Service};

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
        let choice = self.choice(service, claim, pass);
        let all = pass.pools.candidates(service).map_or_else(|_| Vec::new(), |it| it.all());
        let of = |pools: &[&Pool], family| -> Vec<Place> {
            pools.iter().map(|pool| Place::Pool(pool.name.clone(), family)).collect()
        };
        match (service.families, self.addresses_of(&service.name).first().copied()) {
            (FamilyPolicy::Single(family), _) => places.extend(of(&all, family)),
            (FamilyPolicy::PreferDual(_), Some(held)) => {
                places.extend(of(&choice.around(held), AddressFamily::of(held).other()));
            }
            (FamilyPolicy::PreferDual(first), None) => {
                places.extend([first, first.other()].into_iter().flat_map(|it| of(&all, it)));
            }
            (FamilyPolicy::RequireDual(first), _) => {
                let settled = settled.first().copied();
                let around = settled.map(|kept| choice.around(kept)).unwrap_or_default();
                let groups = choice.groups(&all).into_iter().chain([around.as_slice()]);
                for pools in groups {
                    places.extend(of(pools, choice.missing_family(pools, first, settled)));
                }
            }
        }
        places
    }
}
