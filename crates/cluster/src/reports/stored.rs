//! What the API server stores of a speaker's objects, as far as it is known, and when to list again.
//!
//! Records what a list or a write has shown. Knows no desired state and no request in progress.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_ground::{Instant, Rng};
use fairway_model::ObjectName;

use super::object::{Key, Status};
use super::{KINDS, backoff};
use crate::write::WrittenKind;

/// The interval between two lists of a kind: how long changes by others persist at most.
const LIST_INTERVAL: Duration = Duration::from_secs(600);
/// The second list: the objects of the previous Pod are deleted about then, even if they were overwritten
/// meanwhile.
const SECOND_LIST_AFTER: Duration = Duration::from_secs(60);

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// It has the desired labels and owner.
    pub(super) is_described: bool,
    /// Its content; `None` if that is unknown.
    pub(super) status: Option<Status>,
    /// When we wrote that.
    pub(super) written_at: Option<Instant>,
}

/// When a kind is listed.
#[derive(Debug)]
pub(super) struct Listing {
    /// `None` while a list is in progress.
    due_at: Option<Instant>,
    lists: u32,
    failures: u32,
    random: Rng,
}

impl Listing {
    pub(super) fn asked(&mut self) {
        self.due_at = None;
    }

    pub(super) fn answered(&mut self, now: Instant, is_good: bool) {
        let pause = if is_good {
            let is_first = self.lists == 0;
            self.lists = self.lists.saturating_add(1);
            self.failures = 0;
            let pause = if is_first { SECOND_LIST_AFTER } else { LIST_INTERVAL };
            self.random.jittered(pause)
        } else {
            let pause = backoff(&mut self.random, self.failures);
            self.failures = self.failures.saturating_add(1);
            pause
        };
        self.due_at = Some(now + pause);
    }
}

/// Everything.
#[derive(Debug)]
pub(super) struct Stored {
    objects: BTreeMap<Key, Known>,
    listings: BTreeMap<WrittenKind, Listing>,
    /// For kinds that are not listed.
    none: Listing,
}

impl Stored {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Rng::seeded(seed);
        let mut listing = || Listing {
            due_at: Some(Instant::ZERO),
            lists: 0,
            failures: 0,
            random: Rng::seeded(random.next_u64()),
        };
        let listings = KINDS.map(|kind| (kind, listing())).into();
        Self { objects: BTreeMap::new(), listings, none: listing() }
    }

    pub(super) fn listing(&mut self, kind: WrittenKind) -> &mut Listing {
        self.listings.get_mut(&kind).unwrap_or(&mut self.none)
    }

    /// When a kind is to be listed; `None` while it is in progress.
    pub(super) fn due_at(&self, kind: WrittenKind) -> Option<Instant> {
        self.listings.get(&kind)?.due_at
    }

    /// Whether it has been listed.
    pub(super) fn is_known(&self, kind: WrittenKind) -> bool {
        self.listings.get(&kind).is_some_and(|it| it.lists > 0)
    }

    /// A list says nothing certain about concurrent writes, and does not wait for others.
    pub(super) fn may_write(&self, now: Instant, kind: WrittenKind) -> bool {
        self.is_known(kind) && self.due_at(kind).is_some_and(|at| now < at)
    }

    pub(super) fn replace(&mut self, kind: WrittenKind, objects: Vec<(Key, Known)>) {
        let written_at = |key: &Key| self.objects.get(key)?.written_at;
        let objects: Vec<_> = objects
            .into_iter()
            .map(|(key, known)| {
                let written_at = written_at(&key);
                (key, Known { written_at, ..known })
            })
            .collect();
        self.objects.retain(|key, _| key.kind != kind);
        self.objects.extend(objects);
    }

    pub(super) fn keys(&self, kind: WrittenKind) -> impl Iterator<Item = &Key> {
        let first = Key { kind, name: String::new() };
        self.objects.range(first..).map(|(key, _)| key).take_while(move |key| key.kind == kind)
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Known> {
        self.objects.get(key)
    }

    /// The Services that are announced according to the stored objects of this kind.
    pub(super) fn services(&self, kind: WrittenKind) -> impl Iterator<Item = ObjectName> {
        self.keys(kind).filter_map(|key| self.get(key)?.status.as_ref()?.service())
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.objects.remove(key);
    }

    /// It was applied without its status.
    pub(super) fn is_described(&mut self, key: &Key) {
        self.change(key, |it| it.is_described = true);
    }

    /// Its status was applied.
    pub(super) fn has_status(&mut self, now: Instant, key: &Key, status: Status) {
        self.change(key, |it| (it.status, it.written_at) = (Some(status), Some(now)));
    }

    /// A write may have arrived or not.
    pub(super) fn is_uncertain(&mut self, key: &Key) {
        self.change(key, |it| (it.is_described, it.status) = (false, None));
    }

    fn change(&mut self, key: &Key, change: impl FnOnce(&mut Known)) {
        let unknown = || Known { is_described: false, status: None, written_at: None };
        change(self.objects.entry(key.clone()).or_insert_with(unknown));
    }
}
