//! The age of the oldest change that a neighbour has not been sent: how late an UPDATE is.
//!
//! Knows no clock and no socket: the edge reports when bytes are written.

use super::Peer;
use fairway_ground::Instant;

/// The oldest change that one neighbour has not been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UntoldSince {
    waiting: Option<Instant>,
    /// What will have been sent, once the bytes that are on their way are written.
    on_its_way: Option<Instant>,
    told: Option<Instant>,
}

impl UntoldSince {
    /// Something changed then that must be sent to it.
    pub fn changed(&mut self, at: Instant) {
        self.waiting = self.waiting.into_iter().chain([at]).min();
    }

    /// The neighbour was given what there was room for. `owes`: not everything; `is_writing`: not all
    /// of it has been written.
    pub fn given(&mut self, owes: bool, is_writing: bool) {
        if owes {
            return;
        }
        let given = self.waiting.take();
        // No byte is on its way: the change was reverted meanwhile.
        if is_writing {
            self.on_its_way = self.on_its_way.into_iter().chain(given).min();
        }
    }

    /// Everything that it was given has been written.
    pub fn written(&mut self) {
        self.told = self.on_its_way.take().or(self.told);
    }

    /// When the change happened that it has been sent since the last call.
    pub fn take_told(&mut self) -> Option<Instant> {
        self.told.take()
    }
}

impl Peer {
    /// Whether there is a change that must be sent to the neighbour and has not been given to it.
    pub fn owes_updates(&self) -> bool {
        self.established
            .as_ref()
            .is_some_and(|up| up.outbound.has_pending() || up.outbound.has_earlier())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn a_change_is_told_when_its_bytes_have_left() {
        let mut untold = UntoldSince::default();
        untold.changed(at(1));
        untold.given(true, true);
        untold.written();
        assert_eq!(untold.take_told(), None, "what left was older: the socket had no room");
        untold.given(false, true);
        assert_eq!(untold.take_told(), None, "on its way");
        untold.written();
        assert_eq!(untold.take_told(), Some(at(1)));
        untold.written();
        assert_eq!(untold.take_told(), None, "once");
    }

    #[test]
    fn of_many_changes_in_one_message_the_oldest_counts() {
        let mut untold = UntoldSince::default();
        untold.changed(at(2));
        untold.changed(at(3));
        untold.given(false, true);
        untold.changed(at(4));
        untold.given(false, true);
        untold.written();
        assert_eq!(untold.take_told(), Some(at(2)), "the last followed on the heels of the others");
    }

    #[test]
    fn a_change_that_is_taken_back_before_it_is_said_is_none() {
        let mut untold = UntoldSince::default();
        untold.changed(at(5));
        untold.given(false, false);
        untold.given(false, true);
        untold.written();
        assert_eq!(untold.take_told(), None);
    }
}
