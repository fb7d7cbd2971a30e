//! Health checks of the Services in files: one task for each, which asks this machine and sleeps.
//!
//! What follows from the outcomes is [`Health`]'s. Called by the source that has the files.

mod probe;

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_model::{HealthCheck, ObjectName};
use fairway_node::health::Health;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tracing::{info, warn};

/// Checks that wait for an answer at a time; others wait for their turn.
const PROBES_MAX: usize = 256;
/// Outcomes that wait for the loop; then checks wait, too.
const ENDED_MAX: usize = 64;

/// The outcome of a check.
#[derive(Debug)]
pub(in crate::standalone) struct Ended {
    service: ObjectName,
    check: HealthCheck,
    outcome: Result<(), String>,
}

/// See the module.
pub(super) struct Checks {
    health: Health,
    running: BTreeMap<ObjectName, (HealthCheck, Running)>,
    permits: Arc<Semaphore>,
    tell: mpsc::Sender<Ended>,
    ended: mpsc::Receiver<Ended>,
}

/// Ends the task with its check.
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Checks {
    /// Nothing is checked as yet.
    pub(super) fn new() -> Self {
        let (tell, ended) = mpsc::channel(ENDED_MAX);
        let permits = Arc::new(Semaphore::new(PROBES_MAX));
        Self { health: Health::default(), running: BTreeMap::new(), permits, tell, ended }
    }

    /// Checks these Services from now on; see [`Health::follow`].
    pub(super) fn follow(
        &mut self,
        wanted: BTreeMap<ObjectName, HealthCheck>,
        is_served: impl Fn(&ObjectName) -> bool,
    ) -> bool {
        let is_other = self.health.follow(wanted, is_served);
        let mut former = std::mem::take(&mut self.running);
        for (name, check) in self.health.checks() {
            let same = former.remove(name).filter(|(before, _)| before == check);
            let running = same.map_or_else(|| self.start(name, check), |(_, running)| running);
            self.running.insert(name.clone(), (check.clone(), running));
        }
        is_other
    }

    fn start(&self, service: &ObjectName, check: &HealthCheck) -> Running {
        let (tell, permits) = (self.tell.clone(), Arc::clone(&self.permits));
        let (service, check) = (service.clone(), check.clone());
        let task = tokio::spawn(async move {
            loop {
                let permit = permits.acquire().await;
                let outcome = probe::run(&check).await;
                drop(permit);
                let (service, check) = (service.clone(), check.clone());
                let interval = check.interval;
                if tell.send(Ended { service, check, outcome }).await.is_err() {
                    return;
                }
                tokio::time::sleep(interval).await;
            }
        });
        Running(task.abort_handle())
    }

    /// The next outcome. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Ended {
        match self.ended.recv().await {
            Some(ended) => ended,
            // Not while this has a sender.
            None => std::future::pending().await,
        }
    }

    /// An outcome that is there already.
    pub(super) fn try_ended(&mut self) -> Option<Ended> {
        self.ended.try_recv().ok()
    }

    /// Takes an outcome; see [`Health::ended`].
    pub(super) fn handle(&mut self, Ended { service, check, outcome }: Ended) -> bool {
        let failure = outcome.clone().err();
        let is_other = self.health.ended(&service, &check, outcome);
        match failure {
            Some(failure) if is_other => {
                warn!(%service, failure, "the health check fails: this machine does not serve the Service");
            }
            None if is_other => {
                info!(%service, "the health check succeeds: this machine serves the Service")
            }
            _ => {}
        }
        is_other
    }

    /// See [`Health::stop_waiting`].
    pub(super) fn stop_waiting(&mut self) {
        self.health.stop_waiting();
    }

    /// Whether the Service is checked.
    pub(super) fn has(&self, service: &ObjectName) -> bool {
        self.running.contains_key(service)
    }

    /// What the checks say.
    pub(super) fn health(&self) -> &Health {
        &self.health
    }
}
