//! BFD of a node and its sessions, as `show` and metrics see them.

use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{BfdAuthenticationKind, BfdPath};

use super::{Diagnostic, Drops, State};

/// Whether the kernel lets BFD go before all other work (`--bfd-realtime`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Realtime {
    /// Nobody asked for it.
    #[default]
    Off,
    /// It does: SCHED_FIFO, and no page of the process is swapped out.
    Granted,
    /// It does not, for this reason.
    Refused(String),
}

/// What BFD does and sees right now.
#[derive(Debug, Clone, Default)]
pub struct BfdView {
    /// Its sessions, in the order of their paths.
    pub sessions: Vec<BfdSessionView>,
    /// Whether it goes before all other work.
    pub realtime: Realtime,
    /// Packets that were for no session, or for one that is gone.
    pub drops: Drops,
    /// What does not work, and what to do: a port that is taken, a socket that is forbidden.
    pub trouble: Vec<String>,
    /// A fault of ours ended its thread: nothing is watched any more.
    pub ended: bool,
    /// It did not answer in time: but for `trouble`, nothing here is known.
    pub unanswered: bool,
}

/// One session, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfdSessionView {
    /// What it watches.
    pub path: BfdPath,
    /// Our address: the path's, or else where packets of the other end last came to.
    pub local: Option<IpAddr>,
    /// Our name of the session.
    pub local_discriminator: u32,
    /// The other end's name of it; 0 while it is not known.
    pub remote_discriminator: u32,
    /// Whether it waits to be spoken to.
    pub passive: bool,
    /// Where it is.
    pub state: State,
    /// Where the other end last said that it is.
    pub remote_state: State,
    /// How long it is up, or how long it is not.
    pub since: Duration,
    /// Why it last changed.
    pub diagnostic: Diagnostic,
    /// Why the other end last changed.
    pub remote_diagnostic: Diagnostic,
    /// Nobody wants it any more; it says so until the other end must know.
    pub is_closing: bool,
    /// As configured. The intervals in force while it is not up are a second at least.
    pub transmit_interval: Duration,
    /// As configured.
    pub receive_interval: Duration,
    /// As configured; `None` when the echo function is off.
    pub echo_interval: Option<Duration>,
    /// As configured.
    pub detect_multiplier: u8,
    /// As configured, for several hops.
    pub minimum_ttl: u8,
    /// How packets are signed.
    pub authentication: Option<BfdAuthenticationKind>,
    /// What the other end last said, also after it fell silent; `None` until it spoke.
    pub remote_timers: Option<RemoteTimers>,
    /// The time between two control packets of ours as agreed, before jitter; `None` while none
    /// are sent by themselves: the other end wants none, or we are passive and heard nobody.
    pub agreed_transmit_interval: Option<Duration>,
    /// How long the other end may be silent; `None` while it has not spoken.
    pub detection_time: Option<Duration>,
    /// The time between two echo packets of ours; `None` while none are sent.
    pub agreed_echo_interval: Option<Duration>,
    /// Whether an answer to new intervals is waited for.
    pub is_polling: bool,
    /// Whether the other end wants no packets but answers (the D bit).
    pub remote_demand: bool,
    /// Whether BFD of the other end outlives its control plane (the C bit).
    pub remote_control_plane_independent: bool,
    /// How long echo packets were on their way.
    pub round_trip: Option<RoundTrip>,
    /// What happened since it was opened.
    pub counters: BfdCounters,
    /// Packets for it that were not heard.
    pub drops: Drops,
}

/// What the other end wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTimers {
    /// How often it would send.
    pub transmit_interval: Duration,
    /// How often it can take packets; zero: never.
    pub receive_interval: Duration,
    /// How often it sends echo packets back; zero: never.
    pub echo_receive_interval: Duration,
    /// How many of its packets must be missed.
    pub detect_multiplier: u8,
}

/// How long echo packets were on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The shortest of the last ones.
    pub min: Duration,
    /// Their mean.
    pub average: Duration,
    /// The longest of the last ones.
    pub max: Duration,
}

/// What happened to a session since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BfdCounters {
    /// Control packets that were heard.
    pub control_in: u64,
    /// Control packets that were handed to the edge.
    pub control_out: u64,
    /// Echo packets of ours that came back.
    pub echo_in: u64,
    /// Echo packets that were handed to the edge.
    pub echo_out: u64,
    /// Echo packets of the other end that were to be sent back.
    pub echo_looped: u64,
    /// Packets that the edge could not send.
    pub transmit_failures: u64,
    /// How often it came up.
    pub ups: u64,
    /// How often it went down from up.
    pub downs: u64,
    /// How often its state was told.
    pub events: u64,
    /// How often this process was late by more than half the interval of the other end.
    pub stalls: u64,
    /// How often a detection was put off because this process had been late.
    pub detections_put_off: u64,
}
