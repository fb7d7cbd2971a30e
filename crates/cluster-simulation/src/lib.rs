//! A cluster in a box: the real [`fairway_cluster`] cores on a virtual clock, with an API server,
//! a network between them, a user, and routers that keep routes of restarting nodes.
//!
//! | question | module |
//! |---|---|
//! | what happens, drawn from a seed | [`schedule`], `objects` |
//! | the event loop | [`world`] |
//! | a process, and the connection that it has to the API server | `process`, `edge` |
//! | what the user does, and what fails | `happening` |
//! | what the routers receive and keep | `sessions`, `router` |
//! | the actual state, and the invariants | `truth`, [`rules`], `quiet` |
//! | mistakes that the rules must notice | [`misbehaviour`] |
//! | the shortest schedule of a failure | [`shrink`] |
//!
//! A failure is a seed that replays it.

// Only JSON of this crate is indexed, and a mistake in that must fail at once.
#![allow(clippy::indexing_slicing)]

mod edge;
mod epoch;
mod happening;
pub mod misbehaviour;
mod objects;
mod process;
mod quiet;
mod router;
pub mod rules;
pub mod schedule;
mod sessions;
pub mod shrink;
mod truth;
pub mod world;
mod written;

pub use misbehaviour::{Misbehaviour, Mistake};
pub use rules::Violation;
pub use schedule::{Op, Schedule, Step, Who};
pub use world::{Verdict, World};
