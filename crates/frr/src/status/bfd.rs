//! `show bfd peers json` and `show bfd peers counters json`.
//!
//! bfdd does not show the remote state (it is ours, or down), whether the remote system answers in demand
//! mode, whether a poll is in progress, and packets without a session. Negotiated times are those of RFC 5880
//! §6.8.

use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{BfdPath, BfdSettings, InterfaceName};
use fairway_seam::bfd::{
    BfdCounters, BfdSessionView, Diagnostic, Drops, RemoteTimers, RoundTrip, State,
};
use serde_json::Value;

use super::answer::{AnswerError, Fields, list};
use super::words::VRF_DEFAULT;

/// The command for the sessions.
pub const PEERS: &str = "show bfd peers json";
/// The command for their counters.
pub const COUNTERS: &str = "show bfd peers counters json";

/// The largest diagnostic, which is the last with a name.
const DIAGNOSTIC_MAX: u8 = 8;

/// The sessions, in the order of their paths.
pub fn sessions(peers: &str, counters: &str) -> Result<Vec<BfdSessionView>, AnswerError> {
    let counters = list(COUNTERS, counters)?;
    let mut sessions: Vec<BfdSessionView> =
        list(PEERS, peers)?.iter().filter_map(|it| session(it, &counters)).collect();
    sessions.sort_by_key(|it| it.path);
    Ok(sessions)
}

fn path(said: Fields<'_>) -> Option<BfdPath> {
    let vrf = said.text("vrf").filter(|name| *name != VRF_DEFAULT);
    let remote: IpAddr = said.parsed("peer")?;
    let multihop = said.is("multihop");
    let is_link_local = matches!(remote, IpAddr::V6(it) if it.is_unicast_link_local());
    Some(BfdPath {
        remote,
        vrf: vrf.and_then(|name| name.parse().ok()),
        multihop,
        // bfdd also names the interface that it found itself.
        interface: said.parsed::<InterfaceName>("interface").filter(|_| is_link_local),
        local: said.parsed("local").filter(|_| multihop),
    })
}

fn session(value: &Value, counters: &[Value]) -> Option<BfdSessionView> {
    let said = Fields::from(value);
    let path = path(said)?;
    let state = match said.text("status") {
        Some("up") => State::Up,
        Some("init") => State::Init,
        Some("shutdown") => State::AdminDown,
        _ => State::Down,
    };
    let is_up = state == State::Up;
    let transmit = said.milliseconds("transmit-interval").unwrap_or_default();
    let receive = said.milliseconds("receive-interval").unwrap_or_default();
    let remote_discriminator = said.number("remote-id").unwrap_or(0);
    let remote_timers = (remote_discriminator != 0).then(|| remote_timers(said));
    let of_session = |it: &&Value| self::path(Fields::from(*it)) == Some(path);
    let echo_interval = said.milliseconds("echo-transmit-interval").filter(|it| !it.is_zero());
    Some(BfdSessionView {
        path,
        local: said.parsed("local"),
        local_discriminator: said.number("id").unwrap_or(0),
        remote_discriminator,
        passive: said.is("passive-mode"),
        state,
        remote_state: if is_up { State::Up } else { State::Down },
        since: said.seconds("uptime").or_else(|| said.seconds("downtime")).unwrap_or_default(),
        diagnostic: diagnostic(said, "diagnostic"),
        remote_diagnostic: diagnostic(said, "remote-diagnostic"),
        is_closing: false,
        transmit_interval: transmit,
        receive_interval: receive,
        echo_interval,
        detect_multiplier: said.number("detect-multiplier").unwrap_or(0),
        minimum_ttl: said.number("minimum-ttl").unwrap_or(BfdSettings::MINIMUM_TTL_DEFAULT.get()),
        authentication: None,
        remote_timers,
        agreed_transmit_interval: remote_timers
            .filter(|_| is_up)
            .map(|remote| transmit.max(remote.receive_interval)),
        detection_time: remote_timers.filter(|_| is_up).map(|remote| {
            receive
                .max(remote.transmit_interval)
                .saturating_mul(u32::from(remote.detect_multiplier))
        }),
        agreed_echo_interval: remote_timers
            .filter(|remote| is_up && !remote.echo_receive_interval.is_zero())
            .and_then(|remote| Some(echo_interval?.max(remote.echo_receive_interval))),
        is_polling: false,
        remote_demand: false,
        remote_control_plane_independent: false,
        round_trip: round_trip(said),
        counters: counters.iter().find(of_session).map(counted).unwrap_or_default(),
        drops: Drops::default(),
    })
}

fn remote_timers(said: Fields<'_>) -> RemoteTimers {
    let time = |name: &str| said.milliseconds(name).unwrap_or_default();
    RemoteTimers {
        transmit_interval: time("remote-transmit-interval"),
        receive_interval: time("remote-receive-interval"),
        echo_receive_interval: time("remote-echo-receive-interval"),
        detect_multiplier: said.number("remote-detect-multiplier").unwrap_or(0),
    }
}

fn diagnostic(said: Fields<'_>, name: &str) -> Diagnostic {
    let word = said.text(name).unwrap_or_default();
    let mut known = (0..=DIAGNOSTIC_MAX).map(Diagnostic::from_bits);
    known.find(|it| it.name() == word).unwrap_or_default()
}

/// In microseconds; 0 if no echo packet came back.
fn round_trip(said: Fields<'_>) -> Option<RoundTrip> {
    let time = |name: &str| said.number(name).map(Duration::from_micros);
    let max = time("rtt-max").filter(|it| !it.is_zero())?;
    Some(RoundTrip { min: time("rtt-min")?, average: time("rtt-avg")?, max })
}

fn counted(value: &Value) -> BfdCounters {
    let said = Fields::from(value);
    let count = |name: &str| said.number(name).unwrap_or(0);
    BfdCounters {
        control_in: count("control-packet-input"),
        control_out: count("control-packet-output"),
        echo_in: count("echo-packet-input"),
        echo_out: count("echo-packet-output"),
        ups: count("session-up"),
        downs: count("session-down"),
        events: count("zebra-notifications"),
        ..BfdCounters::default()
    }
}
