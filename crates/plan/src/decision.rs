//! Whether one Service is announced from one node, and as which prefixes.
//!
//! The rule is MetalLB's, and so is the order of the reasons: advertisements come first, then the
//! node, then the endpoints. Knows no other Service: where two want to announce one prefix, `routes`
//! decides. Called by the planner.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_allocator::{Outcome, PoolLookup};
use fairway_ground::Prefix;
use fairway_model::{ClusterIndex, Service};

use super::advertisements::Place;
use super::basis::Basis;
use super::combination::Combination;
use super::endpoints::Endpoints;
use super::layer2::{self, Layer2, Member, Own};
use super::{AddressAnnouncement, Announcement, PlanOptions, PrefixAnnouncement, Reason};

/// One prefix of one Service, with its attributes.
pub(super) type Said = (Prefix, Arc<Combination>);

/// The facts that differ between Services.
pub(super) struct Facts<'a> {
    pub(super) index: &'a ClusterIndex,
    own: Own<'a>,
    options: PlanOptions,
    pools: PoolLookup<'a>,
    layer2: Layer2<'a>,
}

/// The result for one Service.
pub(super) struct Decision {
    /// As if no other Service conflicted.
    pub(super) announcement: Announcement,
    /// Its prefixes.
    pub(super) said: Vec<Said>,
    /// Its usable endpoints on this node.
    pub(super) endpoints: u32,
}

impl<'a> Facts<'a> {
    /// As seen from one node.
    pub(super) fn new(
        index: &'a ClusterIndex,
        own: Own<'a>,
        members: Option<&'a BTreeMap<String, Member>>,
        options: PlanOptions,
    ) -> Self {
        let candidates = layer2::candidates(index, own, members);
        let layer2 = Layer2::new(index, own, candidates, options);
        Self { index, own, options, pools: PoolLookup::new(index), layer2 }
    }

    /// Decides about `service`.
    pub(super) fn decide(
        &mut self,
        basis: &mut Basis,
        service: &Service,
        outcome: &Outcome,
    ) -> Decision {
        if outcome.is_pending() {
            let text = outcome.reason.as_ref().map(ToString::to_string).unwrap_or_default();
            return Decision::silent(Announcement::none(Reason::NotAllocated(text)));
        }
        let endpoints = Endpoints::of(service, self.index, self.own, self.options);
        let spoken = outcome.addresses.iter().map(|it| (*it, self.spoken(basis, service, *it)));
        let spoken: Vec<(IpAddr, Result<Vec<Said>, Reason>)> = spoken.collect();
        let reason = match spoken.iter().any(|(_, said)| said.is_ok()) {
            true => contradiction(&spoken)
                .or_else(|| basis.node_reason.clone())
                .or_else(|| endpoints.check(service, self.own.node).err()),
            // Each address has its own.
            false => None,
        };
        let layer2 = self.layer2.verdicts(service, &outcome.addresses, &self.pools);
        let (mut addresses, mut all_said) = (Vec::with_capacity(spoken.len()), Vec::new());
        let mut data_path = Vec::new();
        for (address, said) in spoken {
            let delivered =
                self.own.data_path_of(service).map(|it| it.obstacle(&service.name, address));
            data_path.extend(delivered.clone().map(|it| (address, it)));
            let obstacle = delivered.flatten().filter(|_| reason.is_none());
            addresses.push(match said {
                Ok(_) if obstacle.is_some() => AddressAnnouncement {
                    address,
                    reason: obstacle.map(Reason::Obstructed),
                    prefixes: Vec::new(),
                },
                Ok(said) if reason.is_none() => {
                    let prefixes = said.iter();
                    let prefixes = prefixes
                        .map(|(prefix, it)| PrefixAnnouncement::new(*prefix, it, self.own.node));
                    let prefixes = prefixes.collect();
                    all_said.extend(said);
                    AddressAnnouncement { address, reason: None, prefixes }
                }
                Ok(_) => AddressAnnouncement { address, reason: None, prefixes: Vec::new() },
                Err(reason) => {
                    AddressAnnouncement { address, reason: Some(reason), prefixes: Vec::new() }
                }
            });
        }
        let announcement = Announcement { reason, addresses, data_path, layer2 };
        Decision { announcement, said: all_said, endpoints: endpoints.here() }
    }

    /// The prefixes that advertisements derive from `address`, and these advertisements.
    fn spoken(
        &self,
        basis: &mut Basis,
        service: &Service,
        address: IpAddr,
    ) -> Result<Vec<Said>, Reason> {
        let pool = self.pools.offering(address).ok_or(Reason::AddressInNoPool(address))?;
        let names = || (pool.name.name.clone(), self.own.node.name.clone());
        let for_pool = basis.of_pool(pool);
        if for_pool.is_empty() {
            let (pool, node) = names();
            return Err(Reason::NoAdvertisementHere { pool, node });
        }
        let mut by_prefix: BTreeMap<Prefix, BTreeSet<Place>> = BTreeMap::new();
        for place in for_pool.iter().copied() {
            let Some(advertisement) = basis.combinations.at(place) else { continue };
            if advertisement.source.selects_service(service) {
                by_prefix.entry(advertisement.prefix_of(address)).or_default().insert(place);
            }
        }
        if by_prefix.is_empty() {
            let (pool, node) = names();
            return Err(Reason::NoMatchingAdvertisement { pool, node });
        }
        let said = by_prefix.into_iter();
        Ok(said.map(|(prefix, places)| (prefix, basis.combinations.of(places))).collect())
    }
}

/// The conflict between advertisements for the Service itself. The whole Service is not announced, as
/// with MetalLB: which of them is intended is unknown.
fn contradiction(spoken: &[(IpAddr, Result<Vec<Said>, Reason>)]) -> Option<Reason> {
    let said = spoken.iter().filter_map(|(_, said)| said.as_ref().ok()).flatten();
    said.filter_map(|(_, combination)| combination.shares.as_ref().err()).next().cloned()
}

impl Decision {
    fn silent(announcement: Announcement) -> Self {
        Self { announcement, said: Vec::new(), endpoints: 0 }
    }
}
