//! The write for one Service, as one patch.
//!
//! Returns the difference between the Service as received and as desired. Decides nothing, and knows neither
//! allocator nor rate. The controller calls it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairway_ground::Utc;
use serde_json::{Map, Value, json};

use super::lack::{ADDRESS_CONDITION, Lack};
use crate::claims::status_addresses;
use crate::reflector::version_of;

/// The pool that an address is from, as MetalLB writes it.
pub const POOL_ANNOTATION: &str = "metallb.io/ip-allocated-from-pool";
/// MetalLB's name for it before 0.14.9, which it never removed. It is removed with the next write.
const POOL_ANNOTATION_OLD: &str = "metallb.universe.tf/ip-allocated-from-pool";

/// The desired state of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wish {
    /// Its addresses.
    pub(super) addresses: Vec<IpAddr>,
    /// The pool that they are from.
    pub(super) pool: Option<String>,
    /// What it still lacks.
    pub(super) lack: Said,
}

/// The desired content of the condition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Said {
    /// Nothing is lacking.
    #[default]
    Nothing,
    /// This is lacking.
    Lack(Lack),
    /// Unchanged.
    Same,
}

impl From<Option<Lack>> for Said {
    fn from(lack: Option<Lack>) -> Self {
        lack.map_or(Self::Nothing, Self::Lack)
    }
}

impl Wish {
    /// The current state, unchanged.
    pub(super) fn as_seen(seen: &Value) -> Self {
        let addresses = status_addresses(seen).into_iter().collect();
        let pool = annotation(seen, POOL_ANNOTATION).map(str::to_owned);
        Self { addresses, pool, lack: Said::Same }
    }

    /// The merge patch that gives `seen` this state; `None` if it has it. A writer after `seen` wins.
    pub(super) fn patch(&self, seen: &Value, epoch_seconds: u64) -> Option<Value> {
        let mut status = Map::new();
        let addresses: BTreeSet<IpAddr> = self.addresses.iter().copied().collect();
        if status_addresses(seen) != addresses {
            status.insert("loadBalancer".to_owned(), json!({ "ingress": self.ingress() }));
        }
        if let Some(conditions) = self.conditions(seen, epoch_seconds) {
            status.insert("conditions".to_owned(), conditions);
        }
        let is_from_there = annotation(seen, POOL_ANNOTATION) == self.pool.as_deref();
        if status.is_empty() && is_from_there {
            return None;
        }
        let mut annotations = Map::new();
        if !is_from_there {
            annotations.insert(POOL_ANNOTATION.to_owned(), json!(self.pool));
        }
        if annotation(seen, POOL_ANNOTATION_OLD).is_some() {
            annotations.insert(POOL_ANNOTATION_OLD.to_owned(), Value::Null);
        }
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(version_of(seen)));
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), annotations.into());
        }
        let mut patch = Map::new();
        patch.insert("metadata".to_owned(), metadata.into());
        if !status.is_empty() {
            patch.insert("status".to_owned(), status.into());
        }
        Some(patch.into())
    }

    /// Null, which removes the list, if there are no addresses.
    fn ingress(&self) -> Option<Vec<Value>> {
        let ingress: Vec<Value> = self.addresses.iter().map(|it| json!({ "ip": it })).collect();
        (!ingress.is_empty()).then_some(ingress)
    }

    /// All conditions, including those of other writers, if ours changes.
    fn conditions(&self, seen: &Value, epoch_seconds: u64) -> Option<Value> {
        if !self.says_something_else(seen) {
            return None;
        }
        let others = all_conditions(seen).filter(|it| !is_ours(it)).cloned();
        let mut conditions: Vec<Value> = others.collect();
        if let Said::Lack(lack) = &self.lack {
            let status = self.condition_status();
            let before = condition(seen).filter(|it| text(it, "status") == status);
            let since = before.map(|it| text(it, "lastTransitionTime")).filter(|it| !it.is_empty());
            let since = since.map_or_else(|| Utc(epoch_seconds).rfc3339(), str::to_owned);
            conditions.push(json!({
                "type": ADDRESS_CONDITION,
                "status": status,
                "reason": lack.reason,
                "message": lack.message,
                "lastTransitionTime": since,
            }));
        }
        Some(if conditions.is_empty() { Value::Null } else { conditions.into() })
    }

    /// Whether the condition of `seen` differs from the desired one.
    pub(super) fn says_something_else(&self, seen: &Value) -> bool {
        match (&self.lack, condition(seen)) {
            (Said::Same, _) | (Said::Nothing, None) => false,
            (Said::Lack(lack), Some(said)) => {
                text(said, "status") != self.condition_status()
                    || text(said, "reason") != lack.reason
                    || text(said, "message") != lack.message
            }
            _ => true,
        }
    }

    fn condition_status(&self) -> &'static str {
        if self.addresses.is_empty() { "False" } else { "True" }
    }
}

fn annotation<'a>(service: &'a Value, name: &str) -> Option<&'a str> {
    service.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

fn all_conditions(service: &Value) -> impl Iterator<Item = &Value> {
    let conditions = service.get("status").and_then(|it| it.get("conditions")?.as_array());
    conditions.into_iter().flatten()
}

fn is_ours(condition: &Value) -> bool {
    text(condition, "type") == ADDRESS_CONDITION
}

fn condition(service: &Value) -> Option<&Value> {
    all_conditions(service).find(|it| is_ours(it))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn spec<'a>(service: &'a Value, field: &str) -> &'a str {
    service.get("spec").map(|spec| text(spec, field)).unwrap_or_default()
}

/// Whether something of ours is in it although it has another type now.
pub(super) fn was_ours(service: &Value) -> bool {
    let has_something =
        annotation(service, POOL_ANNOTATION).is_some() || condition(service).is_some();
    spec(service, "type") != "LoadBalancer" && has_something
}

/// Whether Fairway serves it, as far as can be read from a faulty object.
pub(super) fn is_to_be_served(service: &Value, load_balancer_class: Option<&str>) -> bool {
    spec(service, "type") == "LoadBalancer"
        && spec(service, "loadBalancerClass") == load_balancer_class.unwrap_or_default()
}

/// The annotations that have a newer name.
pub(super) fn old_annotations(service: &Value) -> impl Iterator<Item = &str> {
    let annotations = service.get("metadata").and_then(|it| it.get("annotations")?.as_object());
    let names = annotations.into_iter().flat_map(Map::keys).map(String::as_str);
    names.filter(|name| name.starts_with("metallb.universe.tf/") && *name != POOL_ANNOTATION_OLD)
}
