//! Addresses of Services on the local segment: this machine answers ARP and neighbour discovery for those that
//! it owns, and announces them.
//!
//! ```text
//!  plan: addresses ──┐                       ┌─► frames to send
//!  kernel: links ────┼─► Responder (pure) ───┼─► conflicts
//!  frames ───────────┘                       └─► filters and groups for the kernel
//! ```
//!
//! The pure half answers what each frame means and what is to be sent ([`Responder`]), on which interfaces
//! ([`segment`]), whether the owner of another address answers for it (`witness`), which frames the kernel hands over
//! ([`filter`]), and which addresses are on an interface (`binding`). The edge ([`Edge`]) has the sockets, the clock
//! and the task. Refuses to know Services, nodes, and who owns an address.

pub mod arp;
#[cfg_attr(not(feature = "io"), allow(dead_code))]
mod binding;
pub mod ethernet;
pub mod filter;
#[cfg(feature = "io")]
mod io;
pub mod ndp;
pub mod responder;
pub mod segment;
mod witness;

#[cfg(feature = "io")]
pub use io::{Edge, Fence, Member, Reach};
pub use responder::{Conflict, Interfaces, Responder, Terms};
pub use segment::{EXCLUDED_BY_DEFAULT, Excluded, Segment, Unsuited};
pub use witness::Standby;
