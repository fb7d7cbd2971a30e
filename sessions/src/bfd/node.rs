//! BFD of a whole node as `show` presents it: its sessions, and what is common to all of them.

use super::view::{BfdSessionView, Drops};

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
