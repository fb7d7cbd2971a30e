//! A cluster in a box: the real [`fairway_cluster`] cores on a virtual clock, with an API server,
//! a network between them, a user, and routers that keep routes of those who restart.
//!
//! | question | module |
//! |---|---|
//! | what happens, drawn from a seed | [`schedule`], `objects` |
//! | the event loop | [`world`] |
//! | a process, and the connection that it has to the API server | `process`, `edge` |
//! | what the user does, and what goes wrong | `happening` |
//! | what the routers hear and keep | `sessions`, `router` |
//! | what is so, and what must hold | `truth`, [`rules`], `quiet` |
//! | mistakes that the rules must notice | [`misbehaviour`] |
//! | the shortest story of a failure | [`shrink`] |
//!
//! A failure is a number that replays it.

// Nothing here but its own JSON is indexed, and a mistake in that is to be seen at once.
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
