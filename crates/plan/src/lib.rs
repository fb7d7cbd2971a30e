//! What one node should do in the present cluster: which peers to have and what to announce.
//!
//! A function of facts and assignments: no clock, no randomness, no I/O, no memory of an earlier
//! plan. Knows no session; the backend determines what a session can carry. Called by the speaker
//! after every change, and by `fairway plan` for every node.

mod abstention;
mod advertisements;
mod announcement;
mod bandwidth;
mod basis;
mod changes;
mod cluster;
mod combination;
mod data_path;
mod deciding;
mod decision;
mod diff;
mod endpoints;
mod layer2;
mod local;
mod peers;
mod planner;
mod reason;
pub mod report;
mod routes;
mod status_change;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_allocator::Outcomes;
use fairway_ground::{BmpStation, PeerKey, Prefix, RpkiServer};
use fairway_model::{ClusterIndex, Node, NodeName, ObjectName};
use fairway_seam::{Announcements, Blackholes, DesiredRoute, Extras, PeerConfig};

use data_path::DataPath;

pub use announcement::{AddressAnnouncement, Announcement, Layer2Announcement, PrefixAnnouncement};
pub use changes::{PlanChanges, PlanUpdate};
pub use cluster::ClusterPlan;
pub use diff::{ChangedRoute, PeerRoute, PlanDiff, RouteDiff, SessionDiff, diff};
pub use layer2::{Answer, Layer2Verdict};
pub use local::{Gateways, Local};
pub use peers::router_id;
pub use planner::NodePlanner;
pub use reason::{Because, Fault, NextOwner, Obstacle, Reason};
pub use status_change::StatusChange;

/// Everything that one node should do in BGP, and the reasons for what it does not do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePlan {
    /// The neighbours, in the order of their keys.
    pub peers: Vec<PeerConfig>,
    /// The routes by prefix. Each pair of prefix and peer is there at most once.
    pub routes: Arc<[DesiredRoute]>,
    /// The addresses that it answers for on layer 2, sorted.
    pub layer2: Vec<Layer2Announcement>,
    /// The announcement of each Service of our class.
    pub services: BTreeMap<ObjectName, Arc<Announcement>>,
    /// The operator's lines for FRR.
    pub extras: Option<Arc<Extras>>,
    /// The RPKI caches that are asked.
    pub rpki_servers: Arc<BTreeSet<RpkiServer>>,
    /// The BMP stations that are told of sessions and routes.
    pub bmp_stations: Arc<BTreeSet<BmpStation>>,
    /// Paths through different neighbouring ASes are compared by their MULTI_EXIT_DISC.
    pub always_compare_med: bool,
    /// Where packets to prefixes of our own are dropped that nothing else on this node takes.
    pub blackholes: Arc<Blackholes>,
    /// Objects that had to be left out, and why.
    pub faults: Vec<Fault>,
}

impl NodePlan {
    /// What is desired of the backend.
    pub fn announcements(&self, awaits_sources: bool) -> Announcements {
        Announcements {
            peers: self.peers.clone(),
            routes: Arc::clone(&self.routes),
            extras: self.extras.clone(),
            rpki_servers: Arc::clone(&self.rpki_servers),
            bmp_stations: Arc::clone(&self.bmp_stations),
            always_compare_med: self.always_compare_med,
            blackholes: Arc::clone(&self.blackholes),
            awaits_sources,
        }
    }

    /// For each prefix and each peer that receives it, the Services it is announced for.
    /// Prefixes that an advertisement originates itself need no Service and are not included then.
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

    /// The addresses that another node answers for and this one would next, each with that node.
    pub fn next_to_answer(&self) -> impl Iterator<Item = (IpAddr, &NodeName, &NextOwner)> {
        let verdicts = self.services.values().flat_map(|it| &it.layer2);
        verdicts.flat_map(|verdict| {
            let standing_by = match &verdict.answer {
                Err(Reason::NotOwner { owner, next: Some(next), .. }) => Some((owner, next)),
                _ => None,
            };
            let addresses = verdict.addresses.iter();
            addresses.filter_map(move |it| standing_by.map(|(owner, next)| (*it, owner, next)))
        })
    }
}

/// The inputs of a plan beside the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanOptions {
    /// Nodes announce although they are labelled
    /// `node.kubernetes.io/exclude-from-external-load-balancers` (`--ignore-exclude-lb`).
    pub ignore_exclude_label: bool,
    /// A Service without any EndpointSlice is served by this machine itself. In a cluster it is not
    /// served at all.
    pub unsliced_services_are_served: bool,
    /// Attributes of routes whose advertisements do not set them.
    pub attribute_defaults: AttributeDefaults,
}

/// What a route has where its BGPAdvertisement says nothing. The same on all nodes, or routers prefer
/// the routes of some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeDefaults {
    /// LOCAL_PREF on iBGP (`--default-local-preference`); `None` leaves it to the backend, which sends 100.
    pub local_pref: Option<u32>,
    /// MULTI_EXIT_DISC (`--default-med`); `None` sends none.
    pub med: Option<u32>,
}

impl Default for PlanOptions {
    /// The options for files.
    fn default() -> Self {
        Self {
            ignore_exclude_label: false,
            unsliced_services_are_served: true,
            attribute_defaults: AttributeDefaults::default(),
        }
    }
}

/// The plan for `node`, which need not be in the index.
pub fn for_node(
    index: &ClusterIndex,
    outcomes: &Outcomes,
    node: &Node,
    options: PlanOptions,
) -> NodePlan {
    let mut planner = NodePlanner::new(node.clone(), options);
    planner.make(index, outcomes);
    planner.into_plan()
}
