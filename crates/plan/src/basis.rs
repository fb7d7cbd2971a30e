//! What the announcements of all Services on one node have in common: its peers, the advertisements
//! in force on it, and whether it may announce at all.
//!
//! Knows no Service and no endpoint, so it holds until an object of another kind changes. Called by
//! the planner.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_model::{ClusterIndex, Node, ObjectName, Pool};
use fairway_seam::PeerConfig;

use super::advertisements::{self, Place};
use super::combination::Combinations;
use super::routes::RouteTable;
use super::{Fault, Local, PlanOptions, Reason, peers};

/// Derived from everything but Services and EndpointSlices.
#[derive(Debug, Default)]
pub(super) struct Basis {
    /// Why this node announces nothing.
    pub(super) node_reason: Option<Reason>,
    pub(super) combinations: Combinations,
    /// The advertisements of a pool, computed once for each pool that is in use.
    by_pool: BTreeMap<ObjectName, Arc<[Place]>>,
}

impl Basis {
    /// For `node`, with its neighbours and the objects that had to be left out.
    pub(super) fn new(
        index: &ClusterIndex,
        node: &Node,
        local: &Local,
        options: PlanOptions,
    ) -> (Self, Vec<PeerConfig>, Vec<Fault>) {
        let (peers, mut faults) = peers::of_node(index, node, local.gateways.as_ref());
        let (in_force, left_out) = advertisements::on_node(
            index,
            node,
            &local.pod_blocks,
            &peers,
            options.attribute_defaults,
        );
        faults.extend(left_out);
        let basis = Self {
            node_reason: node_reason(node, options),
            combinations: Combinations::new(in_force),
            by_pool: BTreeMap::new(),
        };
        (basis, peers, faults)
    }

    /// Announces the prefixes that advertisements list themselves, and the networks of the node's Pods. What keeps a
    /// node from receiving traffic for Services does not concern its Pods: nobody else has these.
    pub(super) fn originate(&mut self, routes: &mut RouteTable) -> Vec<Fault> {
        let is_serving = self.node_reason.is_none();
        let in_force = self.combinations.in_force();
        let listed = in_force.flat_map(|(place, it)| {
            let prefixes = it.source.prefixes.iter().filter(move |_| is_serving);
            prefixes.chain(&it.pod_networks).map(move |prefix| (place, *prefix))
        });
        let listed: Vec<_> = listed.collect();
        let mut faults = Vec::new();
        for (place, prefix) in listed {
            let refused = routes.originate(prefix, place, &mut self.combinations).err();
            let name = self.combinations.at(place).map(|it| it.source.name.clone());
            if let Some((reason, advertisement)) = refused.zip(name) {
                faults.push(Fault::PrefixNotOriginated { advertisement, prefix, reason });
            }
        }
        faults
    }

    /// The places of the advertisements that select `pool`.
    pub(super) fn of_pool(&mut self, pool: &Pool) -> Arc<[Place]> {
        if let Some(known) = self.by_pool.get(&pool.name) {
            return Arc::clone(known);
        }
        let (name, labels) = (&pool.name.name, &pool.labels);
        let in_force = self.combinations.in_force();
        let speaking = in_force.filter(|(_, it)| it.source.selects_pool(name, labels));
        let places: Arc<[Place]> = speaking.map(|(place, _)| place).collect();
        self.by_pool.insert(pool.name.clone(), Arc::clone(&places));
        places
    }
}

/// Why a node announces nothing at all.
fn node_reason(node: &Node, options: PlanOptions) -> Option<Reason> {
    if node.network_unavailable {
        Some(Reason::NodeNetworkUnavailable(node.name.clone()))
    } else if node.is_excluded() && !options.ignore_exclude_label {
        Some(Reason::NodeExcluded(node.name.clone()))
    } else {
        None
    }
}
