//! Our own restart, as one neighbour sees it: what an OPEN advertises about it, and when End-of-RIB may
//! be sent (RFC 4724 §4.1).
//!
//! Another part of [`Peer`]. Does not know why it should wait: the speaker decides when all routes have
//! been sent.

use super::connection::Connection;
use super::graceful_restart::OwnRestart;
use super::peer::Peer;
use fairway_ground::{Instant, PrefixFilter};

/// What holds until the restart is over.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Comeback {
    own: OwnRestart,
    /// When the neighbour has given up waiting for us: R means nothing after that.
    over_at: Option<Instant>,
    /// Until when End-of-RIB is held back, unless the sources become ready earlier.
    hold_end_of_rib_until: Option<Instant>,
}

impl Peer {
    /// The process has just started. R is set until there was a session, or until the restart time has
    /// passed; F is true for every session after the first one anyway. End-of-RIB waits for
    /// [`Peer::sources_have_spoken`], at most until `hold_end_of_rib_until`.
    pub fn restarted(&mut self, own: OwnRestart, hold_end_of_rib_until: Option<Instant>) {
        let restart_time = self.config.graceful_restart.unwrap_or_default().restart_time();
        let over_at = Some(self.since + restart_time);
        self.comeback = Comeback { own, over_at, hold_end_of_rib_until };
    }

    /// All routes for the neighbour have been sent: End-of-RIB may follow.
    pub fn sources_have_spoken(&mut self) {
        self.comeback.hold_end_of_rib_until = None;
        if let Some(up) = &mut self.established {
            up.outbound.adj_rib_out.release_end_of_rib();
        }
    }

    /// Whether End-of-RIB waits, or would if there were a session.
    pub fn holds_end_of_rib(&self) -> bool {
        self.comeback.hold_end_of_rib_until.is_some()
    }

    /// Whether its routes may still arrive after a restart of ours: it sends End-of-RIB, and has not yet
    /// (RFC 4724 §4.1). A neighbour that restarts itself is not waited for.
    pub fn owes_end_of_rib(&self) -> bool {
        if self.config.graceful_restart.is_none()
            || self.config.import.allowed == PrefixFilter::Nothing
            || self.is_down()
        {
            return false;
        }
        let Some(up) = &self.established else { return true };
        let restarts = self.connection(up.connection).map(Connection::restarts);
        let sends = restarts.is_some_and(|it| it.sends_markers && !it.restarted);
        let received = up.inbound.end_of_rib_received;
        sends && up.families.iter().any(|family| !received.of(family))
    }

    /// Whether its routes may still arrive: there is no session, or it has not sent End-of-RIB. A neighbour that never
    /// sends it may owe them forever.
    pub fn may_owe_routes(&self) -> bool {
        if self.config.import.allowed == PrefixFilter::Nothing || self.is_down() {
            return false;
        }
        let Some(up) = &self.established else { return true };
        up.families.iter().any(|family| !up.inbound.end_of_rib_received.of(family))
    }

    /// Whether there ever was a session.
    pub fn had_session(&self) -> bool {
        self.connections_established > 0
    }

    /// What the next OPEN advertises about our restart.
    pub(super) fn own_restart(&self, now: Instant) -> OwnRestart {
        let Comeback { own, over_at, .. } = self.comeback;
        let is_first = !self.had_session();
        OwnRestart {
            restarted: own.restarted && is_first && over_at.is_none_or(|over_at| now < over_at),
            // A lost session removes nothing that the kernel forwards.
            forwarding: own.forwarding || !is_first,
        }
    }

    /// When End-of-RIB is sent at the latest.
    pub(super) fn end_of_rib_deadline(&self) -> Option<Instant> {
        self.comeback.hold_end_of_rib_until
    }

    /// Sources that are not ready by now are not waited for.
    pub(super) fn expire_end_of_rib(&mut self, now: Instant) {
        if self.comeback.hold_end_of_rib_until.is_some_and(|until| until <= now) {
            self.sources_have_spoken();
        }
    }
}
