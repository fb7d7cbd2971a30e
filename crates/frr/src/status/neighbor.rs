//! One neighbour of `show bgp vrf all neighbors json` and of `... summary json`, as a view of it.
//!
//! What FRR does not show stays empty: its internal errors, malformed UPDATEs other than attributes that it
//! dropped, why a neighbour is not dialled. It counts refused announcements since release 9, and not by
//! family.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairway_ground::{AddressFamily, Asn, FamilySet, PerFamily, RouterId};
use fairway_seam::bfd::Diagnostic;
use fairway_seam::{
    DownCause, Liveness, MalformedCounters, MessageCounters, MessageCounts, PeerConfig, PeerView,
    Refusal, SessionState, SessionView, StalePhase, StaleView,
};

use super::answer::Fields;
use super::capabilities::{self, End};
use super::reset;
use super::words::{days_and_clock, family_word, state};

/// A neighbour of `config` with unknown state.
pub(super) fn unknown(config: PeerConfig) -> PeerView {
    let waits_for_bfd = config.bfd.as_ref().is_some_and(|bfd| bfd.strict);
    PeerView { waits_for_bfd, ..PeerView::idle(config) }
}

/// The state that FRR reports: `neighbor` from the neighbours, `summary` of each family from the summary.
pub(super) fn view(
    config: PeerConfig,
    neighbor: Fields<'_>,
    summary: PerFamily<Fields<'_>>,
) -> PeerView {
    let state = neighbor.text("bgpState").map_or(SessionState::Idle, state);
    let is_up = state == SessionState::Established;
    let strict = config.bfd.as_ref().is_some_and(|bfd| bfd.strict);
    let (liveness, liveness_since) = liveness(neighbor);
    let refusals = refusals(neighbor);
    let refused = refusals.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let mut prefixes_refused = PerFamily::default();
    let mut families = config.families.iter();
    if let (Some(family), None) = (families.next(), families.next()) {
        *prefixes_refused.of_mut(family) = refused;
    }
    PeerView {
        state,
        session: is_up.then(|| session(neighbor)).flatten(),
        since: since(neighbor, summary),
        messages: messages(neighbor),
        connections_established: neighbor.number("connectionsEstablished").unwrap_or(0),
        connections_dropped: neighbor.number("connectionsDropped").unwrap_or(0),
        prefixes_accepted: counts(neighbor, "acceptedPrefixCounter"),
        prefixes_refused,
        refusals,
        malformed: malformed(neighbor),
        prefixes_advertised: counts(neighbor, "sentPrefixCounter"),
        is_being_told: is_up && is_being_told(neighbor),
        last_reset: reset::last_reset(neighbor, state),
        waits_for_bfd: strict && !is_up && liveness != Liveness::Up && config.shutdown.is_none(),
        liveness,
        liveness_since,
        stale: stale(neighbor, config.families, is_up),
        next_connect_in: neighbor
            .milliseconds("nextStartTimerDueInMsecs")
            .or_else(|| neighbor.milliseconds("nextConnectTimerDueInMsecs"))
            .filter(|_| state < SessionState::OpenSent && config.is_dialled()),
        last_read: spoken(neighbor, "bgpTimerLastRead"),
        last_write: spoken(neighbor, "bgpTimerLastWrite"),
        ..unknown(config)
    }
}

/// How long the session has been up, or down after an earlier session.
fn since(neighbor: Fields<'_>, summary: PerFamily<Fields<'_>>) -> Option<Duration> {
    let down = || {
        let families = [summary.ipv4, summary.ipv6].into_iter();
        let mut known = families.filter(|it| it.text("peerUptime").is_some_and(|it| it != "never"));
        known.find_map(|it| it.milliseconds("peerUptimeMsec"))
    };
    neighbor.milliseconds("bgpTimerUpMsec").or_else(down)
}

/// FRR counts from its own start if no message was received yet.
fn spoken(neighbor: Fields<'_>, name: &str) -> Option<Duration> {
    let stats = neighbor.below("messageStats");
    let total = if name == "bgpTimerLastRead" { "totalRecv" } else { "totalSent" };
    neighbor.milliseconds(name).filter(|_| stats.number::<u64>(total).is_some_and(|it| it > 0))
}

fn counts(neighbor: Fields<'_>, name: &str) -> PerFamily<u32> {
    let mut counts = PerFamily::default();
    for family in AddressFamily::ALL {
        let said = neighbor.below("addressFamilyInfo").below(family_word(family));
        *counts.of_mut(family) = said.number(name).unwrap_or(0);
    }
    counts
}

fn messages(neighbor: Fields<'_>) -> MessageCounters {
    let stats = neighbor.below("messageStats");
    let count = |name: &str| stats.number(name).unwrap_or(0);
    MessageCounters {
        sent: MessageCounts {
            opens: count("opensSent"),
            notifications: count("notificationsSent"),
            updates: count("updatesSent"),
            keepalives: count("keepalivesSent"),
            route_refreshes: count("routeRefreshSent"),
        },
        received: MessageCounts {
            opens: count("opensRecv"),
            notifications: count("notificationsRecv"),
            updates: count("updatesRecv"),
            keepalives: count("keepalivesRecv"),
            route_refreshes: count("routeRefreshRecv"),
        },
    }
}

fn refusals(neighbor: Fields<'_>) -> Vec<(Refusal, u64)> {
    let stats = neighbor.below("prefixStats");
    let count = |name: &str| stats.number::<u64>(name).unwrap_or(0);
    let all = [
        (Refusal::Policy, count("inboundFiltered")),
        (Refusal::AsLoop, count("aspathLoop")),
        (Refusal::OwnNextHop, count("invalidNextHop")),
        (Refusal::Reflected, count("originatorLoop")),
        (Refusal::ClusterLoop, count("clusterLoop")),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn malformed(neighbor: Fields<'_>) -> MalformedCounters {
    let stats = neighbor.below("prefixStats");
    let attribute_discards = stats.number("attributesDiscarded").unwrap_or(0);
    MalformedCounters { attribute_discards, ..MalformedCounters::default() }
}

fn is_being_told(neighbor: Fields<'_>) -> bool {
    let is_some =
        |fields: Fields<'_>, name: &str| fields.number::<u64>(name).is_some_and(|it| it > 0);
    let families = neighbor.below("addressFamilyInfo");
    is_some(neighbor.below("messageStats"), "depthOutq")
        || families.entries().any(|(_, it)| is_some(it.into(), "packetQueueLength"))
}

fn session(neighbor: Fields<'_>) -> Option<SessionView> {
    let end = |address: &str, port: &str| {
        let address: IpAddr = neighbor.parsed(address)?;
        Some(SocketAddr::new(address, neighbor.number(port)?))
    };
    let seconds = |name: &str| neighbor.milliseconds(name).map(|it| it.as_secs());
    let keepalive = neighbor.milliseconds("bgpTimerKeepAliveIntervalMsecs");
    Some(SessionView {
        local: end("hostLocal", "portLocal")?,
        remote: end("hostForeign", "portForeign")?,
        remote_router_id: neighbor.parsed::<RouterId>("remoteRouterId")?,
        remote_asn: Asn::new(neighbor.number("remoteAs")?)?,
        hold_time_seconds: seconds("bgpTimerHoldTimeMsecs")
            .and_then(|it| it.try_into().ok())
            .unwrap_or(0),
        keepalive_interval: keepalive.filter(|it| !it.is_zero()),
        families: capabilities::families(neighbor),
        capabilities_received: capabilities::offered(neighbor, End::Theirs),
        capabilities_sent: capabilities::offered(neighbor, End::Ours),
        end_of_rib_sent: capabilities::end_of_rib_sent(neighbor, is_being_told(neighbor)),
        end_of_rib_received: capabilities::end_of_rib_received(neighbor),
    })
}

/// The path state that bfdd reported to bgpd. It does not include why a path is down.
fn liveness(neighbor: Fields<'_>) -> (Liveness, Option<Duration>) {
    let said = neighbor.below("peerBfdInfo");
    let down = |cause, diagnostic| Liveness::Down { cause, independent: false, diagnostic };
    let liveness = match said.text("status") {
        Some("Up") => Liveness::Up,
        Some("Down") => down(DownCause::Failed, Diagnostic::NONE),
        Some("Admin Down") => down(DownCause::SwitchedOff, Diagnostic::ADMINISTRATIVELY_DOWN),
        _ => Liveness::Unknown,
    };
    (liveness, said.text("lastUpdate").and_then(days_and_clock))
}

/// The routes that are kept of a session that ended. FRR does not count those of a session that is back; the
/// tables do.
fn stale(neighbor: Fields<'_>, families: FamilySet, is_up: bool) -> Option<StaleView> {
    let info = neighbor.below("gracefulRestartInfo");
    if is_up {
        let left = |family: AddressFamily| {
            info.below(family_word(family)).below("timers").seconds("stalePathTimerRemaining")
        };
        let ends_in = families.iter().filter_map(left).max()?;
        let (routes, phase) = (PerFamily::default(), StalePhase::Back);
        return Some(StaleView { routes, phase, phase_ends_in: ends_in, removed_in: ends_in });
    }
    let ends_in = info.milliseconds("gracefulRestartTimerMsecs")?;
    Some(StaleView {
        routes: counts(neighbor, "acceptedPrefixCounter"),
        phase: StalePhase::Away,
        phase_ends_in: ends_in,
        removed_in: ends_in,
    })
}
