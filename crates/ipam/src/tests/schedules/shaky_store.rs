//! A store whose calls take a step of the schedule, and some of which fail before or after they did what was asked.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use fairway_ground::Rng;

use super::node_store::Event;
use crate::{Affinity, Key, MemoryStore, Object, Selection, Store, StoreError, Version, Versioned};

pub(in crate::tests) struct ShakyStore {
    pub(in crate::tests) inner: MemoryStore,
    rng: Mutex<Rng>,
    /// Of 1,000 calls, so many fail.
    failures_per_mille: AtomicU64,
    /// The last writes, to understand a fault by.
    log: Mutex<VecDeque<String>>,
    /// What became of affinities.
    events: Mutex<Vec<Event>>,
}

/// How many writes are remembered.
const LINES_MAX: usize = 24;

/// What becomes of a call.
enum Fate {
    Done,
    Lost,
    /// It is done, and nobody hears of it.
    Unheard,
}

impl ShakyStore {
    pub(in crate::tests) fn new(inner: MemoryStore, seed: u64, failures_per_mille: u64) -> Self {
        Self {
            inner,
            rng: Mutex::new(Rng::seeded(seed)),
            failures_per_mille: failures_per_mille.into(),
            log: Mutex::default(),
            events: Mutex::default(),
        }
    }

    /// The last writes.
    pub(super) fn log(&self) -> String {
        Vec::from(self.log.lock().unwrap().clone()).join("\n")
    }

    /// All that became of affinities.
    pub(super) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// The affinities as they are.
    pub(super) fn affinities(&self) -> Vec<Versioned<Affinity>> {
        let listed = self.inner.versioned();
        let affinity = |it: Versioned<Object>| match it.value {
            Object::Affinity(value) => Some(Versioned { value, version: it.version }),
            _ => None,
        };
        listed.into_iter().filter_map(affinity).collect()
    }

    fn note(&self, line: String) {
        let mut log = self.log.lock().unwrap();
        log.push_back(line);
        if log.len() > LINES_MAX {
            log.pop_front();
        }
    }

    pub(super) fn fail_no_more(&self) {
        self.failures_per_mille.store(0, Ordering::Relaxed);
    }

    async fn turn(&self) -> Fate {
        let mut is_next = false;
        poll_fn(move |context| match std::mem::replace(&mut is_next, true) {
            false => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            true => Poll::Ready(()),
        })
        .await;
        let roll = self.rng.lock().unwrap().next_u64() % 1000;
        match roll {
            _ if roll >= self.failures_per_mille.load(Ordering::Relaxed) => Fate::Done,
            _ if roll.is_multiple_of(2) => Fate::Lost,
            _ => Fate::Unheard,
        }
    }
}

fn unavailable<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable("of the schedule".to_owned()))
}

impl Store for ShakyStore {
    async fn get(&self, key: &Key) -> Result<Option<Versioned<Object>>, StoreError> {
        match self.turn().await {
            Fate::Done => self.inner.get(key).await,
            _ => unavailable(),
        }
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Versioned<Object>>, StoreError> {
        match self.turn().await {
            Fate::Done => self.inner.list(selection).await,
            _ => unavailable(),
        }
    }

    async fn write(
        &self,
        object: Object,
        expected: Option<&Version>,
    ) -> Result<Version, StoreError> {
        let fate = self.turn().await;
        let line = format!("{} over {expected:?}", short(&object));
        let outcome = match fate {
            Fate::Lost => return unavailable(),
            _ => self.inner.write(object.clone(), expected).await,
        };
        if let (Ok(version), Object::Affinity(value)) = (&outcome, object) {
            let version = version.clone();
            self.events.lock().unwrap().push(Event::Is(Versioned { value, version }));
        }
        self.note(format!("{line}: {outcome:?}"));
        if matches!(fate, Fate::Unheard) { unavailable() } else { outcome }
    }

    async fn delete(&self, key: &Key, expected: &Version) -> Result<(), StoreError> {
        let fate = self.turn().await;
        let outcome = match fate {
            Fate::Lost => return unavailable(),
            _ => self.inner.delete(key, expected).await,
        };
        if let (Ok(()), Key::Affinity(owner, prefix)) = (&outcome, key) {
            let event = Event::Gone(owner.clone(), *prefix, expected.clone());
            self.events.lock().unwrap().push(event);
        }
        self.note(format!("delete {key:?} at {expected:?}: {outcome:?}"));
        if matches!(fate, Fate::Unheard) { unavailable() } else { outcome }
    }
}

fn short(object: &Object) -> String {
    match object {
        Object::Block(it) => {
            format!("block {} of {:?}, {} free", it.prefix(), it.owner(), it.free_count())
        }
        Object::Affinity(it) => format!("affinity {:?} to {}: {:?}", it.owner, it.prefix, it.state),
        Object::Handle(it) => format!("handle {}: {:?}", it.id, it.counts),
    }
}
