//! The state that clients of any socket may read, put together at the time of the request.

use std::sync::Arc;

use fairway_seam::{Backend, BackendError, BgpView, Layer2View, MemberStatus, ViewScope};
use fairway_show::{Snapshot, VRF_DEFAULT};

use crate::build_info;
use crate::host::{Enquirer, Published, epoch_seconds};

/// Reads the daemon's state. Cheap to clone, one for each client.
#[derive(Clone)]
pub struct Observer {
    enquirer: Enquirer,
    backend: Arc<dyn Backend>,
    started_epoch_seconds: u64,
}

impl Observer {
    /// Reads the state of the loop behind `enquirer` and of `backend`; both have just been started.
    pub fn new(enquirer: Enquirer, backend: Arc<dyn Backend>) -> Self {
        Self { enquirer, backend, started_epoch_seconds: epoch_seconds() }
    }

    pub(super) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// See [`Backend::changed`].
    pub(crate) async fn changed(&self, seen: u64) -> u64 {
        self.backend.changed(seen).await
    }

    /// The result of `see` for the current state.
    pub(crate) async fn look<T>(
        &self,
        scope: ViewScope,
        see: impl FnOnce(&Snapshot<'_>) -> T,
    ) -> Result<T, BackendError> {
        Ok(see(&self.state(scope).await?.snapshot()))
    }

    /// The current state.
    pub(super) async fn state(&self, scope: ViewScope) -> Result<State, BackendError> {
        let bgp = self.backend.view(scope).await?;
        let published = self.enquirer.ask().await.ok_or(BackendError::Stopped)?;
        let layer2 = match &published.layer2 {
            Some(edge) => Some(edge.view().await),
            None => None,
        };
        let members = match &published.members {
            Some(members) => Some(members.view().await),
            None => None,
        };
        let started_epoch_seconds = self.started_epoch_seconds;
        let now_epoch_seconds = epoch_seconds();
        Ok(State { now_epoch_seconds, started_epoch_seconds, published, bgp, layer2, members })
    }
}

/// The state at the time of a request.
pub(super) struct State {
    now_epoch_seconds: u64,
    started_epoch_seconds: u64,
    published: Arc<Published>,
    bgp: BgpView,
    layer2: Option<Layer2View>,
    members: Option<Vec<MemberStatus>>,
}

impl State {
    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        let state = &self.published;
        Snapshot {
            now_epoch_seconds: self.now_epoch_seconds,
            started_epoch_seconds: self.started_epoch_seconds,
            commit: build_info::commit(),
            node: &state.node,
            router_id: state.router_id,
            vrf_name: VRF_DEFAULT,
            bgp: &self.bgp,
            layer2: self.layer2.as_ref(),
            members: self.members.as_deref(),
            index: &state.index,
            outcomes: &state.outcomes,
            plan: &state.plan,
            history: &state.history,
            findings: &state.findings,
            stale: &state.stale,
            sources: &state.sources,
            outage: state.outage.as_ref(),
            drain: state.drain,
        }
    }
}
