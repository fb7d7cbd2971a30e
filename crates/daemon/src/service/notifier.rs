//! Sends notifications to the service manager from a separate thread: a service manager that does not read
//! must not stop the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, warn};

/// Notifications in the queue for a busy service manager. Further ones are dropped: a late watchdog signal is
/// useless.
const MESSAGES_MAX: usize = 16;
/// How long the end of the daemon waits for its last notification. A service manager that reads its socket
/// takes it within microseconds.
const LAST_LIMIT: Duration = Duration::from_secs(1);

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

/// One datagram to the service manager.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) words: Vec<Word>,
    /// Dropped when the message is sent, or cannot be.
    pub(super) in_hand: Option<oneshot::Sender<()>>,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Notifier {
    messages: SyncSender<Message>,
    is_ready: Arc<AtomicBool>,
}

impl Notifier {
    #[cfg(test)]
    pub(super) fn into(messages: SyncSender<Message>) -> Self {
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
        self.queue(Message { words, in_hand: None });
    }

    /// Queues the last notifications, at once. The future ends when they are sent, or after
    /// [`LAST_LIMIT`]: the thread ends with the process, and what is still in the queue is lost.
    pub(super) fn say_last(&self, words: Vec<Word>) -> impl Future<Output = ()> + use<> {
        let (in_hand, sent) = oneshot::channel();
        self.queue(Message { words, in_hand: Some(in_hand) });
        async { drop(timeout(LAST_LIMIT, sent).await) }
    }

    fn queue(&self, message: Message) {
        if self.messages.try_send(message).is_err() {
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
fn send_all(inbox: &Receiver<Message>) {
    let mut failed = false;
    for Message { words, in_hand } in inbox {
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
        drop(in_hand);
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
