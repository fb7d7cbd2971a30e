//! Where Services are served.
//!
//! Knows endpoints only. Called by `for_node`.

use std::collections::BTreeMap;

use fairway_sessions::types::AddressFamily;

use crate::model::{ClusterIndex, Node, ObjectName, Service, TrafficPolicy};

use super::{PlanOptions, Reason};

/// What the slices of one Service come to.
#[derive(Debug, Default)]
struct Served {
    anywhere: bool,
    /// How many are on this node, by the family of their slices: a Service of both families lists
    /// each of its endpoints twice.
    here: BTreeMap<Option<AddressFamily>, u32>,
}

/// All Services that have slices, as seen from one node.
pub(super) struct Endpoints<'a> {
    node: &'a Node,
    options: PlanOptions,
    served: BTreeMap<&'a ObjectName, Served>,
}

impl<'a> Endpoints<'a> {
    /// Goes through all slices once.
    pub(super) fn seen_from(node: &'a Node, index: &'a ClusterIndex, options: PlanOptions) -> Self {
        let mut served: BTreeMap<_, Served> = BTreeMap::new();
        for slice in index.endpoint_slices.values() {
            let service = served.entry(&slice.service).or_default();
            for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.usable) {
                service.anywhere = true;
                if endpoint.node.as_ref() == Some(&node.name) {
                    let count = service.here.entry(slice.family).or_default();
                    *count = count.saturating_add(1);
                }
            }
        }
        Self { node, options, served }
    }

    /// Whether traffic for `service` that arrives at this node would be answered.
    pub(super) fn check(&self, service: &Service) -> Result<(), Reason> {
        let (anywhere, here) = match self.served.get(&service.name) {
            Some(served) => (served.anywhere, !served.here.is_empty()),
            None => [self.options.unsliced_services_are_served; 2].into(),
        };
        match service.traffic_policy {
            TrafficPolicy::Local if !here => Err(Reason::NoLocalEndpoints(self.node.name.clone())),
            TrafficPolicy::Cluster if !anywhere => Err(Reason::NoEndpoints),
            TrafficPolicy::Local | TrafficPolicy::Cluster => Ok(()),
        }
    }

    /// How many usable endpoints of `service` are on this node; one where the machine itself
    /// serves it.
    pub(super) fn here(&self, service: &Service) -> u32 {
        self.served
            .get(&service.name)
            .map_or(1, |served| served.here.values().copied().max().unwrap_or(0))
    }
}
