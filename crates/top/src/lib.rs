//! The screen of `fairway top`, and what its keys do.
//!
//! ```text
//!  Overview ─► Screen ─► draw ─► a buffer of cells
//!  Key ──────►   │
//!                └─► Reaction: quit, or explain this
//! ```
//!
//! Pure: overviews, keys and the time come in, cells and reactions go out. Knows no terminal, no socket and no
//! clock: `cli/top.rs` of the daemon crate has these. Text of others is drawn with its control characters escaped.

mod draw;
mod layout;
mod rates;
mod screen;
mod table;
mod view;

#[cfg(test)]
mod tests;

pub use draw::draw;
pub use screen::{Key, Reaction, Screen};
