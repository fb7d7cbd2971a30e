//! Who answers for the addresses of a Service on the local segment.
//!
//! Knows no session and no route. Called by the planner, once for each Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::{ClusterIndex, Node, NodeName, ObjectName, Pool, Service};

use super::{PlanOptions, Reason};

/// Whether this node answers for the addresses of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2Verdict {
    /// Why it does not; `None` if it does.
    pub reason: Option<Reason>,
    /// On which interfaces; all when `None`.
    pub interfaces: Option<BTreeSet<String>>,
    /// The node that does, if one does.
    pub owner: Option<NodeName>,
}

/// An address that this node answers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2Announcement {
    /// The address.
    pub address: IpAddr,
    /// On which interfaces; all when `None`.
    pub interfaces: Option<BTreeSet<String>>,
    /// The Services behind it.
    pub services: BTreeSet<ObjectName>,
}

/// What all Services have in common.
pub(super) struct Layer2Facts<'a> {
    _index: &'a ClusterIndex,
}

impl<'a> Layer2Facts<'a> {
    /// As seen from `node`.
    pub(super) fn new(index: &'a ClusterIndex, _node: &'a Node, _options: PlanOptions) -> Self {
        Self { _index: index }
    }
}

/// What this node does about `addresses`, each of which the pool at its place holds; `None` where no
/// L2Advertisement speaks of them.
pub(super) fn decide(
    _facts: &Layer2Facts<'_>,
    _service: &Service,
    _addresses: &[IpAddr],
    _pools: &[&Pool],
) -> Option<Layer2Verdict> {
    None
}
