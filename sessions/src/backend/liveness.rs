//! What BFD says of the path to a neighbour, as BGP needs to know it.

use crate::bfd::Diagnostic;

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
        /// The other end took its BFD session down on purpose, and so nothing has failed
        /// (RFC 5882 §3.2).
        on_purpose: bool,
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
            Self::Down { on_purpose: true, .. } => "Admin Down",
            Self::Down { .. } => "Down",
        }
    }
}
