//! Two connections to one neighbour: which of them stays.
//!
//! Another part of [`Peer`]. Knows the identifiers of both speakers; each connection knows only itself.

use super::connection::ConnectionId;
use super::peer::Peer;
use super::reason::DownReason;
use crate::wire::Notification;
use crate::wire::notification::cease;
use fairway_ground::Instant;
use fairway_seam::SessionState;

impl Peer {
    /// Both sides dialled: the connection of the speaker with the larger identifier stays, the
    /// larger AS when they are equal (RFC 4271 §6.8, RFC 6286 §2.3). Called when `id` has just
    /// reached OpenConfirm.
    pub(super) fn resolve_collision(&mut self, now: Instant, id: ConnectionId) {
        let (Some(outgoing), Some(incoming)) = (&self.outgoing, &self.incoming) else { return };
        let (this, other) =
            if outgoing.id == id { (outgoing, incoming) } else { (incoming, outgoing) };
        let Some(negotiated) = &this.negotiated else { return };
        let ours = (self.config.router_id.get(), self.config.local_asn);
        let theirs = (negotiated.remote_router_id.get(), negotiated.remote_asn);
        if other.state == SessionState::Established && self.may_be_replaced(now) {
            let older = other.id;
            return self.end(now, older, DownReason::Replaced);
        }
        let loser = match (other.state, ours > theirs) {
            (SessionState::Established, _) => id,
            // A dial that is not up yet would only disturb the connection that is. The neighbour may
            // have answered it by now and decide for it; then both are lost, and dialled again a
            // second later. To keep the dial would instead cost sessions that are Established.
            _ if !other.is_connected() => other.id,
            // `Ours:` not only in OpenConfirm, as RFC 4271 §6.8 has it: this OPEN has identified the
            // neighbour, and deciding now keeps either side from being Established on the connection
            // that the other is about to close.
            (_, true) => incoming.id,
            (_, false) => outgoing.id,
        };
        self.end(now, loser, collision());
    }

    /// The session is up on `id`: every other connection and dial ends.
    pub(super) fn end_all_but(&mut self, now: Instant, id: ConnectionId) {
        for other in self.connection_ids().into_iter().filter(|other| *other != id) {
            self.end(now, other, collision());
        }
    }
}

fn collision() -> DownReason {
    DownReason::Sent {
        notification: Notification::cease(cease::COLLISION),
        why: "the other connection to the neighbour is kept".to_owned(),
    }
}
