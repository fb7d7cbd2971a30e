//! The clients of a server: so many at a time, and the silent ones make room for others.
//!
//! Knows no protocol. Used by the servers that any neighbor may connect to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairway_ground::Bound;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};

/// How long to wait for a client to end, while all are at work.
const PAUSE: Duration = Duration::from_millis(100);

/// How many clients there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientLimits {
    pub(crate) clients_max: usize,
    /// How long a client may be silent while others wait.
    pub(crate) silence: Duration,
    /// Counts clients that were disconnected.
    pub(crate) bound: Bound,
}

/// The clients of a server, oldest first. Dropping it disconnects them.
#[derive(Debug)]
pub(crate) struct Clients {
    limits: ClientLimits,
    tasks: JoinSet<()>,
    clients: VecDeque<Client>,
}

#[derive(Debug)]
struct Client {
    task: AbortHandle,
    work: Work,
    since: Instant,
}

/// Whether a client has asked and is not answered yet: then it stays.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work(Arc<AtomicBool>);

impl Work {
    pub(crate) fn begins(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ends(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn is_done(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

impl Clients {
    pub(crate) fn new(limits: ClientLimits) -> Self {
        Self { limits, tasks: JoinSet::new(), clients: VecDeque::new() }
    }

    /// Waits until there is room for another one.
    pub(crate) async fn make_room(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        while !self.has_room() {
            // All of them are at work, or have just come: one will end soon.
            let _ = timeout(PAUSE, self.tasks.join_next()).await;
        }
    }

    /// Disconnects the oldest silent one, if there are too many.
    fn has_room(&mut self) -> bool {
        self.clients.retain(|it| !it.task.is_finished());
        if self.clients.len() < self.limits.clients_max {
            return true;
        }
        let is_silent =
            |it: &Client| it.work.is_done() && it.since.elapsed() >= self.limits.silence;
        let silent = self.clients.iter().position(is_silent);
        let Some(silent) = silent.and_then(|it| self.clients.remove(it)) else { return false };
        silent.task.abort();
        self.limits.bound.count();
        true
    }

    /// Serves one in a task of its own.
    pub(crate) fn serve<F>(&mut self, serving: impl FnOnce(Work) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work = Work::default();
        let task = self.tasks.spawn(serving(work.clone()));
        self.clients.push_back(Client { task, work, since: Instant::now() });
    }
}
