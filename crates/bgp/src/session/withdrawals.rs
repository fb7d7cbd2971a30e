//! Up to which generation of the desired state all withdrawals have been sent to a neighbour.
//!
//! Before an address moves to another Service, no neighbour may still send its traffic to the old place.
//! Knows no socket: the edge reports when bytes are written.

use super::Peer;
use fairway_ground::Instant;

/// What has been sent to one neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WithdrawnUpTo {
    written: u64,
    /// What will have been sent, once the bytes that are on their way are written.
    on_its_way: Option<u64>,
}

impl WithdrawnUpTo {
    /// The neighbour was given what there was room for. `generation` is in force; `owes`: some of its
    /// withdrawals are not given yet; `is_writing`: not all that it was given has been written.
    pub fn given(&mut self, generation: u64, owes: bool, is_writing: bool) {
        match (owes, is_writing) {
            // What is on its way still holds the earlier state.
            (true, _) => {}
            (false, true) => self.on_its_way = Some(generation),
            (false, false) => *self = Self { written: generation, on_its_way: None },
        }
    }

    /// Everything that it was given has been written.
    pub fn written(&mut self) {
        self.written = self.on_its_way.take().unwrap_or(self.written);
    }

    /// All withdrawals of this generation have been written to its socket.
    pub fn generation(self) -> u64 {
        self.written
    }
}

impl Peer {
    /// Whether the neighbour may have a route of ours that it should not have. `Ours:` one without a
    /// session cannot be reached, and is not waited for, unless it waits for us after a restart.
    pub fn owes_withdrawals(&self, now: Instant) -> bool {
        match &self.established {
            Some(up) => up.outbound.owes_withdrawals(),
            None => self.config.graceful_restart.is_some() && self.own_restart(now).restarted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_withdrawn_when_the_bytes_that_say_so_have_left() {
        let mut told = WithdrawnUpTo::default();
        told.given(1, false, true);
        assert_eq!(told.generation(), 0, "on its way");
        told.given(2, true, true);
        told.written();
        assert_eq!(told.generation(), 1, "the second has not been given yet");
        told.given(2, false, true);
        told.given(3, false, true);
        told.written();
        assert_eq!(told.generation(), 3, "nothing more was gone in the third");
        told.given(4, true, false);
        assert_eq!(told.generation(), 3);
        told.given(4, false, false);
        assert_eq!(told.generation(), 4);
    }
}
