//! Which routes exist, which of them are used, and what each peer was told.
//!
//! ```text
//!  UPDATE ─► Importer ─► AdjRibIn ─► LocRib (decision) ─► Exporter ─► AdjRibOut ─► UPDATE
//!                          originated ──┘
//! ```
//!
//! [`AdjRibIn`] holds what one peer announced and we accepted; [`LocRib`] the routes of our own and
//! all accepted paths, of which [`decide`] finds the best; [`AdjRibOut`] what one peer was told and
//! still has to be told. [`Importer`] and [`Exporter`] are the policies on the way in and out.
//! Knows no bytes on a socket and no timer.

mod adj_rib_in;
mod adj_rib_out;
mod decision;
mod export;
mod import;
mod loc_rib;
mod only_to_customer;
mod originated;
mod path_ids;
mod shared;

pub use adj_rib_in::AdjRibIn;
pub use adj_rib_out::AdjRibOut;
pub use decision::decide;
pub use export::{Exporter, Ineligible};
pub use import::Importer;
pub use loc_rib::{LocRib, Route, Touched};
pub use path_ids::PathKey;
