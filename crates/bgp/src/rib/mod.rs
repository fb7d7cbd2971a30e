//! Which routes exist, which of them are used, and which were advertised to each peer?
//!
//! ```text
//!  UPDATE ─► Importer ─► AdjRibIn ─► LocRib (decision) ─► Exporter ─► AdjRibOut ─► UPDATE
//!                          originated ──┘
//! ```
//!
//! [`AdjRibIn`] holds the accepted routes of one peer; [`LocRib`] our own routes and all accepted paths, of
//! which [`decide`] selects the best; [`AdjRibOut`] the routes advertised to one peer and the pending
//! changes. [`Importer`] and [`Exporter`] are the import and export policies. Knows no bytes on a socket and
//! no timer.

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
mod unordered;

pub use adj_rib_in::AdjRibIn;
pub use adj_rib_out::AdjRibOut;
pub use decision::decide;
pub use export::{Exporter, Ineligible};
pub use import::Importer;
pub use loc_rib::{LocRib, Route, Touched};
pub use path_ids::PathKey;
