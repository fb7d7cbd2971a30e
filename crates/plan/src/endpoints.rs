//! Where one Service is served.
//!
//! Knows endpoints only. Called by the decision about a Service.

use std::collections::BTreeMap;

use fairway_ground::AddressFamily;
use fairway_model::{ClusterIndex, Node, Service, TrafficPolicy};

use super::layer2::Own;
use super::reason::Obstacle;
use super::{PlanOptions, Reason};

/// The summary of the slices of a Service, as seen from one node.
#[derive(Debug)]
pub(super) struct Endpoints {
    is_served: bool,
    /// How many are usable on this node.
    here: u32,
    /// What the health check of the Service found here.
    obstacle: Option<Obstacle>,
}

impl Endpoints {
    /// From the slices of `service`. Without any, it is served by this machine itself or not at all, as
    /// `options` define.
    pub(super) fn of(
        service: &Service,
        index: &ClusterIndex,
        own: Own<'_>,
        options: PlanOptions,
    ) -> Self {
        let Own { node, local, .. } = own;
        let obstacle = local.obstacle(&service.name);
        let mut slices = index.slices_of(&service.name).peekable();
        if slices.peek().is_none() {
            let is_served = options.unsliced_services_are_served;
            return Self { is_served, here: u32::from(is_served), obstacle };
        }
        let mut is_served = false;
        // A dual-stack Service lists each of its endpoints twice, in slices of each family.
        let mut here: BTreeMap<Option<AddressFamily>, u32> = BTreeMap::new();
        for slice in slices {
            for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.usable) {
                is_served = true;
                if endpoint.node.as_ref() == Some(&node.name) {
                    let count = here.entry(slice.family).or_default();
                    *count = count.saturating_add(1);
                }
            }
        }
        Self { is_served, here: here.into_values().max().unwrap_or(0), obstacle }
    }

    /// Whether this node can answer traffic for `service`.
    pub(super) fn check(&self, service: &Service, node: &Node) -> Result<(), Reason> {
        if let Some(obstacle) = &self.obstacle {
            return Err(Reason::Obstructed(obstacle.clone()));
        }
        match service.traffic_policy {
            TrafficPolicy::Local if self.here == 0 => {
                Err(Reason::NoLocalEndpoints(node.name.clone()))
            }
            TrafficPolicy::Cluster if !self.is_served => Err(Reason::NoEndpoints),
            TrafficPolicy::Local | TrafficPolicy::Cluster => Ok(()),
        }
    }

    /// How many usable ones are on this node.
    pub(super) fn here(&self) -> u32 {
        self.here
    }
}
