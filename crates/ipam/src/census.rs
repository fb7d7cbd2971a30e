//! Who is there: Pods and nodes, as they were last seen and as they are now.
//!
//! Knows no API server and no watch: the daemon and a replayed case answer.

use std::future::Future;
use std::net::IpAddr;

use crate::block::Attributes;
use crate::store::StoreError;

/// The names of what a node has for itself: they live as long as the node.
const TUNNEL_TYPES: [&str; 5] = [
    "ipipTunnelAddress",
    "vxlanTunnelAddress",
    "vxlanV6TunnelAddress",
    "wireguardTunnelAddress",
    "wireguardV6TunnelAddress",
];

/// The interface whose addresses a Pod lists.
const FIRST_INTERFACE: &str = "eth0";

/// A Pod's namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What a Pod says of its address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodState {
    /// Its node; empty before it has one.
    pub node: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its containers have ended for good.
    pub is_finished: bool,
}

/// Where Pods and nodes are asked for.
pub trait Census: Sync {
    /// A Pod as it was last seen.
    fn pod(&self, name: &PodName) -> Option<PodState>;

    /// Whether a node was there when nodes were last seen.
    fn has_node(&self, name: &str) -> bool;

    /// A Pod as it is now.
    fn pod_now(
        &self,
        name: &PodName,
    ) -> impl Future<Output = Result<Option<PodState>, StoreError>> + Send;

    /// Whether a node is there now.
    fn has_node_now(&self, name: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Why an address that was given to a Pod is not, or no longer, the Pod's; `None` if it is.
///
/// A Pod that lists the address has it, whatever the node is called. One that does not may have it for an interface that
/// Kubernetes does not know.
pub(crate) fn left(
    pod: Option<&PodState>,
    attributes: &Attributes,
    address: IpAddr,
) -> Option<String> {
    let Some(pod) = pod else { return Some("is gone".to_owned()) };
    if pod.is_finished {
        return Some("has ended".to_owned());
    }
    if pod.addresses.contains(&address) {
        return None;
    }
    let of = |key: &str| attributes.secondary.get(key).map(String::as_str);
    if !pod.node.is_empty() && of("node").is_some_and(|it| pod.node != it) {
        return Some(format!("is on node {}", pod.node));
    }
    let is_known = of("interface").is_none_or(|it| it == FIRST_INTERFACE);
    (is_known && !pod.addresses.is_empty()).then(|| "has other addresses".to_owned())
}

/// The Pod that an assignment names.
pub(crate) fn pod_of(attributes: &Attributes) -> Option<PodName> {
    let of = |key: &str| attributes.secondary.get(key).filter(|it| !it.is_empty()).cloned();
    Some(PodName { namespace: of("namespace")?, name: of("pod")? })
}

/// Whether a node has it for itself.
pub(crate) fn is_for_tunnel(attributes: &Attributes) -> bool {
    attributes.secondary.get("type").is_some_and(|it| TUNNEL_TYPES.contains(&it.as_str()))
}
