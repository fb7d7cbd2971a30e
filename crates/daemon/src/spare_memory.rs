//! When does a thread return what it has freed to the kernel? Memory that a million routes took stays with the allocator of
//! the thread that allocated it, until that thread allocates again: one that has nothing to do keeps it.
//!
//! The binary knows its allocator, and names its call once, in `main`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// The time between two calls of one thread. A call looks at all its pages.
const INTERVAL: Duration = Duration::from_secs(1);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the call. Only the first one counts.
pub(crate) fn set_give_back(call: fn()) {
    // A second call would name the same function.
    let _ = GIVE_BACK.set(call);
}

/// This thread has nothing to do.
#[allow(clippy::disallowed_methods, reason = "an edge: the allocator knows no virtual time")]
pub(crate) fn thread_is_idle() {
    let Some(give_back) = GIVE_BACK.get() else { return };
    let now = Instant::now();
    if LAST.get().is_none_or(|last| now.duration_since(last) >= INTERVAL) {
        give_back();
        LAST.set(Some(now));
    }
}
