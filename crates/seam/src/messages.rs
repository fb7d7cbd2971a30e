//! How many messages of each type there were, and what became of those that were malformed.

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

/// What became of malformed UPDATEs (RFC 7606 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MalformedCounters {
    /// An attribute was dropped.
    pub attribute_discards: u64,
    /// The routes were treated as withdrawn.
    pub treated_as_withdraw: u64,
    /// The session was reset.
    pub resets: u64,
}

/// A malformed UPDATE, for whoever wants to know what exactly came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastMalformed {
    /// How long ago.
    pub ago: Duration,
    /// What was wrong, and what became of it.
    pub text: String,
    /// The message without its header.
    pub body: Vec<u8>,
}
