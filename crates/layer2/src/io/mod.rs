//! Sockets, the clock and the task around the responder.

mod edge;
mod groups;
mod interface;
mod socket;

pub use edge::Edge;
