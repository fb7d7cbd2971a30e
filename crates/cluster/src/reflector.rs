//! One client's copy of one kind, from lists and watches.
//!
//! Returns what changed, and what to request next. Knows no socket and no meaning: an object is a name, a
//! uid, a resource version and the rest. The belief of a process owns one for each kind.
//!
//! A deletion is known from a DELETED event, or from a list that lacks the object: each list is compared with
//! the copy, so an object that vanished unseen is removed. A failure changes nothing.
//!
//! `Ours:` client-go starts with a list at version `0`, and goes back in time when the replica that answers
//! lags. Here every list is a consistent read (no version): since 1.31 the server answers it from memory, and
//! an outdated state is never returned.
//!
//! `Ours:` client-go, and with it MetalLB, trusts every list that succeeds. Here a list that is older than what
//! was seen already is in doubt, and trusted once it was repeated for [`DOUBT`] (a storage that was restored from
//! a backup assigns versions a second time; nothing else may answer a consistent read that way). And where the
//! server has none of the known objects any more (a server in front of a wrong or empty storage answers that for
//! everything), or the kind itself is being removed, they are kept for a time: the hold. Each ends it for itself
//! when the server has it again, since a backup is restored object by object. The hold concerns the copy only: the
//! server was heard, and is watched. A deletion that the server reports as an event is trusted at once.

mod exchange;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_ground::{Instant, Rng};
use fairway_model::ObjectName;
use serde_json::Value;

pub use exchange::{Reply, Request};

use super::object_text::{ListedObject, ObjectText};
use super::version;

/// A change. Replayed in order they give [`Reflector::items`].
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// New, or another version.
    Applied(ObjectText),
    /// Deleted. Also returned when another object took the name unseen, before that one is applied.
    Deleted(ObjectName),
}

/// Objects per page: about a megabyte of Services, and what client-go requests.
pub const PAGE_OBJECTS: u32 = 500;
/// The maximum of objects; etcd cannot hold more of any size. A larger list fails.
const OBJECTS_MAX: usize = 1_000_000;
/// The first pause after a failure; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause: how late a server that comes back is noticed at most.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(15);
/// A list that takes longer is requested again.
const LIST_MAX: Duration = Duration::from_secs(60);
/// A watch that is silent for this long is dead: bookmarks come about every minute. A list follows.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// After this long the end of a watch does not count as a failure.
const WATCH_HEALTHY: Duration = Duration::from_secs(10);
/// The interval of lists even if no watch ever breaks: so an event that a server failed to send is corrected.
const RELIST_INTERVAL: Duration = Duration::from_secs(3600);
/// For how long a doubtful list has to be repeated.
const DOUBT: Duration = Duration::from_secs(30);
/// How often it has to be repeated at least.
const DOUBTFUL_LISTS: u32 = 3;

#[derive(Debug, Clone)]
enum Phase {
    /// No request; the next one may be sent then.
    Idle { not_before: Instant },
    /// A list, of which these objects have arrived.
    Listing { items: Vec<ListedObject>, asked_at: Instant },
    /// A page of that list arrived; the next one is requested at once.
    Paging { items: Vec<ListedObject>, continue_token: String },
    /// A watch; its last message arrived at `heard_at`.
    Watching { since: Instant, heard_at: Instant },
}

/// A list that is in doubt.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    since: Instant,
    lists: u32,
}

/// Objects that are kept although the server does not have them.
#[derive(Debug, Clone)]
struct Hold {
    since: Instant,
    names: BTreeSet<ObjectName>,
}

/// The copy of one kind.
#[derive(Debug, Clone)]
pub struct Reflector {
    items: BTreeMap<ObjectName, ObjectText>,
    /// The newest version received: where the next watch starts; a list must not be older. Empty before the
    /// first list.
    version: String,
    /// Only a list can show the current state.
    needs_list: bool,
    phase: Phase,
    is_synced: bool,
    listed_at: Instant,
    failures: u32,
    /// Since when; `None` without any.
    failing_since: Option<Instant>,
    doubt: Option<Doubt>,
    hold_max: Duration,
    hold: Option<Hold>,
    /// Objects of an earlier run, which the owner has; known ones until the first list is accepted.
    earlier: BTreeSet<ObjectName>,
    random: Rng,
    /// The server need not have the kind.
    is_optional: bool,
}

impl Reflector {
    /// An empty copy. `seed` is for the jitter of its pauses. Objects that the server lacks all at once are kept
    /// for `hold_max`.
    pub fn new(seed: u64, hold_max: Duration) -> Self {
        Self {
            items: BTreeMap::new(),
            version: String::new(),
            needs_list: true,
            phase: Phase::Idle { not_before: Instant::ZERO },
            is_synced: false,
            listed_at: Instant::ZERO,
            failures: 0,
            failing_since: None,
            doubt: None,
            hold_max,
            hold: None,
            earlier: BTreeSet::new(),
            random: Rng::seeded(seed),
            is_optional: false,
        }
    }

    /// The same, of a kind that the server need not have: without a definition there is no object.
    pub fn of_optional_kind(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// Whether it has accepted a list since the start, or since [`Self::relist`].
    pub fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// The objects, by name.
    pub fn items(&self) -> &BTreeMap<ObjectName, ObjectText> {
        &self.items
    }

    /// Whether lists arrive that contradict what was seen, and are not trusted yet.
    pub fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Until when objects are kept that the server does not have.
    pub fn held_until(&self) -> Option<Instant> {
        self.hold.as_ref().map(|hold| hold.since + self.hold_max)
    }

    /// Whether this one is kept although the server does not have it.
    pub fn is_kept(&self, name: &ObjectName) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.names.contains(name))
    }

    /// The owner goes on with this object of an earlier run.
    pub fn has_earlier(&mut self, name: ObjectName) {
        self.earlier.insert(name);
    }

    /// Requests a list that is not older than this moment.
    pub fn relist(&mut self) {
        self.needs_list = true;
        self.is_synced = false;
        self.phase = Phase::Idle { not_before: Instant::ZERO };
    }

    /// Whether requests have failed since the last sign of life.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Since when every request has failed.
    pub fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }

    /// When a list was accepted last.
    pub fn listed_at(&self) -> Instant {
        self.listed_at
    }

    /// The server answers again, as another kind has seen: a pause after failures ends soon. At a random time,
    /// since every process of the cluster sees it now.
    pub fn hurry(&mut self, now: Instant) {
        let soon = now + self.random.jittered(PAUSE_MIN);
        if let Phase::Idle { not_before } = &mut self.phase
            && self.failures > 0
            && self.doubt.is_none()
        {
            *not_before = soon.min(*not_before);
            self.failures = 0;
        }
    }

    /// When [`Self::next_request`] has a request, unless a reply comes before.
    pub fn next_deadline(&self) -> Instant {
        match &self.phase {
            Phase::Idle { not_before } => *not_before,
            Phase::Listing { asked_at, .. } => *asked_at + LIST_MAX,
            Phase::Paging { .. } => Instant::ZERO,
            Phase::Watching { heard_at, .. } => {
                let due = (*heard_at + SILENCE_MAX).min(self.listed_at + RELIST_INTERVAL);
                self.held_until().map_or(due, |until| until.min(due))
            }
        }
    }

    /// The request to send now, if any.
    pub fn next_request(&mut self, now: Instant) -> Option<Request> {
        if now < self.next_deadline() {
            return None;
        }
        match std::mem::replace(&mut self.phase, Phase::Idle { not_before: now }) {
            Phase::Idle { .. } => {}
            Phase::Paging { items, continue_token } => {
                self.phase = Phase::Listing { items, asked_at: now };
                return Some(Request::List { continue_token: Some(continue_token) });
            }
            Phase::Listing { .. } => {
                self.pause(now);
                return None;
            }
            // A list is due; or the watch is silent, as with a server with versions behind
            // ours since its storage was restored from a backup.
            Phase::Watching { .. } => self.needs_list = true,
        }
        if self.needs_list {
            self.phase = Phase::Listing { items: Vec::new(), asked_at: now };
            return Some(Request::List { continue_token: None });
        }
        self.phase = Phase::Watching { since: now, heard_at: now };
        Some(Request::Watch { resource_version: self.version.clone() })
    }

    /// Handles the reply to the last request, or one more event of a watch. A reply that does not belong to
    /// that request is ignored.
    pub fn handle(&mut self, now: Instant, reply: Reply) -> Vec<Delta> {
        let idle = Phase::Idle { not_before: now };
        match (reply, std::mem::replace(&mut self.phase, idle)) {
            (
                Reply::Listed { items: page, resource_version, continue_token },
                Phase::Listing { mut items, .. },
            ) => {
                items.extend(page);
                if items.len() > OBJECTS_MAX {
                    self.pause(now);
                    return Vec::new();
                }
                if let Some(continue_token) = continue_token {
                    self.phase = Phase::Paging { items, continue_token };
                    return Vec::new();
                }
                self.listed(now, items, resource_version)
            }
            (Reply::Opened, Phase::Watching { since, .. }) => {
                self.phase = Phase::Watching { since, heard_at: now };
                self.failing_since = None;
                Vec::new()
            }
            (Reply::Applied(object), Phase::Watching { since, .. }) => {
                self.phase = Phase::Watching { since, heard_at: now };
                if self.follow(now, version_of(&object)) {
                    self.applied(now, &object)
                } else {
                    vec![]
                }
            }
            (Reply::Deleted(object), Phase::Watching { since, .. }) => {
                self.phase = Phase::Watching { since, heard_at: now };
                let name = name_of(&object);
                let is_news = self.follow(now, version_of(&object));
                if is_news {
                    self.releases(&name);
                }
                let known = if is_news { self.items.remove(&name) } else { None };
                known.map(|_| Delta::Deleted(name)).into_iter().collect()
            }
            (Reply::Bookmark(version), Phase::Watching { since, .. }) => {
                self.phase = Phase::Watching { since, heard_at: now };
                self.follow(now, Some(&version));
                Vec::new()
            }
            (reply @ (Reply::Gone | Reply::Closed | Reply::Failed | Reply::Undefined), phase) => {
                self.ended(now, &reply, phase)
            }
            (_, phase) => {
                self.phase = phase;
                Vec::new()
            }
        }
    }

    /// The request of `phase` has ended without the rest.
    fn ended(&mut self, now: Instant, reply: &Reply, phase: Phase) -> Vec<Delta> {
        match phase {
            Phase::Watching { since, .. } if now.since(since) >= WATCH_HEALTHY => self.is_heard(),
            Phase::Watching { .. } | Phase::Listing { .. } => {}
            Phase::Idle { .. } | Phase::Paging { .. } => {
                self.phase = phase;
                return Vec::new();
            }
        }
        self.needs_list |= matches!(reply, Reply::Gone | Reply::Undefined);
        self.pause_after(now, reply);
        if !matches!(reply, Reply::Undefined) {
            return Vec::new();
        }
        let is_over = !self.holds(now);
        // Of a kind that was seen once, no more can be known now.
        if self.is_optional || !self.version.is_empty() || self.hold.is_some() {
            self.is_synced = true;
            self.listed_at = now;
        }
        if is_over { self.replace(Vec::new()) } else { Vec::new() }
    }

    /// A sign of life.
    fn is_heard(&mut self) {
        self.failures = 0;
        self.failing_since = None;
    }

    fn pause_after(&mut self, now: Instant, reply: &Reply) {
        if matches!(reply, Reply::Failed) {
            self.failing_since.get_or_insert(now);
        }
        self.pause(now);
    }

    fn pause(&mut self, now: Instant) {
        let doubled = PAUSE_MIN.saturating_mul(1 << self.failures.min(5)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Idle { not_before: now + self.random.jittered(doubled) };
    }

    /// The list is complete.
    fn listed(&mut self, now: Instant, items: Vec<ListedObject>, version: String) -> Vec<Delta> {
        if version::is_older(&version, &self.version) && self.doubts(now) {
            self.pause(now);
            return Vec::new();
        }
        self.doubt = None;
        self.phase = Phase::Idle { not_before: now };
        self.version = version;
        self.failing_since = None;
        self.needs_list = false;
        self.is_synced = true;
        self.listed_at = now;
        if (items.is_empty() || self.hold.is_some()) && self.holds(now) {
            items.iter().for_each(|it| self.releases(&it.name));
        } else {
            self.hold = None;
        }
        self.replace(items)
    }

    /// These are the objects, beside those that are kept.
    fn replace(&mut self, items: Vec<ListedObject>) -> Vec<Delta> {
        self.earlier.clear();
        let mut gone = std::mem::take(&mut self.items);
        let mut deltas = Vec::new();
        for ListedObject { name, text: object } in items {
            match gone.remove(&name) {
                Some(known) if known == object => {}
                known => {
                    if known.is_some_and(|known| known.uid() != object.uid()) {
                        deltas.push(Delta::Deleted(name.clone()));
                    }
                    deltas.push(Delta::Applied(object.clone()));
                }
            }
            self.items.insert(name, object);
        }
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            gone.into_iter().partition(|(name, _)| self.is_kept(name));
        self.items.extend(kept);
        // Deletions first: they may conflict with new objects.
        let mut all: Vec<Delta> = gone.into_keys().map(Delta::Deleted).collect();
        all.append(&mut deltas);
        all
    }

    /// Whether known objects stay although the server does not have them; begins with all of them.
    fn holds(&mut self, now: Instant) -> bool {
        if self.hold.is_none() {
            let names: BTreeSet<_> = self.items.keys().chain(&self.earlier).cloned().collect();
            self.hold = (!names.is_empty()).then_some(Hold { since: now, names });
        }
        let is_over = |hold: &Hold| now.since(hold.since) >= self.hold_max;
        if self.hold.as_ref().is_some_and(is_over) {
            self.hold = None;
        }
        self.hold.is_some()
    }

    /// The server has this object, or has deleted it.
    fn releases(&mut self, name: &ObjectName) {
        if let Some(hold) = &mut self.hold {
            hold.names.remove(name);
            if hold.names.is_empty() {
                self.hold = None;
            }
        }
    }

    /// Whether a list that contradicts what was seen has not been repeated for long enough.
    fn doubts(&mut self, now: Instant) -> bool {
        let doubt = self.doubt.get_or_insert(Doubt { since: now, lists: 0 });
        doubt.lists = doubt.lists.saturating_add(1);
        doubt.lists < DOUBTFUL_LISTS || now.since(doubt.since) < DOUBT
    }

    fn applied(&mut self, now: Instant, object: &Value) -> Vec<Delta> {
        let (name, text) = (name_of(object), ObjectText::from(object));
        self.releases(&name);
        let known = self.items.get(&name);
        if known.is_none() && self.items.len() >= OBJECTS_MAX {
            self.needs_list = true;
            self.pause(now);
            return Vec::new();
        }
        let replaced = known.is_some_and(|known| known.uid() != text.uid());
        let mut deltas = Vec::new();
        if replaced {
            deltas.push(Delta::Deleted(name.clone()));
        }
        self.items.insert(name, text.clone());
        deltas.push(Delta::Applied(text));
        deltas
    }

    /// Advances to the version of an event; false: it is not newer. An event from before the start of the
    /// watch comes from a server with another history: only a list helps.
    fn follow(&mut self, now: Instant, version: Option<&str>) -> bool {
        let Some(version) = version.filter(|version| !version.is_empty()) else {
            self.needs_list = true;
            self.pause(now);
            return false;
        };
        if version == self.version {
            return false;
        }
        if version::is_older(version, &self.version) {
            self.needs_list = true;
            self.pause(now);
            return false;
        }
        self.is_heard();
        version.clone_into(&mut self.version);
        true
    }
}

/// `metadata.namespace` and `metadata.name`.
pub fn name_of(object: &Value) -> ObjectName {
    let text = |field| metadata(object, field).unwrap_or_default();
    ObjectName::new(text("namespace"), text("name"))
}

/// `metadata.resourceVersion`.
pub fn version_of(object: &Value) -> Option<&str> {
    metadata(object, "resourceVersion")
}

/// Without a JSON pointer, which costs an allocation per component.
fn metadata<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get("metadata")?.get(field)?.as_str()
}

#[cfg(test)]
mod tests;
