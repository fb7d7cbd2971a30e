//! What our HTTP servers have in common: where they listen, how they reply, and HTTP and HTTPS within
//! bounds.
//!
//! Knows no path and no content. Used by `metrics`, `node_api`, `proxy` and the servers in `kubernetes`.

mod https;
mod listen;
mod probes;
mod reply;

pub(crate) use https::{HttpsBounds, Peer, serve};
pub use listen::{HttpListen, HttpListenError};
pub(crate) use probes::serve_probes;
pub(crate) use reply::{json, plain, response, text_of};
