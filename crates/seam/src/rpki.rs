//! The RPKI caches of a backend, as an operator sees them.

use std::time::Duration;

use fairway_ground::RpkiServer;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpkiServerView {
    /// Where it is asked.
    pub server: RpkiServer,
    /// Whether there is a connection.
    pub is_connected: bool,
    /// The version of the protocol in use: 1 (RFC 8210) or 0 (RFC 6810).
    pub version: u8,
    /// How many payloads it says.
    pub payloads: usize,
    /// The number of its data; `None` before it has said any, and when its data is too old.
    pub serial: Option<u32>,
    /// Time since its data was last complete.
    pub synchronized_ago: Option<Duration>,
    /// Until its data is too old.
    pub expires_in: Option<Duration>,
    /// Why it has not worked since.
    pub failure: Option<String>,
}
