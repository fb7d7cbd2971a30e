//! `show bgp router`: facts about the process, as FRR 10 has them.

use super::Snapshot;
use super::object::Object;

/// The facts in lines.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    format!(
        "BGP started at {} (Unix time)\nNumber of BGP instances 1\n",
        snapshot.started_epoch_seconds
    )
}

/// The facts as an object. Only addresses are kept across a restart, so graceful restart of the instance is
/// off.
pub(super) fn json(snapshot: &Snapshot<'_>) -> Object {
    Object::new()
        .field("bgpStartedAt", snapshot.started_epoch_seconds)
        .field("bgpStartedGracefully", false)
        .field("bgpInMaintenanceMode", false)
        .field("bgpInstanceCount", 1)
}
