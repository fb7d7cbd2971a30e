//! Options of `fairway proxy` with kube-proxy's names, which go over those of a KubeProxyConfiguration.

use std::time::Duration;

use clap::{Args, ValueEnum};
use fairway_ground::Prefix;
use fairway_model::{IpvsScheduler, IpvsTimeouts, NodePortAddresses};
use fairway_resources::{NetworkError, network};

use crate::cli::duration;
use crate::cli::host::{filled, wrong_usage};
use crate::http_server::HttpListen;
use crate::proxy::{DetectionMode, Overrides};

/// In place of networks: the first address of the node, of each family.
const PRIMARY: &str = "primary";

/// How packets reach Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProxyMode {
    /// IPVS, with nftables for what IPVS cannot do
    Ipvs,
}

/// kube-proxy's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DetectionChoice {
    /// Its source is in --cluster-cidr
    #[value(name = "ClusterCIDR")]
    ClusterCidr,
    /// Its source is in spec.podCIDRs of this Node
    #[value(name = "NodeCIDR")]
    NodeCidr,
    /// It comes over the bridge of --pod-bridge-interface
    #[value(name = "BridgeInterface")]
    BridgeInterface,
    /// It comes over an interface with the prefix of --pod-interface-name-prefix
    #[value(name = "InterfaceNamePrefix")]
    InterfaceNamePrefix,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options with kube-proxy's names")]
pub(super) struct OverrideArguments {
    /// How packets reach Pods
    #[arg(long, value_enum, default_value = "ipvs", env = "FAIRWAY_PROXY_MODE")]
    proxy_mode: ProxyMode,

    /// The networks of Pods, separated by commas: the source of packets from elsewhere to an address in the
    /// cluster is replaced by the node's
    #[arg(long, value_name = "NETWORK", value_parser = networks, env = "FAIRWAY_CLUSTER_CIDR")]
    cluster_cidr: Option<Networks>,

    /// How a packet from a Pod is recognized [default: ClusterCIDR]
    #[arg(long, value_enum, value_name = "MODE", env = "FAIRWAY_DETECT_LOCAL_MODE")]
    detect_local_mode: Option<DetectionChoice>,

    /// The bridge that Pods of this node are at, for --detect-local-mode BridgeInterface
    #[arg(long, value_name = "INTERFACE", env = "FAIRWAY_POD_BRIDGE_INTERFACE")]
    pod_bridge_interface: Option<String>,

    /// How the names of interfaces to Pods begin, for --detect-local-mode InterfaceNamePrefix
    #[arg(long, value_name = "PREFIX", env = "FAIRWAY_POD_INTERFACE_NAME_PREFIX")]
    pod_interface_name_prefix: Option<String>,

    /// Replace the source of all packets to an address in the cluster
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        env = "FAIRWAY_MASQUERADE_ALL"
    )]
    masquerade_all: Option<bool>,

    /// The bit of a packet's mark by which its source address is replaced, 0 to 31; no other program may use it
    /// [default: 14]
    #[arg(
        long,
        value_name = "BIT",
        alias = "iptables-masquerade-bit",
        value_parser = clap::value_parser!(u8).range(0..=31),
        env = "FAIRWAY_MASQUERADE_BIT"
    )]
    masquerade_bit: Option<u8>,

    /// On which addresses of this node node ports are: networks separated by commas, or `primary` for the first
    /// of each family [default: all]
    #[arg(long, value_name = "NETWORK", value_parser = node_ports, env = "FAIRWAY_NODEPORT_ADDRESSES")]
    nodeport_addresses: Option<NodePorts>,

    /// The scheduler of Services that name none: rr, wrr, lc, wlc, lblc, lblcr, sh, mh, dh, sed, nq, fo, ovf or
    /// twos [default: rr]
    #[arg(long, value_name = "SCHEDULER", value_parser = scheduler, env = "FAIRWAY_IPVS_SCHEDULER")]
    ipvs_scheduler: Option<Scheduler>,

    /// Virtual servers in these networks are never removed; separated by commas
    #[arg(long, value_name = "NETWORK", value_parser = networks, env = "FAIRWAY_IPVS_EXCLUDE_CIDRS")]
    ipvs_exclude_cidrs: Option<Networks>,

    /// Answer ARP on the interface that has an address alone, not on all: else every node answers for the address
    /// of a load balancer [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = false,
        default_missing_value = "true",
        env = "FAIRWAY_IPVS_STRICT_ARP"
    )]
    ipvs_strict_arp: Option<bool>,

    /// How long IPVS knows a TCP connection without packets; 0s leaves the kernel's value
    #[arg(long, value_name = "TIME", value_parser = seconds, env = "FAIRWAY_IPVS_TCP_TIMEOUT")]
    ipvs_tcp_timeout: Option<Duration>,

    /// The same after a FIN
    #[arg(long, value_name = "TIME", value_parser = seconds, env = "FAIRWAY_IPVS_TCPFIN_TIMEOUT")]
    ipvs_tcpfin_timeout: Option<Duration>,

    /// The same of UDP
    #[arg(long, value_name = "TIME", value_parser = seconds, env = "FAIRWAY_IPVS_UDP_TIMEOUT")]
    ipvs_udp_timeout: Option<Duration>,

    /// Serve /healthz and /livez on this address, `:PORT` for all addresses, or `none` [default: :10256]
    #[arg(long, value_name = "ADDRESS:PORT", env = "FAIRWAY_HEALTHZ_BIND_ADDRESS")]
    healthz_bind_address: Option<HttpListen>,

    /// Serve /metrics on this address, `:PORT` for all addresses, or `none` [default: 127.0.0.1:10249]
    #[arg(long, value_name = "ADDRESS:PORT", env = "FAIRWAY_METRICS_BIND_ADDRESS")]
    metrics_bind_address: Option<HttpListen>,
}

impl OverrideArguments {
    /// What was given. A mode without what it needs is wrong usage.
    pub(super) fn overrides(self) -> Overrides {
        let ProxyMode::Ipvs = self.proxy_mode;
        let detection = self.detect_local_mode.map(|it| match it {
            DetectionChoice::ClusterCidr => DetectionMode::ClusterCidr,
            DetectionChoice::NodeCidr => DetectionMode::NodeCidr,
            DetectionChoice::BridgeInterface => DetectionMode::BridgeInterface,
            DetectionChoice::InterfaceNamePrefix => DetectionMode::InterfaceNamePrefix,
        });
        let bridge = filled(self.pod_bridge_interface.as_deref());
        let interface_prefix = filled(self.pod_interface_name_prefix.as_deref());
        match detection {
            Some(DetectionMode::BridgeInterface) if bridge.is_none() => {
                wrong_usage("--detect-local-mode BridgeInterface needs --pod-bridge-interface");
            }
            Some(DetectionMode::InterfaceNamePrefix) if interface_prefix.is_none() => {
                wrong_usage(
                    "--detect-local-mode InterfaceNamePrefix needs --pod-interface-name-prefix",
                );
            }
            _ => {}
        }
        let chosen = |time: Option<Duration>| time.filter(|it| !it.is_zero());
        Overrides {
            cluster_networks: self.cluster_cidr.map(|it| it.0).unwrap_or_default(),
            detection,
            bridge,
            interface_prefix,
            masquerade_all: self.masquerade_all,
            masquerade_bit: self.masquerade_bit,
            node_port_addresses: self.nodeport_addresses.and_then(|it| it.0),
            scheduler: self.ipvs_scheduler.and_then(|it| it.0),
            excluded_networks: self.ipvs_exclude_cidrs.map(|it| it.0).unwrap_or_default(),
            strict_arp: self.ipvs_strict_arp,
            timeouts: IpvsTimeouts {
                tcp: chosen(self.ipvs_tcp_timeout),
                tcp_fin: chosen(self.ipvs_tcpfin_timeout),
                udp: chosen(self.ipvs_udp_timeout),
            },
            healthz: self.healthz_bind_address,
            metrics: self.metrics_bind_address,
        }
    }
}

/// Networks separated by commas; the empty text, which manifests set for an unset value, has none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Networks(Vec<Prefix>);

/// Where node ports are, if that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodePorts(Option<NodePortAddresses>);

/// A scheduler, if one was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scheduler(Option<IpvsScheduler>);

fn networks(text: &str) -> Result<Networks, NetworkError> {
    let given = text.split(',').filter(|it| !it.trim().is_empty());
    given.map(network).collect::<Result<_, _>>().map(Networks)
}

fn node_ports(text: &str) -> Result<NodePorts, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words == [PRIMARY] {
        return Ok(NodePorts(Some(NodePortAddresses::Primary)));
    }
    if words.contains(&PRIMARY) {
        return Err(format!("{PRIMARY} stands alone, without networks"));
    }
    let Networks(networks) = networks(text).map_err(|error| error.to_string())?;
    let is_given = !networks.is_empty();
    Ok(NodePorts(is_given.then_some(NodePortAddresses::Networks(networks))))
}

fn scheduler(text: &str) -> Result<Scheduler, String> {
    if text.is_empty() {
        return Ok(Scheduler(None));
    }
    IpvsScheduler::named(text).map(|it| Scheduler(Some(it))).ok_or_else(|| {
        let all: Vec<_> = IpvsScheduler::ALL.iter().map(|it| it.name()).collect();
        format!("expected one of {}", all.join(", "))
    })
}

/// A timeout of IPVS, in whole seconds; 0s leaves the kernel's.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| error.to_string())?;
    match time.subsec_nanos() {
        0 => Ok(time),
        _ => Err("expected whole seconds: 0s for the kernel's own, or 1s to 24h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_counts_as_none() {
        assert_eq!(networks(""), Ok(Networks(Vec::new())));
        assert_eq!(node_ports(""), Ok(NodePorts(None)));
        assert_eq!(scheduler(""), Ok(Scheduler(None)));
        assert_eq!(networks("10.1.0.0/16,fd00::/8").unwrap().0.len(), 2);
        assert_eq!(node_ports("primary"), Ok(NodePorts(Some(NodePortAddresses::Primary))));
        assert!(node_ports("primary,10.0.0.0/8").unwrap_err().contains("stands alone"));
        assert!(scheduler("best").unwrap_err().contains("mh"));
        assert!(seconds("500ms").is_err() && seconds("0s").is_ok());
    }
}
