//! EndpointSlice (discovery.k8s.io/v1), for the proxy: the addresses behind a Service.
//!
//! Answers which endpoints there are and in which state; which of them get traffic is for `proxy`.

use std::net::IpAddr;

use fairway_ground::AddressFamily;
use fairway_model::{
    Object, ObjectName, ProxiedEndpoint, ProxiedSlice, SlicePort, TransportProtocol,
};
use serde::Deserialize;

use super::{HEADLESS_LABEL, PROXY_NAME_LABEL};
use crate::endpoint_slice::SERVICE_LABEL;
use crate::field_path::FieldPath;
use crate::fields::{HostAddress, NodePortNumber, Text};
use crate::metadata::Metadata;
use crate::report::{List, Report, elements};
use crate::service_words::ProtocolName;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSlice {
    address_type: Option<String>,
    ports: Option<List<RawPort>>,
    endpoints: Option<List<RawEndpoint>>,
}

#[derive(Deserialize)]
struct RawPort {
    name: Option<String>,
    protocol: Option<Text<ProtocolName>>,
    port: Option<NodePortNumber>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEndpoint {
    addresses: Option<List<String>>,
    node_name: Option<String>,
    conditions: Option<RawConditions>,
    hints: Option<RawHints>,
}

/// The annotation that the controller of slices writes.
const TRIGGERED_AT: &str = "endpoints.kubernetes.io/last-change-trigger-time";

#[derive(Deserialize, Default)]
struct RawConditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawHints {
    for_zones: Option<List<RawHint>>,
    for_nodes: Option<List<RawHint>>,
}

#[derive(Deserialize)]
struct RawHint {
    name: Option<String>,
}

/// Parses the object; `None` if it has a fault, belongs to no Service or to one without an address, and if it is
/// another proxy's.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    let label = |name: &str| metadata.labels.get(name).filter(|it| !it.is_empty());
    let is_of_others = [PROXY_NAME_LABEL, HEADLESS_LABEL]
        .into_iter()
        .any(|name| metadata.labels.contains_key(name));
    if is_of_others {
        return None;
    }
    let service = label(SERVICE_LABEL)?.clone();
    let raw: RawSlice = report.read(&FieldPath::default())?;
    let family = match raw.address_type.as_deref() {
        Some("IPv4") => AddressFamily::Ipv4Unicast,
        Some("IPv6") => AddressFamily::Ipv6Unicast,
        _ => return None,
    };
    let list = FieldPath::of("endpoints");
    let endpoints = elements(raw.endpoints)
        .filter_map(|(position, raw)| endpoint(raw, family, &list.index(position), report))
        .collect();
    let port = |raw: RawPort| {
        let protocol = raw.protocol.map_or(TransportProtocol::Tcp, |it| it.0.0);
        let port = raw.port.map(|it| it.0).filter(|it| *it != 0)?;
        Some(SlicePort { name: raw.name.unwrap_or_default(), protocol, port })
    };
    Some(Object::ProxiedSlice(ProxiedSlice {
        service: ObjectName::new(&metadata.name.namespace, service),
        name: metadata.name,
        family,
        triggered_at: metadata.annotations.get(TRIGGERED_AT).cloned(),
        ports: elements(raw.ports).filter_map(|(_, raw)| port(raw)).collect(),
        endpoints,
    }))
}

fn endpoint(
    raw: RawEndpoint,
    family: AddressFamily,
    path: &FieldPath,
    report: &mut Report<'_>,
) -> Option<ProxiedEndpoint> {
    let (position, text) = elements(raw.addresses).next()?;
    let path = path.key("addresses").index(position);
    let address: IpAddr = match text.parse() {
        Ok(HostAddress(address)) if AddressFamily::of(address) == family => address,
        Ok(HostAddress(address)) => {
            let family = family.ip_version();
            report.fault(
                &path,
                format_args!("{address} is not of the slice's addressType, {family}"),
            );
            return None;
        }
        Err(error) => {
            report.fault(&path, error);
            return None;
        }
    };
    let conditions = raw.conditions.unwrap_or_default();
    let hints = raw.hints.unwrap_or_default();
    let names = |list| {
        let names = elements(list).filter_map(|(_, RawHint { name })| name);
        names.filter(|name| !name.is_empty()).collect()
    };
    Some(ProxiedEndpoint {
        address,
        node: raw.node_name.filter(|name| !name.is_empty()),
        is_ready: conditions.ready.unwrap_or(true),
        is_serving: conditions.serving.unwrap_or(true),
        is_terminating: conditions.terminating.unwrap_or(false),
        node_hints: names(hints.for_nodes),
        zone_hints: names(hints.for_zones),
    })
}
