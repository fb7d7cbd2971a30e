//! How often did a bound hold something back? One counter for each bound, for the whole process: bounds act where no
//! value is handed on. Knows no reason and no peer. Counted at the edges, read by the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What keeps a flood from harming others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// An idle client of the admin socket was disconnected to make room.
    AdminClient,
    /// The oldest client of the metrics port was disconnected to make room.
    MetricsClient,
    /// A silent client of the webhook was disconnected to make room.
    WebhookClient,
    /// A silent client of the node API was disconnected to make room.
    NodeApiClient,
    /// A silent client of the looking glass was disconnected to make room.
    LookingGlassClient,
    /// A connection of a listen range that sent no OPEN made room.
    ListenRange,
    /// A connection of a neighbor that comes back too often was closed.
    Accept,
    /// A line was left out of the log.
    LogLine,
}

static COUNTS: [AtomicU64; Bound::ALL.len()] = [const { AtomicU64::new(0) }; Bound::ALL.len()];

impl Bound {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::AdminClient,
        Self::MetricsClient,
        Self::WebhookClient,
        Self::NodeApiClient,
        Self::LookingGlassClient,
        Self::ListenRange,
        Self::Accept,
        Self::LogLine,
    ];

    /// Its label.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdminClient => "admin-client",
            Self::MetricsClient => "metrics-client",
            Self::WebhookClient => "webhook-client",
            Self::NodeApiClient => "node-api-client",
            Self::LookingGlassClient => "looking-glass-client",
            Self::ListenRange => "listen-range",
            Self::Accept => "accept",
            Self::LogLine => "log-line",
        }
    }

    /// It acted.
    pub fn count(self) {
        if let Some(count) = COUNTS.get(self as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often it acted since the process began.
    pub fn total(self) -> u64 {
        COUNTS.get(self as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_has_a_counter_of_its_own() {
        // Other tests count lines of the log meanwhile.
        let counted =
            Bound::ALL.map(|bound| if bound == Bound::LogLine { 0 } else { bound.total() });
        Bound::ListenRange.count();
        let grown = Bound::ALL.into_iter().zip(counted).filter(|(it, _)| *it != Bound::LogLine);
        let grown: Vec<u64> = grown.map(|(bound, before)| bound.total() - before).collect();
        assert_eq!(grown, [0, 0, 0, 0, 0, 1, 0]);
    }
}
