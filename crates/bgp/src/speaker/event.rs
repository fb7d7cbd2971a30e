//! The events of a speaker.

use std::sync::Arc;

use crate::session::{self, ConnectionId};
use fairway_ground::{Instant, PeerKey};
use fairway_rpki::{Concerned, OriginTable};
use fairway_seam::{Desired, Leave, TrackedNextHop};

/// An event. What returns an answer is a method of [`super::Speaker`]: a connection that is accepted, a
/// reset that the operator requests.
#[derive(Debug)]
pub enum Event<'a> {
    /// A new desired state; the second field is when the change behind it happened.
    Desired(Arc<Desired>, Option<Instant>),
    /// Something happened to this peer.
    Peer(PeerKey, session::Event<'a>),
    /// What was given to this connection has been written to its socket.
    Written(PeerKey, ConnectionId),
    /// The link to this peer is gone, for this reason.
    LinkLost(PeerKey, String),
    /// The address of this peer may have changed: a dial that waits is due at once.
    DialSoon(PeerKey),
    /// RPKI caches say something else, about the origins of routes that the second field names.
    Origins(Arc<OriginTable>, Concerned),
    /// Whether next hops of installed routes can be reached has changed.
    NextHops(Vec<(TrackedNextHop, bool)>),
    /// The process ends, and all sessions with it.
    Leave(Leave),
    /// All events so far are to be acted on, and a deadline may have passed.
    /// [`super::Speaker::poll_transmit`] is due after it.
    Tick,
}
