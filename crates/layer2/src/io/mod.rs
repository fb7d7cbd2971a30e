//! Sockets, the clock and the task around the responder.

mod bound;
mod edge;
mod fence;
mod groups;
mod interface;
mod kernel;
mod orders;
mod socket;

pub use edge::Edge;
pub use fence::Fence;
pub use orders::{Member, Reach};
