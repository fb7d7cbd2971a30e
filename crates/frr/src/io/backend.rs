//! The backend that has FRR speak BGP.
//!
//! One task configures FRR as [`crate::application`] decides; the observer reads its state. If FRR is
//! unreachable or rejects a line, the view reports a fault and the daemon keeps running: the configuration is
//! sent as soon as FRR is back.

mod told;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_ground::PeerKey;
use fairway_seam::{Backend, Clear, ClearFuture, Desired, Latencies, Leave, ViewFuture, ViewScope};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::daemons::{Daemons, Look};
use super::lock::{Lock, Locked};
use super::observer::Observer;
use super::rendering::Rendering;
use crate::application::{Application, Broken, Next, Now, Orders, Said, Wanted};
use crate::configuration::without_secrets;
use crate::daemon::Daemon;
use crate::difference::Step;
use crate::owner::Owner;

/// How long FRR may take to remove our configuration when we leave for good.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Between attempts to take the lock that another process has.
const LOCK_INTERVAL: Duration = Duration::from_secs(1);
/// Longer than any wait here.
const FAR: Duration = Duration::from_secs(3600);
/// Maximum number of pending changes with their time, for the latency metric.
const CHANGES_MAX: usize = 4096;

/// Where FRR is, and how it is configured.
#[derive(Debug, Clone)]
pub struct FrrOptions {
    /// The folder of its daemons' sockets: `/run/frr`.
    pub socket_dir: PathBuf,
    /// Minimum interval between two applications; changes within it are sent as one.
    pub min_interval: Duration,
    /// The owner in the names of our configuration.
    pub owner: Owner,
}

/// BGP sessions of FRR.
#[derive(Debug)]
pub struct FrrBackend {
    socket_dir: PathBuf,
    desired: watch::Sender<Option<Arc<Desired>>>,
    withdrawn: watch::Receiver<u64>,
    shared: Arc<Shared>,
    leave: mpsc::Sender<(Leave, oneshot::Sender<()>)>,
}

/// State that the task and the view share.
#[derive(Debug)]
struct Shared {
    observer: Observer,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    generation: u64,
    faults: Vec<String>,
    unready: Option<String>,
    left_alone: Vec<String>,
    changes_told: Latencies,
    /// When the events behind the desired state happened, for each change that is still pending.
    happened: Vec<Instant>,
}

impl Shared {
    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl FrrBackend {
    /// Starts the task that configures FRR and the one that watches it. FRR need not be running yet.
    ///
    /// Must be called inside a tokio runtime.
    pub fn start(options: FrrOptions) -> Self {
        let FrrOptions { socket_dir, min_interval, owner } = options;
        let (desired, wanted) = watch::channel(None);
        let (reached, withdrawn) = watch::channel(0);
        let (leave, leaving) = mpsc::channel(1);
        let observer = Observer::start(&socket_dir, desired.subscribe());
        let shared = Arc::new(Shared { observer, state: Mutex::default() });
        let task = Task {
            socket_dir: socket_dir.clone(),
            lock: None,
            locked: None,
            application: Application::new(owner, min_interval),
            daemons: Daemons::new(&socket_dir),
            begun: Instant::now(),
            desired: None,
            happened: Vec::new(),
            rendering: Rendering::new(owner),
            names_of_others: BTreeSet::new(),
            reached,
            shared: shared.clone(),
        };
        tokio::spawn(task.run(wanted, leaving));
        Self { socket_dir, desired, withdrawn, shared, leave }
    }
}

impl Backend for FrrBackend {
    fn apply(&self, desired: Desired) {
        let happened = desired.change_age.and_then(|age| Instant::now().checked_sub(age));
        self.shared.change(|state| {
            if state.happened.len() < CHANGES_MAX {
                state.happened.extend(happened);
            }
        });
        self.desired.send_replace(Some(Arc::new(desired)));
    }

    fn view(&self, scope: ViewScope) -> ViewFuture<'_> {
        Box::pin(async move {
            let desired = self.desired.borrow().clone().unwrap_or_default();
            let mut view = self.shared.observer.view(&desired, scope).await?;
            let State { generation, faults, left_alone, changes_told, .. } = self.shared.state();
            view.generation = generation;
            view.left_alone = left_alone;
            view.changes_told = changes_told;
            let seen = std::mem::replace(&mut view.faults, faults);
            view.faults.extend(seen);
            Ok(view)
        })
    }

    fn unready(&self) -> Option<String> {
        self.shared.state().unready
    }

    fn changed(&self, seen: u64) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(self.shared.observer.changed(seen))
    }

    fn clear(&self, peer: PeerKey, how: Clear) -> ClearFuture<'_> {
        Box::pin(async move {
            let desired = self.desired.borrow().clone().unwrap_or_default();
            self.shared.observer.clear(&desired, peer, how).await
        })
    }

    /// Resolves when FRR shows no route beyond those of `generation` or a later one, and has nothing left to
    /// write to any neighbour, or 2 seconds after that. Other rejected lines do not matter.
    fn withdrawn(&self, generation: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut withdrawn = self.withdrawn.clone();
        Box::pin(async move {
            if withdrawn.wait_for(|it| *it >= generation).await.is_err() {
                std::future::pending::<()>().await;
            }
            told::everything_is_told(&self.socket_dir).await;
        })
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.desired.closed())
    }

    /// For a restart, FRR keeps running as configured. Otherwise, all our configuration is removed from it.
    fn shutdown(&self, how: Leave) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let (done, is_done) = oneshot::channel();
            if self.leave.send((how, done)).await.is_ok() {
                // If the task has ended already, there is nothing to wait for.
                let _ = is_done.await;
            }
        })
    }
}

/// The task that configures FRR.
struct Task {
    socket_dir: PathBuf,
    /// Held as long as there is a folder to lock.
    lock: Option<Lock>,
    /// Another process has it.
    locked: Option<Locked>,
    application: Application,
    daemons: Daemons,
    begun: Instant,
    desired: Option<Arc<Desired>>,
    happened: Vec<Instant>,
    rendering: Rendering,
    /// Objects of others with such names.
    names_of_others: BTreeSet<String>,
    reached: watch::Sender<u64>,
    shared: Arc<Shared>,
}

impl Task {
    async fn run(
        mut self,
        mut wanted: watch::Receiver<Option<Arc<Desired>>>,
        mut leaving: mpsc::Receiver<(Leave, oneshot::Sender<()>)>,
    ) {
        let mut seen = 0;
        loop {
            if wanted.has_changed().unwrap_or(false) {
                self.take(&mut wanted);
            }
            let Some(until) = self.act().await else { continue };
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => self.take(&mut wanted),
                    Err(_) => return,
                },
                Some((how, done)) = leaving.recv() => {
                    self.leave(how).await;
                    // The caller may have stopped waiting.
                    let _ = done.send(());
                    return;
                }
                daemon = self.daemons.left() => {
                    warn!(daemon = daemon.name(), "connection to FRR daemon lost");
                    self.application.lost(self.now());
                    self.publish();
                }
                number = self.shared.observer.changed(seen) => {
                    seen = number;
                    self.application.hint(self.now());
                }
                () = sleep_until(until) => {}
            }
        }
    }

    fn now(&self) -> Now {
        self.begun.elapsed()
    }

    /// Takes over a new desired state.
    fn take(&mut self, wanted: &mut watch::Receiver<Option<Arc<Desired>>>) {
        self.desired.clone_from(&wanted.borrow_and_update());
        let happened = &mut self.happened;
        self.shared.change(|state| happened.append(&mut state.happened));
        self.want();
    }

    /// Renders the desired state and passes it to the state machine.
    fn want(&mut self) {
        if let Some(desired) = &self.desired {
            let version = self.daemons.version();
            self.rendering.want(desired, &mut self.application, version);
        }
        self.publish();
    }

    /// Names the objects that stay although their names are like ours.
    fn say_names_of_others(&mut self) {
        let is_known = self.desired.as_ref().is_some_and(|it| !it.awaits_sources);
        let stay = match self.rendering.has_legacy() && is_known {
            true => self.application.names_of_others(),
            false => BTreeSet::new(),
        };
        if stay != self.names_of_others && !stay.is_empty() {
            info!(
                ?stay,
                "FRR has objects with names that begin with FW-, which this Fairway did not create: \
                 they stay"
            );
        }
        let left_alone = stay.iter().map(|it| format!("FRR's `{it}`")).collect();
        self.shared.change(|state| state.left_alone = left_alone);
        self.names_of_others = stay;
    }

    /// Whether no other process configures this FRR. Tries again each time.
    fn has_lock(&mut self) -> bool {
        if self.lock.as_ref().is_some_and(Lock::is_held) {
            return true;
        }
        match Lock::take(&self.socket_dir) {
            Ok(lock) => {
                (self.lock, self.locked) = (Some(lock), None);
                true
            }
            Err(locked) => {
                self.locked = Some(locked);
                false
            }
        }
    }

    /// Performs the next action; if there is none, returns the time to wait for.
    async fn act(&mut self) -> Option<Instant> {
        if !self.has_lock() {
            self.publish();
            return Some(Instant::now() + LOCK_INTERVAL);
        }
        match self.application.next(self.now()) {
            Next::Read => {
                let Look { running, new } = self.daemons.look().await;
                for daemon in new {
                    self.application.connected(daemon);
                }
                self.application.read(self.now(), running);
                if self.rendering.is_outdated(&self.application, self.daemons.version()) {
                    self.want();
                }
                self.say_names_of_others();
                self.publish();
                None
            }
            Next::Say(orders) => {
                let begun = Instant::now();
                let said = self.daemons.say(&orders).await;
                self.report(&orders, &said, begun.elapsed());
                if said.broken.is_none() {
                    let happened = std::mem::take(&mut self.happened);
                    self.shared.change(|state| {
                        happened.iter().for_each(|it| state.changes_told.note(it.elapsed()));
                    });
                }
                self.application.said(self.now(), said);
                self.shared.observer.applied();
                self.publish();
                None
            }
            Next::EndLoad => {
                warn!(
                    "FRR's bgpd was in a configuration that was cut short, and started no new neighbors: ended \
                     that configuration"
                );
                self.daemons.end_load().await;
                self.application.ended_load(self.now());
                None
            }
            Next::Wait(until) => {
                self.publish();
                // `FAR` also stands for "nothing is wanted yet".
                let until = self.begun.checked_add(until.min(FAR));
                Some(until.unwrap_or_else(|| Instant::now() + FAR))
            }
        }
    }

    fn report(&self, orders: &Orders, said: &Said, took: Duration) {
        let (commands, milliseconds) = (said.taken.len(), took.as_millis());
        for (daemon, words) in &said.locked {
            debug!(daemon = daemon.name(), words, "FRR daemon is locked by another client");
        }
        match &said.broken {
            None if commands == 0 && !said.locked.is_empty() => {}
            None if orders.is_repair => {
                warn!(
                    commands,
                    milliseconds,
                    "FRR configured again: its running configuration had been changed or lost"
                );
            }
            None => info!(commands, milliseconds, "FRR configured"),
            Some(Broken::Lost(daemon, why)) => {
                warn!(
                    daemon = daemon.name(),
                    why, "connection to FRR daemon lost while configuring it"
                );
            }
            Some(Broken::Refused(daemon, step, words)) => rejected(*daemon, step, words),
        }
        said.rejected.iter().for_each(|(daemon, step, words)| rejected(*daemon, step, words));
    }

    /// Publishes what is in force, and what is not.
    fn publish(&mut self) {
        let in_force = self.application.in_force().unwrap_or_default();
        let locked: Vec<String> = self.locked.iter().map(ToString::to_string).collect();
        let unready = locked.first().cloned().or_else(|| self.application.unready());
        let faults = [locked, self.application.faults(), self.rendering.faults().to_vec()].concat();
        let mut is_news = false;
        let mut before = Vec::new();
        self.shared.change(|state| {
            is_news = state.faults != faults || state.generation != in_force;
            before = std::mem::replace(&mut state.faults, faults.clone());
            state.generation = in_force;
            state.unready = unready;
        });
        for fault in faults.iter().filter(|it| !before.contains(it)) {
            warn!(fault, "not in force in FRR");
        }
        for fault in before.iter().filter(|it| !faults.contains(it)) {
            info!(fault, "no longer so in FRR");
        }
        if is_news {
            self.shared.observer.applied();
        }
        let withdrawn = self.application.withdrawn().unwrap_or_default();
        self.reached.send_if_modified(|it| std::mem::replace(it, withdrawn) != withdrawn);
    }

    async fn leave(&mut self, how: Leave) {
        if how == Leave::ForRestart {
            info!("FRR keeps its configuration and sessions across the restart");
            return;
        }
        if !self.has_lock() {
            return;
        }
        let desired = self.desired.take();
        let generation = desired.map_or(0, |it| it.generation).saturating_add(1);
        let nothing = Wanted { generation, ..Wanted::default() };
        self.application.want(nothing);
        let forget = async {
            while self.application.in_force() != Some(generation) {
                if let Some(until) = self.act().await
                    && self.application.in_force() != Some(generation)
                {
                    sleep_until(until).await;
                }
            }
        };
        if timeout(LEAVE_TIMEOUT, forget).await.is_err() {
            warn!(
                "timed out removing our configuration from FRR: some of it may still be in force"
            );
        }
    }
}

fn rejected(daemon: Daemon, step: &Step, words: &str) {
    let line = without_secrets(&step.line);
    let resource = step.origin.as_deref().unwrap_or_default();
    warn!(daemon = daemon.name(), resource, line, words, "FRR rejected a configuration line");
}
