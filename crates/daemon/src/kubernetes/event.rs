//! Posts Events, one after another, without blocking the loops.
//!
//! Knows no reason and no text: the cores have those. An Event that cannot be posted is dropped, as usual in
//! Kubernetes; that is logged.

use std::time::Duration;

use fairway_cluster::EventRecord;
use fairway_ground::{Instant, Utc};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::api::Api;
use super::resource::{EVENT, Resource};

/// Events in the queue; cores limit their rate, so more are queued only while the API server is unreachable.
const EVENTS_MAX: usize = 256;
/// An Event that takes longer is dropped.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
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

/// The sender of Events. Cheap to clone.
#[derive(Clone)]
pub(super) struct Events(mpsc::Sender<(EventRecord, u64)>);

impl Events {
    /// Starts the task that posts them; it ends when all senders are dropped.
    pub(super) fn start(api: Api, source: EventSource) -> Self {
        let (tell, mut waiting) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(async move {
            let mut number = 0_u64;
            while let Some((record, epoch_seconds)) = waiting.recv().await {
                number = number.wrapping_add(1);
                let namespace = namespace_of(&record).to_owned();
                let body = document(&record, &source, epoch_seconds, number);
                let path = EVENT.in_namespace(&namespace);
                let posted = api.send(Method::POST, &path, "application/json", &body, POST_TIMEOUT);
                if let Err(problem) = posted.await {
                    debug!(reason = record.reason, "cannot post an Event: {problem}");
                }
            }
        });
        Self(tell)
    }

    /// Queues an Event. Returns at once. `epoch_seconds` is Unix time.
    pub(super) fn post(&self, record: EventRecord, epoch_seconds: u64) {
        if let Err(error) = self.0.try_send((record, epoch_seconds)) {
            let (record, _) = error.into_inner();
            warn!(object = %record.name, reason = record.reason, "Event dropped: queue is full");
        }
    }
}

/// Logs how many Events the cores dropped because there were too many at once: at most once a minute, since
/// they come in bursts.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    said: u64,
    not_before: Instant,
}

impl LeftOut {
    /// The total since the start.
    pub(super) fn note(&mut self, now: Instant, total: u64) {
        if total > self.said && now >= self.not_before {
            warn!(events = total, "Events dropped since the start: too many at once");
            (self.said, self.not_before) = (total, now + LEFT_OUT_INTERVAL);
        }
    }
}

fn namespace_of(record: &EventRecord) -> &str {
    match record.name.namespace.as_str() {
        "" => NAMESPACE_OF_NONE,
        namespace => namespace,
    }
}

fn document(record: &EventRecord, source: &EventSource, now: u64, number: u64) -> Value {
    let EventRecord { kind, name, uid, is_warning, reason, message } = record;
    let resource = Resource::read(*kind);
    let time = Utc(now).rfc3339();
    json!({
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {
            // As client-go builds them: unique within this second.
            "name": format!("{}.{:08x}{:08x}", name.name, now, number),
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
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
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
            kind: Kind::Service,
            name: ObjectName::new("shop", "web"),
            uid: "u-1".to_owned(),
            is_warning: true,
            reason: "AllocationFailed",
            message: "no available IPs".to_owned(),
        };
        let source = EventSource { component: "fairway-controller", instance: "pod-1".to_owned() };
        let event = document(&record, &source, 1_795_192_683, 7);
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap();
        assert_eq!(text("/metadata/namespace"), "shop");
        assert_eq!(text("/involvedObject/uid"), "u-1");
        assert_eq!(text("/type"), "Warning");
        assert_eq!(text("/source/component"), "fairway-controller");
        assert_eq!(text("/lastTimestamp"), "2026-11-20T16:38:03Z");
    }

    #[test]
    fn an_event_about_a_node_is_in_the_default_namespace() {
        let record = EventRecord {
            kind: Kind::Node,
            name: ObjectName::new("", "n1"),
            uid: String::new(),
            is_warning: false,
            reason: "NodeDraining",
            message: String::new(),
        };
        assert_eq!(namespace_of(&record), "default");
    }
}
