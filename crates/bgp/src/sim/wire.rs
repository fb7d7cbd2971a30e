//! A TCP connection as both ends see it: two streams that keep their order, each cut anywhere.

use std::collections::VecDeque;

use crate::session::ConnectionId;

/// What travels in one direction.
#[derive(Debug, Clone)]
pub(super) enum Parcel {
    /// The dialler learns that TCP is up.
    Connected,
    /// The dialler learns that it is not.
    Refused,
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end of the stream, in order.
    End,
    /// The end of the stream: a reset.
    Reset,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Wire {
    /// Side and connection of the dialler, then of the other end.
    pub(super) ends: [(usize, ConnectionId); 2],
    /// On the way to each of the two ends.
    pub(super) to_end: [VecDeque<Parcel>; 2],
    /// Nothing moves to this end for a while.
    pub(super) stalled: [bool; 2],
    /// It was reset: nothing more is taken.
    pub(super) closed: bool,
    /// It is gone without a FIN, and neither end knows.
    pub(super) vanished: bool,
}

impl Wire {
    /// A dial that was just answered: the answer is on its way to the dialler.
    pub(super) fn between(dialler: (usize, ConnectionId), acceptor: (usize, ConnectionId)) -> Self {
        Self {
            ends: [dialler, acceptor],
            to_end: [VecDeque::from([Parcel::Connected]), VecDeque::new()],
            stalled: [false; 2],
            closed: false,
            vanished: false,
        }
    }

    /// Which of the two ends `side` is. A side never talks to itself.
    pub(super) fn end_of(&self, side: usize) -> usize {
        usize::from(self.ends[0].0 != side)
    }

    /// Puts a parcel on its way to `end`. Returns whether it is.
    pub(super) fn push(&mut self, end: usize, parcel: Parcel) -> bool {
        let moves = !self.closed && !self.vanished;
        if moves {
            self.to_end[end].push_back(parcel);
        }
        moves
    }

    /// What is on its way is lost, and both ends will learn why.
    pub(super) fn reset(&mut self) {
        if self.closed || self.vanished {
            return;
        }
        self.closed = true;
        for queue in &mut self.to_end {
            let is_dialling = matches!(queue.front(), Some(Parcel::Connected));
            *queue = VecDeque::from([if is_dialling { Parcel::Refused } else { Parcel::Reset }]);
        }
    }

    /// What is on its way is lost, and neither end learns of it.
    pub(super) fn vanish(&mut self) {
        self.vanished = true;
        self.to_end.iter_mut().for_each(VecDeque::clear);
    }
}
