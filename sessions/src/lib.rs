//! Native BGP sessions.
//!
//! The crate is a set of pure machines and one edge that drives them:
//!
//! ```text
//!  io ──► bgp ──► rib ──► types
//!   │      └────► wire ─► types        backend ──► types
//!   └───► bfd ──► types
//! ```
//!
//! - [`types`]: the vocabulary of the field, as values that are valid by construction.
//! - [`wire`]: decodes and encodes messages; knows no session.
//! - [`ndp`]: finds the router at the other end of a link without addresses.
//! - [`bfd`]: whether the path to a neighbour works, in milliseconds.
//! - [`rib`]: which routes exist, and which were advertised to each peer.
//! - [`bgp`]: one neighbour: its connections, timers, negotiation, and what to send next.
//! - [`backend`]: the interface to the daemon, shared with every other backend.
//! - [`latencies`]: a histogram of durations.
//! - `io`: sockets, clocks and tasks; the only module that knows tokio.
//!
//! Everything but `io` takes `now` as an argument and returns the actions to take, so a test can run a week
//! of timers in a millisecond. `tests/tidy.rs` enforces that.

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
// Test code follows the rules of tests.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod sim;
pub mod time;
pub mod types;
pub mod wire;
