//! Router discovery on the link of an unnumbered neighbour (RFC 4861).
//!
//! Two routers that have no address but the one that every interface has find each other by router
//! advertisements: each says that it is there, and so learns where to dial. Here is what they look
//! like ([`message`]) and when to send one ([`discovery`]). Knows no socket and no session; `io`
//! drives it.

pub mod discovery;
pub mod message;

pub use discovery::Discovery;
pub use message::{Message, NdpFault, Packet, router_advertisement};
