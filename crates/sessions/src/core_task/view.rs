//! What a client of the backend is shown: the speaker's view, and what only the edge knows.
//!
//! Another part of [`CoreTask`]; changes nothing.

use tracing::error;

use super::CoreTask;
use crate::neighbour::Neighbour;
use fairway_seam::{BgpView, SessionState, ViewScope};

impl CoreTask {
    pub(super) fn view(&self, scope: ViewScope) -> BgpView {
        let now = self.clock.now();
        let (mut view, unshown) = self.speaker.view(now, scope);
        view.rpki_servers = self.rpki.view(now);
        view.bmp_stations = self.bmp.view(now);
        for key in unshown {
            error!(peer = %key, "internal error: the peer cannot be shown");
        }
        for peer in &mut view.peers {
            let key = peer.config.key;
            let not_listening = || self.listeners.not_listening(&peer.config);
            let not_accepted = self.listeners.not_accepted(key).or_else(not_listening);
            peer.not_accepted = not_accepted.filter(|_| peer.set_aside.is_none());
            peer.bfd_path = self.bfd_path(key);
            if scope.kernel && peer.state == SessionState::Established {
                peer.stall = self.neighbours.get(&key).and_then(Neighbour::stall);
            }
        }
        if scope.kernel {
            view.rejected_segments = self.rejected_before.since();
        }
        for range in &mut view.listen_ranges {
            range.not_accepted = self.listeners.not_accepted(range.config.key);
        }
        view
    }
}
