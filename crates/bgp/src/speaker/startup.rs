//! The end of the waits at the start of a process: for sources that are not ready, and for the routes of
//! neighbours.
//!
//! Another part of [`Speaker`]; what is waited for, and for how long, is [`crate::session::Startup`]'s.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::action::Action;
use super::guard::Guard;
use super::neighbour::Neighbour;
use super::speaker::Speaker;
use fairway_ground::{Instant, PeerKey};
use fairway_seam::DesiredRoute;

impl<G: Guard> Speaker<G> {
    /// Ends the wait at the start of the process if its reason has ended.
    pub(super) fn end_startup(&mut self, now: Instant) {
        if self.startup.deadline(&self.desired).is_some_and(|deadline| deadline <= now) {
            self.outbox.push(Action::SourcesSilent);
            self.startup.forget_earlier();
            self.originate(now, Arc::clone(&self.desired.routes));
        }
        if !self.holds_end_of_rib || self.startup.awaits_sources() {
            return;
        }
        let owes = |it: &Neighbour| it.peer.owes_end_of_rib() || !it.unlearned.is_empty();
        let owing = self.neighbours.iter().filter(|(_, it)| owes(it));
        // None of them waits for itself.
        let owing: BTreeSet<PeerKey> = owing.map(|(key, _)| *key).take(2).collect();
        let complete = self.neighbours.iter().filter(|(key, it)| {
            let others_owe = owing.iter().any(|other| other != *key);
            it.peer.holds_end_of_rib()
                && !(others_owe && self.startup.defers_to_neighbours(it.peer.config()))
        });
        let complete = complete.map(|(key, _)| *key);
        for key in complete.collect::<Vec<_>>() {
            self.with_neighbour(now, key, |neighbour, _, _| neighbour.peer.sources_have_spoken());
        }
        self.holds_end_of_rib = self.neighbours.values().any(|it| it.peer.holds_end_of_rib());
    }

    /// Replaces all routes of our own, and advertises the changes.
    pub(super) fn originate(&mut self, now: Instant, routes: Arc<[DesiredRoute]>) {
        let drain = self.desired.drain;
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, rib, _| neighbour.peer.set_drain(rib, drain));
        }
        self.rib.set(routes);
        self.pass_on(now);
    }
}
