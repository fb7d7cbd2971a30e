//! Two connections to one neighbour: which of them stays.
//!
//! Another part of [`Peer`]. Knows the identifiers of both speakers; each connection knows only itself.

use std::time::Duration;

use super::connection::ConnectionId;
use super::peer::Peer;
use super::reason::DownReason;
use crate::wire::Notification;
use crate::wire::notification::cease;
use fairway_ground::Instant;
use fairway_seam::SessionState;

/// How long the neighbour has to answer our dial before what it said on its own connection is read.
const ANSWER_TIME: Duration = Duration::from_secs(1);

impl Peer {
    /// The neighbour's connection is not read until our own dial is answered, or has had its time.
    ///
    /// `Ours:` a neighbour that accepts our dial when its own connection is Established already takes it
    /// for our restart (RFC 4724 §5) and ends the session. A dial that is up may still wait to be
    /// accepted there: as long as it does, the session does not come up on the other connection. Only
    /// with graceful restart; without it the neighbour refuses the dial, and nothing is lost.
    pub(super) fn wait_for_our_dial(&mut self, now: Instant) {
        let dials = self.is_dialling() && self.config.graceful_restart.is_some();
        if let Some(incoming) = self.incoming.as_mut().filter(|it| dials && it.negotiated.is_none())
        {
            incoming.read_deadline = Some(now + ANSWER_TIME);
        }
    }

    /// Whether the neighbour has agreed to a connection of its own, so that a dial would come too late.
    pub(super) fn is_about_to_come_up(&self) -> bool {
        self.config.graceful_restart.is_some()
            && self.incoming.as_ref().is_some_and(|it| it.negotiated.is_some())
    }

    /// Reads what waited for a dial that is answered, lost or late.
    pub(super) fn read_what_waited(&mut self, now: Instant) {
        let dials = self.is_dialling();
        let Some(incoming) = &mut self.incoming else { return };
        incoming.read_deadline.take_if(|deadline| !dials || *deadline <= now);
        let id = incoming.id;
        if incoming.state < SessionState::OpenConfirm {
            self.read(now, id);
        }
    }

    /// Whether we have dialled, and the neighbour has not answered.
    fn is_dialling(&self) -> bool {
        self.outgoing.as_ref().is_some_and(|it| it.negotiated.is_none())
    }

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
        why: "the other connection to the neighbor is kept".to_owned(),
    }
}
