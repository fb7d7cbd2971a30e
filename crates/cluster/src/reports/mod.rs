//! What a speaker reports about itself in the API: which routers have the routes of which Service, the state
//! of its sessions, whether all objects are in force, and Events about changes.
//!
//! ```text
//!  plan, sessions, findings ─► wanted ─┐
//!                                      ├─ what differs ─► one write after the other
//!  lists, answers to writes ─► stored ─┘
//! ```
//!
//! Pure: facts, lists and answers come in, requests go out. Decides nothing about routes. The loop of the
//! speaker hands it the backend's view, at most once a second.
//!
//! These objects are not watched: they are listed at the start and now and then, which repairs changes by
//! others. A write has the latest value and no history, so changes that are faster than the allowed writes
//! cost none. While the API server is unreachable there is one attempt in a while, and no more.

mod announced;
mod object;
mod stored;
mod told;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use announced::AnnouncementEvents;
use fairway_ground::{Instant, Rng};
use fairway_model::ObjectName;
use fairway_node::drain::{DrainStatus, Moment};
use fairway_plan::NodePlan;
use fairway_resources::Finding;
use fairway_seam::{BgpView, Layer2View};
use object::{Key, Status, Writer};
use serde_json::Value;
use stored::Stored;

use super::budget::Budget;
use super::lease::WRITE_TIMEOUT;
use super::write::{EventRecord, ObjectWrite, OwnPod, WriteHow, WrittenKind};
use super::writes::WriteReply;

/// The kinds that a speaker writes: few objects of the first two, up to one for each Service of the others.
const KINDS: [WrittenKind; 4] = [
    WrittenKind::ConfigurationState,
    WrittenKind::BgpSessionState,
    WrittenKind::ServiceBgpStatus,
    WrittenKind::ServiceL2Status,
];
/// Writes in a burst, and per second: a hundred nodes with a thousand Services each must not overload their
/// API server when all of them start.
const BURST: u32 = 100;
const WRITES_PER_SECOND: u32 = 20;
/// Writes in progress at a time; one while the API server does not answer.
const IN_FLIGHT_MAX: usize = 8;
/// The first pause after a write without an answer; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How often the state of a session that is down is written at most: it is dialled every few seconds and goes
/// through all states each time.
const DOWN_INTERVAL: Duration = Duration::from_secs(60);

/// The identity and the settings of the reporting speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportsSettings {
    /// Its node.
    pub node: String,
    /// The namespace of the objects.
    pub namespace: String,
    /// The Pod that owns the objects, if known.
    pub pod: Option<OwnPod>,
    /// For the jitter of pauses.
    pub seed: u64,
}

/// The facts to report.
pub struct ReportFacts<'a> {
    /// Everything has been listed since the start: before that, a report would be incomplete.
    pub is_synced: bool,
    /// The plan in force; `None` without a Node.
    pub plan: Option<&'a NodePlan>,
    /// What the backend shows, with [`fairway_seam::PeerView::advertised`].
    pub bgp: &'a BgpView,
    /// What this node answers for on the local segment; `None` where it never had to.
    pub layer2: Option<&'a Layer2View>,
    /// Faults and warnings of the objects.
    pub findings: &'a [Finding],
    /// Whether the node is in service.
    pub drain: DrainStatus,
    /// `metadata.uid` of the Node.
    pub node_uid: Option<&'a str>,
    /// `metadata.uid` of a Service.
    pub service_uid: &'a dyn Fn(&ObjectName) -> Option<String>,
}

/// An action for the edge.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportsAction {
    /// List all objects of this kind in our namespace that have these labels.
    List {
        /// The kind.
        kind: WrittenKind,
        /// `labelSelector` of the request.
        label_selector: String,
    },
    /// Write an object, or delete it.
    Write(ObjectWrite),
    /// Post an Event.
    Event(EventRecord),
}

/// The answer to a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ListReply {
    /// All pages of it.
    Is(Vec<Arc<Value>>),
    /// No answer, or a refusal.
    Failed,
}

/// A write that is in progress, or that failed before.
#[derive(Debug, Clone, Default)]
struct Attempt {
    /// The content, and until when it may arrive.
    sent: Option<(Sent, Instant)>,
    failures: u32,
    not_before: Instant,
}

#[derive(Debug, Clone)]
enum Sent {
    Object,
    Status(Status),
    Deletion,
}

/// See the module.
#[derive(Debug)]
pub struct Reports {
    writer: Writer,
    /// The desired objects; `None` before they are known.
    wanted: Option<BTreeMap<Key, Status>>,
    stored: Stored,
    /// The differences, in the order in which they appeared; sessions do not wait behind all Services.
    few: Queue,
    many: Queue,
    is_turn_of_many: bool,
    attempts: BTreeMap<Key, Attempt>,
    in_flight: BTreeMap<WrittenKind, usize>,
    postponed: BTreeSet<(Instant, Key)>,
    budget: Budget,
    /// Writes without an answer since the last answer, and until when no write is attempted.
    outage: u32,
    pause_until: Instant,
    announced: AnnouncementEvents,
    random: Rng,
}

/// Each key once, in the order of arrival.
#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<Key>,
    keys: BTreeSet<Key>,
}

impl Queue {
    fn push(&mut self, key: Key) {
        if self.keys.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<Key> {
        let key = self.order.pop_front()?;
        self.keys.remove(&key);
        Some(key)
    }
}

impl Reports {
    /// Nothing is known yet.
    pub fn new(settings: ReportsSettings) -> Self {
        let mut random = Rng::seeded(settings.seed);
        let ReportsSettings { node, namespace, pod, .. } = settings;
        Self {
            stored: Stored::new(random.next_u64()),
            announced: AnnouncementEvents::new(node.clone()),
            writer: Writer::new(node, namespace, pod),
            wanted: None,
            few: Queue::default(),
            many: Queue::default(),
            is_turn_of_many: false,
            attempts: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            postponed: BTreeSet::new(),
            budget: Budget::new(BURST, WRITES_PER_SECOND),
            outage: 0,
            pause_until: Instant::ZERO,
            random,
        }
    }

    /// Handles the current facts.
    pub fn follow(&mut self, now: Moment, facts: &ReportFacts<'_>) {
        self.announced.follow_drain(facts);
        if !facts.is_synced {
            return;
        }
        let services = told::services(facts);
        let answered = told::answered(facts);
        self.announced.follow_services(facts, &services, &answered);
        self.announced.follow_layer2(facts);
        let wanted = self.writer.wanted(facts, services, answered, now.epoch_seconds);
        let before = self.wanted.replace(wanted).unwrap_or_default();
        let wanted = self.wanted.as_ref();
        let changed = wanted.into_iter().flatten().filter(|(key, it)| before.get(key) != Some(it));
        let gone = before.keys().filter(|key| wanted.is_some_and(|it| !it.contains_key(key)));
        let keys: Vec<Key> = changed.map(|(key, _)| key).chain(gone).cloned().collect();
        keys.into_iter().for_each(|key| self.enqueue(key));
    }

    /// Handles the answer to a list.
    pub fn handle_list(&mut self, now: Instant, kind: WrittenKind, reply: ListReply) {
        if let ListReply::Is(objects) = &reply {
            self.answered();
            let is_first = !self.stored.is_known(kind);
            self.stored.replace(kind, self.writer.read(kind, objects));
            if is_first {
                self.announced.remember(kind, self.stored.services(kind));
            }
        }
        self.stored.listing(kind).answered(now, reply != ListReply::Failed);
        // Only what was not written meanwhile, and what the list contradicts.
        let stored = self.stored.keys(kind).cloned();
        let wanted = self.wanted.iter().flat_map(BTreeMap::keys).filter(|key| key.kind == kind);
        let keys: BTreeSet<Key> = stored.chain(wanted.cloned()).collect();
        keys.into_iter().for_each(|key| self.enqueue(key));
    }

    /// Handles the answer to a write.
    pub fn handle_write(
        &mut self,
        now: Instant,
        kind: WrittenKind,
        name: &ObjectName,
        reply: WriteReply,
    ) {
        let key = Key { kind, name: name.name.clone() };
        let Some(attempt) = self.attempts.get_mut(&key) else { return };
        let Some((sent, not_after)) = attempt.sent.take() else { return };
        if let Some(in_flight) = self.in_flight.get_mut(&kind) {
            *in_flight = in_flight.saturating_sub(1);
        }
        let is_missing = reply == WriteReply::Missing;
        let is_done = reply == WriteReply::Done || (is_missing && matches!(sent, Sent::Deletion));
        if is_done {
            self.attempts.remove(&key);
        } else {
            let pause = backoff(&mut self.random, attempt.failures);
            let is_new = attempt.failures == 0;
            attempt.failures = attempt.failures.saturating_add(1);
            // The last write may still arrive, and must not undo the next one.
            attempt.not_before = (now + pause).max(not_after);
            if reply == WriteReply::Failed && (is_new || self.outage == 0) {
                self.outage = self.outage.saturating_add(1);
            }
        }
        if reply == WriteReply::Failed {
            let pause = backoff(&mut self.random, self.outage.saturating_sub(1));
            self.pause_until = now + pause;
        } else {
            self.answered();
        }
        match sent {
            Sent::Deletion if is_done => self.stored.remove(&key),
            // It was deleted by another client: create it again.
            Sent::Status(_) if is_missing => self.stored.remove(&key),
            Sent::Object if is_done => self.stored.is_described(&key),
            Sent::Status(status) if is_done => self.stored.has_status(now, &key, status),
            _ => self.stored.is_uncertain(&key),
        }
        self.enqueue(key);
    }

    /// The next action; `None` until an event arrives or [`Self::next_deadline`] has passed.
    pub fn poll_action(&mut self, now: Instant) -> Option<ReportsAction> {
        if let Some(event) = self.announced.next_event() {
            return Some(ReportsAction::Event(event));
        }
        if let Some(kind) = self.next_list(now) {
            self.stored.listing(kind).asked();
            let label_selector = self.writer.label_selector(kind);
            return Some(ReportsAction::List { kind, label_selector });
        }
        while let Some((at, key)) = self.postponed.first().cloned() {
            if at > now {
                break;
            }
            self.postponed.pop_first();
            self.enqueue(key);
        }
        self.next_write(now).map(ReportsAction::Write)
    }

    /// When the next action is due without an event.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        if self.announced.has_events() {
            return Some(now);
        }
        let lists = KINDS.iter().filter(|kind| !self.is_writing(**kind));
        let lists = lists.filter_map(|kind| self.stored.due_at(*kind));
        let postponed = self.postponed.first().map(|(at, _)| *at);
        let has_work = !(self.few.order.is_empty() && self.many.order.is_empty());
        let write =
            (has_work && self.may_decide() && self.has_room()).then(|| self.may_write_at(now));
        lists.chain(postponed).chain(write).min()
    }

    fn answered(&mut self) {
        (self.outage, self.pause_until) = (0, Instant::ZERO);
    }

    fn enqueue(&mut self, key: Key) {
        let of_services = [WrittenKind::ServiceBgpStatus, WrittenKind::ServiceL2Status];
        let is_many = of_services.contains(&key.kind);
        if is_many { self.many.push(key) } else { self.few.push(key) }
    }

    /// Whether a write of this kind may still arrive.
    fn is_writing(&self, kind: WrittenKind) -> bool {
        self.in_flight.get(&kind).is_some_and(|it| *it > 0)
    }

    /// A list is read between writes: it says nothing certain about a write in progress.
    fn next_list(&self, now: Instant) -> Option<WrittenKind> {
        let due = |kind: &WrittenKind| self.stored.due_at(*kind).is_some_and(|at| at <= now);
        KINDS.into_iter().filter(due).find(|kind| !self.is_writing(*kind))
    }

    /// Before it is known what is desired, what others left waits.
    fn may_decide(&self) -> bool {
        self.wanted.is_some()
    }

    fn has_room(&self) -> bool {
        let most = if self.outage > 0 { 1 } else { IN_FLIGHT_MAX };
        self.in_flight.values().sum::<usize>() < most
    }

    fn may_write_at(&self, now: Instant) -> Instant {
        self.budget.next_at(now).max(self.pause_until)
    }

    fn next_write(&mut self, now: Instant) -> Option<ObjectWrite> {
        while self.may_decide() && self.has_room() && self.may_write_at(now) <= now {
            let key = self.pop()?;
            if let Some(write) = self.write(now, key) {
                self.budget.take(now);
                return Some(write);
            }
        }
        None
    }

    fn pop(&mut self) -> Option<Key> {
        self.is_turn_of_many = !self.is_turn_of_many;
        match self.is_turn_of_many {
            true => self.many.pop().or_else(|| self.few.pop()),
            false => self.few.pop().or_else(|| self.many.pop()),
        }
    }

    /// The write for one object, if it differs and may be sent now.
    fn write(&mut self, now: Instant, key: Key) -> Option<ObjectWrite> {
        // The end of the list, or of the earlier write, queues it again.
        if !self.stored.may_write(now, key.kind) {
            return None;
        }
        let attempt = self.attempts.get(&key);
        if attempt.is_some_and(|it| it.sent.is_some()) {
            return None;
        }
        let wanted = self.wanted.as_ref()?.get(&key);
        let known = self.stored.get(&key);
        let (sent, how) = match (wanted, known) {
            (None, None) => {
                self.attempts.remove(&key);
                return None;
            }
            (None, Some(_)) => (Sent::Deletion, WriteHow::Delete),
            (Some(status), known) if known.is_none_or(|it| !it.is_described) => {
                (Sent::Object, WriteHow::Apply(self.writer.object(&key, status)))
            }
            (Some(status), known) => {
                let before = known.and_then(|it| it.status.as_ref());
                if before.is_some_and(|it| it.says_the_same(status)) {
                    self.attempts.remove(&key);
                    return None;
                }
                let status = status.clone().keeping_times(before);
                (
                    Sent::Status(status.clone()),
                    WriteHow::ApplyStatus(self.writer.status(&key, &status)),
                )
            }
        };
        let failed = attempt.map(|it| it.not_before).filter(|at| *at > now);
        let paced = known.filter(|_| matches!(sent, Sent::Status(_))).and_then(|known| {
            let is_noise = wanted
                .zip(known.status.as_ref())
                .is_some_and(|(wanted, known)| wanted.is_another_attempt_of(known));
            let at = known.written_at? + DOWN_INTERVAL;
            (is_noise && at > now).then_some(at)
        });
        if let Some(at) = failed.max(paced) {
            self.postponed.insert((at, key));
            return None;
        }
        let not_after = now + WRITE_TIMEOUT;
        let attempt = self.attempts.entry(key.clone()).or_default();
        attempt.sent = Some((sent, not_after));
        let in_flight = self.in_flight.entry(key.kind).or_default();
        *in_flight = in_flight.saturating_add(1);
        let name = ObjectName::new(self.writer.namespace(), key.name);
        Some(ObjectWrite { kind: key.kind, name, how, not_after })
    }
}

/// The pause after this many failures.
fn backoff(random: &mut Rng, failures: u32) -> Duration {
    random.jittered(PAUSE_MIN.saturating_mul(1 << failures.min(6)).min(PAUSE_MAX))
}
