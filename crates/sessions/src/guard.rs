//! Keeps a panic in the work on one neighbour from the others.
//!
//! Called by the speaker and the core task, which both restart that neighbour. Knows no neighbour.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fairway_bgp::speaker::Guard;

/// Catches panics. The process must not be built to abort on them.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatchUnwind;

impl Guard for CatchUnwind {
    fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        // Unwind-safe: the state that the panic left is discarded.
        catch_unwind(AssertUnwindSafe(work)).ok()
    }
}
