//! What BFD says of the path to a neighbour, as BGP needs to know it.

use crate::PeerView;
use crate::bfd::Diagnostic;

/// Why a session is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownCause {
    /// One end does not hear the other.
    Failed,
    /// The other end switched its session off: that is no failure (RFC 5882 §3.2).
    SwitchedOff,
    /// The other end has a session of its own making, a new one, that is not up yet. It says that it
    /// is down, and that nothing made it so.
    ///
    /// `Ours:` no failure either. FRR begins its sessions anew when BGP is up, and who restarts does;
    /// what the old session watched works, or this would not have been heard.
    BeganAnew,
    /// BFD of this end ended by a fault of its own: of the path nothing is known.
    Unwatched,
}

/// Whether a path works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Liveness {
    /// Nothing was said of it: nobody watches it, or its BFD session has never been Up.
    #[default]
    Unknown,
    /// It works in both directions.
    Up,
    /// It does not, in one of them at least.
    Down {
        /// Whether anything has failed.
        cause: DownCause,
        /// BFD of the other end goes on when its BGP does not (the C bit): what failed is not only
        /// that.
        independent: bool,
        /// What BFD found.
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

impl PeerView {
    /// What BFD says of the path, in FRR's words. One that was never up is down.
    pub fn bfd_status(&self) -> &'static str {
        match self.liveness {
            Liveness::Unknown if self.bfd_path.is_some() => "Down",
            liveness => liveness.name(),
        }
    }
}
