//! The options of the service proxy, and how those of the command line go over those of a KubeProxyConfiguration.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairway_dataplane::FilterOptions;
use fairway_dataplane::nftables::PodDetection;
use fairway_ground::Prefix;
use fairway_model::{
    IpvsScheduler, IpvsTimeouts, LocalDetection, NodePortAddresses, ObjectName, ProxyConfiguration,
};
use fairway_proxy::Planner;
use tokio::sync::watch;

use crate::admin::SocketMode;
use crate::http_server::HttpListen;
use crate::kubernetes::ConnectionOptions;

/// kube-proxy's bit.
const MASQUERADE_BIT_DEFAULT: u8 = 14;

/// The options of `fairway proxy`.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Where Services come from.
    pub services: ServiceSource,
    /// A file with a KubeProxyConfiguration.
    pub config_file: Option<PathBuf>,
    /// The node.
    pub node: String,
    /// Where the records of what is Fairway's are; it must not outlive a reboot.
    pub run_dir: PathBuf,
    /// Who may connect to its socket there.
    pub socket_mode: SocketMode,
    /// How long connections to an endpoint that has left may go on.
    pub drain_limit: Duration,
    /// Waits for the end of kube-proxy, adopts its virtual servers, and removes the rest of what it left.
    pub takes_over: bool,
    /// What the command line says in place of a KubeProxyConfiguration.
    pub overrides: Overrides,
}

/// The addresses that Services of files have been assigned.
pub type Assigned = Arc<BTreeMap<ObjectName, Vec<IpAddr>>>;

/// Where Services, EndpointSlices and Nodes come from.
#[derive(Debug, Clone)]
pub enum ServiceSource {
    /// Files and folders, and addresses that this process assigns, if it does; `None` until it has.
    Files(Vec<PathBuf>, Option<watch::Receiver<Option<Assigned>>>),
    /// The API server.
    Cluster {
        /// How to reach it.
        connection: ConnectionOptions,
        /// How long objects of a kind stay that it lacks all at once.
        empty_list_hold: Duration,
        /// Where the last known state is kept for the next start.
        state_dir: PathBuf,
    },
}

/// How a packet from a Pod is recognized, as an operator names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DetectionMode {
    ClusterCidr,
    NodeCidr,
    BridgeInterface,
    InterfaceNamePrefix,
}

/// Options that were given; `None`, or an empty list, for those that were not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `--cluster-cidr`.
    pub cluster_networks: Vec<Prefix>,
    /// `--detect-local-mode`.
    pub detection: Option<DetectionMode>,
    /// `--pod-bridge-interface`.
    pub bridge: Option<String>,
    /// `--pod-interface-name-prefix`.
    pub interface_prefix: Option<String>,
    /// `--masquerade-all`.
    pub masquerade_all: Option<bool>,
    /// `--masquerade-bit`.
    pub masquerade_bit: Option<u8>,
    /// `--nodeport-addresses`.
    pub node_port_addresses: Option<NodePortAddresses>,
    /// `--ipvs-scheduler`.
    pub scheduler: Option<IpvsScheduler>,
    /// `--ipvs-exclude-cidrs`.
    pub excluded_networks: Vec<Prefix>,
    /// `--ipvs-strict-arp`.
    pub strict_arp: Option<bool>,
    /// `--ipvs-tcp-timeout` and so on.
    pub timeouts: IpvsTimeouts,
    /// `--healthz-bind-address`.
    pub healthz: Option<HttpListen>,
    /// `--metrics-bind-address`.
    pub metrics: Option<HttpListen>,
}

impl Overrides {
    /// The configuration with these options over it.
    pub(super) fn over(&self, mut configuration: ProxyConfiguration) -> ProxyConfiguration {
        let it = &mut configuration;
        it.local_detection = self.detection_over(&it.local_detection);
        it.masquerade_all = self.masquerade_all.unwrap_or(it.masquerade_all);
        it.masquerade_bit = self.masquerade_bit.or(it.masquerade_bit);
        if let Some(addresses) = &self.node_port_addresses {
            it.node_port_addresses.clone_from(addresses);
        }
        it.scheduler = self.scheduler.unwrap_or(it.scheduler);
        if !self.excluded_networks.is_empty() {
            it.excluded_networks.clone_from(&self.excluded_networks);
        }
        it.strict_arp = self.strict_arp.or(it.strict_arp);
        it.timeouts = IpvsTimeouts {
            tcp: self.timeouts.tcp.or(it.timeouts.tcp),
            tcp_fin: self.timeouts.tcp_fin.or(it.timeouts.tcp_fin),
            udp: self.timeouts.udp.or(it.timeouts.udp),
        };
        configuration
    }

    /// A mode without what it needs leaves what is there.
    fn detection_over(&self, before: &LocalDetection) -> LocalDetection {
        let networks =
            || (!self.cluster_networks.is_empty()).then(|| self.cluster_networks.clone());
        let of_networks = || networks().map(LocalDetection::ClusterNetworks);
        let chosen = match self.detection {
            None => of_networks(),
            Some(DetectionMode::ClusterCidr) => of_networks(),
            Some(DetectionMode::NodeCidr) => Some(LocalDetection::NodeNetworks),
            Some(DetectionMode::BridgeInterface) => self.bridge.clone().map(LocalDetection::Bridge),
            Some(DetectionMode::InterfaceNamePrefix) => {
                self.interface_prefix.clone().map(LocalDetection::InterfacePrefix)
            }
        };
        chosen.unwrap_or_else(|| before.clone())
    }

    /// Where the health of the proxy is served.
    pub(super) fn healthz(&self, configuration: &ProxyConfiguration) -> HttpListen {
        /// kube-proxy's.
        const DEFAULT: HttpListen = HttpListen::Everywhere(10256);
        let configured = configuration.healthz_address.map(HttpListen::of);
        self.healthz.or(configured).unwrap_or(DEFAULT)
    }

    /// Where metrics are served.
    pub(super) fn metrics(&self, configuration: &ProxyConfiguration) -> HttpListen {
        let default = HttpListen::local(10249);
        let configured = configuration.metrics_address.map(HttpListen::of);
        self.metrics.or(configured).unwrap_or(default)
    }
}

/// How the packet filter recognizes packets, from the plan's options.
pub(super) fn filter_options(planner: &Planner) -> FilterOptions {
    let configuration = planner.configuration();
    let (pods, pod_networks): (_, Vec<Prefix>) = match &configuration.local_detection {
        LocalDetection::Unknown => (PodDetection::Unknown, Vec::new()),
        LocalDetection::ClusterNetworks(networks) => (PodDetection::Networks, networks.clone()),
        LocalDetection::NodeNetworks => {
            (PodDetection::Networks, planner.place().pod_networks.clone())
        }
        LocalDetection::Bridge(name) => (PodDetection::Interface(name.clone()), Vec::new()),
        LocalDetection::InterfacePrefix(prefix) => {
            (PodDetection::InterfacePrefix(prefix.clone()), Vec::new())
        }
    };
    FilterOptions { pods, pod_networks, mark: masquerade_mark(configuration) }
}

/// The bit of a packet's mark that is used.
fn masquerade_mark(configuration: &ProxyConfiguration) -> u32 {
    let bit = configuration.masquerade_bit.unwrap_or(MASQUERADE_BIT_DEFAULT);
    1_u32.checked_shl(bit.into()).unwrap_or(1 << MASQUERADE_BIT_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_line_says_goes_over_the_file_and_the_rest_of_the_file_stays() {
        let file = ProxyConfiguration {
            scheduler: IpvsScheduler::LeastConnections,
            local_detection: LocalDetection::NodeNetworks,
            strict_arp: Some(false),
            timeouts: IpvsTimeouts { tcp: Some(Duration::from_secs(7)), ..IpvsTimeouts::default() },
            healthz_address: Some("127.0.0.1:1".parse().unwrap()),
            ..ProxyConfiguration::default()
        };
        assert_eq!(Overrides::default().over(file.clone()), file);
        let networks: Vec<Prefix> = vec!["10.1.0.0/16".parse().unwrap()];
        let overrides = Overrides {
            cluster_networks: networks.clone(),
            strict_arp: Some(true),
            timeouts: IpvsTimeouts { udp: Some(Duration::from_secs(9)), ..IpvsTimeouts::default() },
            metrics: Some(HttpListen::Nowhere),
            ..Overrides::default()
        };
        let both = overrides.over(file.clone());
        assert_eq!(both.local_detection, LocalDetection::ClusterNetworks(networks));
        assert_eq!((both.scheduler, both.strict_arp), (file.scheduler, Some(true)));
        let seconds = [both.timeouts.tcp, both.timeouts.udp].map(|it| it.unwrap().as_secs());
        assert_eq!(seconds, [7, 9]);
        assert_eq!(overrides.healthz(&both).to_string(), "127.0.0.1:1");
        assert_eq!(overrides.metrics(&both), HttpListen::Nowhere);
        let nothing = Overrides::default();
        let default = ProxyConfiguration::default();
        assert_eq!(nothing.healthz(&default).to_string(), ":10256");
        assert_eq!(nothing.metrics(&default).to_string(), "127.0.0.1:10249");
        assert_eq!(masquerade_mark(&default), 1 << 14);
    }
}
