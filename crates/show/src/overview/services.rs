//! Services with what they lack, and prefixes of this node that belong to none.

use std::collections::BTreeSet;

use fairway_ground::Prefix;
use serde::{Deserialize, Serialize};

use crate::told::Told;
use crate::{Snapshot, services};

/// Services of type LoadBalancer, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceCounts {
    /// All of them.
    pub total: u64,
    /// Those without an address.
    pub pending: u64,
    /// Those that lack something: an address, a neighbor that has their route, an interface.
    pub lacking: u64,
}

/// One Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its addresses; none while it waits for one.
    pub addresses: Vec<String>,
    /// The pool of these.
    pub pool: Option<String>,
    /// The neighbors that have a route to it.
    pub announced_to: Vec<String>,
    /// What it lacks, from the whole to the parts; empty if nothing.
    pub reason: String,
}

/// A prefix that is announced for no Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrefixRow {
    /// The prefix.
    pub prefix: String,
    /// The neighbors that have the route.
    pub announced_to: Vec<String>,
}

/// Those that lack something first.
pub(super) fn rows(snapshot: &Snapshot<'_>, rows_max: usize) -> (ServiceCounts, Vec<ServiceRow>) {
    let items = services::items(snapshot);
    let mut rows: Vec<ServiceRow> = Vec::new();
    let mut complete: Vec<ServiceRow> = Vec::new();
    let mut counts = ServiceCounts::default();
    for item in &items {
        counts.total = counts.total.saturating_add(1);
        counts.pending = counts.pending.saturating_add(u64::from(item.outcome.is_pending()));
        let reason = item.reason();
        counts.lacking = counts.lacking.saturating_add(u64::from(!reason.is_empty()));
        let into = if reason.is_empty() { &mut complete } else { &mut rows };
        if into.len() < rows_max {
            into.push(row(item, reason));
        }
    }
    let room = rows_max.saturating_sub(rows.len());
    rows.extend(complete.into_iter().take(room));
    (counts, rows)
}

fn row(item: &services::Item<'_>, reason: String) -> ServiceRow {
    ServiceRow {
        namespace: item.name.namespace.clone(),
        name: item.name.name.clone(),
        addresses: item.addresses(),
        pool: item.outcome.pool.clone(),
        announced_to: item.peers().into_iter().map(str::to_owned).collect(),
        reason,
    }
}

pub(super) fn prefixes_of_node(snapshot: &Snapshot<'_>, rows_max: usize) -> Vec<PrefixRow> {
    let told = Told::new(snapshot);
    let services = snapshot.plan.services.values();
    let of_services: BTreeSet<Prefix> =
        services.flat_map(|it| it.told()).map(|(prefix, _)| prefix).collect();
    let routes = snapshot.plan.routes.iter();
    let mut rows: Vec<PrefixRow> = Vec::new();
    for route in routes.filter(|it| !of_services.contains(&it.prefix)) {
        let peers = route.peers.iter().filter(|key| told.is_told(**key, route.prefix));
        let announced_to = peers.map(|key| told.name(*key));
        let prefix = route.prefix.to_string();
        if rows.last().is_none_or(|it| it.prefix != prefix) {
            if rows.len() >= rows_max {
                break;
            }
            rows.push(PrefixRow { prefix, announced_to: Vec::new() });
        }
        if let Some(row) = rows.last_mut() {
            row.announced_to.extend(announced_to);
        }
    }
    rows
}
