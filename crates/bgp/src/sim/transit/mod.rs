//! Three to eight speakers in transit: each with several neighbours, outside its AS and inside, to which
//! it passes on the routes of the others.
//!
//! | question | module |
//! |---|---|
//! | which speakers are neighbours, and which routes may pass | [`topology`] |
//! | one speaker without its sockets | [`node`] |
//! | what was sent over a connection, parsed a second time | [`speech`] |
//! | the event loop, and the faults | [`network`], [`faults`] |
//! | what all tables must be when nothing changes any more | [`fixpoint`] |
//!
//! Shares with the speaker what reads bytes, and nothing that decides.

mod faults;
mod fixpoint;
mod network;
mod node;
mod speech;
mod topology;

pub(super) use network::Network;
