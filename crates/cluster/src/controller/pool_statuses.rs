//! The status of each IPAddressPool: how full it is.
//!
//! Returns the writes for pools with a changed status. Counts at most once a second, so a thousand new
//! Services cost few writes. The last writer is right, so no version is sent. The controller owns one.

use std::collections::VecDeque;
use std::time::Duration;

use fairway_allocator::{Outcomes, PoolUse};
use fairway_ground::{AddressFamily, Instant};
use fairway_model::{Kind, ObjectName};
use fairway_resources::status::IpAddressPoolStatus;
use serde_json::{Value, json};

use crate::belief::Belief;
use crate::lease::WRITE_TIMEOUT;
use crate::reflector::version_of;
use crate::write::{ObjectWrite, WriteHow, WrittenKind};
use crate::writes::{Permission, WriteReply, Writes};

/// How often one pool is written per minute at most: once per count.
const WRITES_MAX: usize = 60;
/// The interval between two counts.
const INTERVAL: Duration = Duration::from_secs(1);

/// The pool statuses to write.
#[derive(Debug, Clone)]
pub(super) struct PoolStatuses {
    counted_at: Option<Instant>,
    /// When to count again; `None`: nothing changed.
    due: Option<Instant>,
    todo: VecDeque<(ObjectName, Value)>,
    writes: Writes,
}

impl Default for PoolStatuses {
    fn default() -> Self {
        Self { counted_at: None, due: None, todo: VecDeque::new(), writes: Writes::new(WRITES_MAX) }
    }
}

impl PoolStatuses {
    /// Something that affects the counts may have changed.
    pub(super) fn stir(&mut self, now: Instant) {
        let at = self.counted_at.map_or(now, |at| now.max(at + INTERVAL));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// The pool was deleted.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.writes.forget(name);
    }

    /// Handles the result of a write.
    pub(super) fn end(&mut self, now: Instant, name: &ObjectName, reply: WriteReply) {
        self.writes.end(now, name, reply);
        self.stir(now);
    }

    /// When the next write may be due, unless a write is answered before.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The next write.
    pub(super) fn next_write(
        &mut self,
        now: Instant,
        belief: &Belief,
        outcomes: &Outcomes,
    ) -> Option<ObjectWrite> {
        if self.due.is_some_and(|at| at <= now) {
            self.count(now, belief, outcomes);
        }
        while !self.writes.are_enough()
            && let Some((name, status)) = self.todo.pop_front()
        {
            let seen = belief.last_seen(Kind::IpAddressPool, &name);
            let version = seen.as_ref().and_then(version_of).unwrap_or_default();
            match self.writes.may_write(now, &name, version) {
                Permission::Now => {
                    self.writes.begin(now, &name, version);
                    let how = WriteHow::MergeStatus(json!({ "status": status }));
                    let kind = WrittenKind::IpAddressPool;
                    return Some(ObjectWrite { kind, name, how, not_after: now + WRITE_TIMEOUT });
                }
                Permission::At(at) => self.due = Some(self.due.map_or(at, |due| due.min(at))),
                // Its next version, and the answer to a write, trigger a new count.
                Permission::Later => {}
            }
        }
        None
    }

    fn count(&mut self, now: Instant, belief: &Belief, outcomes: &Outcomes) {
        (self.counted_at, self.due) = (Some(now), None);
        self.todo.clear();
        for used in PoolUse::of_all(belief.index(), outcomes) {
            let Some(seen) = belief.last_seen(Kind::IpAddressPool, &used.pool) else { continue };
            let status = status(&used);
            if !says(&seen, &status) {
                self.todo.push_back((used.pool, status));
            }
        }
    }
}

fn status(used: &PoolUse) -> Value {
    let counter = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
    let available = |family| counter(used.available(family));
    json!(IpAddressPoolStatus {
        assigned_ipv4: counter(used.used.ipv4),
        assigned_ipv6: counter(used.used.ipv6),
        available_ipv4: available(AddressFamily::Ipv4Unicast),
        available_ipv6: available(AddressFamily::Ipv6Unicast),
    })
}

/// Whether the object has all of `status`, whatever else it has.
fn says(object: &Value, status: &Value) -> bool {
    let there = object.get("status");
    let mut fields = status.as_object().into_iter().flatten();
    fields.all(|(field, value)| there.and_then(|it| it.get(field)) == Some(value))
}
