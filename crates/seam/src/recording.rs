//! What was said on the connections to a neighbour, and what became of them: the last messages and events.
//!
//! Values only. The speaker records them, and `fairway dump` writes them.

use std::net::SocketAddr;
use std::sync::Arc;

use fairway_ground::{Asn, Instant};

use crate::SessionState;

/// The last messages and events of a neighbour, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// When it was copied, on the clock of the records.
    pub taken_at: Instant,
    /// Our AS towards the neighbour.
    pub local_asn: Asn,
    /// Its AS, where it is known.
    pub remote_asn: Option<Asn>,
    /// How many older ones have been overwritten since the start.
    pub overwritten: u64,
    /// What is left.
    pub records: Vec<Record>,
}

/// Both ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionEnds {
    /// Ours.
    pub local: SocketAddr,
    /// The neighbour's.
    pub remote: SocketAddr,
}

/// A message or an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it was.
    pub at: Instant,
    /// On which connection; none before TCP is up.
    pub ends: Option<Arc<ConnectionEnds>>,
    /// What it was.
    pub what: Recorded,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A message, with its header.
    Message {
        /// From the neighbour.
        is_received: bool,
        /// AS numbers in it have four octets (RFC 6793).
        four_octet_as: bool,
        /// As on the wire.
        bytes: Box<[u8]>,
    },
    /// The connection has changed its state (RFC 4271 §8.2.2).
    State {
        /// Before.
        from: SessionState,
        /// Now.
        to: SessionState,
        /// Why it has ended; empty otherwise.
        why: String,
    },
}
