//! What is to be written about one Service, as one patch.
//!
//! Answers what differs between the Service as it was seen and as it should be. Decides nothing,
//! and knows neither allocator nor pace. The controller asks.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::cluster::claims::status_addresses;
use crate::cluster::reflector::version_of;

/// The pool that an address is from, as MetalLB writes it.
pub const POOL_ANNOTATION: &str = "metallb.io/ip-allocated-from-pool";

/// What a Service should have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wish {
    /// Its addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// The pool that they are from.
    pub(super) pool: Option<String>,
}

impl Wish {
    /// The merge patch that makes `seen` be so; `None` where it is so. Whoever wrote since `seen`
    /// was read wins.
    pub(super) fn patch(&self, seen: &Value) -> Option<Value> {
        let mut status = Map::new();
        if status_addresses(seen) != self.addresses.iter().copied().collect() {
            status.insert("loadBalancer".to_owned(), json!({ "ingress": self.ingress() }));
        }
        let is_from_there = annotation(seen) == self.pool.as_deref();
        if status.is_empty() && is_from_there {
            return None;
        }
        let mut metadata = json!({ "resourceVersion": version_of(seen) });
        if let Some(metadata) = metadata.as_object_mut().filter(|_| !is_from_there) {
            metadata.insert("annotations".to_owned(), json!({ POOL_ANNOTATION: self.pool }));
        }
        let mut patch = json!({ "metadata": metadata });
        if let Some(patch) = patch.as_object_mut().filter(|_| !status.is_empty()) {
            patch.insert("status".to_owned(), status.into());
        }
        Some(patch)
    }

    /// Null, which removes the list, where it has nothing.
    fn ingress(&self) -> Option<Vec<Value>> {
        let ingress: Vec<Value> = self.addresses.iter().map(|it| json!({ "ip": it })).collect();
        (!ingress.is_empty()).then_some(ingress)
    }
}

fn annotation(service: &Value) -> Option<&str> {
    service.get("metadata")?.get("annotations")?.get(POOL_ANNOTATION)?.as_str()
}

/// Whether it had an address from us and is of another type now.
pub(super) fn was_ours(service: &Value) -> bool {
    let kind = service.get("spec").and_then(|spec| spec.get("type")?.as_str());
    kind != Some("LoadBalancer") && annotation(service).is_some()
}
