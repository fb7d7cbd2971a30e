//! Native BGP sessions.
//!
//! The crate is a set of pure machines and one edge that drives them:
//!
//! ```text
//!  io ─► speaker ─► bgp ──► rib ──► wire
//!   ├───► bfd
//!   └───► ndp
//! ```
//!
//! - [`wire`]: decodes and encodes messages; knows no session.
//! - [`ndp`]: finds the router at the other end of a link without addresses.
//! - [`bfd`]: whether the path to a neighbour works, in milliseconds.
//! - [`rib`]: which routes exist, and which were advertised to each peer.
//! - [`bgp`]: one neighbour: its connections, timers, negotiation, and what to send next.
//! - [`speaker`]: all neighbours around one RIB: which of them receive a change, start-up, admission.
//! - `io`: sockets, clocks and tasks; the only module that knows tokio.
//!
//! The values are those of `fairway-ground` and `fairway-seam`. Everything but `io` takes `now` as an argument
//! and returns the actions to take, so a test can run a week of timers in a millisecond. `tests/tidy` enforces
//! that.

mod backend {
    pub(crate) use fairway_seam::*;
}
pub mod bfd;
pub mod bgp;
#[cfg(test)]
mod example;
#[cfg(feature = "io")]
pub mod io;
mod latencies {
    pub(crate) use fairway_seam::Latencies;
}
pub mod ndp;
pub mod rib;
mod rng {
    pub(crate) use fairway_ground::Rng;
}
#[cfg(test)]
// Test code follows the rules of tests.
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
pub mod sim;
mod time {
    pub(crate) use fairway_ground::Instant;
}
mod types {
    pub(crate) use fairway_ground::*;
    pub(crate) use fairway_seam::{
        Aggregator, DecisionStep, Origin, Path, PathAttributes, PathSource, PeerConfig, Refusal,
        RouteChange, UnknownAttribute,
    };
    #[cfg(test)]
    pub(crate) use fairway_seam::{ChangeEffect, PeerBfd, PeerSetting};
}
pub mod speaker;
pub mod wire;
