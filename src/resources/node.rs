//! Node (v1): a machine that may announce.
//!
//! Answers how it is labelled, reached, and whether its network is up. Knows no other object.

use serde::Deserialize;

use super::field_path::FieldPath;
use super::fields::HostAddress;
use super::metadata::Metadata;
use super::report::{List, Report, elements};
use crate::model::{Node, Object};

#[derive(Deserialize)]
struct RawStatus {
    addresses: Option<List<RawAddress>>,
    conditions: Option<List<RawCondition>>,
}

#[derive(Deserialize)]
struct RawAddress {
    #[serde(rename = "type")]
    address_type: Option<String>,
    address: Option<String>,
}

#[derive(Deserialize)]
struct RawCondition {
    #[serde(rename = "type")]
    condition_type: Option<String>,
    status: Option<String>,
}

/// Reads the object; `None` when a fault of it was noted.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let raw: Option<RawStatus> = report.read(&FieldPath::of("status"));
    let (addresses, conditions) =
        raw.map_or((None, None), |status| (status.addresses, status.conditions));
    let list = FieldPath::of("status.addresses");
    let mut internal = Vec::new();
    for (position, raw) in elements(addresses) {
        if raw.address_type.as_deref() != Some("InternalIP") {
            continue;
        }
        match raw.address.unwrap_or_default().parse::<HostAddress>() {
            Ok(HostAddress(address)) => internal.push(address),
            Err(error) => report.fault(&list.index(position).key("address"), error),
        }
    }
    let network_unavailable = elements(conditions).any(|(_, condition)| {
        condition.condition_type.as_deref() == Some("NetworkUnavailable")
            && condition.status.as_deref() == Some("True")
    });
    Some(Object::Node(Node {
        name: metadata.name.name,
        labels: metadata.labels,
        addresses: internal,
        network_unavailable,
    }))
}
