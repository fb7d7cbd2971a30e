//! What is known of the cluster where calls are answered.

use std::future::Future;
use std::sync::Arc;

use fairway_ipam::cni::PodNotes;
use fairway_ipam::{Facts, PodName};

/// See the module. Files and the API server have it.
pub(crate) trait Knowledge: Send + Sync {
    /// Pools and what else decides about addresses; or why that is not known yet.
    fn facts(&self) -> Result<Arc<Facts>, String>;

    /// The annotations of a Pod and its namespace that decide about its addresses; or why they are unknown. `uid` tells it
    /// from an earlier Pod of the same name, where the runtime says it.
    fn notes(
        &self,
        pod: &PodName,
        uid: Option<&str>,
    ) -> impl Future<Output = Result<PodNotes, String>> + Send;
}
