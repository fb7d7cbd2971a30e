//! Bidirectional Forwarding Detection: detects in milliseconds whether the path to a neighbour works (RFC
//! 5880; single-hop RFC 5881, multihop RFC 5883; intervals RFC 7419).
//!
//! [`Sessions`] is all sessions of a node: it finds the session of a packet and the next deadline.
//! [`Session`] is one: its state machine, its timers, and the packets to send. Knows no socket, no clock and
//! no BGP; driven by `bfd` of `fairway-sessions`, from its own thread:
//!
//! ```text
//! sessions.receive(now, arrival)          everything that waits in the sockets
//! sessions.expire(now, stall)             only then: all waiting packets are processed
//! sessions.poll_transmit(now, &mut bytes) until there is nothing more to send
//! sessions.poll_event(), poll_closed()    until there is nothing more to report
//! sessions.next_deadline()                when to return
//! ```
//!
//! Only a change of the set of sessions allocates memory.

mod arrival;
mod authentication;
mod deadlines;
mod echo;
mod packet;
mod session;
mod sessions;
mod timing;

pub use arrival::{Arrival, Dropped, Port, Received};
pub use fairway_seam::DownCause;
pub use fairway_seam::bfd::{
    BfdCounters, BfdSessionView, BfdView, Diagnostic, Drops, Realtime, RemoteTimers, RoundTrip,
    State,
};
pub use packet::{ControlPacket, PACKET_LENGTH_BYTES_MAX, PacketError};
pub use session::Untold;
pub use session::{BfdChange, Session, Written};
pub use sessions::{BfdEvent, Sessions, SlotId, Transmit};
