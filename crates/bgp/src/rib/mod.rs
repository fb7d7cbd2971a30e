//! Which routes exist, which of them are used, and what has each peer still to be told?
//!
//! ```text
//!  UPDATE ─► Importer ─► AdjRibIn ─► LocRib (decision) ─► Exporter ─► AdjRibOut ─► UPDATE
//!                          originated ──┘
//! ```
//!
//! [`AdjRibIn`] holds the accepted routes of one peer; [`LocRib`] our own routes and all accepted paths, of
//! which [`decide`] selects the best; [`AdjRibOut`] what one peer has still to be told; [`ExportGroups`] what peers with the
//! same policy are sent alike, encoded once for all of them.
//! [`Importer`] and [`Exporter`] are the import and export policies, [`apply_rules`] what rules of an operator make of a
//! route. Knows no bytes on a socket and
//! no timer.

mod adj_rib_in;
mod adj_rib_out;
mod decision;
mod entries;
mod export;
mod export_groups;
mod forwarding;
mod group_updates;
mod groups;
mod import;
mod lagging;
mod loc_rib;
mod only_to_customer;
mod originated;
mod pages;
mod passed_on;
mod prefix_set;
mod prefix_table;
mod routes;
mod rules;
mod shared;
mod unordered;
mod unreachable;
mod waiting;

pub use adj_rib_in::AdjRibIn;
pub use adj_rib_out::AdjRibOut;
pub(crate) use adj_rib_out::WAITING_MAX;
pub use decision::{MedScope, decide};
pub use export::{Encoding, Exporter, Ineligible, Outgoing};
pub use export_groups::ExportGroups;
pub use forwarding::gateways;
pub use group_updates::{GroupUpdates, OnTheWay};
pub use import::{Importer, Rulings};
pub use loc_rib::{Change, Changes, LocRib, OfSource};
pub use prefix_set::PrefixSet;
pub use prefix_table::PrefixId;
pub use routes::{Offer, Route, Routes};
pub use rules::{RejectedBy, Ruled, apply_rules, rules_in_reach};
