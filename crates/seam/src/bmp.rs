//! The BMP stations of a backend, as an operator sees them.

use std::time::Duration;

use fairway_ground::BmpStation;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmpStationView {
    /// Where it is, and what it is told.
    pub station: BmpStation,
    /// How long it has been connected; `None` if it is not.
    pub connected_for: Option<Duration>,
    /// What waits for it, in bytes.
    pub queued_bytes: usize,
    /// Messages that it was sent since the daemon started.
    pub messages: u64,
    /// Why it is not connected, or why the connection before this one ended.
    pub failure: Option<String>,
}
