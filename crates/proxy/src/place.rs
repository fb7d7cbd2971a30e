//! The node: who it is, where it is, and which addresses it has.

use std::net::IpAddr;

use fairway_ground::{AddressFamily, Prefix};
use fairway_model::{LocalDetection, Node, NodeName, NodePortAddresses};

/// The label that says in which zone a node is.
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The node that the proxy runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Its name.
    pub node: NodeName,
    /// Its zone, if it says so.
    pub zone: Option<String>,
    /// The addresses that it has itself, the preferred one of each family first.
    pub addresses: Vec<IpAddr>,
    /// The networks of its Pods.
    pub pod_networks: Vec<Prefix>,
}

impl Place {
    /// As a Node object describes it, with its InternalIPs as its addresses.
    pub fn of(node: &Node) -> Self {
        let zone = node.labels.get(ZONE_LABEL).filter(|zone| !zone.is_empty());
        Self {
            node: node.name.clone(),
            zone: zone.cloned(),
            addresses: node.addresses.clone(),
            pod_networks: node.pod_cidrs.clone(),
        }
    }

    /// The addresses of a family on which node ports are.
    pub(crate) fn node_port_addresses(
        &self,
        family: AddressFamily,
        option: &NodePortAddresses,
    ) -> Vec<IpAddr> {
        let of_family =
            self.addresses.iter().copied().filter(|it| AddressFamily::of(*it) == family);
        let usable = of_family.filter(|it| !is_of_one_link(*it));
        match option {
            NodePortAddresses::All => usable.collect(),
            NodePortAddresses::Primary => usable.take(1).collect(),
            NodePortAddresses::Networks(networks) => {
                let networks: Vec<_> = networks.iter().filter(|it| it.family() == family).collect();
                let is_chosen = |it: &IpAddr| {
                    networks.is_empty() || networks.iter().any(|net| net.contains(*it))
                };
                usable.filter(is_chosen).collect()
            }
        }
    }

    /// Whether packets from Pods can be told from others in this family.
    pub(crate) fn knows_pods(&self, family: AddressFamily, option: &LocalDetection) -> bool {
        let has = |networks: &[Prefix]| networks.iter().any(|it| it.family() == family);
        match option {
            LocalDetection::Unknown => false,
            LocalDetection::ClusterNetworks(networks) => has(networks),
            LocalDetection::NodeNetworks => has(&self.pod_networks),
            LocalDetection::Bridge(_) | LocalDetection::InterfacePrefix(_) => true,
        }
    }
}

/// Loopback and link-local addresses, which no other host can reach by routing.
fn is_of_one_link(address: IpAddr) -> bool {
    address.is_loopback() || matches!(address, IpAddr::V6(it) if it.is_unicast_link_local())
}
