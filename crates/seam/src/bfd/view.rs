//! BFD of a node and its sessions, as `show` and metrics see them.

use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{BfdAuthenticationKind, BfdPath};

use super::{Diagnostic, Drops, State};

/// Whether the BFD thread runs with real-time priority (`--bfd-realtime`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Realtime {
    /// Not requested.
    #[default]
    Off,
    /// Granted: SCHED_FIFO, and no page of the process is swapped out.
    Granted,
    /// Refused, with the reason.
    Refused(String),
}

/// The current state of BFD.
#[derive(Debug, Clone, Default)]
pub struct BfdView {
    /// Its sessions, in the order of their paths.
    pub sessions: Vec<BfdSessionView>,
    /// Whether it runs in real time.
    pub realtime: Realtime,
    /// Packets for no session, or for one that was removed.
    pub drops: Drops,
    /// Problems with their solutions: a port that is in use, a socket that is forbidden.
    pub trouble: Vec<String>,
    /// An internal error ended its thread: no path is monitored any more.
    pub ended: bool,
    /// It did not answer in time: everything except `trouble` is unknown.
    pub unanswered: bool,
}

/// A snapshot of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdSessionView {
    /// The path that it monitors.
    pub path: BfdPath,
    /// Our address: that of the path, or else the last destination address of the remote system.
    pub local: Option<IpAddr>,
    /// Our discriminator.
    pub local_discriminator: u32,
    /// The remote discriminator; 0 while unknown.
    pub remote_discriminator: u32,
    /// Whether it is in the passive role.
    pub passive: bool,
    /// Its state.
    pub state: State,
    /// The last reported state of the remote system.
    pub remote_state: State,
    /// How long it has been up, or down.
    pub since: Duration,
    /// The reason of the last state change.
    pub diagnostic: Diagnostic,
    /// The last reported diagnostic of the remote system.
    pub remote_diagnostic: Diagnostic,
    /// It is being removed, and sends AdminDown for one detection time.
    pub is_closing: bool,
    /// As configured. The interval in force while it is not up is at least a second.
    pub transmit_interval: Duration,
    /// As configured.
    pub receive_interval: Duration,
    /// As configured; `None` when the echo function is off.
    pub echo_interval: Option<Duration>,
    /// As configured.
    pub detect_multiplier: u8,
    /// As configured, for several hops.
    pub minimum_ttl: u8,
    /// The authentication type.
    pub authentication: Option<BfdAuthenticationKind>,
    /// The last received timers, even if the remote system is silent now; `None` before its first packet.
    pub remote_timers: Option<RemoteTimers>,
    /// The negotiated interval between our control packets, before jitter; `None` while no periodic packets
    /// are sent: the remote system wants none, or we are passive and have received none.
    pub agreed_transmit_interval: Option<Duration>,
    /// How long the remote system may be silent; `None` before its first packet.
    pub detection_time: Option<Duration>,
    /// The interval between our echo packets; `None` while none are sent.
    pub agreed_echo_interval: Option<Duration>,
    /// Whether a Poll Sequence is in progress.
    pub is_polling: bool,
    /// Whether the remote system is in demand mode (the D bit).
    pub remote_demand: bool,
    /// Whether BFD of the remote system is independent of its control plane (the C bit).
    pub remote_control_plane_independent: bool,
    /// The round trip times of echo packets.
    pub round_trip: Option<RoundTrip>,
    /// Events since it was opened.
    pub counters: BfdCounters,
    /// Packets for it that were dropped.
    pub drops: Drops,
}

/// The timers of the remote system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTimers {
    /// Its desired transmit interval.
    pub transmit_interval: Duration,
    /// The interval at which it can receive packets; zero: never.
    pub receive_interval: Duration,
    /// The interval at which it returns echo packets; zero: never.
    pub echo_receive_interval: Duration,
    /// Its detect multiplier.
    pub detect_multiplier: u8,
}

/// Round trip times of echo packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The shortest of the last ones.
    pub min: Duration,
    /// Their mean.
    pub average: Duration,
    /// The longest of the last ones.
    pub max: Duration,
}

/// Events of a session since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BfdCounters {
    /// Control packets that were accepted.
    pub control_in: u64,
    /// Control packets that were passed to the edge.
    pub control_out: u64,
    /// Our echo packets that came back.
    pub echo_in: u64,
    /// Echo packets that were passed to the edge.
    pub echo_out: u64,
    /// Echo packets of the remote system to be returned.
    pub echo_looped: u64,
    /// Packets that the edge could not send.
    pub transmit_failures: u64,
    /// How often it came up.
    pub ups: u64,
    /// How often it went down from up.
    pub downs: u64,
    /// How often its state was reported.
    pub events: u64,
    /// How often this process was late by more than half the interval of the remote system.
    pub stalls: u64,
    /// How often a detection was postponed because this process had been late.
    pub detections_put_off: u64,
}
