//! BGP-4 as pure machines: from bytes to routes and back, and when.
//!
//! ```text
//!  speaker ─► session ─► rib ─► wire        ndp
//! ```
//!
//! - [`wire`]: decodes and encodes messages; knows no session.
//! - [`rib`]: which routes exist, and which were advertised to each peer.
//! - [`session`]: one neighbour: its connections, timers, negotiation, and what to send next.
//! - [`speaker`]: all neighbours around one RIB: which of them receive a change, start-up, admission.
//! - [`ndp`]: finds the router at the other end of a link without addresses.
//!
//! The values are those of `fairway-ground` and `fairway-seam`. Everything takes `now` as an argument and
//! returns the actions to take, so a test can run a week of timers in a millisecond. Knows no socket, clock,
//! task or log. Called by `fairway-sessions`, which has those, and by the fuzzer.

#[cfg(test)]
mod example;
pub mod ndp;
pub mod rib;
pub mod session;
#[cfg(test)]
// Test code follows the rules of tests.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod sim;
pub mod speaker;
pub mod wire;
