//! L2Advertisement: which nodes answer for addresses on the local segment.

use std::collections::BTreeSet;

use super::selector::chooses_pool;
use super::{LabelSelector, Labels, ObjectName, Pool, Service, any_matches};

/// An entry of `preferredNodeSelectors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreferredNodes {
    /// The weight that a matching node gains, 1 to 100.
    pub weight: u8,
    /// The nodes that match.
    pub preference: LabelSelector,
}

/// An L2Advertisement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2Advertisement {
    /// Its name.
    pub name: ObjectName,
    /// Pools by name.
    pub pools: BTreeSet<String>,
    /// Pools by label. Without names and selectors: every pool.
    pub pool_selectors: Vec<LabelSelector>,
    /// Nodes that may answer.
    pub node_selectors: Vec<LabelSelector>,
    /// Services that it selects.
    pub service_selectors: Vec<LabelSelector>,
    /// Interfaces on which nodes answer; all when empty.
    pub interfaces: BTreeSet<String>,
    /// Which of the nodes are preferred. Weights of all entries that match add up.
    pub preferred_nodes: Vec<PreferredNodes>,
    /// The owner has the addresses on an interface, too.
    pub bind: bool,
}

impl Layer2Advertisement {
    /// Whether it selects `pool`.
    pub fn selects_pool(&self, pool: &Pool) -> bool {
        chooses_pool(&self.pools, &self.pool_selectors, &pool.name.name, &pool.labels)
    }

    /// Whether it selects `service`.
    pub fn selects_service(&self, service: &Service) -> bool {
        any_matches(&self.service_selectors, &service.labels)
    }

    /// Whether a node with these labels may answer.
    pub fn selects_node(&self, labels: &Labels) -> bool {
        any_matches(&self.node_selectors, labels)
    }
}
