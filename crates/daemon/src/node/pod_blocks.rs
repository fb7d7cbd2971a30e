//! The prefixes of Pods that this node has, with the name of their IPPool, in the loop of a node: they go to the source, which plans.

use std::collections::BTreeMap;

use fairway_ground::Prefix;
use tokio::sync::watch;

/// What tells them, where the node gives Pods their addresses.
pub(super) struct PodBlocks(Option<watch::Receiver<BTreeMap<Prefix, String>>>);

impl PodBlocks {
    pub(super) fn new(told: Option<watch::Receiver<BTreeMap<Prefix, String>>>) -> Self {
        Self(told)
    }

    /// What they are, as soon as that is news; for ever where there are none. Cancel-safe.
    pub(super) async fn changed(&mut self) -> BTreeMap<Prefix, String> {
        if let Some(told) = &mut self.0
            && told.changed().await.is_ok()
        {
            return told.borrow_and_update().clone();
        }
        std::future::pending().await
    }

    /// What they are at the start.
    pub(super) fn first(&mut self) -> BTreeMap<Prefix, String> {
        self.0.as_mut().map(|it| it.borrow_and_update().clone()).unwrap_or_default()
    }
}
