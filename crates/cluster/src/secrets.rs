//! Which Secrets to read, and when: those that peers and BFD profiles refer to, and no others.
//!
//! Returns the next request, and which Secrets are not known yet. Each Secret is read by its name, so the
//! service account needs no right to list Secrets. It is read at once when it is first referenced, and again
//! every minute, since there is no watch. Knows no key and no peer. The belief of a process owns one.
//!
//! A failure changes nothing, and no Secret waits for another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{Instant, Rng};
use fairway_model::ObjectName;
use serde_json::Value;

/// The answer to a request. Its `Debug` form hides the Secret.
#[derive(Clone)]
pub enum SecretReply {
    /// The Secret, with its `apiVersion` and `kind`.
    Is(Arc<Value>),
    /// 404: there is no Secret of that name.
    Missing,
    /// Any other failure, including a refusal (403).
    Failed,
}

impl fmt::Debug for SecretReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Is(_) => "Is(..)",
            Self::Missing => "Missing",
            Self::Failed => "Failed",
        })
    }
}

/// The interval after an answer: a key changes rarely, and both ends of a session change it within minutes.
const INTERVAL: Duration = Duration::from_secs(60);
/// The first pause after a failure; doubles up to [`INTERVAL`].
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A request without an answer is sent again after this time.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Requests in progress at a time: a thousand peers must not flood the API server when it is back.
const IN_FLIGHT_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// To be requested then.
    Due(Instant),
    /// Requested at that time.
    Asked(Instant),
}

/// What is known of one Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// There was no answer yet.
    Nothing,
    /// It could not be read so far.
    Unreadable,
    /// There was an answer: the Secret, or that it is missing.
    Answered,
}

#[derive(Debug, Clone)]
struct Named {
    phase: Phase,
    failures: u32,
    knowledge: Knowledge,
}

/// All referenced Secrets.
#[derive(Debug, Clone)]
pub(super) struct Secrets {
    named: BTreeMap<ObjectName, Named>,
    random: Rng,
}

impl Secrets {
    /// None. `seed` is for the jitter of pauses.
    pub(super) fn new(seed: u64) -> Self {
        Self { named: BTreeMap::new(), random: Rng::seeded(seed) }
    }

    /// Sets the referenced Secrets. Returns those that are no longer referenced.
    pub(super) fn set_named(&mut self, names: BTreeSet<ObjectName>) -> Vec<ObjectName> {
        let gone = self.named.keys().filter(|name| !names.contains(*name));
        let gone: Vec<_> = gone.cloned().collect();
        self.named.retain(|name, _| names.contains(name));
        for name in names {
            let at_once = Phase::Due(Instant::ZERO);
            let first = Named { phase: at_once, failures: 0, knowledge: Knowledge::Nothing };
            self.named.entry(name).or_insert(first);
        }
        gone
    }

    /// The next one to request.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<ObjectName> {
        if self.next_deadline().is_none_or(|at| now < at) {
            return None;
        }
        for named in self.named.values_mut() {
            if let Phase::Asked(at) = named.phase
                && at + ANSWER_MAX <= now
            {
                named.phase = Phase::Due(now);
            }
        }
        if self.in_flight() >= IN_FLIGHT_MAX {
            return None;
        }
        let is_due = |it: &Named| matches!(it.phase, Phase::Due(at) if at <= now);
        let (name, named) = self.named.iter_mut().find(|(_, it)| is_due(it))?;
        named.phase = Phase::Asked(now);
        Some(name.clone())
    }

    /// When the next request is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let is_full = self.in_flight() >= IN_FLIGHT_MAX;
        let deadlines = self.named.values().filter_map(|it| match it.phase {
            Phase::Due(at) => (!is_full).then_some(at),
            Phase::Asked(at) => Some(at + ANSWER_MAX),
        });
        deadlines.min()
    }

    /// Handles an answer; returns whether it belongs to a request.
    pub(super) fn handle(&mut self, now: Instant, name: &ObjectName, reply: &SecretReply) -> bool {
        let Some(named) = self.named.get_mut(name) else { return false };
        if !matches!(named.phase, Phase::Asked(_)) {
            return false;
        }
        let pause = match reply {
            SecretReply::Is(_) | SecretReply::Missing => {
                named.failures = 0;
                named.knowledge = Knowledge::Answered;
                INTERVAL
            }
            SecretReply::Failed => {
                let doubled = PAUSE_MIN.saturating_mul(1 << named.failures.min(6));
                named.failures = named.failures.saturating_add(1);
                if named.knowledge == Knowledge::Nothing {
                    named.knowledge = Knowledge::Unreadable;
                }
                doubled.min(INTERVAL)
            }
        };
        named.phase = Phase::Due(now + self.random.jittered(pause));
        true
    }

    /// The Secrets in this state.
    pub(super) fn with(&self, knowledge: Knowledge) -> BTreeSet<ObjectName> {
        let named = self.named.iter().filter(|(_, it)| it.knowledge == knowledge);
        named.map(|(name, _)| name.clone()).collect()
    }

    fn in_flight(&self) -> usize {
        self.named.values().filter(|it| matches!(it.phase, Phase::Asked(_))).count()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("metallb-system", name)
    }

    fn naming(names: &[&str]) -> Secrets {
        let mut secrets = Secrets::new(1);
        assert_eq!(secrets.set_named(names.iter().map(|it| name(it)).collect()), []);
        secrets
    }

    const fn seconds(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    fn is() -> SecretReply {
        SecretReply::Is(Arc::new(json!({ "kind": "Secret" })))
    }

    #[test]
    fn what_is_named_is_asked_for_at_once_and_again_after_about_a_minute() {
        let mut secrets = naming(&["a"]);
        let now = seconds(5);
        assert_eq!(secrets.next_request(now), Some(name("a")));
        assert_eq!(secrets.next_request(now), None, "one question at a time");
        assert!(secrets.handle(now, &name("a"), &is()));
        let next = secrets.next_deadline().unwrap();
        assert!(next >= now + INTERVAL / 2 && next <= now + INTERVAL, "{next:?}");
        assert_eq!(secrets.next_request(now + INTERVAL / 2), None);
        assert_eq!(secrets.next_request(next), Some(name("a")));
    }

    #[test]
    fn a_failure_backs_off_and_holds_nobody_up() {
        let mut secrets = naming(&["a", "b"]);
        let mut now = seconds(5);
        assert_eq!(secrets.next_request(now), Some(name("a")));
        assert_eq!(secrets.next_request(now), Some(name("b")));
        secrets.handle(now, &name("b"), &is());
        let mut pauses = Vec::new();
        for _ in 0..9 {
            secrets.handle(now, &name("a"), &SecretReply::Failed);
            let Phase::Due(at) = secrets.named[&name("a")].phase else { panic!() };
            pauses.push(at.since(now));
            now = at;
            while secrets.next_request(now).is_some_and(|it| it != name("a")) {}
        }
        assert!(pauses[0] <= PAUSE_MIN, "{pauses:?}");
        assert!(pauses[8] > INTERVAL / 2 && pauses[8] <= INTERVAL, "{pauses:?}");
    }

    #[test]
    fn what_is_no_longer_named_is_forgotten_with_its_answer() {
        let mut secrets = naming(&["a", "b"]);
        let now = seconds(5);
        assert_eq!(secrets.next_request(now), Some(name("a")));
        assert_eq!(secrets.set_named(BTreeSet::from([name("b")])), [name("a")]);
        assert!(!secrets.handle(now, &name("a"), &is()));
        assert!(!secrets.handle(now, &name("b"), &is()), "there was no request yet");
    }

    #[test]
    fn a_lost_answer_is_asked_for_again_and_many_questions_go_one_after_the_other() {
        let names: Vec<String> = (0..20).map(|number| format!("s{number:02}")).collect();
        let mut secrets = naming(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let now = seconds(5);
        let asked: Vec<_> = std::iter::from_fn(|| secrets.next_request(now)).collect();
        assert_eq!(asked.len(), IN_FLIGHT_MAX);
        assert_eq!(secrets.next_deadline(), Some(now + ANSWER_MAX), "no hot loop meanwhile");
        secrets.handle(now, &name("s00"), &is());
        assert_eq!(secrets.next_request(now), Some(name("s08")));
        let later = now + ANSWER_MAX;
        let again: Vec<_> = std::iter::from_fn(|| secrets.next_request(later)).collect();
        assert_eq!(again.len(), IN_FLIGHT_MAX);
    }
}
