//! One BGP speaker: its RIB, all its peers, its start-up, and what each of them does next.
//!
//! [`Speaker`] takes events ([`Speaker::handle`]), returns actions ([`Speaker::poll_action`]), fills a
//! buffer for each connection with room in its socket ([`Speaker::poll_transmit`]) and names the time of
//! its next deadline ([`Speaker::next_deadline`]). Routes of one peer enter the RIB while its bytes are
//! processed, and are passed on to the others in the same turn.
//!
//! | question | module |
//! |---|---|
//! | the events and the actions | [`event`], [`action`] |
//! | the machine, turn by turn | [`speaker`] |
//! | one peer and the bytes that it was given to write | [`neighbour`] |
//! | which changes of its routes the RIB has not got yet | [`unlearned`] |
//! | the desired state and the start of the process | [`desired`], [`startup`] |
//! | what is sent, and which peers know of a withdrawal by then | [`told`] |
//! | which peers have something to do | [`agenda`] |
//! | which next hops cannot be reached, and what becomes of their paths | [`next_hops`] |
//! | which addresses may connect, and the neighbours of ranges | [`admission`], [`ranges`] |
//! | the view for `show` | [`view`] |
//! | what happens when the work on one peer panics | [`guard`] |
//!
//! Knows no socket, clock, task or log. Called by the core task of `fairway-sessions`, the simulator and the
//! fuzzer.

mod action;
mod admission;
mod agenda;
mod desired;
mod event;
mod forwarding;
mod guard;
mod monitoring;
mod neighbour;
mod next_hops;
mod parts;
mod ranges;
#[allow(clippy::module_inception, reason = "the machine has the name of its module")]
mod speaker;
mod startup;
mod told;
mod unlearned;
mod view;

pub use action::{Action, PeerAction, Report};
pub use admission::{Admission, Admitted};
pub use event::Event;
pub use guard::{Guard, Unguarded};
pub use ranges::{Joined, Refused};
pub use speaker::Speaker;

#[cfg(test)]
mod tests;
