//! BFD of a whole node as `show` sees it: its sessions, and what holds for all of them.

use super::view::{BfdSessionView, Drops};

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
