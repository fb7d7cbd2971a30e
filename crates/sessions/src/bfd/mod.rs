//! Bidirectional Forwarding Detection: whether the way to a neighbour works, in milliseconds
//! (RFC 5880; over one hop RFC 5881, over several RFC 5883; intervals RFC 7419).
//!
//! [`Sessions`] is all of a node: which session a packet is for, and whose time has come.
//! [`Session`] is one: its state machine, its timers, and what to say next. Knows no socket, no
//! clock and no BGP; `io::bfd` drives it, from a thread of its own:
//!
//! ```text
//! sessions.receive(now, arrival)          whatever waits in the sockets, all of it
//! sessions.expire(now, stall)             only then: what waited has been heard
//! sessions.poll_transmit(now, &mut bytes) until there is nothing more to say
//! sessions.poll_event(), poll_closed()    until there is nothing more to tell
//! sessions.next_deadline()                when to come back
//! ```
//!
//! Nothing allocates but a change of the set of sessions.

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
pub use packet::{ControlPacket, PacketError};
#[cfg(feature = "io")]
pub(crate) use session::Untold;
pub use session::{BfdChange, Session, Written};
pub use sessions::{BfdEvent, PACKET_LENGTH_BYTES_MAX, Sessions, SlotId, Transmit};
