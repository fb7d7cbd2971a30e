//! EndpointSlice (discovery.k8s.io/v1): which endpoints serve a Service, and where.
//!
//! Answers which endpoints may get traffic. Knows no Service.

use fairway_ground::AddressFamily;
use fairway_model::{Endpoint, EndpointSlice, Object, ObjectName};
use serde::Deserialize;

use super::field_path::FieldPath;
use super::metadata::Metadata;
use super::report::{List, Report, elements};

/// The label that names the Service of a slice.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndpointSlice {
    address_type: Option<String>,
    endpoints: Option<List<RawEndpoint>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndpoint {
    addresses: Option<List<String>>,
    node_name: Option<String>,
    #[serde(default)]
    conditions: Option<RawConditions>,
}

#[derive(Deserialize, Default)]
struct RawConditions {
    ready: Option<bool>,
    serving: Option<bool>,
}

/// Parses the object; `None` if it has a fault, and for slices of no Service.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let raw: RawEndpointSlice = report.read(&FieldPath::default())?;
    let Some(service) = metadata.labels.get(SERVICE_LABEL).filter(|name| !name.is_empty()) else {
        report.warning(
            &FieldPath::of("metadata.labels"),
            format_args!("without the label {SERVICE_LABEL} the endpoints belong to no Service"),
        );
        return None;
    };
    let list = FieldPath::of("endpoints");
    let mut endpoints = Vec::new();
    for (position, raw) in elements(raw.endpoints) {
        if elements(raw.addresses).next().is_none() {
            report.warning(
                &list.index(position).key("addresses"),
                "is empty: the endpoint is ignored",
            );
            continue;
        }
        let conditions = raw.conditions.unwrap_or_default();
        endpoints.push(Endpoint {
            node: raw.node_name.filter(|name| !name.is_empty()),
            // A terminating endpoint still gets traffic while it is serving.
            usable: conditions.ready.unwrap_or(true) || conditions.serving == Some(true),
        });
    }
    Some(Object::EndpointSlice(EndpointSlice {
        service: ObjectName::new(&metadata.name.namespace, service),
        name: metadata.name,
        family: match raw.address_type.as_deref() {
            Some("IPv4") => Some(AddressFamily::Ipv4Unicast),
            Some("IPv6") => Some(AddressFamily::Ipv6Unicast),
            _ => None,
        },
        endpoints,
    }))
}
