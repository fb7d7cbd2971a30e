//! Router discovery on the link of an unnumbered neighbour (RFC 4861).
//!
//! Two routers with only link-local addresses discover each other by router advertisements, which also
//! provide the address to dial. [`message`] has their format, [`discovery`] decides when to send one. Knows
//! no socket and no session; driven by `fairway-sessions`.

pub mod discovery;
pub mod message;

pub use discovery::Discovery;
pub use message::{Message, NdpFault, Packet, router_advertisement};
