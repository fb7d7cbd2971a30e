//! L2Advertisement: which nodes answer for addresses on the local segment.

use std::collections::BTreeSet;

use super::selector::chooses_pool;
use super::{LabelSelector, Labels, ObjectName, Pool, Service, any_matches};

/// An entry of `preferredNodeSelectors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreferredNodes {
    /// What a node that matches gains, 1 to 100.
    pub weight: u8,
    /// Which nodes those are.
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
    /// Services that are answered for.
    pub service_selectors: Vec<LabelSelector>,
    /// Interfaces that are answered on; all when empty.
    pub interfaces: BTreeSet<String>,
    /// Which of the nodes are better. Weights of all entries that match add up.
    pub preferred_nodes: Vec<PreferredNodes>,
}

impl Layer2Advertisement {
    /// Whether it speaks for `pool`.
    pub fn selects_pool(&self, pool: &Pool) -> bool {
        chooses_pool(&self.pools, &self.pool_selectors, &pool.name.name, &pool.labels)
    }

    /// Whether it speaks for `service`.
    pub fn selects_service(&self, service: &Service) -> bool {
        any_matches(&self.service_selectors, &service.labels)
    }

    /// Whether a node with these labels may answer.
    pub fn selects_node(&self, labels: &Labels) -> bool {
        any_matches(&self.node_selectors, labels)
    }
}
