//! Sends notifications to the service manager from a separate thread: a service manager that does not read
//! must not stop the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use sd_notify::NotifyState;
use tracing::{debug, warn};

/// Notifications in the queue for a busy service manager. Further ones are dropped: a late watchdog signal is
/// useless.
const MESSAGES_MAX: usize = 16;

/// A notification to the service manager (sd_notify(3)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    Ready,
    Reloading,
    Stopping,
    Status(String),
    Watchdog,
    ExtendTimeout(Duration),
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Notifier {
    messages: SyncSender<Vec<Word>>,
    is_ready: Arc<AtomicBool>,
}

impl Notifier {
    #[cfg(test)]
    pub(super) fn into(messages: SyncSender<Vec<Word>>) -> Self {
        Self { messages, is_ready: Arc::default() }
    }

    /// `None` without a service manager.
    pub(super) fn start() -> Option<Self> {
        std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())?;
        let (messages, inbox) = sync_channel(MESSAGES_MAX);
        let thread = thread::Builder::new().name("service".to_owned());
        if let Err(error) = thread.spawn(move || send_all(&inbox)) {
            warn!(%error, "cannot notify the service manager");
            return None;
        }
        Some(Self { messages, is_ready: Arc::default() })
    }

    /// Queues notifications. Returns at once.
    pub(super) fn say(&self, words: Vec<Word>) {
        if self.messages.try_send(words).is_err() {
            debug!("the service manager does not read its socket");
        }
    }

    /// Whether the daemon was ready once.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Records that it is ready. Returns whether that is new.
    pub(super) fn set_ready(&self) -> bool {
        !self.is_ready.swap(true, Ordering::Relaxed)
    }
}

/// Runs until the daemon ends.
fn send_all(inbox: &Receiver<Vec<Word>>) {
    let mut failed = false;
    for words in inbox {
        let states: Vec<NotifyState<'_>> = words.iter().flat_map(states).collect();
        match sd_notify::notify(&states) {
            // Logged once: watchdog signals go on for as long as the daemon runs.
            Err(error) if !failed => {
                warn!(%error, "cannot notify the service manager");
                failed = true;
            }
            Err(_) => {}
            Ok(()) => failed = false,
        }
    }
}

fn states(word: &Word) -> Vec<NotifyState<'_>> {
    match word {
        Word::Ready => vec![NotifyState::Ready],
        // systemd 253 and newer need the time, to distinguish this reload from an earlier one.
        Word::Reloading => [Some(NotifyState::Reloading), NotifyState::monotonic_usec_now().ok()]
            .into_iter()
            .flatten()
            .collect(),
        Word::Stopping => vec![NotifyState::Stopping],
        Word::Status(text) => vec![NotifyState::Status(text)],
        Word::Watchdog => vec![NotifyState::Watchdog],
        Word::ExtendTimeout(time) => {
            let microseconds = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
            vec![NotifyState::ExtendTimeoutUsec(microseconds)]
        }
    }
}
