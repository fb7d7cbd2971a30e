//! Three to eight speakers in transit: each with several neighbours, outside its AS and inside, which
//! it tells what the others announce.
//!
//! | question | module |
//! |---|---|
//! | who is beside whom, and what may pass | [`topology`] |
//! | one speaker without its sockets | [`node`] |
//! | what was said over a connection, read a second time | [`speech`] |
//! | the event loop, and what goes wrong | [`network`], [`faults`] |
//! | what all tables must be when all is quiet | [`fixpoint`] |
//!
//! Shares with the speaker what reads bytes, and nothing that decides.

mod faults;
mod fixpoint;
mod network;
mod node;
mod speech;
mod topology;

pub(super) use network::Network;
