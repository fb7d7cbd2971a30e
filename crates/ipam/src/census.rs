//! Who is there: Pods and nodes, as they were last seen and as they are now.
//!
//! Knows no API server and no watch: the daemon and a replayed case answer.

use std::future::Future;
use std::net::IpAddr;

use crate::block::Attributes;
use crate::store::StoreError;

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

/// Whether an address that was given to a Pod on this node is not, or no longer, the Pod's.
pub(crate) fn has_left(pod: Option<&PodState>, node: Option<&str>, address: IpAddr) -> bool {
    let Some(pod) = pod else { return true };
    let is_elsewhere = !pod.node.is_empty() && node.is_some_and(|it| pod.node != it);
    let has_others = !pod.addresses.is_empty() && !pod.addresses.contains(&address);
    is_elsewhere || pod.is_finished || has_others
}

/// The Pod that an assignment names.
pub(crate) fn pod_of(attributes: &Attributes) -> Option<PodName> {
    let of = |key: &str| attributes.secondary.get(key).filter(|it| !it.is_empty()).cloned();
    Some(PodName { namespace: of("namespace")?, name: of("pod")? })
}
