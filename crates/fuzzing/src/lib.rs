//! Generates and corrupts all input from the network.
//!
//! - [`targets`]: one function for each kind of bytes that a neighbour can send. Each asserts what must hold
//!   for any input, and returns how the bytes were treated.
//! - [`grammar`]: valid messages, drawn from a seed, with the positions of their length fields.
//! - [`mutation`]: corrupts them as a broken or hostile neighbour would.
//!
//! The driver (`main.rs`) runs mutants through all targets; the libFuzzer targets in `fuzz/` call the same
//! functions. Knows no socket, and nothing about how the bytes are parsed.

// A failure here is a finding, and ends the run with its seed.
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
