//! The page of the looking glass, what its search finds, and birdwatcher's JSON.
//!
//! ```text
//!  Overview ─► Picture ─► Fragment, one for each part of the page ─► page
//!                │  History: up and down of the last hour
//!                └─ EventLog
//!  Snapshot, Query ─► Found ─► page
//!  Snapshot ────────► birdwatcher
//! ```
//!
//! Pure: values come in, HTML and JSON go out. Knows no socket, no clock and no viewer: module `ui` of the daemon crate has
//! these. Text of others is inserted by templates that escape it.

pub mod birdwatcher;
mod fragment;
mod history;
mod names;
mod page;
mod picture;
mod search;
mod templates;
mod transitions;

#[cfg(test)]
mod tests;

pub use fragment::{Fragment, Part};
pub use page::{ICON, SCRIPT, STYLE, page};
pub use picture::Picture;
pub use search::{Found, Query};
pub use templates::TemplateError;
