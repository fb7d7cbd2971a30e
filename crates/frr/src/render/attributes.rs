//! Which attributes is a route sent with?
//!
//! The `set` lines of a route map, as words. They depend on the neighbour: an internal one is sent
//! LOCAL_PREF, an external one a longer path; each gets the next hops that were chosen for it. Knows no names
//! and no sequence numbers. Called by `classes` and `filters`.

use std::fmt::Write;

use fairway_ground::{ChosenNextHops, Community, LinkBandwidth, PeerKind};
use fairway_seam::{DrainState, PeerConfig, RouteAttributes};
use serde::Serialize;

use super::Settings;

/// FRR's unit of link bandwidth, in bits per second.
const BANDWIDTH_UNIT: u64 = 1_000_000;
/// The maximum that every version accepts, in that unit.
const BANDWIDTH_MAX: u64 = 25_600;
/// The first version that accepts more.
const WIDE_BANDWIDTH_SINCE: (u8, u8) = (10, 3);

/// The settings of a route map entry, in the order in which FRR shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(super) struct SetLines {
    as_path_prepend: Option<String>,
    community: Option<String>,
    bandwidth: Option<String>,
    next_hop_ipv4: Option<String>,
    next_hop_ipv6: Option<String>,
    large_community: Option<String>,
    local_preference: Option<String>,
    metric: Option<String>,
}

impl SetLines {
    /// All settings as one text, for a hash.
    pub(super) fn identify(&self, text: &mut String) {
        let Self {
            as_path_prepend,
            community,
            bandwidth,
            next_hop_ipv4,
            next_hop_ipv6,
            large_community,
            local_preference,
            metric,
        } = self;
        let lines = [
            as_path_prepend,
            community,
            bandwidth,
            next_hop_ipv4,
            next_hop_ipv6,
            large_community,
            local_preference,
            metric,
        ];
        for line in lines {
            text.push('\n');
            text.push_str(line.as_deref().unwrap_or("-"));
        }
    }
}

/// How routes are sent to one neighbour.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    local_asn: u32,
    kind: PeerKind,
    next_hops: ChosenNextHops,
    draining: bool,
    wide_bandwidth: bool,
}

impl Dialect {
    pub(super) fn new(peer: &PeerConfig, drain: DrainState, settings: &Settings) -> Self {
        Self {
            local_asn: peer.local_asn.get(),
            kind: peer.kind(),
            next_hops: peer.next_hops,
            draining: drain == DrainState::Draining,
            wide_bandwidth: settings.version.is_some_and(|it| it >= WIDE_BANDWIDTH_SINCE),
        }
    }

    /// Settings for a route of our own.
    pub(super) fn of_own(&self, attributes: &RouteAttributes) -> SetLines {
        let RouteAttributes {
            local_pref,
            communities,
            large_communities,
            med,
            as_path_prepend,
            link_bandwidth,
        } = attributes;
        let is_external = self.kind == PeerKind::External;
        let mut communities = communities.clone();
        if self.draining && !communities.contains(&Community::GRACEFUL_SHUTDOWN) {
            communities.push(Community::GRACEFUL_SHUTDOWN);
            communities.sort_unstable();
        }
        let prepend = vec![self.local_asn; usize::from(*as_path_prepend)];
        let local_pref = if self.draining { Some(0) } else { *local_pref };
        SetLines {
            as_path_prepend: joined(&prepend).filter(|_| is_external),
            community: joined(&communities.into_iter().map(FrrCommunity).collect::<Vec<_>>()),
            bandwidth: link_bandwidth.map(|it| self.bandwidth(it)),
            large_community: joined(large_communities),
            local_preference: local_pref.filter(|_| !is_external).map(|it| it.to_string()),
            metric: med.map(|it| it.to_string()),
            ..self.next_hops()
        }
    }

    /// Settings for a learned route that is passed on.
    pub(super) fn of_learned(&self) -> SetLines {
        let SetLines { next_hop_ipv4, next_hop_ipv6, .. } = self.next_hops();
        SetLines { next_hop_ipv4, next_hop_ipv6, ..self.of_drain() }
    }

    /// Those of them that no rule changes.
    pub(super) fn of_drain(&self) -> SetLines {
        let is_internal = self.kind == PeerKind::Internal;
        SetLines {
            community: self.draining.then(|| "graceful-shutdown additive".to_owned()),
            local_preference: (self.draining && is_internal).then(|| "0".to_owned()),
            ..SetLines::default()
        }
    }

    /// Those of them that a rule may change.
    pub(super) fn next_hops(&self) -> SetLines {
        SetLines {
            next_hop_ipv4: self.next_hops.ipv4.map(|it| it.to_string()),
            next_hop_ipv6: self.next_hops.ipv6.map(|it| it.to_string()),
            ..SetLines::default()
        }
    }

    /// In FRR's unit, rounded up: a bandwidth of 0 would mean no bandwidth.
    fn bandwidth(&self, bandwidth: LinkBandwidth) -> String {
        let units = bandwidth.bits_per_second.div_ceil(BANDWIDTH_UNIT).max(1);
        let most = if self.wide_bandwidth { u64::from(u32::MAX) } else { BANDWIDTH_MAX };
        let units = units.min(most);
        match self.kind {
            PeerKind::External => units.to_string(),
            PeerKind::Internal => format!("{units} non-transitive"),
        }
    }
}

/// A community as FRR shows it: FRR has more names than Fairway.
pub(super) struct FrrCommunity(pub(super) Community);

impl std::fmt::Display for FrrCommunity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0.0 {
            0xFFFF_0002 => "route-filter-translated-v4",
            0xFFFF_0003 => "route-filter-v4",
            0xFFFF_0004 => "route-filter-translated-v6",
            0xFFFF_0005 => "route-filter-v6",
            0xFFFF_0008 => "accept-own-nexthop",
            _ => return self.0.fmt(f),
        })
    }
}

/// Separated by blanks; `None` if empty.
pub(super) fn joined(values: &[impl std::fmt::Display]) -> Option<String> {
    let (first, rest) = values.split_first()?;
    let mut text = first.to_string();
    for value in rest {
        // Writing to a string cannot fail.
        let _ = write!(text, " {value}");
    }
    Some(text)
}
