//! A BFD session as an object. Intervals are milliseconds, as FRR has them.

use std::time::Duration;

use fairway_seam::bfd::{BfdSessionView, BfdView, Drops, Realtime, State};

use crate::VRF_DEFAULT;
use crate::object::Object;
use crate::time::milliseconds;

/// What FRR shows for the remote intervals before the first packet: the slow intervals that BFD starts with.
const REMOTE_INTERVAL_MILLISECONDS: u64 = 1_000;
const REMOTE_DETECT_MULTIPLIER: u8 = 3;

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn head(session: &BfdSessionView) -> Object {
    let path = session.path;
    Object::new()
        .field("multihop", path.multihop)
        .field("peer", path.remote.to_string())
        .optional("local", session.local.map(|it| it.to_string()))
        .field("vrf", path.vrf.map_or_else(|| VRF_DEFAULT.to_owned(), |it| it.to_string()))
        .optional("interface", path.interface.map(|it| it.to_string()))
}

/// Everything but the counters.
pub(super) fn one(session: &BfdSessionView, node: Option<&BfdView>) -> Object {
    let seconds = session.since.as_secs();
    let echo = session.echo_interval.map_or(0, milliseconds);
    let sent_echo = session.agreed_echo_interval.map_or(0, milliseconds);
    let remote = session.remote_timers;
    let remote_interval = |of: fn(&fairway_seam::bfd::RemoteTimers) -> Duration| {
        remote.as_ref().map_or(REMOTE_INTERVAL_MILLISECONDS, |it| milliseconds(of(it)))
    };
    let round_trip = session.round_trip;
    let microseconds_of = |of: fn(&fairway_seam::bfd::RoundTrip) -> Duration| {
        round_trip.as_ref().map_or(0, |it| microseconds(of(it)))
    };
    head(session)
        .field("id", session.local_discriminator)
        .field("remote-id", session.remote_discriminator)
        .field("passive-mode", session.passive)
        .optional("minimum-ttl", session.path.multihop.then_some(session.minimum_ttl))
        .field("status", session.state.to_string())
        .optional("downtime", (session.state == State::Down).then_some(seconds))
        .optional("uptime", (session.state == State::Up).then_some(seconds))
        .field("diagnostic", session.diagnostic.to_string())
        .field("remote-diagnostic", session.remote_diagnostic.to_string())
        .field("type", "dynamic")
        .field("receive-interval", milliseconds(session.receive_interval))
        .field("transmit-interval", milliseconds(session.transmit_interval))
        .field("echo-receive-interval", echo)
        .field("echo-transmit-interval", sent_echo)
        .field("detect-multiplier", session.detect_multiplier)
        .field("remote-receive-interval", remote_interval(|it| it.receive_interval))
        .field("remote-transmit-interval", remote_interval(|it| it.transmit_interval))
        .field(
            "remote-echo-receive-interval",
            remote.map_or(0, |it| milliseconds(it.echo_receive_interval)),
        )
        .field(
            "remote-detect-multiplier",
            remote.map_or(REMOTE_DETECT_MULTIPLIER, |it| it.detect_multiplier),
        )
        .field("rtt-min", microseconds_of(|it| it.min))
        .field("rtt-avg", microseconds_of(|it| it.average))
        .field("rtt-max", microseconds_of(|it| it.max))
        .extend(agreed(session))
        .extend(trouble(session))
        .field("realtime", realtime(node))
        .extend(of_node(node))
}

/// Failures that concern all sessions; shown in each session, where operators look.
fn of_node(node: Option<&BfdView>) -> Object {
    let trouble = node.map(|it| it.trouble.clone()).filter(|it| !it.is_empty());
    Object::new().optional("trouble", trouble).flag("ended", node.is_some_and(|it| it.ended))
}

fn agreed(session: &BfdSessionView) -> Object {
    Object::new()
        .optional("agreed-transmit-interval", session.agreed_transmit_interval.map(milliseconds))
        .optional("detection-time", session.detection_time.map(milliseconds))
        .field("polling", session.is_polling)
        .field("remote-demand", session.remote_demand)
        .field("remote-control-plane-independent", session.remote_control_plane_independent)
        .optional("authentication", session.authentication.map(|it| it.to_string()))
}

/// What failed here, and which packets were dropped.
fn trouble(session: &BfdSessionView) -> Object {
    Object::new()
        .field("stalls", session.counters.stalls)
        .field("detections-put-off", session.counters.detections_put_off)
        .field("dropped", dropped(&session.drops))
}

fn realtime(node: Option<&BfdView>) -> String {
    match node.map(|it| &it.realtime) {
        None | Some(Realtime::Off) => "off".to_owned(),
        Some(Realtime::Granted) => "granted".to_owned(),
        Some(Realtime::Refused(why)) => format!("refused: {why}"),
    }
}

/// The reasons that occurred, with their counts.
fn dropped(drops: &Drops) -> Object {
    let some = drops.iter().filter(|(_, count)| *count > 0);
    some.map(|(reason, count)| (reason.to_owned(), count.into())).collect()
}

/// The counters.
pub(super) fn counters(session: &BfdSessionView, node: Option<&BfdView>) -> Object {
    let counters = session.counters;
    head(session)
        .field("control-packet-input", counters.control_in)
        .field("control-packet-output", counters.control_out)
        .field("echo-packet-input", counters.echo_in)
        .field("echo-packet-output", counters.echo_out)
        .field("session-up", counters.ups)
        .field("session-down", counters.downs)
        .field("zebra-notifications", counters.events)
        .field("transmit-failures", counters.transmit_failures)
        .field("echo-looped", counters.echo_looped)
        .extend(trouble(session))
        .extend(of_node(node))
}
