//! What can happen to a speaker.

use std::sync::Arc;

use crate::backend::{Desired, Leave};
use crate::bgp::{self, ConnectionId};
use crate::time::Instant;
use crate::types::PeerKey;

/// What happened. What has an answer is a method of [`super::Speaker`]: a connection that is
/// accepted, a reset that the operator asks for.
#[derive(Debug)]
pub enum Event<'a> {
    /// The desired state is another one; the second is when what it follows from happened.
    Desired(Arc<Desired>, Option<Instant>),
    /// Something happened to this peer.
    Peer(PeerKey, bgp::Event<'a>),
    /// What was given to this connection has been written to its socket.
    Written(PeerKey, ConnectionId),
    /// The link to this peer is gone, for this reason.
    LinkLost(PeerKey, String),
    /// This peer may be where it was not before: a dial that waits is due at once.
    DialSoon(PeerKey),
    /// The process ends, and all sessions with it.
    Leave(Leave),
    /// All that happened so far is to be acted on, and it may be time for something.
    /// [`super::Speaker::poll_transmit`] is due after it.
    Tick,
}
