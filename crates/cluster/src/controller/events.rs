//! The Events about Services.
//!
//! An Event reports a completed write: it is held until the write has succeeded. So no Event is posted twice,
//! whichever controller leads. Knows no reason; the controller owns one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use fairway_allocator::Reason;
use fairway_model::{Kind, ObjectName};
use serde_json::Value;

use super::lack::MESSAGE_BYTES_MAX;
use super::service_status::{Said, Wish, old_annotations, was_ours};
use crate::claims::status_addresses;
use crate::write::{EventRecord, shortened};

/// The Events to post.
#[derive(Debug, Clone, Default)]
pub(super) struct Events {
    /// The content of each write in progress, and the Events to post after it.
    waiting: BTreeMap<ObjectName, (Wish, Vec<EventRecord>)>,
    due: VecDeque<EventRecord>,
    /// The Services that were warned of old annotations.
    warned: BTreeSet<ObjectName>,
}

impl Events {
    /// A write is sent that gives `seen` the desired status. `given_up`: why an address was taken away.
    pub(super) fn wait(
        &mut self,
        name: &ObjectName,
        seen: &Value,
        wish: Wish,
        given_up: Option<&Reason>,
    ) {
        let events = transitions(name, seen, &wish, given_up);
        self.waiting.insert(name.clone(), (wish, events));
    }

    /// The last write of `name` has succeeded.
    pub(super) fn written(&mut self, name: &ObjectName) {
        let (_, events) = self.waiting.remove(name).unwrap_or_default();
        self.due.extend(events);
    }

    /// The last write of `name` has failed, or its purpose is no longer known.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.waiting.remove(name);
    }

    /// Whether the last write of `name` had this content, and its answer was lost. Nothing is known of any
    /// other write.
    pub(super) fn is_so(&mut self, name: &ObjectName, wish: &Wish) -> bool {
        let is_so = self.waiting.get(name).is_some_and(|(it, _)| it == wish);
        if !is_so {
            self.forget(name);
        }
        is_so
    }

    /// Another controller has led since: earlier writes are no news.
    pub(super) fn begin_tenure(&mut self) {
        self.waiting.clear();
    }

    /// The Service was deleted.
    pub(super) fn deleted(&mut self, name: &ObjectName) {
        self.forget(name);
        self.warned.remove(name);
    }

    /// Warns once of annotations that have newer names.
    pub(super) fn warn_of_old_names(&mut self, name: &ObjectName, seen: &Value) {
        let old: Vec<&str> = old_annotations(seen).collect();
        if !old.is_empty() && self.warned.insert(name.clone()) {
            let message = format!("Service uses deprecated annotation {}", old.join(", "));
            self.due.push_back(record(name, seen, true, "deprecatedAnnotation", message));
        }
    }

    /// The next Event to post.
    pub(super) fn next(&mut self) -> Option<EventRecord> {
        self.due.pop_front()
    }
}

/// The changes of this write, in MetalLB's words.
fn transitions(
    name: &ObjectName,
    seen: &Value,
    wish: &Wish,
    given_up: Option<&Reason>,
) -> Vec<EventRecord> {
    let had = status_addresses(seen);
    let mut events = Vec::new();
    let mut note = |is_warning, reason, message| {
        events.push(record(name, seen, is_warning, reason, message));
    };
    // A user who changes the type of a Service expects this.
    if !was_ours(seen) && had.iter().any(|it| !wish.addresses.contains(it)) {
        let why = given_up.map_or_else(
            || "it belongs to another Service, or is not what this one requests".to_owned(),
            Reason::to_string,
        );
        let message = format!(
            "current IP for \"{name}\" not allowed by config, will attempt for new IP assignment: {why}"
        );
        note(false, "ClearAssignment", message);
    }
    let given: Vec<IpAddr> =
        wish.addresses.iter().copied().filter(|it| !had.contains(it)).collect();
    if !given.is_empty() {
        let is_first = given.len() == wish.addresses.len();
        let what = if is_first { "Assigned IP" } else { "Assigned additional IP" };
        let quoted: Vec<String> = given.iter().map(|it| format!("\"{it}\"")).collect();
        note(false, "IPAllocated", format!("{what} [{}]", quoted.join(" ")));
    }
    if let Said::Lack(lack) = &wish.lack
        && wish.says_something_else(seen)
    {
        note(lack.is_warning(), lack.reason, lack.message.clone());
    }
    events
}

fn record(
    name: &ObjectName,
    seen: &Value,
    is_warning: bool,
    reason: &'static str,
    message: String,
) -> EventRecord {
    let uid = seen.get("metadata").and_then(|it| it.get("uid")?.as_str()).unwrap_or_default();
    EventRecord {
        kind: Kind::Service.into(),
        name: name.clone(),
        uid: uid.to_owned(),
        is_warning,
        reason,
        message: shortened(message, MESSAGE_BYTES_MAX),
    }
}
