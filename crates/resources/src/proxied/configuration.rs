//! KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1): the options of kube-proxy, as far as they mean something
//! to Fairway's proxy.
//!
//! Fields of kube-proxy's other modes and of its process are known and have no effect; fields that it does not have
//! are faults. Knows no Service.

use std::collections::BTreeSet;
use std::net::{AddrParseError, IpAddr, SocketAddr};
use std::time::Duration;

use fairway_ground::Prefix;
use fairway_model::{
    IpvsScheduler, IpvsTimeouts, LocalDetection, NodePortAddresses, Object, ProxyConfiguration,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::service::unknown_scheduler;
use super::{Network, NetworkError};
use crate::field_path::FieldPath;
use crate::fields::{GoDuration, MasqueradeBit, Text};
use crate::report::{List, Report, elements};
use crate::service_words::words;
use crate::yaml::node::Node;

/// Its kind.
const KIND: &str = "KubeProxyConfiguration";
/// Its group and version.
const VERSION: &str = "kubeproxy.config.k8s.io/v1alpha1";
/// In place of networks: the node's own address, of each family.
const PRIMARY: &str = "primary";

type Ignored = Option<IgnoredAny>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Named, so that others are unknown.
struct RawConfiguration {
    api_version: Ignored,
    kind: Ignored,
    metadata: Ignored,
    feature_gates: Ignored,
    client_connection: Ignored,
    logging: Ignored,
    hostname_override: Option<String>,
    bind_address: Ignored,
    healthz_bind_address: Option<String>,
    metrics_bind_address: Option<String>,
    bind_address_hard_fail: Ignored,
    enable_profiling: Ignored,
    show_hidden_metrics_for_version: Ignored,
    mode: Option<String>,
    iptables: Option<RawFilter>,
    nftables: Ignored,
    ipvs: Option<RawIpvs>,
    winkernel: Ignored,
    detect_local_mode: Option<Text<DetectionName>>,
    detect_local: Option<RawDetection>,
    #[serde(rename = "clusterCIDR")]
    cluster_networks: Option<String>,
    node_port_addresses: Option<List<String>>,
    oom_score_adj: Ignored,
    conntrack: Ignored,
    config_sync_period: Ignored,
    port_range: Ignored,
    windows_run_as_service: Ignored,
}

/// Its IPVS mode takes these from the section of iptables.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)]
struct RawFilter {
    masquerade_bit: Option<MasqueradeBit>,
    masquerade_all: Option<bool>,
    localhost_node_ports: Ignored,
    sync_period: Ignored,
    min_sync_period: Ignored,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)]
struct RawIpvs {
    sync_period: Ignored,
    min_sync_period: Ignored,
    scheduler: Option<String>,
    #[serde(rename = "excludeCIDRs")]
    excluded: Option<List<Text<Network>>>,
    #[serde(rename = "strictARP")]
    strict_arp: Option<bool>,
    tcp_timeout: Option<GoDuration>,
    tcp_fin_timeout: Option<GoDuration>,
    udp_timeout: Option<GoDuration>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawDetection {
    bridge_interface: Option<String>,
    interface_name_prefix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detection {
    ClusterNetworks,
    NodeNetworks,
    Bridge,
    InterfacePrefix,
}

words!(DetectionName(Detection), "ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix",
    "ClusterCIDR" => Detection::ClusterNetworks, "" => Detection::ClusterNetworks,
    "NodeCIDR" => Detection::NodeNetworks, "BridgeInterface" => Detection::Bridge,
    "InterfaceNamePrefix" => Detection::InterfacePrefix);

/// Whether a document is a KubeProxyConfiguration, of any version.
pub(crate) fn is_configuration(root: &Node) -> bool {
    let text = |name: &str| root.get(name).and_then(Node::text).unwrap_or_default();
    text("kind") == KIND && text("apiVersion").starts_with("kubeproxy.config.k8s.io/")
}

/// Parses the document; `None` if it has a fault.
pub(crate) fn parse(report: &mut Report<'_>) -> Option<Object> {
    let version = report.root().get("apiVersion").and_then(Node::text).unwrap_or_default();
    if version != VERSION {
        let problem = format!("{version} is not supported for {KIND}; use {VERSION}");
        report.fault(&FieldPath::of("apiVersion"), problem);
    }
    let raw: RawConfiguration = report.read(&FieldPath::default())?;
    if let Some(mode) = raw.mode.as_deref().filter(|it| !matches!(*it, "" | "ipvs")) {
        let problem =
            format!("{mode:?} has no effect: Fairway's proxy has kube-proxy's mode ipvs alone");
        report.warning(&FieldPath::of("mode"), problem);
    }
    if raw.hostname_override.is_some_and(|it| !it.is_empty()) {
        let problem = "has no effect: the node is named on the command line, with --node";
        report.warning(&FieldPath::of("hostnameOverride"), problem);
    }
    let ipvs = raw.ipvs.unwrap_or_default();
    let filter = raw.iptables.unwrap_or_default();
    let scheduler = ipvs.scheduler.filter(|it| !it.is_empty());
    let scheduler = scheduler.map_or(Some(IpvsScheduler::default()), |text| {
        let scheduler = IpvsScheduler::named(&text);
        if scheduler.is_none() {
            report.fault(&FieldPath::of("ipvs.scheduler"), unknown_scheduler(&text));
        }
        scheduler
    });
    let excluded: BTreeSet<Prefix> = elements(ipvs.excluded).map(|(_, it)| it.0.0).collect();
    let networks = cluster_networks(raw.cluster_networks.as_deref(), report);
    let detection = raw.detect_local_mode.map_or(Detection::ClusterNetworks, |it| it.0.0);
    let local_detection = match detection {
        Detection::ClusterNetworks if networks.is_empty() => LocalDetection::Unknown,
        Detection::ClusterNetworks => LocalDetection::ClusterNetworks(networks),
        Detection::NodeNetworks => LocalDetection::NodeNetworks,
        Detection::Bridge | Detection::InterfacePrefix => {
            by_interface(detection, raw.detect_local.unwrap_or_default(), report)?
        }
    };
    Some(Object::from(ProxyConfiguration {
        scheduler: scheduler?,
        masquerade_all: filter.masquerade_all.unwrap_or_default(),
        local_detection,
        node_port_addresses: node_port_addresses(raw.node_port_addresses, report),
        excluded_networks: excluded.into_iter().collect(),
        masquerade_bit: filter.masquerade_bit.map(|it| it.0),
        strict_arp: ipvs.strict_arp,
        timeouts: IpvsTimeouts {
            tcp: timeout(ipvs.tcp_timeout, "tcpTimeout", report),
            tcp_fin: timeout(ipvs.tcp_fin_timeout, "tcpFinTimeout", report),
            udp: timeout(ipvs.udp_timeout, "udpTimeout", report),
        },
        healthz_address: address(raw.healthz_bind_address, "healthzBindAddress", 10256, report),
        metrics_address: address(raw.metrics_bind_address, "metricsBindAddress", 10249, report),
    }))
}

/// A time after which IPVS forgets a connection: whole seconds, and 0 for the kernel's own.
fn timeout(raw: Option<GoDuration>, name: &str, report: &mut Report<'_>) -> Option<Duration> {
    /// The kernel counts in a 32-bit number of ticks, of which there are a thousand each second.
    const MAX: Duration = Duration::from_secs(24 * 24 * 60 * 60);
    let GoDuration(time) = raw.filter(|it| !it.0.is_zero())?;
    if time < Duration::from_secs(1) || time > MAX {
        let problem =
            format!("{time:?} is out of range; expected 0s for the kernel's own, or 1s to 576h");
        report.fault(&FieldPath::of("ipvs").key(name), problem);
    }
    Some(Duration::from_secs(time.as_secs()))
}

/// An address, which need not have a port.
fn address(
    raw: Option<String>,
    name: &str,
    port: u16,
    report: &mut Report<'_>,
) -> Option<SocketAddr> {
    let text = raw.filter(|it| !it.is_empty())?;
    let address = text.parse().or_else(|_| {
        let address: IpAddr = text.trim_start_matches('[').trim_end_matches(']').parse()?;
        Ok::<_, AddrParseError>(SocketAddr::new(address, port))
    });
    if address.is_err() {
        let problem =
            format!("{text:?} is not an address; expected one as 0.0.0.0:{port} or [::1]:{port}");
        report.fault(&FieldPath::of(name), problem);
    }
    address.ok()
}

fn by_interface(
    detection: Detection,
    raw: RawDetection,
    report: &mut Report<'_>,
) -> Option<LocalDetection> {
    let section = FieldPath::of("detectLocal");
    let (name, value, example) = match detection {
        Detection::Bridge => ("bridgeInterface", raw.bridge_interface, "cni0"),
        _ => ("interfaceNamePrefix", raw.interface_name_prefix, "veth"),
    };
    let value = value.filter(|it| !it.is_empty());
    let expected = format!("a name as {example}, since detectLocalMode asks for it");
    let value = report.required(value, &section.key(name), &expected)?;
    Some(match detection {
        Detection::Bridge => LocalDetection::Bridge(value),
        _ => LocalDetection::InterfacePrefix(value),
    })
}

/// The networks of all Pods, one of each family or several, separated by commas.
fn cluster_networks(text: Option<&str>, report: &mut Report<'_>) -> Vec<Prefix> {
    let mut networks = BTreeSet::new();
    for text in text.unwrap_or_default().split(',').filter(|it| !it.trim().is_empty()) {
        match text.parse() {
            Ok(Network(network)) => {
                networks.insert(network);
            }
            Err(error) => report.fault(&FieldPath::of("clusterCIDR"), error),
        }
    }
    networks.into_iter().collect()
}

fn node_port_addresses(raw: Option<List<String>>, report: &mut Report<'_>) -> NodePortAddresses {
    let list = FieldPath::of("nodePortAddresses");
    let texts: Vec<(usize, String)> = elements(raw).collect();
    match texts.as_slice() {
        [] => return NodePortAddresses::All,
        [(_, word)] if word == PRIMARY => return NodePortAddresses::Primary,
        _ => {}
    }
    let mut networks = BTreeSet::new();
    for (position, text) in texts {
        let network = text.parse().map_err(|error: NetworkError| {
            if text == PRIMARY { format!("{PRIMARY} stands alone") } else { error.to_string() }
        });
        match network {
            Ok(Network(network)) => {
                networks.insert(network);
            }
            Err(error) => report.fault(&list.index(position), error),
        }
    }
    NodePortAddresses::Networks(networks.into_iter().collect())
}
