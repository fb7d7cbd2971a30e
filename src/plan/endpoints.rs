//! Where Services are served.
//!
//! Knows endpoints only. Called by `for_node`.

use std::collections::BTreeMap;

use crate::model::{ClusterIndex, Node, ObjectName, Service, TrafficPolicy};

use super::Reason;

/// What the slices of one Service come to.
#[derive(Debug, Clone, Copy, Default)]
struct Served {
    anywhere: bool,
    here: bool,
}

/// All Services that have slices, as seen from one node.
pub(super) struct Endpoints<'a> {
    node: &'a Node,
    served: BTreeMap<&'a ObjectName, Served>,
}

impl<'a> Endpoints<'a> {
    /// Goes through all slices once.
    pub(super) fn seen_from(node: &'a Node, index: &'a ClusterIndex) -> Self {
        let mut served: BTreeMap<_, Served> = BTreeMap::new();
        for slice in index.endpoint_slices.values() {
            let service = served.entry(&slice.service).or_default();
            for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.usable) {
                service.anywhere = true;
                service.here |= endpoint.node.as_ref() == Some(&node.name);
            }
        }
        Self { node, served }
    }

    /// Whether traffic for `service` that arrives at this node would be answered. A Service
    /// without any slice is served by this machine itself.
    pub(super) fn check(&self, service: &Service) -> Result<(), Reason> {
        let Some(served) = self.served.get(&service.name) else { return Ok(()) };
        match service.traffic_policy {
            TrafficPolicy::Local if !served.here => {
                Err(Reason::NoLocalEndpoints(self.node.name.clone()))
            }
            TrafficPolicy::Cluster if !served.anywhere => Err(Reason::NoEndpoints),
            TrafficPolicy::Local | TrafficPolicy::Cluster => Ok(()),
        }
    }
}
