//! How late a neighbour is told what changed.
//!
//! Another part of [`Neighbour`].

use super::Neighbour;
use crate::backend::SessionState;
use crate::bgp::UntoldSince;
use crate::time::Instant;

impl Neighbour {
    /// Something changed then; it may have to be told.
    pub(in crate::io) fn note_change(&mut self, at: Instant) {
        if self.peer.owes_updates() {
            self.untold.changed(at);
        }
    }

    /// When what happened that it has been told by now, since the last time.
    pub(in crate::io) fn take_told(&mut self) -> Option<Instant> {
        let told = self.untold.take_told();
        if self.peer.state() == SessionState::Established {
            self.untold.given(self.peer.owes_updates(), self.is_writing());
        } else {
            self.untold = UntoldSince::default();
        }
        told
    }
}
