//! How many messages of each type were sent and received, and how malformed ones were treated?

use std::time::Duration;

/// Messages of each type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageCounters {
    /// Sent.
    pub sent: MessageCounts,
    /// Received.
    pub received: MessageCounts,
}

/// One direction of [`MessageCounters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageCounts {
    /// OPEN.
    pub opens: u64,
    /// NOTIFICATION.
    pub notifications: u64,
    /// UPDATE.
    pub updates: u64,
    /// KEEPALIVE.
    pub keepalives: u64,
    /// ROUTE-REFRESH.
    pub route_refreshes: u64,
}

impl MessageCounts {
    /// All of them.
    pub fn total(self) -> u64 {
        let Self { opens, notifications, updates, keepalives, route_refreshes } = self;
        [opens, notifications, updates, keepalives, route_refreshes]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// How malformed UPDATEs were treated (RFC 7606 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MalformedCounters {
    /// An attribute was dropped.
    pub attribute_discards: u64,
    /// The routes were treated as withdrawn.
    pub treated_as_withdraw: u64,
    /// The session was reset.
    pub resets: u64,
}

/// A malformed UPDATE, for troubleshooting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMalformed {
    /// How long ago.
    pub ago: Duration,
    /// The fault, and how the UPDATE was treated.
    pub text: String,
    /// The message without its header.
    pub body: Vec<u8>,
}
