//! What a node does, as one value: what `fairway top` and the looking glass draw.
//!
//! Answers everything that changes while somebody watches: sessions, Services, pools, the local segment, other prefixes of
//! this node, and the last event of each of these. Rates are the reader's: two overviews and the time between them. What differs
//! between two is in [`EventLog`]. Knows no screen and no clock.

mod event_log;
mod events;
mod segment;
mod services;
mod sessions;

pub use event_log::EventLog;
pub use events::EventRow;
pub use segment::SegmentRow;
pub use services::{PrefixRow, ServiceCounts, ServiceRow};
pub use sessions::SessionRow;

use fairway_ground::{AddressFamily, PerFamily};
use fairway_node::drain::DrainStatus;
use serde::{Deserialize, Serialize};

use super::{Snapshot, pools};

/// A number for each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FamilyCount {
    /// Of IPv4 unicast.
    pub ipv4: u64,
    /// Of IPv6 unicast.
    pub ipv6: u64,
}

impl FamilyCount {
    fn of<T: Copy + TryInto<u64>>(numbers: &PerFamily<T>) -> Self {
        let count = |number: T| number.try_into().unwrap_or(u64::MAX);
        Self { ipv4: count(numbers.ipv4), ipv6: count(numbers.ipv6) }
    }

    /// Both together.
    pub fn total(self) -> u64 {
        self.ipv4.saturating_add(self.ipv6)
    }
}

/// One pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRow {
    /// Its name.
    pub name: String,
    /// Its addresses, as prefixes where they are.
    pub addresses: Vec<String>,
    /// Addresses that Services have.
    pub used: FamilyCount,
    /// All that can be assigned.
    pub total: FamilyCount,
    /// Services with addresses of it.
    pub services: u64,
    /// Services without a wish for a pool get addresses of it.
    pub auto_assign: bool,
}

/// A node at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// Unix time.
    pub now_epoch_seconds: u64,
    /// The start of the daemon, in Unix time.
    pub started_epoch_seconds: u64,
    /// The version of the daemon, with its commit.
    pub version: String,
    /// The name of the node.
    pub node: String,
    /// The BGP identifier towards neighbors that set none.
    pub router_id: String,
    /// Our AS numbers, in order.
    pub local_as: Vec<u32>,
    /// Why the node is out of service, with the state; `None` in service.
    pub drain: Option<String>,
    /// What has not been read, if anything: the rest may be outdated.
    pub outage: Option<String>,
    /// Faults of the resources, and parts of the desired state that are not in force: `fairway show config` names them.
    pub faults: u64,
    /// Prefixes in the table, our own and learned ones.
    pub prefixes: FamilyCount,
    /// All neighbors, in the order of their keys.
    pub sessions: Vec<SessionRow>,
    /// Services by what they lack.
    pub service_counts: ServiceCounts,
    /// Services: those that lack something first, then by name; as many as were asked for.
    pub services: Vec<ServiceRow>,
    /// All pools, in the order of their names.
    pub pools: Vec<PoolRow>,
    /// Addresses on the local segment (layer 2), in order; as many as were asked for.
    pub segment: Vec<SegmentRow>,
    /// Prefixes of this node that are announced for no Service: of BGPAdvertisements, and of Pods; as many as were asked for.
    pub prefixes_of_node: Vec<PrefixRow>,
    /// The last event of each session, Service and address, the latest first; at most [`EventLog::EVENTS_MAX`].
    pub events: Vec<EventRow>,
}

impl Overview {
    /// Of `snapshot`, with at most `rows_max` rows of each table that grows with the cluster. Sessions and pools are all there.
    pub fn of(snapshot: &Snapshot<'_>, rows_max: usize) -> Self {
        let (service_counts, services) = services::rows(snapshot, rows_max);
        let mut local_as: Vec<u32> =
            snapshot.bgp.peers.iter().map(|it| it.config.local_asn.get()).collect();
        local_as.sort_unstable();
        local_as.dedup();
        let faults = snapshot.findings.iter().filter(|it| it.is_fault()).count();
        let faults = faults.saturating_add(snapshot.bgp.faults.len());
        Self {
            now_epoch_seconds: snapshot.now_epoch_seconds,
            started_epoch_seconds: snapshot.started_epoch_seconds,
            version: super::version::of(snapshot),
            node: snapshot.node.name.clone(),
            router_id: snapshot.router_id.to_string(),
            local_as,
            drain: match snapshot.drain {
                DrainStatus::InService => None,
                status => Some(status.to_string()),
            },
            outage: snapshot.outage.map(|it| it.what.clone()),
            faults: u64::try_from(faults).unwrap_or(u64::MAX),
            prefixes: FamilyCount::of(&snapshot.bgp.prefixes),
            sessions: snapshot.bgp.peers.iter().map(SessionRow::of).collect(),
            service_counts,
            services,
            pools: pools::items(snapshot).iter().map(pool_row).collect(),
            segment: segment::rows(snapshot, rows_max),
            prefixes_of_node: services::prefixes_of_node(snapshot, rows_max),
            events: events::rows(snapshot),
        }
    }

    /// How many sessions are Established.
    pub fn established(&self) -> usize {
        self.sessions.iter().filter(|it| it.is_established).count()
    }
}

fn pool_row(item: &pools::Item<'_>) -> PoolRow {
    let counted = |of: &PerFamily<u128>| FamilyCount {
        ipv4: u64::try_from(*of.of(AddressFamily::Ipv4Unicast)).unwrap_or(u64::MAX),
        ipv6: u64::try_from(*of.of(AddressFamily::Ipv6Unicast)).unwrap_or(u64::MAX),
    };
    PoolRow {
        name: item.pool.name.name.clone(),
        addresses: item.ranges(),
        used: counted(&item.usage.used),
        total: counted(&item.usage.total),
        services: u64::try_from(item.usage.services).unwrap_or(u64::MAX),
        auto_assign: item.pool.auto_assign,
    }
}
