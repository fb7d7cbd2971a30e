//! Native BGP sessions.
//!
//! The crate is a set of pure machines and one edge that drives them:
//!
//! ```text
//!  io ─► speaker ─► bgp ──► rib ──► types
//!   │                └────► wire ─► types        backend ──► types
//!   └───► bfd ──► types
//! ```
//!
//! - [`types`]: the vocabulary of the field, as values that cannot be wrong.
//! - [`wire`]: bytes to values and back; knows no session.
//! - [`ndp`]: who is at the other end of a link without addresses.
//! - [`bfd`]: whether the way to a neighbour works, in milliseconds.
//! - [`rib`]: which routes exist and what each peer was told.
//! - [`bgp`]: one neighbour: its connections, timers, negotiation, and what to send next.
//! - [`speaker`]: the RIB and all peers: who is told what another one said, and when.
//! - [`backend`]: the seam the daemon talks through, shared with every other backend.
//! - [`latencies`]: how long something took.
//! - `io`: sockets, clocks and tasks; the only module that knows tokio.
//!
//! Everything but `io` takes `now` as an argument and returns what should happen, so a test can
//! run a week of timers in a millisecond. `tests/tidy.rs` keeps it that way.

pub mod backend;
pub mod bfd;
pub mod bgp;
#[cfg(feature = "io")]
pub mod io;
pub mod latencies;
pub mod ndp;
pub mod rib;
pub mod rng;
#[cfg(test)]
// Test code is held to the rules of tests.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod sim;
pub mod speaker;
pub mod time;
pub mod types;
pub mod wire;
