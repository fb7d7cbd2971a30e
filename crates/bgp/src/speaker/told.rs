//! What is sent, which peers know of a withdrawal by then, and which changes are reported.
//!
//! Another part of [`Speaker`]: the end of each turn. The state of one peer is
//! [`crate::session::WithdrawnUpTo`]'s and [`crate::session::UntoldSince`]'s.

use bytes::BytesMut;

use super::action::Action;
use super::guard::Guard;
use super::speaker::Speaker;
use crate::session::ConnectionId;
use fairway_ground::{Instant, PeerKey};

impl<G: Guard> Speaker<G> {
    /// Fills `buffer`, up to `room` bytes, with whole messages for a connection with room in its socket,
    /// and names the connection: due until `None` after each [`super::Event::Tick`]. Each connection is
    /// given no more until [`super::Event::Written`] reports that this has been written.
    ///
    /// All peers have acted by then: a route of one of them may be passed on to another in the same
    /// message. `None` ends the turn: the progress of withdrawals is recorded.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        room: usize,
        buffer: &mut BytesMut,
    ) -> Option<(PeerKey, ConnectionId)> {
        let before = buffer.len();
        while let Some(key) = self.unfilled.front().copied() {
            let mut groups = std::mem::take(&mut self.groups);
            let filled = self.run_guarded(now, key, |neighbour, rib, outbox| {
                let filled = neighbour.transmit(now, rib, &mut groups, room, buffer);
                neighbour.tell_monitor(outbox);
                filled
            });
            self.groups = groups;
            if let Some(id) = filled.flatten() {
                return Some((key, id));
            }
            // Half a message of work that panicked is discarded.
            buffer.truncate(before);
            self.unfilled.pop_front();
        }
        self.end_turn(now);
        None
    }

    /// Those that acted have been given what there was room for.
    fn end_turn(&mut self, now: Instant) {
        if !self.groups.is_empty() && !self.neighbours.values().any(|it| it.peer.is_behind()) {
            self.groups.forget();
        }
        let acted = std::mem::take(&mut self.acted);
        self.note_withdrawals(now, acted.iter().copied());
        for key in &acted {
            let neighbour = self.neighbours.get_mut(key);
            if let Some(at) = neighbour.and_then(|it| it.take_told()) {
                self.changes_told.note(now.since(at));
            }
        }
        acted.iter().for_each(|key| self.settle(*key));
        for key in &acted {
            let changes = self.neighbours.get_mut(key).map(|it| it.note_changes());
            self.has_changed |= changes.unwrap_or(false);
        }
        if std::mem::take(&mut self.has_changed) {
            self.outbox.push(Action::Changed);
        }
    }

    /// Reports the generation of the desired state up to which all withdrawals have been written.
    fn note_withdrawals(&mut self, now: Instant, acted: impl Iterator<Item = PeerKey>) {
        // Routes of an earlier run are not withdrawn yet, whatever is desired.
        let generation = if self.startup.keeps_earlier() { 0 } else { self.desired.generation };
        let before = self.withdrawn_up_to;
        let mut knows_more = self.neighbours.is_empty();
        for key in acted {
            let knows = self.run_guarded(now, key, |neighbour, _, _| {
                neighbour.note_withdrawals(now, generation, before)
            });
            knows_more |= knows.unwrap_or(false);
        }
        if knows_more && generation > before {
            let known = self.neighbours.values().map(|it| it.withdrawn_up_to()).min();
            let known = known.unwrap_or(generation).max(before);
            if known > before {
                self.withdrawn_up_to = known;
                self.outbox.push(Action::WithdrawnUpTo(known));
            }
        }
    }

    /// The desired state follows from a change at `at`.
    pub(super) fn note_change(&mut self, at: Option<Instant>) {
        if let Some(at) = at {
            self.neighbours.values_mut().for_each(|it| it.note_change(at));
        }
    }

    /// One peer has done all that it could: its next deadline is noted, or it is removed if it came from a
    /// range and waits for nothing.
    fn settle(&mut self, key: PeerKey) {
        let Some(neighbour) = self.neighbours.get(&key) else { return };
        if neighbour.peer.config().is_dynamic() && neighbour.peer.is_at_rest() {
            return self.forget(key);
        }
        if !neighbour.unlearned.is_empty() || neighbour.peer.has_to_look_again() {
            self.agenda.touch(key);
        }
        let deadline = neighbour.peer.next_deadline();
        self.agenda.wait(key, deadline);
    }
}
