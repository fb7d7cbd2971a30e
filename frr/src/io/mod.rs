//! The edge: FRR's sockets and the clock.

mod daemon;
mod log;
pub mod observer;
pub mod vty;
mod watch;
