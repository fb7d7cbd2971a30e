//! What happens when the work on one peer panics.
//!
//! The speaker runs all work that concerns one peer inside a [`Guard`]. A guard that catches the
//! panic keeps it from the other peers; the speaker then restarts that peer. Knows no peer.

/// Runs work that may panic.
pub trait Guard {
    /// Runs `work`; `None` if it panicked and the guard caught that.
    fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T>;
}

/// Runs the work directly: a panic unwinds into the caller of the speaker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unguarded;

impl Guard for Unguarded {
    fn run<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        Some(work())
    }
}
