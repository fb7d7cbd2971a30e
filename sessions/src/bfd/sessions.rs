//! All sessions of a node: which one a packet is for, and whose time has come.

use std::collections::BTreeMap;
use std::time::Duration;

use super::arrival::{Arrival, Dropped, Received};
use super::packet::Diagnostic;
use super::view::{BfdSessionView, Drops};
use crate::time::Instant;
use crate::types::{BfdPath, BfdSettings};

/// The longest packet that is ever sent: 24 octets and a section of 28.
pub const PACKET_LENGTH_BYTES_MAX: usize = 52;

/// Names a session towards the edge. It is another's only after [`Sessions::poll_closed`] said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(u32);

impl SlotId {
    /// Small numbers, without gaps that last: good for an array.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// What is to be sent: the first `length` bytes of what was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// From which session.
    pub slot: SlotId,
    /// How many bytes.
    pub length: usize,
    /// To the echo port rather than to the one of the path.
    pub echo: bool,
}

/// A session is up, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfdEvent {
    /// Which.
    pub path: BfdPath,
    /// What changed.
    pub change: BfdChange,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BfdChange {
    /// Both ends hear each other.
    Up,
    /// They do not.
    Down {
        /// Why we say so.
        diagnostic: Diagnostic,
        /// Why the other end last changed.
        remote_diagnostic: Diagnostic,
        /// An operator switched the other end off: that is no failure (RFC 5882 §3.2).
        remote_admin_down: bool,
        /// BFD of the other end does not share fate with its control plane.
        remote_control_plane_independent: bool,
        /// It was up before. If not, nothing was lost.
        was_up: bool,
    },
}

/// All sessions of a node.
#[derive(Debug)]
pub struct Sessions {
    drops: Drops,
}

impl Sessions {
    /// None yet. Discriminators, sequence numbers and jitter come from `seed`: it must be another
    /// in each run, and nobody's to guess.
    pub fn new(_seed: u64) -> Self {
        Self { drops: Drops::default() }
    }

    /// The sessions that are wanted from now on. What is new is opened, and returned; settings
    /// change on living sessions; what is not wanted any more says so for one detection time, and
    /// is then named by [`Sessions::poll_closed`]. The only call that allocates.
    pub fn set(&mut self, _now: Instant, _wanted: &BTreeMap<BfdPath, BfdSettings>) -> Vec<SlotId> {
        Vec::new()
    }

    /// Which path a session watches.
    pub fn path(&self, _slot: SlotId) -> Option<&BfdPath> {
        None
    }

    /// The index that the interface of a path has now, if it has one. Until this was said, and
    /// while it is `None`, a session with an interface hears nothing.
    pub fn set_interface_index(&mut self, _slot: SlotId, _index: Option<u32>) {}

    /// Hears a packet. What was dropped is counted already.
    pub fn receive(&mut self, _now: Instant, _arrival: Arrival<'_>) -> Result<Received, Dropped> {
        Err(Dropped::Echo)
    }

    /// What is due. Call it after the sockets were drained, so that what waited there was heard.
    /// `own_stall` is how late this process is, if it is: a detection that falls due then is put
    /// off once, by one interval of the other end, where the delay is more than half of that.
    pub fn expire(&mut self, _now: Instant, _own_stall: Option<Duration>) {}

    /// The next packet to send at `now`, until there is none.
    pub fn poll_transmit(
        &mut self,
        _now: Instant,
        _bytes: &mut [u8; PACKET_LENGTH_BYTES_MAX],
    ) -> Option<Transmit> {
        None
    }

    /// The last packet of this session could not be sent. It is counted; the next one is due in
    /// time.
    pub fn transmit_failed(&mut self, _slot: SlotId) {}

    /// What changed. A session that went down and came up before anybody asked says both.
    pub fn poll_event(&mut self) -> Option<BfdEvent> {
        None
    }

    /// A session that is gone; its slot may be another's with the next [`Sessions::set`].
    pub fn poll_closed(&mut self) -> Option<SlotId> {
        None
    }

    /// When to come back, after everything above was drained: on a grid of milliseconds, rounded
    /// up, so that sessions share a wake-up.
    pub fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Nobody wants any session any more: all say so at once, with the next
    /// [`Sessions::poll_transmit`].
    pub fn leave(&mut self, _now: Instant) {}

    /// Whether every other end is known to have heard that we leave, or can be thought to know it
    /// by now. Nothing has to be said any more then.
    pub fn has_left(&self) -> bool {
        true
    }

    /// Every session, in the order of paths.
    pub fn view(&self, _now: Instant) -> Vec<BfdSessionView> {
        Vec::new()
    }

    /// Every packet that was not heard, also those of no session.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }
}
