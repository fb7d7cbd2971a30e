//! Two simulated speakers: the real [`crate::speaker::Speaker`] on a virtual clock, joined by TCP
//! connections that delay, cut, stall, break and vanish.
//!
//! | question | module |
//! |---|---|
//! | one speaker, and the rules it must keep | [`router`], [`rules`] |
//! | the process around it, and how that ends and restarts | [`process`], [`restart`] |
//! | what must be left of the routes of a neighbour that restarts | [`helper`] |
//! | one TCP connection | [`wire`] |
//! | what goes wrong, drawn from a seed | [`faults`], [`settings`] |
//! | the event loop | [`world`] |
//! | every order of the first events | [`explore`] |
//! | three to eight speakers in transit | [`transit`] |
//! | what was received, as JSON lines, and again | [`log`], [`replay`] |
//!
//! A failure is a number that replays it. Only tests import this module.

mod explore;
mod faults;
mod helper;
mod log;
mod process;
mod replay;
mod restart;
mod router;
mod rules;
mod settings;
mod transit;
mod wire;
mod world;

#[cfg(test)]
pub(crate) mod tests;

pub use faults::Faults;
pub use world::World;
