//! Nodes, as far as announcing depends on them.

use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::Prefix;

use super::Labels;

/// The name of a node.
pub type NodeName = String;

/// A machine that may announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its labels.
    pub labels: Labels,
    /// Its internal addresses, in the order given; the first IPv4 one is the default router ID.
    pub addresses: Vec<IpAddr>,
    /// The networks of its Pods.
    pub pod_cidrs: Vec<Prefix>,
    /// Condition NetworkUnavailable is True: it announces nothing.
    pub network_unavailable: bool,
    /// Condition Ready is False or Unknown: its kubelet reports a failure, or nothing at all.
    pub is_unready: bool,
    /// It has the taint [`Node::OUT_OF_SERVICE_TAINT`]: an operator says that it is shut down.
    pub is_out_of_service: bool,
    /// It is about to be removed: its object is being deleted, or it has the taint [`Node::TO_BE_DELETED_TAINT`].
    pub is_to_be_deleted: bool,
    /// It is marked to be drained ([`Node::DRAIN_MARK`]): how long routers have to find other
    /// paths.
    pub drain: Option<Duration>,
}

impl Node {
    /// The label that excludes a node from announcing.
    pub const EXCLUDE_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
    /// The taint of a node that is shut down for certain, after which its volumes are used elsewhere.
    pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";
    /// The taint of a node that the cluster autoscaler is about to remove.
    pub const TO_BE_DELETED_TAINT: &str = "ToBeDeletedByClusterAutoscaler";
    /// The key of a label, an annotation or a taint that drains a node.
    pub const DRAIN_MARK: &str = "metallb.io/drain";
    /// The wait if the mark has no value.
    pub const DRAIN_WAIT_DEFAULT: Duration = Duration::from_secs(30);
    /// The maximum wait: more than a day is a typo.
    pub const DRAIN_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
    /// The label every node has.
    pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

    /// The node that is assumed if no Node object exists: it has only its host name.
    pub fn assumed(name: &str, addresses: Vec<IpAddr>) -> Self {
        let labels = Labels::from([(Self::HOSTNAME_LABEL.to_owned(), name.to_owned())]);
        Self {
            name: name.to_owned(),
            labels,
            addresses,
            pod_cidrs: Vec::new(),
            network_unavailable: false,
            is_unready: false,
            is_out_of_service: false,
            is_to_be_deleted: false,
            drain: None,
        }
    }

    /// Whether [`Node::EXCLUDE_LABEL`] is set.
    pub fn is_excluded(&self) -> bool {
        self.labels.contains_key(Self::EXCLUDE_LABEL)
    }
}
