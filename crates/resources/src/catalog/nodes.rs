//! The known nodes, as far as rules between objects need them.
//!
//! Knows no rule. Without any Node object, the nodes are unknown, and any node is possible.

use std::sync::Arc;

use fairway_model::{LabelSelector, any_matches};

use super::version::Version;

/// The Node objects in force.
pub(super) struct Nodes(Vec<Arc<Version>>);

impl Nodes {
    /// Those among `in_force`.
    pub(super) fn of<'a>(in_force: impl Iterator<Item = &'a Arc<Version>>) -> Self {
        Self(in_force.filter(|version| version.node().is_some()).cloned().collect())
    }

    /// Whether some node may match both lists.
    pub(super) fn may_share(&self, a: &[LabelSelector], b: &[LabelSelector]) -> bool {
        a.is_empty() && b.is_empty() || self.0.is_empty() || self.any(&[a, b])
    }

    /// Whether the nodes are known and none of them matches the list.
    pub(super) fn are_missed_by(&self, selectors: &[LabelSelector]) -> bool {
        !self.0.is_empty() && !self.any(&[selectors])
    }

    fn any(&self, lists: &[&[LabelSelector]]) -> bool {
        let mut nodes = self.0.iter().filter_map(|version| version.node());
        nodes.any(|node| lists.iter().all(|list| any_matches(list, &node.labels)))
    }
}
