//! Which of the machines that share addresses are alive? Each sends a heartbeat to all others ten times a
//! second, encrypted with a key that they share.
//!
//! ```text
//!  datagrams ─► Keys ─► Heartbeat ─► Membership ─┬─► who is alive, and until when this machine may answer
//!                                                └─► Heartbeat ─► Keys ─► datagrams
//! ```
//!
//! A fixed mesh in place of gossip (SWIM): a crash is noticed by all at the same moment, after three and a half
//! intervals, with nothing to spread first, and the cost is bounded by longer intervals where members are many
//! ([`membership::interval`]). A member that one machine cannot hear is alive as long as another one vouches
//! for it.
//!
//! Pure: datagrams and the time in, datagrams and answers out. Refuses to know addresses, Services and nodes.
//! Called by the edge of the daemon.

pub mod heartbeat;
pub mod membership;
pub mod seal;

pub use heartbeat::{Heartbeat, Standing};
pub use membership::{MemberState, MemberView, Membership, Settings};
pub use seal::{KeyError, Keys, Sealer};
