//! What this machine finds out about itself and no object says: which Services it does not serve, which
//! interfaces it can answer on, and its default gateways; and what follows from that on layer 2.
//!
//! Facts only; handed to the planner by the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::{Outcomes, PoolLookup};
use fairway_ground::{Abstention, AddressFamily, InterfaceName, Prefix};
use fairway_model::{ClusterIndex, Layer2Advertisement, Node, ObjectName};

use super::abstention::{from_address, from_advertisement};
use super::data_path::DataPath;
use super::deciding::by_pool;
use super::reason::Obstacle;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Local {
    /// Services with a health check that fails here, and how.
    pub failing: BTreeMap<ObjectName, String>,
    /// Services with a health check that has not ended yet, and that are not served before it has.
    pub pending: BTreeSet<ObjectName>,
    /// The names of the interfaces that layer 2 can answer on; `None` while that is not known.
    pub interfaces: Option<BTreeSet<String>>,
    /// Its default gateways; `None` while they are not known.
    pub gateways: Option<Gateways>,
    /// Its blocks of addresses of Pods, and the addresses that its Pods have of other nodes' blocks, with the name of
    /// their IPPool.
    pub pod_blocks: BTreeMap<Prefix, String>,
}

/// Default gateways, by VRF and family.
pub type Gateways = BTreeMap<(Option<InterfaceName>, AddressFamily), IpAddr>;

/// What rules a node out on layer 2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Obstacles {
    /// Addresses of Services that it does not serve: Services that share one have the same owner.
    pub(super) of_addresses: BTreeMap<IpAddr, Obstacle>,
    /// What other members are told.
    pub(super) abstentions: BTreeSet<Abstention>,
}

impl Local {
    /// Why this machine does not serve a Service.
    pub(super) fn obstacle(&self, service: &ObjectName) -> Option<Obstacle> {
        match self.failing.get(service) {
            Some(failure) => Some(Obstacle::HealthCheckFails(failure.clone())),
            None => self.pending.contains(service).then_some(Obstacle::NotCheckedYet),
        }
    }

    /// What rules `node`, which is this machine, out on layer 2. Only what would concern it otherwise: what members
    /// can tell each other is limited.
    pub(super) fn obstacles(
        &self,
        index: &ClusterIndex,
        node: &Node,
        outcomes: &Outcomes,
        data_path: Option<&DataPath>,
    ) -> Obstacles {
        let here = index.layer2_advertisements.values();
        let here: Vec<_> = here.filter(|it| it.selects_node(&node.labels)).collect();
        let mut obstacles = Obstacles::default();
        if here.is_empty() {
            return obstacles;
        }
        let undelivered = data_path.into_iter().flat_map(DataPath::obstructed);
        // Services that are new meanwhile are for others, too.
        let silent = data_path.filter(|it| it.is_silent());
        let new = silent.into_iter().flat_map(|_| outcomes.keys());
        let unserved: BTreeSet<&ObjectName> =
            self.failing.keys().chain(undelivered).chain(new).collect();
        let pools = (!unserved.is_empty()).then(|| PoolLookup::new(index));
        for (name, pools) in unserved.into_iter().zip(pools.iter().cycle()) {
            let Some((service, outcome)) = index.services.get(name).zip(outcomes.get(name)) else {
                continue;
            };
            if !here.iter().any(|it| it.selects_service(service)) {
                continue;
            }
            // As the election looks them up: the first one of each pool decides.
            let deciding = by_pool(service, &outcome.addresses, pools).into_iter();
            for address in deciding.filter_map(|(_, addresses)| addresses.first().copied()) {
                let failing = self.failing.get(name).cloned().map(Obstacle::HealthCheckFails);
                let data_path = data_path.filter(|_| !service.is_of_another_proxy());
                let undelivered = || data_path?.layer2_obstacle(name, address);
                let Some(obstacle) = failing.or_else(undelivered) else { continue };
                obstacles.of_addresses.entry(address).or_insert(obstacle);
                obstacles.abstentions.insert(from_address(address));
            }
        }
        let out_of_reach = here.into_iter().filter(|it| self.is_out_of_reach(it));
        obstacles.abstentions.extend(out_of_reach.map(|it| from_advertisement(&it.name)));
        obstacles
    }

    fn is_out_of_reach(&self, advertisement: &Layer2Advertisement) -> bool {
        let interfaces = &advertisement.interfaces;
        let is_disjoint = |it: &BTreeSet<String>| it.is_disjoint(interfaces);
        !interfaces.is_empty() && self.interfaces.as_ref().is_some_and(is_disjoint)
    }
}
