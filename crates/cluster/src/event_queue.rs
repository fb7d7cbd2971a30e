//! Events that wait to be posted: in their order, at a bounded rate, and each of them in the end.
//!
//! An API server keeps every Event for an hour, so a thousand Services that get addresses at once are no reason
//! to post a thousand Events at once; nor is it a reason to leave any out, since `kubectl describe` and alerts
//! look for the Event of their Service. Knows no API server and no reason. The edge that posts owns one.

use std::collections::{BTreeMap, VecDeque};

use fairway_ground::Instant;
use fairway_model::ObjectName;

use crate::budget::Budget;
use crate::write::{EventRecord, EventSubject};

/// Events in a burst.
const BURST: u32 = 50;
/// Events per second after that: what client-go lets a controller send by default.
const PER_SECOND: u32 = 20;
/// Events that wait: four for each of 5,000 Services. Each takes about 200 bytes.
const WAITING_MAX: usize = 20_000;

/// What an Event is about: object, uid, reason.
type Subject = (EventSubject, ObjectName, String, &'static str);

/// An Event that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedEvent {
    /// The content; of several with the same object and reason the last.
    pub record: EventRecord,
    /// Unix time of the first of them.
    pub first_epoch_seconds: u64,
    /// Unix time of the last of them.
    pub last_epoch_seconds: u64,
    /// How many there were, at least 1.
    pub count: u32,
}

/// The Events to post, and the number of those that had no room.
#[derive(Debug)]
pub struct EventQueue {
    order: VecDeque<Subject>,
    waiting: BTreeMap<Subject, QueuedEvent>,
    budget: Budget,
    left_out: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            waiting: BTreeMap::new(),
            budget: Budget::new(BURST, PER_SECOND),
            left_out: 0,
        }
    }
}

impl EventQueue {
    /// Adds an Event that happened at `epoch_seconds`, Unix time. One with the same object and reason that still
    /// waits takes the new message and counts twice, as Kubernetes aggregates repeated Events. Beyond 20,000 it is
    /// counted in [`Self::left_out`] only.
    pub fn push(&mut self, record: EventRecord, epoch_seconds: u64) {
        let subject = (record.kind, record.name.clone(), record.uid.clone(), record.reason);
        if let Some(earlier) = self.waiting.get_mut(&subject) {
            earlier.count = earlier.count.saturating_add(1);
            earlier.last_epoch_seconds = epoch_seconds;
            earlier.record = record;
        } else if self.waiting.len() < WAITING_MAX {
            self.order.push_back(subject.clone());
            let (first_epoch_seconds, last_epoch_seconds) = (epoch_seconds, epoch_seconds);
            let event = QueuedEvent { record, first_epoch_seconds, last_epoch_seconds, count: 1 };
            self.waiting.insert(subject, event);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// The next Event to post; `None` until [`Self::next_deadline`].
    pub fn next(&mut self, now: Instant) -> Option<QueuedEvent> {
        if self.order.is_empty() || !self.budget.take(now) {
            return None;
        }
        self.waiting.remove(&self.order.pop_front()?)
    }

    /// When the next Event may be posted; `None` when none waits.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        (!self.order.is_empty()).then(|| self.budget.next_at(now))
    }

    /// How many had no room since the start.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairway_model::Kind;

    use super::*;

    fn event(number: usize, reason: &'static str, message: &str) -> EventRecord {
        EventRecord {
            kind: Kind::Service.into(),
            name: ObjectName::new("shop", format!("web-{number}")),
            uid: format!("uid-{number}"),
            is_warning: false,
            reason,
            message: message.to_owned(),
        }
    }

    #[test]
    fn two_thousand_events_are_all_posted_in_their_order_within_two_minutes() {
        let mut queue = EventQueue::default();
        (0..2_000).for_each(|number| queue.push(event(number, "IPAllocated", "Assigned IP"), 1));
        let (mut now, mut posted) = (Instant::ZERO, Vec::new());
        while let Some(at) = queue.next_deadline(now) {
            now = now.max(at);
            posted.extend(queue.next(now).map(|it| it.record.uid));
            if posted.len() == 50 {
                assert_eq!(now, Instant::ZERO, "the burst");
            }
        }
        assert_eq!(posted, (0..2_000).map(|number| format!("uid-{number}")).collect::<Vec<_>>());
        assert!(now < Instant::ZERO + Duration::from_secs(120), "{now:?}");
        assert_eq!(queue.left_out(), 0);
    }

    #[test]
    fn an_event_that_repeats_one_that_waits_is_counted_and_not_posted_twice() {
        let mut queue = EventQueue::default();
        queue.push(event(1, "AllocationFailed", "first"), 100);
        queue.push(event(1, "IPAllocated", "other reason"), 101);
        queue.push(event(1, "AllocationFailed", "second"), 102);
        let first = queue.next(Instant::ZERO).unwrap();
        assert_eq!((first.record.message.as_str(), first.count), ("second", 2));
        assert_eq!((first.first_epoch_seconds, first.last_epoch_seconds), (100, 102));
        assert_eq!(queue.next(Instant::ZERO).map(|it| it.count), Some(1));
        assert_eq!(queue.next(Instant::ZERO), None);
        queue.push(event(1, "AllocationFailed", "third"), 103);
        let third = queue.next(Instant::ZERO).map(|it| it.count);
        assert_eq!(third, Some(1), "the earlier ones were posted");
    }

    #[test]
    fn an_object_of_the_same_name_is_another_object() {
        let mut queue = EventQueue::default();
        queue.push(event(1, "IPAllocated", "of the first"), 1);
        let second = event(1, "IPAllocated", "of the second");
        queue.push(EventRecord { uid: "new".to_owned(), ..second }, 2);
        let mut next = || queue.next(Instant::ZERO).map(|it| it.record.message);
        assert_eq!(next().as_deref(), Some("of the first"));
        assert_eq!(next().as_deref(), Some("of the second"));
    }

    #[test]
    fn events_beyond_the_bound_are_counted() {
        let mut queue = EventQueue::default();
        (0..WAITING_MAX + 3).for_each(|number| queue.push(event(number, "IPAllocated", ""), 1));
        assert_eq!((queue.waiting.len(), queue.left_out()), (WAITING_MAX, 3));
    }
}
