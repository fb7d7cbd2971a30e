//! A neighbour that restarts faster than we notice: its new connection takes the place of the old
//! one (RFC 4724 §4.2).
//!
//! Another part of [`Peer`]. What becomes of the routes is [`super::stale`]'s.

use std::time::Duration;

use super::peer::Peer;
use fairway_ground::Instant;

/// How old a session must be. A connection that comes earlier was dialled before the neighbour knew of
/// the session, and has lost a collision.
const SETTLED_AFTER: Duration = Duration::from_secs(5);

impl Peer {
    /// Whether another connection from the neighbour means that it has restarted. A neighbour that loses
    /// its routes with its session is refused instead: its old connection may be alive.
    pub(super) fn may_be_replaced(&self, now: Instant) -> bool {
        let Some(up) = &self.established else { return false };
        let negotiated = self.connection(up.connection).and_then(|it| it.negotiated.as_ref());
        let keeps = negotiated.is_some_and(|it| !it.restarts.kept_for_it.is_empty());
        keeps && now.since(up.since) >= SETTLED_AFTER
    }

    /// Accepts another connection beside a session that the neighbour had dialled: until its OPEN has
    /// shown that it is the same neighbour, the session stays. Which side dialled a session does not
    /// matter any more.
    pub(super) fn make_room_for_incoming(&mut self) {
        let session = self.established.as_ref().map(|up| up.connection);
        let incoming = self.incoming.as_ref().map(|it| it.id);
        if session.is_some() && session == incoming {
            std::mem::swap(&mut self.outgoing, &mut self.incoming);
        }
    }
}
