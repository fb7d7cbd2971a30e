//! Two speakers in a box: the real [`crate::bgp::Peer`] and RIB on a virtual clock, joined by TCP
//! connections that delay, cut, stall and break.
//!
//! Everything is drawn from one seed, so a failure is a number that replays it. Only tests import
//! this module.

mod router;
mod wire;
mod world;

#[cfg(test)]
mod tests;

pub use world::{Faults, World};
