//! Tells when something else removes what is ours from the packet filter.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fairway_dataplane::{DataPath, FilterWatch};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

/// A program that flushes the packet filter removes one thing after the other, and may put something in its place.
const PAUSE: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Default)]
pub(super) struct FilterEvents {
    removals: Arc<Notify>,
    /// Something was removed: when to look.
    due: Option<Instant>,
    /// There is a thread that watches, or it could not be started.
    is_begun: bool,
}

impl FilterEvents {
    /// Whether [`Self::begin`] was called.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Watches from now on, to the end of the process.
    pub(super) fn begin(&mut self, data_path: &mut DataPath) {
        self.is_begun = true;
        let begun = data_path.watch_filter().map_err(io::Error::other);
        let begun = begun.and_then(|(watch, is_undisturbed)| {
            self.start(watch)?;
            Ok(is_undisturbed)
        });
        match begun {
            Ok(true) => {}
            // It may have removed something.
            Ok(false) => self.removals.notify_one(),
            Err(error) => unwatched(&error),
        }
    }

    /// In a thread of its own.
    fn start(&self, mut watch: FilterWatch) -> io::Result<()> {
        let told = Arc::clone(&self.removals);
        thread::Builder::new().name("filter-watch".to_owned()).spawn(move || {
            loop {
                match watch.wait() {
                    Ok(()) => told.notify_one(),
                    Err(error) => {
                        unwatched(&error);
                        return;
                    }
                }
            }
        })?;
        Ok(())
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

fn unwatched(error: &io::Error) {
    warn!("cannot watch the packet filter: {error}; it is read every 30 s");
}

fn soon() -> Instant {
    Instant::now() + PAUSE
}
