//! Service (v1), for the proxy: its virtual servers.
//!
//! Answers on which addresses and ports a Service is, who may use them, and how clients are distributed. A Service
//! without an address in the cluster, and one of type ExternalName, makes no object: kube-proxy serves neither.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{AddressFamily, Prefix};
use fairway_model::{
    IpvsScheduler, Object, ProxiedPort, ProxiedService, TrafficPolicy, TransportProtocol,
};
use serde::Deserialize;

use super::{HEADLESS_LABEL, Network, PROXY_NAME_LABEL, VirtualHostAddress};
use crate::field_path::FieldPath;
use crate::fields::{AffinitySeconds, NodePortNumber, PortNumber, Text};
use crate::metadata::Metadata;
use crate::report::{List, Report, elements};
use crate::service_words::{PolicyName, ProtocolName, ServiceType, TypeName, words};

/// How long a client stays with its endpoint if `sessionAffinityConfig` does not say: three hours.
const AFFINITY_DEFAULT: Duration = Duration::from_secs(10_800);
/// Which scheduler the Service's virtual servers have.
const SCHEDULER: &str = "fairway.dev/ipvs-scheduler";
/// The same, as kube-router calls it.
const SCHEDULER_OF_KUBE_ROUTER: &str = "kube-router.io/service.scheduler";
/// Answers that do not pass the node again.
const DIRECT_RETURN_OF_KUBE_ROUTER: &str = "kube-router.io/service.dsr";
/// A Service without an address in the cluster says so by this word.
const HEADLESS: &str = "None";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    #[serde(rename = "type")]
    service_type: Option<Text<TypeName>>,
    ports: Option<List<RawPort>>,
    #[serde(rename = "clusterIP")]
    cluster_address: Option<String>,
    #[serde(rename = "clusterIPs")]
    cluster_addresses: Option<List<String>>,
    #[serde(rename = "externalIPs")]
    external_addresses: Option<List<Text<VirtualHostAddress>>>,
    load_balancer_source_ranges: Option<List<Text<Network>>>,
    session_affinity: Option<Text<AffinityName>>,
    session_affinity_config: Option<RawAffinity>,
    external_traffic_policy: Option<Text<PolicyName>>,
    internal_traffic_policy: Option<Text<PolicyName>>,
    health_check_node_port: Option<NodePortNumber>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPort {
    name: Option<String>,
    protocol: Option<Text<ProtocolName>>,
    port: Option<PortNumber>,
    node_port: Option<NodePortNumber>,
}

#[derive(Deserialize)]
struct RawAffinity {
    #[serde(rename = "clientIP")]
    client: Option<RawClient>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawClient {
    timeout_seconds: Option<AffinitySeconds>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    load_balancer: Option<RawBalancer>,
}

#[derive(Deserialize)]
struct RawBalancer {
    ingress: Option<List<RawIngress>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawIngress {
    ip: Option<String>,
    ip_mode: Option<String>,
}

words!(AffinityName(bool), "None or ClientIP", "ClientIP" => true, "None" => false, "" => false);

/// Parses the object; `None` if it has a fault, has no virtual server, or is another proxy's.
pub(crate) fn parse(metadata: Metadata, report: &mut Report<'_>) -> Option<Object> {
    if [PROXY_NAME_LABEL, HEADLESS_LABEL].iter().any(|it| metadata.labels.contains_key(*it)) {
        return None;
    }
    let raw: RawSpec = report.read(&FieldPath::of("spec"))?;
    let service_type =
        raw.service_type.map_or(ServiceType::Cluster, |Text(TypeName(service_type))| service_type);
    let mut all = raw.cluster_addresses.iter().flatten().flatten().chain(&raw.cluster_address);
    let is_headless = all.any(|it| it == HEADLESS);
    let cluster_addresses = cluster_addresses(raw.cluster_addresses, raw.cluster_address, report);
    // Every Service of an API server has an address in the cluster, or none at all.
    let is_outside = service_type == ServiceType::LoadBalancer && !is_headless;
    if service_type == ServiceType::External || (cluster_addresses.is_empty() && !is_outside) {
        return None;
    }
    let policy = |raw: Option<Text<PolicyName>>| {
        raw.map_or(TrafficPolicy::Cluster, |Text(PolicyName(policy))| policy)
    };
    let addresses = |list| elements(list).map(|(_, Text(VirtualHostAddress(address)))| address);
    let external_addresses: Vec<IpAddr> = addresses(raw.external_addresses).collect();
    // kube-proxy looks at it only where traffic can come from outside.
    let is_external = service_type != ServiceType::Cluster || !external_addresses.is_empty();
    let external_policy = match policy(raw.external_traffic_policy) {
        TrafficPolicy::Local if is_external => TrafficPolicy::Local,
        _ => TrafficPolicy::Cluster,
    };
    let has_check =
        service_type == ServiceType::LoadBalancer && external_policy == TrafficPolicy::Local;
    let health_check_port = raw.health_check_node_port.filter(|port| has_check && port.0 != 0);
    let seconds = raw.session_affinity_config.and_then(|it| it.client?.timeout_seconds);
    let seconds = seconds.map(|AffinitySeconds(it)| Duration::from_secs(it.into()));
    let stays = raw.session_affinity.is_some_and(|Text(AffinityName(stays))| stays);
    Some(Object::ProxiedService(Box::new(ProxiedService {
        cluster_addresses,
        external_addresses,
        balancer_addresses: balancer_addresses(report),
        source_ranges: source_ranges(raw.load_balancer_source_ranges),
        ports: ports(raw.ports, report),
        affinity: stays.then(|| seconds.unwrap_or(AFFINITY_DEFAULT)),
        external_policy,
        internal_policy: policy(raw.internal_traffic_policy),
        health_check_port: health_check_port.map(|port| port.0),
        scheduler: scheduler(&metadata.annotations, report),
        name: metadata.name,
    })))
}

/// The addresses in the cluster, the first of each family.
fn cluster_addresses(
    all: Option<List<String>>,
    first: Option<String>,
    report: &mut Report<'_>,
) -> Vec<IpAddr> {
    let list = FieldPath::of("spec.clusterIPs");
    let mut texts: Vec<(FieldPath, String)> =
        elements(all).map(|(position, text)| (list.index(position), text)).collect();
    if texts.is_empty() {
        texts.extend(first.map(|text| (FieldPath::of("spec.clusterIP"), text)));
    }
    let mut addresses: Vec<IpAddr> = Vec::new();
    for (path, text) in texts.into_iter().filter(|(_, it)| !it.is_empty() && it != HEADLESS) {
        match text.parse() {
            Ok(VirtualHostAddress(address)) => {
                let is_other = |it: &IpAddr| AddressFamily::of(*it) != AddressFamily::of(address);
                if addresses.iter().all(is_other) {
                    addresses.push(address);
                } else {
                    let family = AddressFamily::of(address).ip_version();
                    report.fault(&path, format_args!("is a second {family} address; expected one"));
                }
            }
            Err(error) => report.fault(&path, error),
        }
    }
    addresses
}

/// The addresses of load balancers that send traffic to nodes as it came. A controller writes them; one that no host
/// can have is left out.
fn balancer_addresses(report: &mut Report<'_>) -> Vec<IpAddr> {
    let raw: Option<RawStatus> = report.read(&FieldPath::of("status"));
    let ingress = raw.and_then(|raw| raw.load_balancer).and_then(|raw| raw.ingress);
    let list = FieldPath::of("status.loadBalancer.ingress");
    let mut addresses = Vec::new();
    for (position, raw) in elements(ingress) {
        if raw.ip_mode.as_deref() == Some("Proxy") {
            continue;
        }
        let Some(text) = raw.ip.filter(|text| !text.is_empty()) else { continue };
        match text.parse() {
            Ok(VirtualHostAddress(address)) => addresses.push(address),
            Err(error) => {
                report.warning(&list.index(position).key("ip"), format_args!("is ignored: {error}"))
            }
        }
    }
    addresses
}

fn source_ranges(raw: Option<List<Text<Network>>>) -> Vec<Prefix> {
    let ranges: BTreeSet<Prefix> = elements(raw).map(|(_, Text(Network(it)))| it).collect();
    ranges.into_iter().collect()
}

fn ports(raw: Option<List<RawPort>>, report: &mut Report<'_>) -> Vec<ProxiedPort> {
    let list = FieldPath::of("spec.ports");
    let mut ports: Vec<ProxiedPort> = Vec::new();
    for (position, raw) in elements(raw) {
        let path = list.index(position);
        let Some(PortNumber(port)) =
            report.required(raw.port, &path.key("port"), "a port from 1 to 65535")
        else {
            continue;
        };
        let protocol = raw.protocol.map_or(TransportProtocol::Tcp, |it| it.0.0);
        let name = raw.name.unwrap_or_default();
        if ports.iter().any(|it| it.port == port && it.protocol == protocol) {
            report.fault(&path, format_args!("is {protocol} port {port} once more; remove one"));
        } else if ports.iter().any(|it| it.name == name) {
            let problem = match name.as_str() {
                "" => "has no name; each of several ports needs one".to_owned(),
                name => format!("is a second port with the name {name:?}"),
            };
            report.fault(&path.key("name"), problem);
        } else {
            let node_port = raw.node_port.map(|it| it.0).filter(|it| *it != 0);
            ports.push(ProxiedPort { name, protocol, port, node_port });
        }
    }
    ports
}

fn scheduler(all: &BTreeMap<String, String>, report: &mut Report<'_>) -> Option<IpvsScheduler> {
    let path = FieldPath::of("metadata.annotations");
    if all.contains_key(DIRECT_RETURN_OF_KUBE_ROUTER) {
        report.fault(
            &path.key(DIRECT_RETURN_OF_KUBE_ROUTER),
            "asks for direct server return, which Fairway cannot do; remove it",
        );
    }
    let key = [SCHEDULER, SCHEDULER_OF_KUBE_ROUTER].into_iter().find(|it| all.contains_key(*it))?;
    let text = all.get(key)?.trim();
    let scheduler = IpvsScheduler::named(text);
    if scheduler.is_none() {
        report.fault(&path.key(key), unknown_scheduler(text));
    }
    scheduler
}

/// Why a text names no scheduler.
pub(super) fn unknown_scheduler(text: &str) -> String {
    let names = IpvsScheduler::ALL.map(IpvsScheduler::name).join(", ");
    format!("{text:?} is not a scheduler of IPVS; expected one of {names}")
}
