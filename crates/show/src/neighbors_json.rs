//! One neighbour as an object, with FRR's keys in FRR's order.
//!
//! FRR's keys that are left out. Not known from a snapshot: `bgpInUpdateElapsedTimeMsecs`,
//! `estimatedRttInMsecs`, `nexthop`, `nexthopGlobal`, `nexthopLocal`, `bgpConnection`. About things that do
//! not exist here: `peerGroup`, `updateGroupId`, `subGroupId`, `packetQueueLength`, `routeMapFor...`,
//! `readThread`, `writeThread`, `bgpTimerConfiguredConditionalAdvertisementsSec`,
//! `extendedOptionalParametersLength`. Not true here: `reducePrefixNumAndClearIpBgp`, since a session that
//! ended because of too many prefixes comes back by itself.
//!
//! Ours: `notAccepted`, `setAside`, `waitsForBfd`, `lastNotification`, `lastErrorText`, `nextConnectInMsec`,
//! `malformedUpdates`, `lastMalformedUpdate`, `faultsOfOurs`, `refusedPrefixes`, `unannounced`,
//! `drain`, `prefixesRefused` in each family, and `staleRoutes` in `gracefulRestartInfo`.

use fairway_ground::{ClientKind, MaximumPrefixes, PeerKind};
use fairway_seam::{PeerView, SessionState};
use serde_json::Value;

use super::family_key::family_key;
use super::hex::hex;
use super::neighbor::{
    accepted, address_on_link, carries, exceeded_maximum, hops_away, is_established,
    keepalive_configured, local_role, remote_asn, remote_role, sent, timers_in_use,
};
use super::object::Object;
use super::time::{clock, milliseconds};
use super::{capabilities, graceful_restart, peer_bfd, reset};

/// Everything about `peer`.
pub(super) fn one(peer: &PeerView, now_epoch_seconds: u64) -> Object {
    let capabilities = peer.session.as_ref().map(capabilities::json);
    let version = peer.session.as_ref().and_then(capabilities::software_version);
    identity(peer)
        .extend(timers(peer, now_epoch_seconds))
        .optional("neighborCapabilities", capabilities)
        .field("gracefulRestartInfo", graceful_restart::json(peer))
        .field("messageStats", message_statistics(peer))
        .field("minBtwnAdvertisementRunsTimerMsecs", 0)
        .field("addressFamilyInfo", families(peer))
        .field("connectionsEstablished", peer.connections_established)
        .field("connectionsDropped", peer.connections_dropped)
        .optional("faultsOfOurs", (peer.panics > 0).then_some(peer.panics))
        .extend(reset::json(peer))
        .optional("softwareVersion", version)
        .flag("prefixesConfigExceedMax", exceeded_maximum(peer))
        .extend(connection(peer))
        .extend(refusals(peer))
}

fn identity(peer: &PeerView) -> Object {
    let config = &peer.config;
    let link = match config.kind() {
        PeerKind::External => "nbrExternalLink",
        PeerKind::Internal => "nbrInternalLink",
    };
    let range = config.listen_range.filter(|_| config.is_dynamic());
    let session = peer.session.as_ref();
    let remote_router_id = session.map(|session| session.remote_router_id.to_string());
    Object::new()
        .optional("bgpNeighborAddr", address_on_link(peer))
        .field("remoteAs", remote_asn(peer))
        .field("localAs", config.local_asn.get())
        .field(link, true)
        .field("localRole", local_role(peer))
        .field("remoteRole", remote_role(peer))
        .optional("nbrDesc", (!config.name.is_empty()).then_some(config.name.as_str()))
        .optional("hostname", session.and_then(capabilities::hostname))
        .optional("peerSubnetRangeGroup", range.map(|range| range.prefix.to_string()))
        .flag("adminShutDown", config.shutdown.is_some())
        .field("bgpVersion", 4)
        .field("remoteRouterId", remote_router_id.unwrap_or_else(|| "0.0.0.0".to_owned()))
        .field("localRouterId", config.router_id.to_string())
        .field("bgpState", peer.state.name())
}

fn timers(peer: &PeerView, now_epoch_seconds: u64) -> Object {
    let mut object = Object::new();
    if let Some(up) = peer.since.filter(|_| is_established(peer)) {
        object = object
            .field("bgpTimerUpMsec", milliseconds(up))
            .field("bgpTimerUpString", clock(up))
            .field("bgpTimerUpEstablishedEpoch", now_epoch_seconds.saturating_sub(up.as_secs()));
    }
    let (hold_time, keepalive) = timers_in_use(peer);
    let configured = u64::from(peer.config.hold_time.seconds()).saturating_mul(1_000);
    object
        .optional("bgpTimerLastRead", peer.last_read.map(milliseconds))
        .optional("bgpTimerLastWrite", peer.last_write.map(milliseconds))
        .field("bgpTimerConfiguredHoldTimeMsecs", configured)
        .field("bgpTimerConfiguredKeepAliveIntervalMsecs", milliseconds(keepalive_configured(peer)))
        .field("bgpTimerHoldTimeMsecs", milliseconds(hold_time))
        .field("bgpTimerKeepAliveIntervalMsecs", milliseconds(keepalive))
}

/// FRR's sixteen counters. There are no queues and no CAPABILITY messages here, so those are 0.
fn message_statistics(peer: &PeerView) -> Object {
    let (sent, received) = (peer.messages.sent, peer.messages.received);
    Object::new()
        .field("depthInq", 0)
        .field("depthOutq", 0)
        .field("opensSent", sent.opens)
        .field("opensRecv", received.opens)
        .field("notificationsSent", sent.notifications)
        .field("notificationsRecv", received.notifications)
        .field("updatesSent", sent.updates)
        .field("updatesRecv", received.updates)
        .field("keepalivesSent", sent.keepalives)
        .field("keepalivesRecv", received.keepalives)
        .field("routeRefreshSent", sent.route_refreshes)
        .field("routeRefreshRecv", received.route_refreshes)
        .field("capabilitySent", 0)
        .field("capabilityRecv", 0)
        .field("totalSent", sent.total())
        .field("totalRecv", received.total())
}

/// FRR shows both policies as configured: only routes that `toReceive` allows come in, and only routes from
/// advertisements and `toAdvertise` go out. `sentPrefixCounter` is absent, not 0, without a session that
/// carries the family.
fn families(peer: &PeerView) -> Object {
    let maximum = peer.config.import.maximum;
    let bytes_max = maximum.map(MaximumPrefixes::attribute_bytes_max);
    // FRR counts none.
    let counted = peer.attribute_bytes > 0;
    let families = peer.config.families.iter();
    families
        .map(|family| {
            let sent = carries(peer, family).then(|| sent(peer, family));
            let client = peer.config.client;
            let fields = Object::new()
                .flag("routeReflectorClient", client == Some(ClientKind::Reflector))
                .flag("routeServerClient", client == Some(ClientKind::RouteServer))
                .field("commAttriSentToNbr", "extendedAndStandard")
                .field("inboundPathPolicyConfig", true)
                .field("outboundPathPolicyConfig", true)
                .field("acceptedPrefixCounter", accepted(peer, family))
                .optional("sentPrefixCounter", sent)
                .optional("prefixAllowedMax", maximum.map(|it| it.limit))
                .optional("prefixAllowedWarningThresh", maximum.map(|it| it.warn_percent))
                .optional("attributeBytes", counted.then_some(peer.attribute_bytes))
                .optional("attributeBytesMax", bytes_max.filter(|_| counted))
                .field("prefixesRefused", *peer.prefixes_refused.of(family));
            (family_key(family).to_owned(), fields.into())
        })
        .collect()
}

fn connection(peer: &PeerView) -> Object {
    let hops = match peer.config.kind() {
        PeerKind::External => "externalBgpNbrMaxHopsAway",
        PeerKind::Internal => "internalBgpNbrMaxHopsAway",
    };
    let object = Object::new().field(hops, hops_away(peer));
    let object = match &peer.session {
        Some(session) => object
            .field("hostLocal", session.local.ip().to_string())
            .field("portLocal", session.local.port())
            .field("hostForeign", session.remote.ip().to_string())
            .field("portForeign", session.remote.port()),
        None => object
            .field("hostLocal", "Unknown")
            .field("portLocal", -1)
            .field("hostForeign", "Unknown")
            .field("portForeign", -1),
    };
    let due = peer.next_connect_in.map(milliseconds);
    let is_idle = peer.state == SessionState::Idle;
    let is_dialling = matches!(peer.state, SessionState::Connect | SessionState::Active);
    let is_signed = peer.config.password.is_some() || !peer.config.tcp_ao.is_empty();
    object
        .optional("notAccepted", peer.not_accepted)
        .optional("setAside", peer.set_aside.clone())
        .flag("waitsForBfd", peer.waits_for_bfd)
        .field("connectRetryTimer", peer.config.connect_retry_interval.as_secs())
        .optional("nextStartTimerDueInMsecs", due.filter(|_| is_idle))
        .optional("nextConnectTimerDueInMsecs", due.filter(|_| is_dialling))
        .optional("nextConnectInMsec", due)
        .optional("authenticationEnabled", is_signed.then_some(1))
        .optional("peerBfdInfo", peer_bfd::json(peer))
}

/// The routes that were refused from it, and those that it does not get.
fn refusals(peer: &PeerView) -> Object {
    let malformed = Object::new()
        .field("attributeDiscard", peer.malformed.attribute_discards)
        .field("treatAsWithdraw", peer.malformed.treated_as_withdraw)
        .field("reset", peer.malformed.resets);
    let last = peer.last_malformed.as_ref().map(|last| {
        Object::new()
            .field("agoMsec", milliseconds(last.ago))
            .field("text", last.text.as_str())
            .field("bytes", hex(&last.body))
    });
    // All rules have one name.
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for (refusal, count) in &peer.refusals {
        match counts.last_mut().filter(|(name, _)| *name == refusal.name()) {
            Some((_, sum)) => *sum = sum.saturating_add(*count),
            None => counts.push((refusal.name(), *count)),
        }
    }
    let refused: Object =
        counts.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    let unannounced: Vec<Value> = peer
        .unannounced
        .iter()
        .map(|(prefix, reason)| {
            let object = Object::new().field("prefix", prefix.to_string());
            object.field("reason", reason.as_str()).into()
        })
        .collect();
    Object::new()
        .field("malformedUpdates", malformed)
        .optional("lastMalformedUpdate", last)
        .field("refusedPrefixes", refused)
        .field("unannounced", unannounced)
}
