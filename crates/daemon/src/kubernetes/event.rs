//! Posts Events, one after another, without blocking the loops.
//!
//! Knows no reason and no text: the cores have those; the queue knows their pace. An Event that the API server
//! refuses is dropped and logged. One without an answer is posted again, and those behind it wait.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_cluster::{EventQueue, EventRecord, EventSubject, QueuedEvent};
use fairway_ground::{Rng, Utc};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::{debug, warn};

use super::api::{Api, Problem};
use super::resource::{EVENT, IP_POOL, Resource};
use crate::host::{Clock, seed};

/// A request without an answer in this time has failed.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often an Event is posted until there is an answer, and the pause between two attempts: client-go's.
const ATTEMPTS_MAX: usize = 12;
const ATTEMPT_PAUSE: Duration = Duration::from_secs(10);
/// How often dropped Events are logged.
const LEFT_OUT_INTERVAL: Duration = Duration::from_secs(60);
/// The namespace of Events about objects without a namespace.
const NAMESPACE_OF_NONE: &str = "default";

/// The source of the Events.
#[derive(Debug, Clone)]
pub(super) struct EventSource {
    /// `fairway-controller` or `fairway-speaker`.
    pub(super) component: &'static str,
    /// The node, or the pod.
    pub(super) instance: String,
}

/// The Events to post. Dropping it ends the task that posts them.
pub(super) struct Events {
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// What the loop adds to and the task takes from.
#[derive(Default)]
struct Shared {
    queue: Mutex<EventQueue>,
    added: Notify,
}

impl Shared {
    /// Holds the queue for a moment, never across an await.
    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    /// Starts the task.
    pub(super) fn start(api: Api, source: EventSource) -> Self {
        let shared = Arc::<Shared>::default();
        let clock = Clock::start();
        let names = Rng::seeded(seed());
        let poster = Poster { api, source, clock, shared: Arc::clone(&shared), names };
        let task = tokio::spawn(poster.run()).abort_handle();
        Self { shared, task }
    }

    /// Queues an Event. Returns at once. `epoch_seconds` is Unix time.
    pub(super) fn post(&self, record: EventRecord, epoch_seconds: u64) {
        self.shared.queue().push(record, epoch_seconds);
        self.shared.added.notify_one();
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task.
struct Poster {
    api: Api,
    source: EventSource,
    clock: Clock,
    shared: Arc<Shared>,
    /// What makes the names of Events unique. All nodes post at the same moment, so neither a time nor a count
    /// does: the API server would refuse all but the first.
    names: Rng,
}

impl Poster {
    async fn run(mut self) {
        let (mut said, mut not_before) = (0, self.clock.now().monotonic);
        loop {
            let now = self.clock.now().monotonic;
            let (next, deadline, left_out) = {
                let mut queue = self.shared.queue();
                (queue.next(now), queue.next_deadline(now), queue.left_out())
            };
            if left_out > said && now >= not_before {
                warn!(events = left_out, "Events dropped since the start: too many at once");
                (said, not_before) = (left_out, now + LEFT_OUT_INTERVAL);
            }
            match next {
                Some(event) => self.post(&event).await,
                None => tokio::select! {
                    () = self.clock.wait_until(deadline) => {}
                    () = self.shared.added.notified() => {}
                },
            }
        }
    }

    /// Until the API server has answered, or for two or three minutes.
    async fn post(&mut self, event: &QueuedEvent) {
        // The same in all attempts: one without an answer may have been stored.
        let body = document(event, &self.source, self.names.next_u64());
        let path = EVENT.in_namespace(namespace_of(&event.record));
        for _ in 0..ATTEMPTS_MAX {
            let posted =
                self.api.send(Method::POST, &path, "application/json", &body, POST_TIMEOUT).await;
            let Err(problem) = posted else { return };
            let (object, reason) = (&event.record.name, event.record.reason);
            if !is_passing(&problem) {
                debug!(%object, reason, "Event refused: {problem}");
                return;
            }
            debug!(%object, reason, "cannot post an Event, trying again: {problem}");
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
        warn!(object = %event.record.name, reason = event.record.reason, "Event dropped: no answer");
    }
}

/// Whether the same Event may be posted later: there was no answer, or the server is overloaded.
fn is_passing(problem: &Problem) -> bool {
    problem.code.is_none_or(|code| code == 429 || code >= 500)
}

fn namespace_of(record: &EventRecord) -> &str {
    match record.name.namespace.as_str() {
        "" => NAMESPACE_OF_NONE,
        namespace => namespace,
    }
}

/// `number` makes the name unique.
fn document(event: &QueuedEvent, source: &EventSource, number: u64) -> Value {
    let QueuedEvent { record, first_epoch_seconds, last_epoch_seconds, count } = event;
    let EventRecord { kind, name, uid, is_warning, reason, message } = record;
    let resource = match kind {
        EventSubject::Read(kind) => Resource::read(*kind),
        EventSubject::IpPool => IP_POOL,
    };
    json!({
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {
            // As long as client-go's, which have the time in nanoseconds.
            "name": format!("{}.{number:016x}", name.name),
            "namespace": namespace_of(record),
        },
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": name.name,
            "namespace": name.namespace,
            "uid": uid,
        },
        "reason": reason,
        "message": message,
        "type": if *is_warning { "Warning" } else { "Normal" },
        "firstTimestamp": Utc(*first_epoch_seconds).rfc3339(),
        "lastTimestamp": Utc(*last_epoch_seconds).rfc3339(),
        "count": count,
        "source": {"component": source.component, "host": source.instance},
        "reportingComponent": source.component,
        "reportingInstance": source.instance,
    })
}

#[cfg(test)]
mod tests {
    use fairway_model::{Kind, ObjectName};

    use super::*;

    #[test]
    fn an_event_says_what_it_is_about_and_who_says_it() {
        let record = EventRecord {
            kind: Kind::Service.into(),
            name: ObjectName::new("shop", "web"),
            uid: "u-1".to_owned(),
            is_warning: true,
            reason: "AllocationFailed",
            message: "no available IPs".to_owned(),
        };
        let source = EventSource { component: "fairway-controller", instance: "pod-1".to_owned() };
        let queued = QueuedEvent {
            record,
            first_epoch_seconds: 1_795_192_680,
            last_epoch_seconds: 1_795_192_683,
            count: 3,
        };
        let event = document(&queued, &source, 7);
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap();
        assert_eq!(text("/metadata/name"), "web.0000000000000007");
        assert_eq!(text("/metadata/namespace"), "shop");
        assert_eq!(text("/involvedObject/uid"), "u-1");
        assert_eq!(text("/type"), "Warning");
        assert_eq!(text("/source/component"), "fairway-controller");
        assert_eq!(text("/firstTimestamp"), "2026-11-20T16:38:00Z");
        assert_eq!(text("/lastTimestamp"), "2026-11-20T16:38:03Z");
        assert_eq!(event["count"], 3);
    }

    #[test]
    fn an_event_about_a_node_is_in_the_default_namespace() {
        let record = EventRecord {
            kind: Kind::Node.into(),
            name: ObjectName::new("", "n1"),
            uid: String::new(),
            is_warning: false,
            reason: "NodeDraining",
            message: String::new(),
        };
        assert_eq!(namespace_of(&record), "default");
    }

    #[test]
    fn an_event_is_posted_again_only_where_that_can_help() {
        let is_passing = |code| is_passing(&Problem { code, message: String::new() });
        assert!(is_passing(None) && is_passing(Some(429)) && is_passing(Some(503)));
        assert!(!is_passing(Some(403)) && !is_passing(Some(404)), "its namespace is going away");
    }
}
