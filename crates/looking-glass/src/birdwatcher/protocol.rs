//! `status` and `protocols`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_ground::PeerKey;
use fairway_seam::{PeerView, SessionState};
use fairway_show::{Snapshot, remote_asn};
use serde::Serialize;

use super::BirdwatcherError;
use super::answer::{time, version};

#[derive(Serialize)]
pub(super) struct Status {
    status: StatusFields,
}

#[derive(Serialize)]
struct StatusFields {
    current_server: String,
    last_reboot: String,
    last_reconfig: String,
    version: String,
    message: String,
    router_id: String,
}

impl Status {
    pub(super) fn of(snapshot: &Snapshot<'_>) -> Self {
        let started = time(snapshot.started_epoch_seconds);
        Self {
            status: StatusFields {
                current_server: time(snapshot.now_epoch_seconds),
                last_reboot: started.clone(),
                // Ours: each change is applied alone; the daemon was configured as a whole when it started.
                last_reconfig: started,
                version: version(),
                message: snapshot.drain.to_string(),
                router_id: snapshot.router_id.to_string(),
            },
        }
    }
}

#[derive(Serialize)]
pub(super) struct Protocols {
    protocols: BTreeMap<String, Protocol>,
}

#[derive(Serialize)]
struct Protocol {
    protocol: String,
    bird_protocol: &'static str,
    table: &'static str,
    state: &'static str,
    bgp_state: &'static str,
    state_changed: String,
    uptime: String,
    connection: &'static str,
    description: String,
    neighbor_address: String,
    neighbor_as: u32,
    local_as: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbor_id: Option<String>,
    last_error: String,
    routes: RouteCounts,
    route_changes: RouteChanges,
}

#[derive(Serialize)]
struct RouteCounts {
    imported: u64,
    filtered: u64,
    exported: u64,
    preferred: u64,
}

/// Nothing is counted as BIRD does.
#[derive(Serialize)]
struct RouteChanges {}

impl Protocols {
    pub(super) fn of(snapshot: &Snapshot<'_>) -> Self {
        let mut preferred: BTreeMap<PeerKey, u64> = BTreeMap::new();
        for route in snapshot.bgp.learned.iter().filter(|it| it.lost_at.is_none()) {
            let count = preferred.entry(route.path.source.key).or_default();
            *count = count.saturating_add(1);
        }
        let protocol = |peer: &PeerView| {
            let preferred = preferred.get(&peer.config.key).copied().unwrap_or_default();
            (name(snapshot, peer), protocol(snapshot, peer, preferred))
        };
        Self { protocols: snapshot.bgp.peers.iter().map(protocol).collect() }
    }
}

/// The time of the last change: the start of the daemon before the first one.
pub(super) fn changed(snapshot: &Snapshot<'_>, peer: &PeerView) -> String {
    time(match peer.since {
        Some(since) => snapshot.now_epoch_seconds.saturating_sub(since.as_secs()),
        None => snapshot.started_epoch_seconds,
    })
}

/// The remote address of a neighbor: one that is named by its interface has it while there is a session.
pub(super) fn address(peer: &PeerView) -> Option<IpAddr> {
    peer.config.key.address().or_else(|| peer.session.as_ref().map(|it| it.remote.ip()))
}

fn protocol(snapshot: &Snapshot<'_>, peer: &PeerView, preferred: u64) -> Protocol {
    let is_up = peer.state == SessionState::Established;
    let changed = changed(snapshot, peer);
    let accepted = &peer.prefixes_accepted;
    let refused = &peer.prefixes_refused;
    let advertised = &peer.prefixes_advertised;
    let reset = peer.last_reset.as_ref().filter(|_| !is_up);
    let error = peer.set_aside.clone().or_else(|| reset.map(|it| it.text.clone()));
    Protocol {
        protocol: name(snapshot, peer),
        bird_protocol: "BGP",
        table: "master",
        state: if is_up { "up" } else { "start" },
        bgp_state: peer.state.name(),
        uptime: changed.clone(),
        state_changed: changed,
        connection: peer.state.name(),
        description: crate::names::called(peer),
        neighbor_address: address(peer).map(|it| it.to_string()).unwrap_or_default(),
        neighbor_as: remote_asn(peer),
        local_as: peer.config.local_asn.get(),
        neighbor_id: peer.session.as_ref().map(|it| it.remote_router_id.to_string()),
        last_error: error.unwrap_or_default(),
        routes: RouteCounts {
            imported: u64::from(accepted.ipv4).saturating_add(accepted.ipv6.into()),
            filtered: refused.ipv4.saturating_add(refused.ipv6),
            exported: u64::from(advertised.ipv4).saturating_add(advertised.ipv6.into()),
            preferred,
        },
        route_changes: RouteChanges {},
    }
}

/// What a protocol is called in paths: without characters that these would need to escape.
pub(super) fn name(snapshot: &Snapshot<'_>, peer: &PeerView) -> String {
    let own = peer.config.name.as_str();
    let is_unique = || snapshot.bgp.peers.iter().filter(|it| it.config.name == own).count() == 1;
    let name = match own {
        "" => peer.config.key.to_string(),
        own if is_unique() => own.to_owned(),
        _ => peer.config.key.to_string(),
    };
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | ':' | '-' | '_');
    name.chars().map(|it| if is_plain(it) { it } else { '_' }).collect()
}

/// The neighbor of a protocol.
pub(super) fn named<'a>(
    snapshot: &Snapshot<'a>,
    wanted: &str,
) -> Result<&'a PeerView, BirdwatcherError> {
    let mut peers = snapshot.bgp.peers.iter();
    let found = peers.find(|it| name(snapshot, it) == wanted);
    found.ok_or_else(|| BirdwatcherError::NoSuchProtocol(wanted.to_owned()))
}

/// The neighbor with this address.
pub(super) fn at<'a>(
    snapshot: &Snapshot<'a>,
    wanted: &str,
) -> Result<&'a PeerView, BirdwatcherError> {
    let missing = || BirdwatcherError::NoSuchProtocol(wanted.to_owned());
    let wanted: IpAddr = wanted.parse().map_err(|_| missing())?;
    snapshot.bgp.peers.iter().find(|it| address(it) == Some(wanted)).ok_or_else(missing)
}
