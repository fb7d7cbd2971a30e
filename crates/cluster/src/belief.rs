//! What one process knows of the cluster: a reflector for each kind it reads, the referenced Secrets, and the
//! objects in force.
//!
//! Returns what changed with each reply of the API server. Decides nothing; the cores of the controller and
//! of the speaker own one each.
//!
//! Of an object that becomes faulty, the last good version stays in force. Until every kind has been listed
//! once, nothing received is in force: a partial list would look as if the rest was deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::{Instant, Rng};
use fairway_model::{Changes, ClusterIndex, Kind, ObjectChange, ObjectKey, ObjectName};
use fairway_resources::{BackendKind, Finding, FindingObject, Severity};
use serde_json::Value;

use super::in_force::InForce;
use super::object_text::ObjectText;
use super::reflector::{Delta, PAUSE_MAX, Reflector, Reply, Request, name_of};
use super::secrets::{Knowledge, SecretReply, Secrets};

/// A kind whose objects stay although the API server has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The kind.
    pub kind: Kind,
    /// Until when they stay.
    pub until: Instant,
    /// One of them.
    pub name: ObjectName,
    /// Its `metadata.uid`; empty if it is known from an earlier run only.
    pub uid: String,
}

/// Requests that fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Since when.
    pub since: Instant,
    /// Of which kinds; empty: of all.
    pub kinds: Vec<Kind>,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Belief {
    reflectors: BTreeMap<Kind, Reflector>,
    secrets: Secrets,
    in_force: InForce,
    /// Every kind has been listed: each change takes effect.
    is_complete: bool,
}

impl Belief {
    /// Nothing is known of these kinds yet. What `backend` does not support is a fault. `seed` is for the
    /// jitter of pauses. Objects of a kind that the API server lacks all at once stay for `hold`.
    pub fn new(kinds: &[Kind], backend: BackendKind, hold: Duration, seed: u64) -> Self {
        let mut random = Rng::seeded(seed);
        let reflector = |kind: &Kind| {
            let reflector = Reflector::new(random.next_u64(), hold);
            (*kind, if kind.is_optional() { reflector.of_optional_kind() } else { reflector })
        };
        Self {
            reflectors: kinds.iter().map(reflector).collect(),
            secrets: Secrets::new(seed),
            in_force: match backend {
                BackendKind::Proxy => InForce::for_proxy(),
                _ => InForce::for_backend(backend),
            },
            is_complete: false,
        }
    }

    /// Continues from the objects of an earlier run, until the API server has listed everything again.
    pub fn restore(&mut self, objects: impl IntoIterator<Item = ObjectText>) -> Changes {
        let mut changes = self.in_force.restore(objects);
        for key in self.in_force.keys() {
            if let Some(reflector) = self.reflectors.get_mut(&key.kind) {
                reflector.has_earlier(key.name.clone());
            }
        }
        self.in_force.take_is_other();
        changes.absorb(self.name_secrets());
        changes
    }

    /// The objects that came into force or went since the last call, for the service proxy alone.
    pub fn take_changed(&mut self) -> Vec<ObjectChange> {
        self.in_force.take_changed()
    }

    /// The faults of the latest versions of objects that configure nothing of Fairway's own.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.in_force.all_faults()
    }

    /// The index of the objects in force.
    pub fn index(&self) -> &Arc<ClusterIndex> {
        self.in_force.index()
    }

    /// The objects that the index was built from.
    pub fn in_force(&self) -> impl Iterator<Item = &ObjectText> {
        self.in_force.texts()
    }

    /// The objects in force once every kind has been listed; a partial list allows no verdict.
    pub fn complete(&self) -> Option<&InForce> {
        self.is_complete.then_some(&self.in_force)
    }

    /// Whether [`Self::in_force`] has changed since the last call.
    pub fn take_is_other(&mut self) -> bool {
        self.in_force.take_is_other()
    }

    /// Faults and warnings of the objects that configure Fairway; without files and lines. A process that
    /// does not read the peers can report only the faults.
    pub fn findings(&self) -> Vec<Finding> {
        let awaited = self.secrets.with(Knowledge::Nothing);
        // Before the first answer it is unknown whether a Secret lacks anything.
        let waiting = match awaited.is_empty() {
            true => BTreeSet::new(),
            false => self.in_force.naming(&awaited),
        };
        let knows_peers = self.reflectors.contains_key(&Kind::BgpPeer);
        let is_so = |it: &&Finding| {
            (knows_peers || it.is_fault())
                && it.object.as_ref().is_none_or(|object| !waiting.contains(object))
        };
        let findings = self.in_force.findings().iter().filter(is_so).cloned();
        findings.chain(self.secrets.with(Knowledge::Unreadable).iter().map(unreadable)).collect()
    }

    /// The objects with an earlier version in force, because the last one is faulty.
    pub fn stale(&self) -> &BTreeSet<ObjectKey> {
        self.in_force.stale()
    }

    /// The faults of the latest version of a Service.
    pub fn faults_of_service(&self, name: &ObjectName) -> &[Finding] {
        self.in_force.faults(&ObjectKey { kind: Kind::Service, name: name.clone() })
    }

    /// Whether every kind has been listed, since the start or since [`Self::relist`].
    pub fn is_synced(&self) -> bool {
        self.reflectors.values().all(Reflector::is_synced)
    }

    /// Whether an answer contradicts what was seen, and is not trusted yet.
    pub fn is_in_doubt(&self) -> bool {
        self.reflectors.values().any(|it| it.is_in_doubt() || it.held_until().is_some())
    }

    /// The requests that have failed and not succeeded since; `None` while the API server answers all.
    pub fn outage(&self) -> Option<Outage> {
        let failing =
            self.reflectors.iter().filter_map(|(kind, it)| Some((*kind, it.failing_since()?)));
        let (kinds, since): (Vec<Kind>, Vec<Instant>) = failing.unzip();
        let since = since.into_iter().min()?;
        let kinds = if kinds.len() == self.reflectors.len() { Vec::new() } else { kinds };
        Some(Outage { since, kinds })
    }

    /// The kinds whose objects stay although the API server has none.
    pub fn held(&self) -> Vec<Held> {
        let of_kind = |(kind, reflector): (&Kind, &Reflector)| {
            let until = reflector.held_until()?;
            let mut names = self.in_force.keys().filter(|key| key.kind == *kind);
            let name = reflector.items().keys().next().or(names.next().map(|key| &key.name))?;
            let uid = self.uid(*kind, name).unwrap_or_default();
            Some(Held { kind: *kind, until, name: name.clone(), uid })
        };
        self.reflectors.iter().filter_map(of_kind).collect()
    }

    /// The names of the objects of a kind that the API server has, in force or not.
    pub fn names(&self, kind: Kind) -> impl Iterator<Item = &ObjectName> {
        self.reflectors.get(&kind).into_iter().flat_map(|it| it.items().keys())
    }

    /// The latest version of the object from the API server.
    pub fn last_seen(&self, kind: Kind, name: &ObjectName) -> Option<Value> {
        self.reflectors.get(&kind)?.items().get(name).map(ObjectText::value)
    }

    /// `metadata.uid` of the latest version from the API server.
    pub fn uid(&self, kind: Kind, name: &ObjectName) -> Option<String> {
        self.reflectors.get(&kind)?.items().get(name)?.uid()
    }

    /// Whether the latest version of a Service, EndpointSlice or Namespace is in force; if it is faulty, an
    /// older one is.
    pub fn is_in_force(&self, kind: Kind, name: &ObjectName) -> bool {
        let last = self.reflectors.get(&kind).and_then(|it| it.items().get(name));
        let key = ObjectKey { kind, name: name.clone() };
        last.is_some_and(|last| self.in_force.is_version(&key, last))
    }

    /// Lists everything again: what was seen so far may be older than what other processes know.
    pub fn relist(&mut self) {
        self.reflectors.values_mut().for_each(Reflector::relist);
    }

    /// The next request to the API server.
    pub fn next_request(&mut self, now: Instant) -> Option<(Kind, Request)> {
        let mut requests = self.reflectors.iter_mut();
        requests.find_map(|(kind, it)| Some((*kind, it.next_request(now)?)))
    }

    /// The next Secret to get.
    pub fn next_secret(&mut self, now: Instant) -> Option<ObjectName> {
        self.secrets.next_request(now)
    }

    /// When the next request is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let reflectors = self.reflectors.values().map(Reflector::next_deadline);
        reflectors.chain(self.secrets.next_deadline()).min()
    }

    /// Handles an answer about a kind; returns what changed in the index, and which objects were received in
    /// a new version.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) -> (Changes, Vec<Delta>) {
        let Some(reflector) = self.reflectors.get_mut(&kind) else { return Default::default() };
        let (was_failing, listed_before) = (reflector.is_failing(), reflector.listed_at());
        let failing_since = reflector.failing_since();
        let was_held = reflector.held_until().is_some();
        // A kind without a definition says nothing about the server.
        let is_undefined = matches!(reply, Reply::Undefined);
        let deltas = reflector.handle(now, reply);
        let is_released = was_held && reflector.held_until().is_none();
        let is_listed = was_failing && !is_undefined && reflector.listed_at() != listed_before;
        // A server that breaks each watch which it accepts fails again within a pause: it is not back.
        let is_open = reflector.failing_since().is_none()
            && failing_since.is_some_and(|since| now.since(since) > PAUSE_MAX);
        if is_listed || is_open {
            // The server is back.
            self.reflectors.values_mut().for_each(|it| it.hurry(now));
        }
        let mut changes = Changes::default();
        if self.is_complete {
            for delta in &deltas {
                changes.absorb(match delta {
                    Delta::Applied(object) => self.in_force.read(kind, object),
                    Delta::Deleted(name) => {
                        self.in_force.gone(&ObjectKey { kind, name: name.clone() })
                    }
                });
            }
        } else if self.is_synced() {
            self.is_complete = true;
            changes = self.take_over();
        }
        if is_released && self.is_complete {
            changes.absorb(self.remove_unseen());
        }
        changes.absorb(self.settle());
        (changes, deltas)
    }

    /// Handles an answer about a Secret; returns what changed in the index.
    pub fn handle_secret(
        &mut self,
        now: Instant,
        name: &ObjectName,
        reply: &SecretReply,
    ) -> Changes {
        if !self.secrets.handle(now, name, reply) {
            return Changes::default();
        }
        let key = ObjectKey { kind: Kind::Secret, name: name.clone() };
        match reply {
            SecretReply::Is(secret) if name_of(secret) == *name => {
                self.in_force.read(Kind::Secret, &ObjectText::from(&**secret));
            }
            SecretReply::Missing => {
                self.in_force.gone(&key);
            }
            SecretReply::Is(_) | SecretReply::Failed => {}
        }
        self.settle()
    }

    /// All kinds are complete for the first time: objects of the earlier run that no longer exist are
    /// removed. (Secrets are not among them; each stays until it is requested.)
    fn take_over(&mut self) -> Changes {
        let mut changes = Changes::default();
        for (kind, reflector) in &self.reflectors {
            for object in reflector.items().values() {
                changes.absorb(self.in_force.read(*kind, object));
            }
        }
        changes.absorb(self.remove_unseen());
        changes
    }

    /// Removes objects of the earlier run that the API server does not have, but those that are kept.
    fn remove_unseen(&mut self) -> Changes {
        let is_kept = |key: &&ObjectKey| {
            let reflector = self.reflectors.get(&key.kind);
            reflector.is_some_and(|it| it.is_kept(&key.name) || it.items().contains_key(&key.name))
        };
        let is_gone = |key: &&ObjectKey| key.kind != Kind::Secret && !is_kept(key);
        let gone: Vec<_> = self.in_force.keys().filter(is_gone).cloned().collect();
        let mut changes = Changes::default();
        for key in gone {
            changes.absorb(self.in_force.gone(&key));
        }
        changes
    }

    /// Applies the rules between objects. An unreferenced Secret makes no difference to them, so it is
    /// removed with the next change.
    fn settle(&mut self) -> Changes {
        if !self.in_force.is_unsettled() {
            return Changes::default();
        }
        let mut changes = self.in_force.settle();
        changes.absorb(self.name_secrets());
        changes
    }

    /// Requests the Secrets that are referenced now, and forgets the others.
    fn name_secrets(&mut self) -> Changes {
        for name in self.secrets.set_named(self.in_force.secrets_named()) {
            self.in_force.gone(&ObjectKey { kind: Kind::Secret, name });
        }
        self.in_force.settle()
    }
}

fn unreadable(secret: &ObjectName) -> Finding {
    Finding {
        severity: Severity::Fault,
        file: String::new(),
        line: None,
        object: Some(FindingObject { kind: Kind::Secret.to_string(), name: secret.name.clone() }),
        field: None,
        message: "cannot be read from the API server; trying again, until then the peers that \
                  refer to it stay unchanged"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests;
