//! What one node should do about the cluster as it is: whom to peer with and what to announce.
//!
//! A function of facts and assignments: no clock, no randomness, no I/O, no memory of an earlier
//! plan. Knows no session; what of a plan a session can carry, the backend finds out. Called by
//! the speaker after every change, and by `fairway plan` for every node.

mod advertisements;
mod announcement;
mod bandwidth;
pub mod change;
mod changes;
mod diff;
mod endpoints;
mod layer2;
mod peers;
mod planner;
mod reason;
mod routes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_sessions::backend::DesiredRoute;
use fairway_sessions::types::{PeerConfig, PeerKey, Prefix};

use crate::allocator::{Outcome, Outcomes, PoolLookup};
use crate::model::{ClusterIndex, Node, ObjectName, Pool, Service};

use advertisements::{InForce, Place};
use endpoints::Endpoints;
use layer2::Layer2;
use routes::{Routes, Speakers};

pub use announcement::{AddressAnnouncement, Announcement, Layer2Announcement, PrefixAnnouncement};
pub use changes::{PlanChanges, PlanUpdate};
pub use diff::{ChangedRoute, PeerRoute, PlanDiff, RouteDiff, SessionDiff, diff};
pub use layer2::Layer2Verdict;
pub use peers::router_id;
pub use planner::NodePlanner;
pub use reason::{Fault, Reason};

/// Everything one node should do in BGP, and why it does not do more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePlan {
    /// The neighbours, in the order of their keys.
    pub peers: Vec<PeerConfig>,
    /// The routes by prefix. Each pair of prefix and peer is there at most once.
    pub routes: Arc<Vec<DesiredRoute>>,
    /// The addresses that it answers for on layer 2, sorted.
    pub layer2: Vec<Layer2Announcement>,
    /// What becomes of each Service of our class.
    pub services: BTreeMap<ObjectName, Arc<Announcement>>,
    /// Objects that had to be left out, and what they lack.
    pub faults: Vec<Fault>,
}

impl NodePlan {
    /// For each prefix and each peer that is told of it, the Services it is announced for.
    /// Prefixes that an advertisement originates itself need no Service and are missing then.
    pub fn services_by_route(&self) -> BTreeMap<(Prefix, PeerKey), BTreeSet<&ObjectName>> {
        let mut routes: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (name, announcement) in &self.services {
            for (prefix, peers) in announcement.told() {
                for peer in peers {
                    routes.entry((prefix, *peer)).or_default().insert(name);
                }
            }
        }
        routes
    }
}

/// What a plan depends on beside the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanOptions {
    /// Nodes announce although they are labelled
    /// `node.kubernetes.io/exclude-from-external-load-balancers` (`--ignore-exclude-lb`).
    pub ignore_exclude_label: bool,
    /// A Service without any EndpointSlice is served by this machine itself. In a cluster it is
    /// served by nobody.
    pub unsliced_services_are_served: bool,
}

impl Default for PlanOptions {
    /// Those of files.
    fn default() -> Self {
        Self { ignore_exclude_label: false, unsliced_services_are_served: true }
    }
}

/// The plan for `node`, whose facts need not be in the index.
pub fn for_node(
    index: &ClusterIndex,
    outcomes: &Outcomes,
    node: &Node,
    options: PlanOptions,
) -> NodePlan {
    let (peers, mut faults) = peers::of_node(index, node);
    let (in_force, left_out) = advertisements::on_node(index, node, &peers);
    faults.extend(left_out);
    let mut planner = Planner {
        node,
        options,
        pools: PoolLookup::new(index),
        layer2: Layer2::new(index, node, layer2::candidates(index, node)),
        endpoints: Endpoints::seen_from(node, index, options),
        routes: Routes::new(&in_force),
        by_pool: BTreeMap::new(),
        in_force: &in_force,
    };
    let node_reason = planner.check_node();
    if node_reason.is_none() {
        // Before the Services, so that a Service never displaces what was written out.
        faults.extend(planner.originate());
    }
    let mut services = BTreeMap::new();
    for (name, outcome) in outcomes {
        let Some(service) = index.services.get(name) else { continue };
        let announcement = planner.announce(service, outcome, node_reason.as_ref());
        services.insert(name.clone(), Arc::new(announcement));
    }
    NodePlan {
        routes: Arc::new(planner.routes.finish()),
        layer2: Vec::new(),
        peers,
        services,
        faults,
    }
}

/// The parts of a plan while it is being made.
struct Planner<'a> {
    node: &'a Node,
    options: PlanOptions,
    pools: PoolLookup<'a>,
    layer2: Layer2<'a>,
    endpoints: Endpoints<'a>,
    in_force: &'a [InForce<'a>],
    routes: Routes<'a>,
    /// The advertisements that speak for a pool, worked out once for each pool.
    by_pool: BTreeMap<&'a ObjectName, Vec<Place>>,
}

impl<'a> Planner<'a> {
    /// Why this node announces nothing at all.
    fn check_node(&self) -> Option<Reason> {
        let name = || self.node.name.clone();
        if self.node.network_unavailable {
            Some(Reason::NodeNetworkUnavailable(name()))
        } else if self.node.is_excluded() && !self.options.ignore_exclude_label {
            Some(Reason::NodeExcluded(name()))
        } else {
            None
        }
    }

    /// Announces the prefixes that advertisements list themselves.
    fn originate(&mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (place, advertisement) in self.in_force.iter().enumerate() {
            for prefix in advertisement.source.prefixes.iter().copied() {
                if let Err(reason) = self.routes.add(prefix, &Speakers::from([place]), None) {
                    let advertisement = advertisement.source.name.clone();
                    faults.push(Fault::PrefixNotOriginated { advertisement, prefix, reason });
                }
            }
        }
        faults
    }

    fn announce(
        &mut self,
        service: &Service,
        outcome: &Outcome,
        node_reason: Option<&Reason>,
    ) -> Announcement {
        if outcome.is_pending() {
            let text = outcome.reason.as_ref().map(ToString::to_string).unwrap_or_default();
            return Announcement::none(Reason::NotAllocated(text));
        }
        let reason = node_reason.cloned().or_else(|| self.endpoints.check(service).err());
        let layer2 = self.layer2.verdict(service, &outcome.addresses, &self.pools);
        let addresses = outcome.addresses.iter().map(|address| match reason {
            None => self.announce_address(service, *address),
            Some(_) => {
                AddressAnnouncement { address: *address, reason: None, prefixes: Vec::new() }
            }
        });
        Announcement { addresses: addresses.collect(), reason, layer2 }
    }

    fn announce_address(&mut self, service: &Service, address: IpAddr) -> AddressAnnouncement {
        let silent =
            |reason| AddressAnnouncement { address, reason: Some(reason), prefixes: Vec::new() };
        let Some(pool) = self.pools.offering(address) else {
            return silent(Reason::AddressInNoPool(address));
        };
        let speakers_by_prefix = self.speakers(service, pool, address);
        if speakers_by_prefix.is_empty() {
            let (pool, node) = (pool.name.name.clone(), self.node.name.clone());
            return silent(Reason::NoMatchingAdvertisement { pool, node });
        }
        let prefixes = speakers_by_prefix
            .into_iter()
            .map(|(prefix, speakers)| self.announce_prefix(prefix, &speakers, service))
            .collect();
        AddressAnnouncement { address, reason: None, prefixes }
    }

    /// The prefixes that advertisements make of `address`, and which of them make it.
    fn speakers(
        &mut self,
        service: &Service,
        pool: &'a Pool,
        address: IpAddr,
    ) -> BTreeMap<Prefix, Speakers> {
        let in_force = self.in_force;
        let for_pool = self.by_pool.entry(&pool.name).or_insert_with(|| {
            let places = in_force.iter().enumerate();
            places.filter(|(_, it)| it.selects_pool(pool)).map(|(place, _)| place).collect()
        });
        let mut speakers: BTreeMap<_, Speakers> = BTreeMap::new();
        for place in for_pool {
            let Some(advertisement) = in_force.get(*place) else { continue };
            if advertisement.selects_service(service) {
                let prefix = advertisement.prefix_of(address);
                speakers.entry(prefix).or_default().insert(*place);
            }
        }
        speakers
    }

    fn announce_prefix(
        &mut self,
        prefix: Prefix,
        speakers: &Speakers,
        service: &Service,
    ) -> PrefixAnnouncement {
        let endpoints = Some(self.endpoints.here(service));
        let names = speakers.iter().filter_map(|place| self.in_force.get(*place));
        let advertisements = names.map(|it| it.source.name.clone()).collect();
        let (peers, reason) = match self.routes.add(prefix, speakers, endpoints) {
            Ok(peers) => {
                let nobody = peers.is_empty().then(|| Reason::NoPeers(self.node.name.clone()));
                (peers, nobody)
            }
            Err(reason) => (Arc::default(), Some(reason)),
        };
        PrefixAnnouncement { prefix, advertisements, peers, reason }
    }
}
