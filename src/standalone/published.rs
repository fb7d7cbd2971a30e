//! What the loop has decided, for others to look at. A new value replaces the old one after every
//! change, so a slow reader never holds the loop up.

use std::sync::Arc;

use fairway_sessions::types::RouterId;

use crate::allocator::Outcomes;
use crate::drain::DrainStatus;
use crate::model::{ClusterIndex, Node};
use crate::plan::NodePlan;
use crate::resources::{Finding, StaleObject};

/// One state of the daemon.
#[derive(Debug, Clone)]
pub struct Published {
    /// This node.
    pub node: Node,
    /// Its BGP identifier, where a peer has none of its own.
    pub router_id: RouterId,
    /// The facts in force.
    pub index: Arc<ClusterIndex>,
    /// Which Service has which address.
    pub outcomes: Outcomes,
    /// What is announced.
    pub plan: Arc<NodePlan>,
    /// What is wrong or odd in the files.
    pub findings: Vec<Finding>,
    /// Objects whose last good version is in force.
    pub stale: Vec<StaleObject>,
    /// The files and folders that are read.
    pub sources: Vec<String>,
    /// Whether the node is in service.
    pub drain: DrainStatus,
}
