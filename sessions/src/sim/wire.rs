//! A TCP connection as both ends see it: two streams that keep their order, each cut anywhere.

use std::collections::VecDeque;

use crate::bgp::ConnectionId;

/// What travels in one direction.
#[derive(Debug, Clone)]
pub(super) enum Parcel {
    /// The dialler learns that TCP is up.
    Connected,
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end of the stream.
    End,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Wire {
    /// Side and connection of who dialled, then of who accepted.
    pub(super) ends: [(usize, ConnectionId); 2],
    /// On the way to each of the two ends.
    pub(super) to_end: [VecDeque<Parcel>; 2],
    /// Nothing moves any more: it was reset.
    pub(super) dead: bool,
}

impl Wire {
    /// Which of the two ends `side` is. A side never talks to itself.
    pub(super) fn end_of(&self, side: usize) -> usize {
        usize::from(self.ends[0].0 != side)
    }
}
