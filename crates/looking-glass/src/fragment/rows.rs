//! What the tables of the page show. No number that runs by itself is among them: a page stays as it is while nothing happens.

use std::collections::{BTreeMap, BTreeSet};

use fairway_ground::Utc;
use fairway_show::overview::{EventLog, EventRow, Overview, PrefixRow, ServiceRow, SessionRow};
use serde::Serialize;

use crate::history::Strip;
use crate::transitions::Transitions;

/// The page lists so many events: each new one sends the list again.
const EVENTS_SHOWN: usize = 100;
/// And so many sessions.
const SESSIONS_SHOWN: usize = 1_000;

#[derive(Serialize)]
pub(super) struct Head<'a> {
    node: &'a str,
    router_id: &'a str,
    local_as: &'a [u32],
    version: &'a str,
    started: String,
    drain: Option<&'a str>,
    outage: Option<&'a str>,
    faults: u64,
    established: usize,
    sessions: usize,
    prefixes_ipv4: u64,
    prefixes_ipv6: u64,
    services: u64,
    lacking: u64,
    pending: u64,
    warnings: bool,
}

impl<'a> Head<'a> {
    pub(super) fn of(overview: &'a Overview) -> Self {
        let (established, sessions) = (overview.established(), overview.sessions.len());
        let counts = overview.service_counts;
        Self {
            node: &overview.node,
            router_id: &overview.router_id,
            local_as: &overview.local_as,
            version: &overview.version,
            started: Utc(overview.started_epoch_seconds).rfc3339(),
            drain: overview.drain.as_deref(),
            outage: overview.outage.as_deref(),
            faults: overview.faults,
            established,
            sessions,
            prefixes_ipv4: overview.prefixes.ipv4,
            prefixes_ipv6: overview.prefixes.ipv6,
            services: counts.total,
            lacking: counts.lacking,
            pending: counts.pending,
            warnings: established < sessions || counts.lacking > 0,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Neighbors<'a> {
    rows: Vec<Neighbor<'a>>,
    more: usize,
    established: usize,
}

#[derive(Serialize)]
struct Neighbor<'a> {
    called: &'a str,
    neighbor: &'a str,
    remote_as: u32,
    state: &'a str,
    is_established: bool,
    is_restarting: bool,
    since: Option<String>,
    accepted_ipv4: u64,
    accepted_ipv6: u64,
    refused: u64,
    advertised: u64,
    bfd: Option<&'a str>,
    reason: &'a str,
    strip: Strip,
}

impl<'a> Neighbors<'a> {
    pub(super) fn of(overview: &'a Overview, transitions: &Transitions) -> Self {
        let now = overview.now_epoch_seconds;
        let shown = overview.sessions.iter().take(SESSIONS_SHOWN);
        Self {
            rows: shown.map(|row| neighbor(row, now, transitions)).collect(),
            more: overview.sessions.len().saturating_sub(SESSIONS_SHOWN),
            established: overview.established(),
        }
    }
}

fn neighbor<'a>(row: &'a SessionRow, now: u64, transitions: &Transitions) -> Neighbor<'a> {
    Neighbor {
        called: row.called(),
        neighbor: &row.neighbor,
        remote_as: row.remote_as,
        state: &row.state,
        is_established: row.is_established,
        is_restarting: row.is_restarting,
        since: transitions.since(row).map(|it| Utc(it).rfc3339()),
        accepted_ipv4: row.accepted.ipv4,
        accepted_ipv6: row.accepted.ipv6,
        refused: row.refused.total(),
        advertised: row.advertised.total(),
        bfd: row.bfd.as_deref(),
        reason: &row.reason,
        strip: Strip::of(transitions.of(&row.neighbor), now),
    }
}

#[derive(Serialize)]
pub(super) struct Services<'a> {
    rows: Vec<Service<'a>>,
    total: u64,
    lacking: u64,
    more: u64,
}

#[derive(Serialize)]
struct Service<'a> {
    #[serde(flatten)]
    row: &'a ServiceRow,
    /// The nodes that answer for its addresses on the local segment.
    owners: BTreeSet<&'a str>,
}

impl<'a> Services<'a> {
    pub(super) fn of(overview: &'a Overview) -> Self {
        let counts = overview.service_counts;
        let shown = u64::try_from(overview.services.len()).unwrap_or(u64::MAX);
        let owned = overview.segment.iter();
        let owned = owned.filter_map(|it| Some((it.address.as_str(), it.owner.as_deref()?)));
        let owned: BTreeMap<&str, &str> = owned.collect();
        let service = |row: &'a ServiceRow| {
            let owners = row.addresses.iter().filter_map(|it| owned.get(it.as_str()).copied());
            Service { row, owners: owners.collect() }
        };
        Self {
            rows: overview.services.iter().map(service).collect(),
            total: counts.total,
            lacking: counts.lacking,
            more: counts.total.saturating_sub(shown),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Prefixes<'a> {
    rows: &'a [PrefixRow],
}

impl<'a> Prefixes<'a> {
    pub(super) fn of(overview: &'a Overview) -> Self {
        Self { rows: &overview.prefixes_of_node }
    }
}

#[derive(Serialize)]
pub(super) struct Events<'a> {
    rows: Vec<Event<'a>>,
}

#[derive(Serialize)]
struct Event<'a> {
    at: String,
    about: &'a str,
    what: &'a str,
    is_warning: bool,
}

impl<'a> Events<'a> {
    /// The latest first.
    pub(super) fn of(events: &'a EventLog) -> Self {
        let event = |it: &'a EventRow| Event {
            at: Utc(it.at_epoch_seconds).rfc3339(),
            about: &it.about,
            what: &it.what,
            is_warning: it.is_warning,
        };
        Self { rows: events.events().take(EVENTS_SHOWN).map(event).collect() }
    }
}
