//! Sends words to the service manager from a thread of its own: one that does not read must not stop
//! the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use sd_notify::NotifyState;
use tracing::{debug, warn};

/// Messages that may wait for a service manager that is busy. What does not fit is dropped: signs of
/// life that come late are worth nothing.
const MESSAGES_MAX: usize = 16;

/// What the service manager can be told (sd_notify(3)).
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

    /// `None` where nobody wants to be told.
    pub(super) fn start() -> Option<Self> {
        std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())?;
        let (messages, inbox) = sync_channel(MESSAGES_MAX);
        let thread = thread::Builder::new().name("service".to_owned());
        if let Err(error) = thread.spawn(move || send_all(&inbox)) {
            warn!(%error, "the service manager cannot be told how this daemon is");
            return None;
        }
        Some(Self { messages, is_ready: Arc::default() })
    }

    /// Sends one message. Returns at once.
    pub(super) fn say(&self, words: Vec<Word>) {
        if self.messages.try_send(words).is_err() {
            debug!("the service manager does not read what it is told");
        }
    }

    /// Whether the daemon has been ready.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// From now on it has been. Says whether that is new.
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
            // Said once: signs of life go on for as long as the daemon runs.
            Err(error) if !failed => {
                warn!(%error, "the service manager cannot be told how this daemon is");
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
        // systemd 253 and newer want to know when, to tell this reload from an earlier one.
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
