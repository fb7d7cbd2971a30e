//! Tells when something else removes what is ours from the packet filter.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fairway_dataplane::FilterWatch;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

/// A program that flushes the packet filter removes one thing after the other, and may put something in its place.
const PAUSE: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct FilterEvents {
    removals: Arc<Notify>,
    /// Something was removed: when to look.
    due: Option<Instant>,
}

impl FilterEvents {
    /// Watches in a thread of its own, to the end of the process.
    pub(super) fn start(mut watch: FilterWatch) -> io::Result<Self> {
        let removals = Arc::new(Notify::new());
        let told = Arc::clone(&removals);
        thread::Builder::new().name("filter-watch".to_owned()).spawn(move || {
            loop {
                match watch.wait() {
                    Ok(()) => told.notify_one(),
                    Err(error) => {
                        warn!("cannot watch the packet filter: {error}; it is read every 30 s");
                        return;
                    }
                }
            }
        })?;
        Ok(Self { removals, due: None })
    }

    /// Waits until something was removed, and a moment more. Cancel-safe.
    pub(super) async fn removal(&mut self) {
        if self.due.is_none() {
            self.removals.notified().await;
        }
        let due = *self.due.get_or_insert_with(soon);
        sleep_until(due).await;
        self.due = None;
    }
}

fn soon() -> Instant {
    Instant::now() + PAUSE
}
