//! Do the neighbours of a VRF agree on the settings that FRR has once for all of them?
//!
//! The first neighbour decides; `fairway check` reports a conflict beforehand, and here it is enforced. Knows
//! no lines. Called by `render`.

use fairway_ground::{ClusterId, GracefulRestart, RouterId};
use fairway_seam::PeerConfig;

use super::neighbour::{Neighbour, Refusal};

/// The settings that one neighbour requires of its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) asn: u32,
    pub(super) router_id: RouterId,
    /// Of an internal neighbour.
    pub(super) cluster_id: Option<ClusterId>,
    pub(super) graceful_restart: Option<GracefulRestart>,
    pub(super) listen_limit: Option<u32>,
}

impl Shared {
    pub(super) fn of(peer: &PeerConfig) -> Self {
        Self {
            asn: peer.router_asn.get(),
            router_id: peer.router_id,
            cluster_id: peer.internal_cluster_id(),
            graceful_restart: peer.graceful_restart,
            listen_limit: peer.listen_range.map(|range| range.limit),
        }
    }
}

/// For each setting, the first neighbour of a VRF that has a value.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    instance: Option<(String, Shared)>,
    cluster: Option<(String, ClusterId)>,
    restart: Option<(String, GracefulRestart)>,
}

impl Firsts {
    /// Fails for a neighbour with values that differ from those of earlier ones.
    pub(super) fn admit(&mut self, name: &str, neighbour: &Neighbour) -> Result<(), Refusal> {
        let shared = neighbour.shared;
        if let Some((other, first)) = &self.instance {
            differ("myASN", first.asn, shared.asn, other)?;
            differ("routerID", first.router_id, shared.router_id, other)?;
        }
        if let (Some((other, first)), Some(this)) = (&self.cluster, shared.cluster_id) {
            differ("clusterID", *first, this, other)?;
        }
        if let (Some((other, first)), Some(this)) = (&self.restart, shared.graceful_restart) {
            let times = |it: GracefulRestart| {
                let [restart, long] = [it.restart_time(), it.long_lived_stale_time()];
                format!("{}s and {}s", restart.as_secs(), long.as_secs())
            };
            differ("gracefulRestart", times(*first), times(this), other)?;
        }
        self.instance.get_or_insert_with(|| (name.to_owned(), shared));
        if let Some(this) = shared.cluster_id {
            self.cluster.get_or_insert_with(|| (name.to_owned(), this));
        }
        if let Some(this) = shared.graceful_restart {
            self.restart.get_or_insert_with(|| (name.to_owned(), this));
        }
        Ok(())
    }
}

fn differ<T: PartialEq + ToString>(
    field: &'static str,
    first: T,
    this: T,
    other: &str,
) -> Result<(), Refusal> {
    if first == this {
        return Ok(());
    }
    let (this, that) = (this.to_string(), first.to_string());
    Err(Refusal::Shared { field, this, that, other: other.to_owned() })
}
