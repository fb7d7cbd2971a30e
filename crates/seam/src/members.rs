//! A machine that shares layer 2 addresses, as seen at one moment.

use std::net::SocketAddr;
use std::time::Duration;

/// A member, this machine among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// The name of its node.
    pub name: String,
    /// Where its heartbeats come from; `None` for this machine, and for one that was not heard yet.
    pub address: Option<SocketAddr>,
    /// `alive`, `suspect` (heard, and owns nothing yet), `left` or `dead`.
    pub state: &'static str,
    /// For how long.
    pub age: Duration,
}
