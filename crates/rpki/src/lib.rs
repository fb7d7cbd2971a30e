//! Which AS may originate a prefix: validated payloads of RPKI caches, and what follows for routes.
//!
//! Caches are asked over the RPKI-to-router protocol (RFC 8210, version 1, and 0 where the cache has no other): [`Cache`]
//! is the machine of one of them, without a socket or a clock. [`Payloads`] has what all of them say; [`OriginTable`] tells
//! the state of a route by that (RFC 6811). Knows no session of BGP, and not what is done with a route that is invalid.

mod cache;
mod origin_table;
mod payloads;
pub mod pdu;

pub use cache::{Action, Cache, CacheView, Event, Report};
pub use origin_table::{OriginTable, origin};
pub use payloads::{Concerned, PayloadChange, Payloads};
