//! The state of the path to a neighbour according to BFD, as BGP uses it.

use crate::bfd::Diagnostic;

/// Why a session is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownCause {
    /// One system does not receive packets of the other.
    Failed,
    /// The remote system shut its session down, which is not a failure (RFC 5882 §3.2).
    SwitchedOff,
    /// The remote system has a new session, which is not up yet. It reports Down without a diagnostic.
    ///
    /// `Ours:` not a failure either. FRR restarts its sessions when BGP comes up, and so does a system that
    /// reboots; the path of the old session works, or this packet would not have been received.
    BeganAnew,
    /// BFD of this system ended by an internal error: the state of the path is unknown.
    Unwatched,
}

/// Whether a path works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Liveness {
    /// Unknown: the path is not monitored, or its BFD session has never been Up.
    #[default]
    Unknown,
    /// It works in both directions.
    Up,
    /// It does not work in at least one direction.
    Down {
        /// Whether it failed or was shut down.
        cause: DownCause,
        /// BFD of the remote system does not depend on its BGP (the C bit): the failure is not limited to
        /// BGP.
        independent: bool,
        /// The diagnostic of BFD.
        diagnostic: Diagnostic,
    },
}

impl Liveness {
    /// FRR's word for it in `show bgp neighbors`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Up => "Up",
            Self::Down { cause: DownCause::SwitchedOff, .. } => "Admin Down",
            Self::Down { .. } => "Down",
        }
    }
}
