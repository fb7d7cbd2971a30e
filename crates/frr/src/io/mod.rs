//! The edge: FRR's sockets and the clock.

mod backend;
mod daemon;
mod daemons;
mod dialogue;
mod files;
pub mod forget;
mod lock;
mod log;
pub mod observer;
pub mod preview;
mod rendering;
pub mod vty;
mod watch;

pub use backend::{FrrBackend, FrrOptions};
