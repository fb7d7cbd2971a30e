//! Learned routes in the kernel: which it shall have, by which ways, and which of them are ours.
//!
//! Two halves. The pure half takes what BGP wants to forward by ([`fairway_seam::ForwardingChange`]), what the kernel has
//! ([`fairway_netlink::Machine`]) and the outcome of earlier orders, and returns orders ([`Fib`]). The edge
//! ([`Installer`]) owns the sockets and a thread. The crate refuses to know sessions, and which route is best.
//!
//! Ours are the routes with [`MARK`] in the main table and in the tables of VRFs, and no others: it is in the kernel with
//! them, and so outlives this process and its disk.

mod fib;
mod interned;
#[cfg(feature = "io")]
mod io;
mod order;
mod surroundings;

pub use fib::{Fib, Note, Place};
#[cfg(feature = "io")]
pub use io::{Input, Installer};
pub use order::{Order, Outcome, Refused};
pub use surroundings::{MARK, Surroundings};
