//! The socket and the task: the only part of the crate that knows the system.
//!
//! One socket and one task for each [`Watch`]. The task moves bytes between the socket and the
//! [`crate::Follower`], which decides. One socket for each [`Requests`].

mod requests;
mod socket;
mod watch;

pub use requests::Requests;
pub use watch::{Watch, read};
