//! The machine as its kernel describes it: links, addresses, routes and neighbours of a network namespace.
//!
//! Two halves. The pure half turns rtnetlink messages into facts ([`decode`]), facts into an immutable
//! snapshot ([`Machine`]), and knows when the snapshot has to be read again ([`Follower`]). The edge
//! ([`Watch`]) owns the socket and the task. The crate refuses to know how the facts are used: BGP, BFD and
//! layer 2 query the snapshot and wait for [`Watch::changed`].
//!
//! Requests are built in [`request`]. Those that change a table ([`Requests`]) have a socket beside the one of
//! [`Watch`], so that an answer never waits behind events.

pub mod address;
pub mod decode;
pub mod follower;
#[cfg(feature = "io")]
mod io;
pub mod kind;
pub mod link;
pub mod machine;
pub mod neighbour;
pub mod request;
pub mod route;
pub mod scope;
#[cfg(test)]
mod simulated;

pub use address::Address;
pub use decode::Fact;
pub use follower::Follower;
#[cfg(feature = "io")]
pub use io::{Requests, Watch, read};
pub use kind::{Kind, Kinds};
pub use link::Link;
pub use machine::Machine;
pub use neighbour::{Neighbour, NeighbourState};
pub use route::{NextHop, Route, RouteKind, RouteMark, RouteOrder};
pub use scope::{RouteScope, Scope};
