//! Notifications to a service manager (systemd): readiness, status, watchdog.
//!
//! An edge, active only if `NOTIFY_SOCKET` is set. A task asks the main loop and the BGP core for their
//! state; [`condition`] derives readiness and the status line from the answers. The watchdog signal is sent
//! only if both answer: a daemon that hangs is silent, and systemd restarts it. The standalone loop starts
//! the task, answers it, and notifies it when files are read again.

mod notifier;

use std::sync::Arc;
use std::time::Duration;

use fairway_node::drain::DrainStatus;
use fairway_seam::{Backend, BgpView, ViewScope};
use fairway_show::condition::{Condition, Facts, condition};
use notifier::{Notifier, Word};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};
use tracing::info;

use crate::host::{Enquirer, Published};

#[cfg(test)]
mod tests;

/// How soon readiness is noticed.
const START_INTERVAL: Duration = Duration::from_millis(50);
/// How old the text of `systemctl status` may be, and how often it changes at most.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);
/// How often the start timeout is extended, and by how much.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(10);
const EXTENSION: Duration = Duration::from_secs(30);
/// The shortest pause: a watchdog interval below it is a mistake, and must not keep the daemon busy.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Watchdog signals per watchdog interval.
const SIGNS_OF_LIFE: u32 = 4;

/// The request of the task to the main loop: is it alive, and have all sources been read?
type Question = oneshot::Sender<bool>;

/// How far the source of the resources has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As far as before.
    AsBefore,
    /// Everything has been read at least once, and is in force.
    Complete,
    /// Everything has been read again, as a reload asked.
    Again,
}

/// The main loop's end of the channel.
pub(crate) struct Service {
    notifier: Option<Notifier>,
    questions: mpsc::Receiver<Question>,
    sources_have_spoken: bool,
}

impl Service {
    /// Starts the notifications if there is a service manager.
    ///
    /// Must be called inside a tokio runtime.
    pub(crate) fn start(enquirer: Enquirer, backend: Arc<dyn Backend>) -> Self {
        let (ask, questions) = mpsc::channel(1);
        let notifier = Notifier::start();
        if let Some(notifier) = notifier.clone() {
            let attendant = Attendant {
                ask,
                enquirer,
                backend,
                watchdog: sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()),
                notifier,
                said: Said::default(),
            };
            tokio::spawn(attendant.run());
        }
        Self { notifier, questions, sources_have_spoken: false }
    }

    /// Answers the next request; waits forever without a service manager. Cancel-safe.
    pub(crate) async fn answer(&mut self) {
        match self.questions.recv().await {
            // The task may have ended.
            Some(question) => drop(question.send(self.sources_have_spoken)),
            None => std::future::pending().await,
        }
    }

    /// All files are being read again.
    pub(crate) fn reloading(&self) {
        self.say_if_ready(Word::Reloading);
    }

    /// The source has read this far.
    pub(crate) fn read(&mut self, reading: Reading) {
        self.sources_have_spoken |= reading != Reading::AsBefore;
        if reading == Reading::Again {
            self.say_if_ready(Word::Ready);
        }
    }

    /// The daemon is stopping. The process must not end before the future does.
    pub(crate) fn leaving(&self) -> impl Future<Output = ()> + use<> {
        let words = vec![Word::Stopping, Word::Status("leaving".to_owned())];
        let told = self.notifier.as_ref().map(|notifier| notifier.say_last(words));
        async {
            if let Some(told) = told {
                told.await;
            }
        }
    }

    /// Before the daemon is ready, a reload is a part of the start.
    fn say_if_ready(&self, word: Word) {
        if let Some(notifier) = self.notifier.as_ref().filter(|notifier| notifier.is_ready()) {
            notifier.say(vec![word]);
        }
    }
}

/// The last notifications, and their times.
#[derive(Debug, Default)]
struct Said {
    sources_had_spoken: Option<Instant>,
    status: String,
    sign_of_life: Option<Instant>,
    extension: Option<Instant>,
}

/// The task.
struct Attendant {
    ask: mpsc::Sender<Question>,
    enquirer: Enquirer,
    backend: Arc<dyn Backend>,
    watchdog: Option<Duration>,
    notifier: Notifier,
    said: Said,
}

impl Attendant {
    /// Runs until the main loop or the backend is gone.
    async fn run(mut self) {
        loop {
            let (question, answer) = oneshot::channel();
            if self.ask.send(question).await.is_err() {
                return;
            }
            let Ok(have_spoken) = answer.await else { return };
            let Ok(view) = self.backend.view(ViewScope::SESSIONS).await else { return };
            let Some(published) = self.enquirer.ask().await else { return };
            self.report(have_spoken, &published, &view);
            let pause = if self.notifier.is_ready() { STATUS_INTERVAL } else { START_INTERVAL };
            let limit = self.watchdog.map_or(pause, |limit| limit / SIGNS_OF_LIFE);
            sleep(pause.min(limit.max(PAUSE_MIN))).await;
        }
    }

    /// Sends what changed. Both have just answered.
    fn report(&mut self, have_spoken: bool, published: &Published, view: &BgpView) {
        let now = Instant::now();
        if have_spoken {
            self.said.sources_had_spoken.get_or_insert(now);
        }
        let Condition { is_ready, text } = condition(&Facts {
            since_sources: self.said.sources_had_spoken.map(|then| now.duration_since(then)),
            plan: &published.plan,
            view,
            faults: published.findings.iter().filter(|finding| finding.is_fault()).count(),
            drain: (published.drain != DrainStatus::InService).then(|| published.drain.to_string()),
        });
        let mut words = Vec::new();
        if is_ready && self.notifier.set_ready() {
            info!(status = text, "ready");
            words.push(Word::Ready);
        }
        let is_due = |last: Option<Instant>, interval: Duration| {
            last.is_none_or(|last| now.duration_since(last) >= interval)
        };
        if !is_ready && is_due(self.said.extension, EXTENSION_INTERVAL) {
            words.push(Word::ExtendTimeout(EXTENSION));
            self.said.extension = Some(now);
        }
        if let Some(limit) = self.watchdog
            && is_due(self.said.sign_of_life, limit / SIGNS_OF_LIFE)
        {
            words.push(Word::Watchdog);
            self.said.sign_of_life = Some(now);
        }
        if text != self.said.status {
            words.push(Word::Status(text.clone()));
            self.said.status = text;
        }
        if !words.is_empty() {
            self.notifier.say(words);
        }
    }
}
