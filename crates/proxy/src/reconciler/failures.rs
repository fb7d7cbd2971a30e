//! What could not be done, and when it is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairway_ground::Instant;

/// The wait after the first failure; it doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest wait: an operator who has mended the kernel does not wait longer.
const RETRY_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
struct Failure {
    retry_at: Instant,
    attempts: u32,
    message: String,
}

/// Failures by what they are about.
#[derive(Debug, Clone)]
pub(super) struct Failures<K> {
    all: BTreeMap<K, Failure>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Failures<K> {
    /// Another failure.
    pub(super) fn add(&mut self, key: K, message: String, now: Instant) {
        let attempts = self.all.get(&key).map_or(0, |it| it.attempts);
        self.clear(&key);
        let factor = 1_u32.checked_shl(attempts.min(5)).unwrap_or(1);
        let retry_at = now + RETRY_FIRST.saturating_mul(factor).min(RETRY_MAX);
        self.by_time.insert((retry_at, key.clone()));
        self.all.insert(key, Failure { retry_at, attempts: attempts.saturating_add(1), message });
    }

    /// It works.
    pub(super) fn clear(&mut self, key: &K) {
        if let Some(failure) = self.all.remove(key) {
            self.by_time.remove(&(failure.retry_at, key.clone()));
        }
    }

    /// Whether everything works.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether it has to wait.
    pub(super) fn is_waiting(&self, key: &K, now: Instant) -> bool {
        self.all.get(key).is_some_and(|it| it.retry_at > now)
    }

    /// Whether it failed more than once.
    pub(super) fn is_persistent(&self, key: &K) -> bool {
        self.all.get(key).is_some_and(|it| it.attempts > 1)
    }

    pub(super) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        self.by_time.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// Those to try again now.
    pub(super) fn due(&self, now: Instant) -> impl Iterator<Item = &K> {
        self.by_time.iter().take_while(move |(at, _)| *at <= now).map(|(_, key)| key)
    }

    /// Why this failed.
    pub(super) fn message(&self, key: &K) -> Option<&str> {
        self.all.get(key).map(|it| &*it.message)
    }

    /// What failed, and why.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&K, &str)> {
        self.all.iter().map(|(key, it)| (key, &*it.message))
    }
}
