//! What BFD does and sees, as values that `show`, metrics and FRR's status share.
//!
//! Knows no packet and no timer; the machines are in `fairway-sessions`.

mod drops;
mod state;
mod view;

pub use drops::{DropReason, Drops};
pub use state::{Diagnostic, State};
pub use view::{BfdCounters, BfdSessionView, BfdView, Realtime, RemoteTimers, RoundTrip};
