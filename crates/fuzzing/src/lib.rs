//! Everything that comes from the network, made up and bent.
//!
//! - [`targets`]: one function for each kind of bytes that a neighbour can send. Each asserts what
//!   must hold whatever came, and says how the bytes were answered.
//! - [`grammar`]: valid messages, drawn from a seed, that know where their length fields are.
//! - [`mutation`]: what a broken or hostile neighbour would make of them.
//!
//! The driver (`main.rs`) runs mutants through all targets for a while; the libFuzzer targets in
//! `fuzz/` call the same functions. Knows no socket, and nothing of how the bytes are parsed.

// What fails here is a finding, and ends the run with the seed that leads to it.
#![allow(clippy::panic, clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

pub mod dice;
pub mod grammar;
pub mod mutation;
pub mod outcome;
pub mod stream;
pub mod targets;

pub use dice::Dice;
pub use outcome::{Answer, Outcome};
pub use targets::{TARGETS, Target};
