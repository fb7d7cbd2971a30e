//! Sockets, the clock and the task around the responder.

mod edge;
mod fence;
mod groups;
mod interface;
mod kernel;
mod socket;

pub use edge::{Edge, Reach};
pub use fence::Fence;
