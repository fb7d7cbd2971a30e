//! One neighbour: its TCP connections, timers, negotiation, and what to send next.
//!
//! [`Peer`] takes events ([`Peer::handle`]), returns actions ([`Peer::poll_action`]), fills a buffer
//! when a socket has room ([`Peer::poll_transmit`]) and names the time of its next deadline
//! ([`Peer::next_deadline`]). It owns two slots for connections, since both sides may dial at once; a
//! [`connection::Connection`] never knows about the other slot.
//!
//! Knows no socket, clock or task. Called by the speaker, and by tests.

mod backoff;
mod bfd;
mod collision;
mod connection;
mod control;
mod graceful_restart;
mod key_rollover;
mod monitor;
mod negotiate;
mod outbound;
mod peer;
mod reason;
mod receive;
mod recorder;
mod refresh;
mod refused;
mod replacement;
mod restart;
mod slots;
mod stale;
mod startup;
mod transmit;
mod untold;
mod validation;
mod view;
mod withdrawals;

pub use connection::ConnectionId;
pub use graceful_restart::{OwnRestart, Restarts};
pub use key_rollover::{HeldKey, KeyChange, KeyRing};
pub use monitor::{Best, Monitored, SessionDown, SessionUp};
pub use negotiate::Negotiated;
pub use peer::{Action, Connected, Event, Peer};
pub use reason::DownReason;
pub use receive::Malformed;
pub use startup::{Startup, beside};
pub use untold::UntoldSince;
pub use withdrawals::WithdrawnUpTo;
