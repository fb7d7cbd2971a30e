//! Which routes exist, and what each peer was told.
//!
//! [`LocRib`] holds the routes of our own; [`AdjRibOut`] what one peer was told and still has to
//! be told; [`export`] decides with which attributes a route leaves. Knows no bytes on a socket
//! and no timer.

mod adj_rib_out;
mod export;
mod loc_rib;

pub use adj_rib_out::AdjRibOut;
pub use export::{Exporter, Ineligible};
pub use loc_rib::LocRib;
