//! Watches: the events that a client gets, until the watch ends.
//!
//! A watch is polled ([`ApiServer::poll_watch`]); it has no queue, since the log serves as one. A
//! client that polls too late gets 410, as one that reads too slowly does.

use super::ApiServer;
use super::read::asked_version;
use crate::request::Request;
use crate::selector::Selector;
use crate::status::Status;
use crate::storage::Change;
use crate::time::Timestamp;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// Identifies a watch for its lifetime; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(u64);

/// `type` of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// New, or selected from now on.
    Added,
    /// Changed.
    Modified,
    /// Deleted, or no longer selected. The object is in its last state.
    Deleted,
    /// All events up to this resource version were sent.
    Bookmark,
    /// The object is a Status, and the watch is over.
    Error,
}

impl EventKind {
    /// As in the JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    /// The kind of event.
    pub kind: EventKind,
    /// The object.
    pub object: Arc<Value>,
}

impl WatchEvent {
    fn new(kind: EventKind, object: Value) -> Self {
        Self { kind, object: Arc::new(object) }
    }

    /// The event as JSON.
    pub fn body(&self) -> Value {
        json!({"type": self.kind.word(), "object": *self.object})
    }
}

/// The result of polling a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchStep {
    /// This event; there may be more.
    Event(WatchEvent),
    /// No event for now.
    Idle,
    /// No more events: its time is over, or it was cut.
    Ended,
}

#[derive(Debug, Clone)]
pub(crate) struct Watch {
    pub(crate) replica: usize,
    resource: usize,
    selector: Selector,
    /// Everything up to this version was sent.
    told: u64,
    /// The initial objects, and the bookmark after them.
    first: VecDeque<WatchEvent>,
    ends: Timestamp,
    bookmarks: bool,
    next_bookmark: Timestamp,
}

impl ApiServer {
    /// Begins a watch at `replica`. An error is the answer to the request; except that the watch itself
    /// reports a version that is too old, as the real server does.
    pub fn watch(
        &mut self,
        now: Timestamp,
        replica: usize,
        request: &Request,
    ) -> Result<WatchId, Status> {
        let resource = self.resource(&request.resource).ok_or_else(Status::unknown_resource)?;
        let selector = Selector::of(request)?;
        let query = &request.query;
        let state = self.replica(replica);
        let asked = asked_version(query)?;
        let (told, begins_with_state) = match asked {
            // As of now: the real server waits until its cache has it.
            None => (self.revision(), true),
            Some(asked) if query.send_initial_events && asked > state.seen => {
                return Err(Status::too_large(asked, state.seen));
            }
            Some(asked) if asked == 0 || query.send_initial_events => (state.seen, true),
            // From a version that the replica has not seen yet, it continues when it has.
            Some(asked) => (asked, false),
        };
        let mut first = VecDeque::new();
        if begins_with_state {
            first = self.initial(resource, told, &selector);
        }
        if query.send_initial_events {
            first.push_back(self.bookmark(resource, told, true));
        }
        self.next_watch += 1;
        let id = WatchId(self.next_watch);
        let seconds = query.timeout_seconds.unwrap_or(self.settings.watch_seconds);
        let watch = Watch {
            replica,
            resource,
            selector,
            told,
            first,
            ends: now.plus_seconds(seconds),
            bookmarks: query.allow_watch_bookmarks,
            next_bookmark: now.plus_seconds(self.settings.bookmark_seconds),
        };
        self.watches.insert(id, watch);
        Ok(id)
    }

    /// The next event of a watch.
    pub fn poll_watch(&mut self, now: Timestamp, id: WatchId) -> WatchStep {
        let Some(mut watch) = self.watches.remove(&id) else { return WatchStep::Ended };
        let step = self.next_step(now, &mut watch);
        let over = match &step {
            WatchStep::Event(event) => event.kind == EventKind::Error,
            WatchStep::Idle => false,
            WatchStep::Ended => true,
        };
        if !over {
            self.watches.insert(id, watch);
        }
        step
    }

    fn next_step(&self, now: Timestamp, watch: &mut Watch) -> WatchStep {
        if let Some(event) = watch.first.pop_front() {
            return WatchStep::Event(event);
        }
        let replica = self.replica(watch.replica);
        if watch.told < replica.oldest {
            let status = Status::too_old(watch.told, replica.oldest).body();
            return WatchStep::Event(WatchEvent::new(EventKind::Error, status));
        }
        for change in self.storage.changes_after(watch.told) {
            if change.revision > replica.seen {
                break;
            }
            watch.told = change.revision;
            if change.key.resource == watch.resource
                && let Some(event) = event_of(change, &watch.selector)
            {
                return WatchStep::Event(event);
            }
        }
        if now >= watch.ends {
            return WatchStep::Ended;
        }
        if watch.bookmarks && now >= watch.next_bookmark && watch.told <= replica.seen {
            watch.next_bookmark = now.plus_seconds(self.settings.bookmark_seconds);
            return WatchStep::Event(self.bookmark(watch.resource, watch.told, false));
        }
        WatchStep::Idle
    }

    /// Ends a watch, as a lost connection does: no more events follow.
    pub fn cut(&mut self, id: WatchId) {
        self.watches.remove(&id);
    }

    /// The active watches.
    pub fn watches(&self) -> impl Iterator<Item = WatchId> {
        self.watches.keys().copied()
    }

    /// When a watch has an event, or ends, without a change.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let due = |watch: &Watch| {
            if watch.bookmarks { watch.ends.min(watch.next_bookmark) } else { watch.ends }
        };
        self.watches.values().map(due).min()
    }

    fn initial(&self, resource: usize, revision: u64, selector: &Selector) -> VecDeque<WatchEvent> {
        let collection = self.storage.collection_at(resource, revision);
        let selected = collection.into_values().filter(|object| selector.matches(object));
        selected.map(|object| WatchEvent { kind: EventKind::Added, object }).collect()
    }

    fn bookmark(&self, resource: usize, revision: u64, initial_events_end: bool) -> WatchEvent {
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if let (true, Some(metadata)) = (initial_events_end, metadata.as_object_mut()) {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            metadata.insert("annotations".to_owned(), annotations);
        }
        let mut object = json!({"metadata": metadata});
        if let (Some(definition), Some(fields)) =
            (self.definitions.get(resource), object.as_object_mut())
        {
            fields.insert("kind".to_owned(), json!(definition.kind));
            fields.insert("apiVersion".to_owned(), json!(definition.resource.api_version()));
        }
        WatchEvent::new(EventKind::Bookmark, object)
    }
}

/// The event of a change for a watch with this selector; none if it is not affected.
fn event_of(change: &Change, selector: &Selector) -> Option<WatchEvent> {
    let selected = |object: &Option<Arc<Value>>| {
        object.as_ref().filter(|object| selector.matches(object)).cloned()
    };
    let (kind, object) = match (selected(&change.before), selected(&change.after)) {
        (None, None) => return None,
        (None, Some(after)) => (EventKind::Added, after),
        (Some(_), Some(after)) => (EventKind::Modified, after),
        (Some(before), None) => {
            let mut last = Value::clone(&before);
            if let Some(metadata) = last.get_mut("metadata").and_then(Value::as_object_mut) {
                let version = json!(change.revision.to_string());
                metadata.insert("resourceVersion".to_owned(), version);
            }
            (EventKind::Deleted, Arc::new(last))
        }
    };
    Some(WatchEvent { kind, object })
}
