//! Addresses that are answered for on the local segment, and which node does.

use serde::{Deserialize, Serialize};

use crate::{Snapshot, layer2};

/// One address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentRow {
    /// The address.
    pub address: String,
    /// The node that answers for it; `None` if nobody does.
    pub owner: Option<String>,
    /// This node does.
    pub is_mine: bool,
    /// The interfaces that this node answers on.
    pub interfaces: Vec<String>,
    /// Its Services, as NAMESPACE/NAME.
    pub services: Vec<String>,
    /// Requests that this node has heard.
    pub requests: u64,
    /// Claims of other hosts.
    pub conflicts: u64,
    /// What keeps it from being answered for; empty if nothing does.
    pub reason: String,
}

pub(super) fn rows(snapshot: &Snapshot<'_>, rows_max: usize) -> Vec<SegmentRow> {
    layer2::items(snapshot).iter().take(rows_max).map(|item| row(item, snapshot)).collect()
}

fn row(item: &layer2::Item<'_>, snapshot: &Snapshot<'_>) -> SegmentRow {
    SegmentRow {
        address: item.address.to_string(),
        owner: item.owner.map(str::to_owned),
        is_mine: item.is_mine,
        interfaces: item.interfaces(),
        services: item.services.iter().map(ToString::to_string).collect(),
        requests: item.answered.map_or(0, |it| it.requests),
        conflicts: item.answered.map_or(0, |it| it.conflicts),
        reason: item.trouble(snapshot),
    }
}
