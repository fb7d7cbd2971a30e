//! How far a connection to a neighbour has come.

/// The states of RFC 4271 §8.2.2, in the order in which a connection goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionState {
    /// Ours: the backend does not say; FRR's bgpd does not answer.
    Unknown,
    /// Waiting before the next attempt.
    Idle,
    /// Dialling.
    Connect,
    /// Waiting to dial again, and listening.
    Active,
    /// OPEN sent.
    OpenSent,
    /// OPEN received, waiting for the first KEEPALIVE.
    OpenConfirm,
    /// Up.
    Established,
}

impl SessionState {
    /// The name that routers print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::Active => "Active",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        }
    }
}
