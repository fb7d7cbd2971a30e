//! Services, EndpointSlices and options, as far as the service proxy depends on them.
//!
//! A Service of any type has virtual servers, and its slices have the addresses behind them. These facts are apart
//! from those about announcing: a speaker without a proxy holds none of them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairway_ground::{AddressFamily, Prefix};

use super::{NodeName, ObjectName, TrafficPolicy};

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum TransportProtocol {
    Sctp,
    Tcp,
    Udp,
}

impl TransportProtocol {
    /// The name that Kubernetes has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sctp => "SCTP",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

impl fmt::Display for TransportProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How IPVS chooses the real server of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[allow(missing_docs)]
pub enum IpvsScheduler {
    #[default]
    RoundRobin,
    WeightedRoundRobin,
    LeastConnections,
    WeightedLeastConnections,
    Locality,
    LocalityReplicated,
    SourceHash,
    MaglevHash,
    DestinationHash,
    ShortestExpectedDelay,
    NeverQueue,
    WeightedFailover,
    WeightedOverflow,
    PowerOfTwoChoices,
}

impl IpvsScheduler {
    /// Every scheduler of Linux 6.
    pub const ALL: [Self; 14] = [
        Self::RoundRobin,
        Self::WeightedRoundRobin,
        Self::LeastConnections,
        Self::WeightedLeastConnections,
        Self::Locality,
        Self::LocalityReplicated,
        Self::SourceHash,
        Self::MaglevHash,
        Self::DestinationHash,
        Self::ShortestExpectedDelay,
        Self::NeverQueue,
        Self::WeightedFailover,
        Self::WeightedOverflow,
        Self::PowerOfTwoChoices,
    ];

    /// The kernel's name: its module is `ip_vs_` and this.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "rr",
            Self::WeightedRoundRobin => "wrr",
            Self::LeastConnections => "lc",
            Self::WeightedLeastConnections => "wlc",
            Self::Locality => "lblc",
            Self::LocalityReplicated => "lblcr",
            Self::SourceHash => "sh",
            Self::MaglevHash => "mh",
            Self::DestinationHash => "dh",
            Self::ShortestExpectedDelay => "sed",
            Self::NeverQueue => "nq",
            Self::WeightedFailover => "fo",
            Self::WeightedOverflow => "ovf",
            Self::PowerOfTwoChoices => "twos",
        }
    }

    /// The scheduler with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// A Service with virtual servers: of type ClusterIP or NodePort with an address in the cluster, or of type LoadBalancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedService {
    /// Its name.
    pub name: ObjectName,
    /// `spec.clusterIPs`, one of each family at most; none of a load balancer's Service in a file, outside a cluster.
    pub cluster_addresses: Vec<IpAddr>,
    /// `spec.externalIPs`.
    pub external_addresses: Vec<IpAddr>,
    /// The addresses in `status.loadBalancer.ingress` but those of `ipMode: Proxy`, whose balancer expects the
    /// traffic itself.
    pub balancer_addresses: Vec<IpAddr>,
    /// `spec.loadBalancerSourceRanges`: who may use the balancer addresses of the same family; none for everybody.
    pub source_ranges: Vec<Prefix>,
    /// Its ports, each pair of protocol and port once.
    pub ports: Vec<ProxiedPort>,
    /// `sessionAffinity: ClientIP`: how long a client stays with its endpoint.
    pub affinity: Option<Duration>,
    /// For external and balancer addresses and node ports.
    pub external_policy: TrafficPolicy,
    /// For addresses in the cluster.
    pub internal_policy: TrafficPolicy,
    /// `spec.healthCheckNodePort`, for the type and policy that have one.
    pub health_check_port: Option<u16>,
    /// The scheduler that its annotation names.
    pub scheduler: Option<IpvsScheduler>,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedPort {
    /// Its name, by which slices refer to it; empty for the only one.
    pub name: String,
    /// Its protocol.
    pub protocol: TransportProtocol,
    /// 1 to 65535.
    pub port: u16,
    /// The port on the addresses of nodes.
    pub node_port: Option<u16>,
}

/// One EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedSlice {
    /// The slice itself.
    pub name: ObjectName,
    /// The Service it belongs to.
    pub service: ObjectName,
    /// The family of its addresses.
    pub family: AddressFamily,
    /// When the Pod or Service changed that it follows, as its controller has written it (RFC 3339).
    pub triggered_at: Option<String>,
    /// The ports on which each of its endpoints serves.
    pub ports: Vec<SlicePort>,
    /// Its endpoints.
    pub endpoints: Vec<ProxiedEndpoint>,
}

/// A port of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlicePort {
    /// The name of the Service's port.
    pub name: String,
    /// The protocol of the Service's port.
    pub protocol: TransportProtocol,
    /// The port on the endpoint.
    pub port: u16,
}

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiedEndpoint {
    /// Its first address; the others are not used.
    pub address: IpAddr,
    /// The node it runs on; without one it is local to no node.
    pub node: Option<NodeName>,
    /// It takes new connections.
    pub is_ready: bool,
    /// It answers, though it may be about to end.
    pub is_serving: bool,
    /// It is about to end.
    pub is_terminating: bool,
    /// The nodes that should use it, as its controller says.
    pub node_hints: Vec<NodeName>,
    /// The zones that should use it.
    pub zone_hints: Vec<String>,
}

/// The options of the proxy, by kube-proxy's meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProxyConfiguration {
    /// The scheduler of Services that name none.
    pub scheduler: IpvsScheduler,
    /// All traffic to addresses in the cluster is masqueraded.
    pub masquerade_all: bool,
    /// How a packet from a Pod is recognized.
    pub local_detection: LocalDetection,
    /// On which addresses of the node its node ports are.
    pub node_port_addresses: NodePortAddresses,
    /// Virtual servers in these networks are never removed.
    pub excluded_networks: Vec<Prefix>,
    /// The bit of a packet's mark by which its source address is replaced; `None` if that is left to the proxy.
    pub masquerade_bit: Option<u8>,
    /// Whether ARP is answered only on the interface that has an address; `None` if that is left to the proxy.
    pub strict_arp: Option<bool>,
    /// How long IPVS knows connections without packets.
    pub timeouts: IpvsTimeouts,
    /// Where the health of the proxy is served.
    pub healthz_address: Option<SocketAddr>,
    /// Where metrics are served.
    pub metrics_address: Option<SocketAddr>,
}

/// How long IPVS knows a connection without packets; `None` where the kernel's value stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpvsTimeouts {
    /// Of TCP.
    pub tcp: Option<Duration>,
    /// Of TCP after a FIN.
    pub tcp_fin: Option<Duration>,
    /// Of UDP.
    pub udp: Option<Duration>,
}

impl ProxyConfiguration {
    /// A KubeProxyConfiguration has no name. It is known by that of the ConfigMap that kubeadm keeps it in.
    pub fn object_name() -> ObjectName {
        ObjectName::new("kube-system", "kube-proxy")
    }
}

/// How a packet from a Pod is recognized: one from elsewhere to an address in the cluster is masqueraded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LocalDetection {
    /// It is not.
    #[default]
    Unknown,
    /// Its source is in these networks (`ClusterCIDR`).
    ClusterNetworks(Vec<Prefix>),
    /// Its source is in `spec.podCIDRs` of this Node (`NodeCIDR`).
    NodeNetworks,
    /// It comes over this bridge (`BridgeInterface`).
    Bridge(String),
    /// It comes over an interface whose name begins so (`InterfaceNamePrefix`).
    InterfacePrefix(String),
}

/// On which addresses of the node its node ports are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodePortAddresses {
    /// All but loopback and link-local ones.
    #[default]
    All,
    /// The first of each family.
    Primary,
    /// Those in these networks; all of a family that has none among them.
    Networks(Vec<Prefix>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheduler_is_found_by_its_name() {
        for scheduler in IpvsScheduler::ALL {
            assert_eq!(IpvsScheduler::named(scheduler.name()), Some(scheduler));
        }
        assert_eq!(IpvsScheduler::named("RR"), None);
    }
}
