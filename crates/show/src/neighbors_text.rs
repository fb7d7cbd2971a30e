//! One neighbour as text, in FRR's lines.
//!
//! Lines about facts that are unknown or do not exist here are left out: see `neighbors_json`. Ours are those
//! on stale, refused and unannounced prefixes, on malformed UPDATEs, `Last error` and `Drain`.

use std::fmt::Write;
use std::time::Duration;

use fairway_ground::{AddressFamily, ClientKind, PeerKind};
use fairway_seam::{LastMalformed, MalformedCounters, PeerView, SessionState};

use super::hex::hex;
use super::neighbor::{
    accepted, address_on_link, carries, exceeded_maximum, hops_away, is_established,
    keepalive_configured, local_role, marked_key, remote_asn, remote_role, sent, timers_in_use,
};
use super::time::{clock, clock_or_never};
use super::{capabilities, graceful_restart, peer_bfd, reset};

/// Everything about `peer`.
pub(super) fn one(peer: &PeerView) -> String {
    let mut text = identity(peer);
    text.push_str(&timers(peer));
    if let Some(session) = &peer.session {
        text.push_str("  Neighbor capabilities:\n");
        text.push_str(&capabilities::text(session));
    }
    text.push_str(&graceful_restart::text(peer));
    text.push_str(&message_statistics(peer));
    for family in peer.config.families.iter() {
        text.push_str(&family_lines(peer, family));
    }
    let (established, dropped) = (peer.connections_established, peer.connections_dropped);
    let _ = writeln!(text, "\n  Connections established {established}; dropped {dropped}");
    text.push_str(&reset::text(peer));
    if exceeded_maximum(peer) {
        text.push_str("  Peer had exceeded the max. no. of prefixes configured.\n");
    }
    text.push_str(&connection(peer));
    text.push_str(&peer_bfd::text(peer));
    text
}

fn identity(peer: &PeerView) -> String {
    let config = &peer.config;
    let link = match config.kind() {
        PeerKind::External => "external",
        PeerKind::Internal => "internal",
    };
    let named = match (config.key.interface(), address_on_link(peer)) {
        (Some(interface), Some(address)) => format!("on {interface}: {address}"),
        _ => format!("is {}", marked_key(peer)),
    };
    let mut text = format!(
        "BGP neighbor {}, remote AS {}, local AS {}, {link} link\n  \
         Local Role: {}\n  Remote Role: {}\n",
        named,
        remote_asn(peer),
        config.local_asn,
        local_role(peer),
        remote_role(peer)
    );
    if !config.name.is_empty() {
        let _ = writeln!(text, " Description: {}", config.name);
    }
    let session = peer.session.as_ref();
    if let Some(name) = session.and_then(capabilities::hostname) {
        let _ = writeln!(text, "Hostname: {name}");
    }
    if let Some(range) = config.listen_range.filter(|_| config.is_dynamic()) {
        let _ = writeln!(text, " Belongs to the subnet range group: {}", range.prefix);
    }
    if config.shutdown.is_some() {
        text.push_str(" Administratively shut down\n");
    }
    let remote_router_id =
        session.map_or_else(|| "0.0.0.0".to_owned(), |it| it.remote_router_id.to_string());
    let _ = writeln!(
        text,
        "  BGP version 4, remote router ID {remote_router_id}, local router ID {}",
        config.router_id
    );
    text
}

fn timers(peer: &PeerView) -> String {
    let up = peer.since.filter(|_| is_established(peer));
    let up = up.map(|up| format!(", up for {}", clock(up))).unwrap_or_default();
    let (hold_time, keepalive) = timers_in_use(peer);
    let line = |head: &str, hold_time: Duration, keepalive: Duration| {
        format!(
            "  {head} is {} seconds, keepalive interval is {} seconds\n",
            hold_time.as_secs(),
            keepalive.as_secs()
        )
    };
    let configured = peer.config.hold_time.duration().unwrap_or_default();
    format!(
        "  BGP state = {}{up}\n  Last read {}, Last write {}\n{}{}",
        peer.state.name(),
        clock_or_never(peer.last_read),
        clock_or_never(peer.last_write),
        line("Hold time", hold_time, keepalive),
        line("Configured hold time", configured, keepalive_configured(peer))
    )
}

fn message_statistics(peer: &PeerView) -> String {
    let (sent, received) = (peer.messages.sent, peer.messages.received);
    let mut text = format!(
        "  Message statistics:\n    Inq depth is 0\n    Outq depth is 0\n{:25}Sent       Rcvd\n",
        ""
    );
    let rows = [
        ("Opens:", sent.opens, received.opens),
        ("Notifications:", sent.notifications, received.notifications),
        ("Updates:", sent.updates, received.updates),
        ("Keepalives:", sent.keepalives, received.keepalives),
        ("Route Refresh:", sent.route_refreshes, received.route_refreshes),
        ("Capability:", 0, 0),
        ("Total:", sent.total(), received.total()),
    ];
    for (title, sent, received) in rows {
        let _ = writeln!(text, "    {title:15}{sent:>10} {received:>10}");
    }
    if peer.panics > 0 {
        let _ = writeln!(text, "  Sessions reset by an internal error: {}", peer.panics);
    }
    text.push_str("  Minimum time between advertisement runs is 0 seconds\n");
    let MalformedCounters { attribute_discards, treated_as_withdraw, resets } = peer.malformed;
    if peer.malformed != MalformedCounters::default() {
        let _ = writeln!(
            text,
            "  Malformed updates: attribute discard {attribute_discards}, \
             treat as withdraw {treated_as_withdraw}, reset {resets}"
        );
    }
    if let Some(LastMalformed { ago, text: what, body }) = &peer.last_malformed {
        let _ = writeln!(
            text,
            "  Last malformed update {} ago: {what}\n    {} bytes: {}",
            clock(*ago),
            body.len(),
            hex(body)
        );
    }
    for (refusal, count) in &peer.refusals {
        let _ = writeln!(text, "  Refused announcements: {count}: {refusal}");
    }
    text
}

fn family_lines(peer: &PeerView, family: AddressFamily) -> String {
    let mut text = format!("\n For address family: {family}\n");
    if !carries(peer, family) {
        text.push_str("  Not part of any update group\n");
    }
    text.push_str(match peer.config.client {
        Some(ClientKind::Reflector) => "  Route-Reflector Client\n",
        Some(ClientKind::RouteServer) => "  Route-Server Client\n",
        None => "",
    });
    text.push_str(
        "  Community attribute sent to this neighbor(all)\n  \
         Inbound path policy configured\n  Outbound path policy configured\n",
    );
    let _ = writeln!(text, "  {} accepted prefixes", accepted(peer, family));
    if let Some(maximum) = peer.config.import.maximum {
        let _ = writeln!(
            text,
            "  Maximum prefixes allowed {}\n  Threshold for warning message {}%",
            maximum.limit, maximum.warn_percent
        );
        // FRR counts none.
        if peer.attribute_bytes > 0 {
            let (bytes, bytes_max) = (peer.attribute_bytes, maximum.attribute_bytes_max());
            let _ = writeln!(
                text,
                "  {bytes} bytes of path attributes of both families, {bytes_max} allowed"
            );
        }
    }
    if carries(peer, family) {
        let _ = writeln!(text, "  {} sent prefixes", sent(peer, family));
    }
    let refused = *peer.prefixes_refused.of(family);
    if refused > 0 {
        let _ = writeln!(text, "  {refused} refused prefixes");
    }
    let of_family = peer.unannounced.iter().filter(|(prefix, _)| prefix.family() == family);
    for (prefix, reason) in of_family {
        let _ = writeln!(text, "  Not announced: {prefix}: {reason}");
    }
    text
}

fn connection(peer: &PeerView) -> String {
    let link = match peer.config.kind() {
        PeerKind::External => "External",
        PeerKind::Internal => "Internal",
    };
    let mut text = format!("  {link} BGP neighbor may be up to {} hops away.\n", hops_away(peer));
    if let Some(session) = &peer.session {
        let (local, remote) = (session.local, session.remote);
        let _ = writeln!(text, "Local host: {}, Local port: {}", local.ip(), local.port());
        let _ = writeln!(text, "Foreign host: {}, Foreign port: {}", remote.ip(), remote.port());
    }
    let retry = peer.config.connect_retry_interval.as_secs();
    let _ = writeln!(text, "BGP Connect Retry Timer in Seconds: {retry}");
    let timer = match peer.state {
        SessionState::Idle => Some("start"),
        SessionState::Connect | SessionState::Active => Some("connect"),
        _ => None,
    };
    if let Some((timer, due)) = timer.zip(peer.next_connect_in) {
        let _ = writeln!(text, "Next {timer} timer due in {} seconds", due.as_secs());
    }
    if peer.config.password.is_some() || !peer.config.tcp_ao.is_empty() {
        text.push_str("Peer Authentication Enabled\n");
    }
    if let Some(why) = &peer.set_aside {
        let _ = writeln!(text, "Session set aside: {why}");
    }
    if peer.waits_for_bfd {
        text.push_str("Waiting for BFD (bfdStrict): no session before BFD is Up\n");
    }
    if let Some(why) = peer.not_accepted {
        let dialled =
            if peer.config.is_dialled() { ", only outgoing connections are used" } else { "" };
        let _ = writeln!(text, "Incoming connections are refused{dialled}: {why}");
    }
    text
}
