//! The native backend: hands the desired state to the core task, and questions with it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::bfd::BfdOptions;
use super::core_task::{Command, CoreTask, Handed};
use super::listen::Listen;
use super::listeners::Listeners;
use fairway_ground::PeerKey;
use fairway_seam::{
    Backend, BackendError, Clear, ClearFuture, Desired, EarlierRun, Leave, ViewFuture, ViewScope,
};

/// Events that may wait for the core: enough that readers rarely wait for each other, few enough
/// that a flood fills the sockets and not our memory (each holds at most one read, 16 KiB, and no
/// connection has more than two).
const EVENTS_MAX: usize = 256;
/// Requests that may wait: each is one `show`.
const COMMANDS_MAX: usize = 16;
/// How long the shutdown may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Fairway's own BGP sessions.
#[derive(Debug)]
pub struct NativeBackend {
    desired: watch::Sender<Handed>,
    commands: mpsc::Sender<Command>,
    withdrawn: watch::Receiver<u64>,
    changed: watch::Receiver<u64>,
    tasks: TaskTracker,
    listening: Vec<SocketAddr>,
}

impl NativeBackend {
    /// Starts the tasks. An address that cannot be listened on is reported once and left out;
    /// dialling continues. `seed` decides the jitter of the timers. `earlier` is the state that an
    /// earlier run left behind, if it is known.
    ///
    /// Must be called inside a tokio runtime.
    pub fn start(listen: Listen, bfd: BfdOptions, seed: u64, earlier: Option<EarlierRun>) -> Self {
        Self::start_within(None, listen, bfd, seed, earlier)
    }

    /// The same; while the process takes more memory than this limit, the neighbor with the most routes has no
    /// session.
    pub fn start_within(
        memory_limit_bytes: Option<u64>,
        listen: Listen,
        bfd: BfdOptions,
        seed: u64,
        earlier: Option<EarlierRun>,
    ) -> Self {
        let tasks = TaskTracker::new();
        let (events, network) = mpsc::channel(EVENTS_MAX);
        let listeners = Listeners::open(listen, events.clone());
        let listening = listeners.addresses();
        let (desired, wanted) = watch::channel(Handed::default());
        let (commands, questions) = mpsc::channel(COMMANDS_MAX);
        let core = CoreTask::new(listeners, events, tasks.clone(), seed, earlier, bfd);
        let core = core.within(memory_limit_bytes);
        let (withdrawn, changed) = (core.withdrawn(), core.changed());
        tokio::spawn(core.run(wanted, questions, network));
        Self { desired, commands, withdrawn, changed, tasks, listening }
    }

    /// The addresses that have accepted connections since the start.
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// Sends the core a command, and waits for its answer.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, BackendError> {
        let (sender, answer) = oneshot::channel();
        self.commands.send(command(sender)).await.map_err(|_| BackendError::Stopped)?;
        answer.await.map_err(|_| BackendError::Stopped)
    }
}

impl Backend for NativeBackend {
    fn apply(&self, desired: Desired) {
        self.desired.send_modify(|handed| handed.replace(desired));
    }

    fn view(&self, scope: ViewScope) -> ViewFuture<'_> {
        Box::pin(self.ask(move |answer| Command::View(scope, answer)))
    }

    fn changed(&self, seen: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        let mut changed = self.changed.clone();
        Box::pin(async move {
            if let Ok(number) = changed.wait_for(|it| *it > seen).await {
                return *number;
            }
            // Nothing changes any more.
            std::future::pending().await
        })
    }

    fn clear(&self, peer: PeerKey, how: Clear) -> ClearFuture<'_> {
        Box::pin(async move { self.ask(|answer| Command::Clear(peer, how, answer)).await? })
    }

    fn withdrawn(&self, generation: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut withdrawn = self.withdrawn.clone();
        Box::pin(async move {
            if withdrawn.wait_for(|it| *it >= generation).await.is_err() {
                // No withdrawal will be written any more.
                std::future::pending::<()>().await;
            }
        })
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // The core task holds the other end for as long as it lives.
        Box::pin(self.desired.closed())
    }

    fn shutdown(&self, how: Leave) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // If it has ended already, there is nothing left to end.
            let _ = self.ask(|done| Command::Shutdown(how, done)).await;
            self.tasks.close();
            if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await.is_err() {
                warn!("some neighbors did not close their connections in time");
            }
        })
    }
}

#[cfg(test)]
mod tests;
