//! What one process believes of the cluster: a reflector for each kind it reads, and the index of
//! what is in force.
//!
//! Answers what became other with each reply of the API server. Decides nothing; the cores of the
//! controller and of the speaker own one each.
//!
//! Of an object that breaks, the last good version stays in force. Until every kind has been
//! listed once, nothing that came is in force: half a cluster reads as if the rest was deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_sessions::rng::Rng;
use fairway_sessions::time::Instant;
use serde_json::Value;

use crate::model::{Changes, ClusterIndex, Kind, ObjectKey, ObjectName, PeerPassword};
use crate::resources;

use super::reflector::{Delta, Reflector, Reply, Request, version_of};
use super::secrets::{SecretReply, Secrets};

/// What is believed.
#[derive(Debug, Clone)]
pub struct Belief {
    reflectors: BTreeMap<Kind, Reflector>,
    secrets: Secrets,
    /// Shared with whoever looks at it; copied only while somebody does.
    index: Arc<ClusterIndex>,
    /// The versions that the index was made of.
    in_force: BTreeMap<ObjectKey, Arc<Value>>,
    /// They are others than were asked for last.
    is_other: bool,
    /// Every kind has been listed: the index follows each change.
    is_complete: bool,
}

impl Belief {
    /// Nothing is known of these kinds yet. `seed` is for the jitter of pauses.
    pub fn new(kinds: &[Kind], seed: u64) -> Self {
        let mut random = Rng::seeded(seed);
        let reflector = |kind: &Kind| (*kind, Reflector::new(random.next_u64()));
        Self {
            reflectors: kinds.iter().map(reflector).collect(),
            secrets: Secrets::new(seed),
            index: Arc::default(),
            in_force: BTreeMap::new(),
            is_other: false,
            is_complete: false,
        }
    }

    /// Goes on from what an earlier run believed, until the API server has said everything anew.
    pub fn restore(&mut self, objects: impl IntoIterator<Item = Arc<Value>>) -> Changes {
        let mut changes = Changes::default();
        for object in objects {
            changes.absorb(self.put_in_force(object));
        }
        changes.absorb(self.name_secrets(&changes));
        changes
    }

    /// The facts in force.
    pub fn index(&self) -> &Arc<ClusterIndex> {
        &self.index
    }

    /// What the index was made of.
    pub fn in_force(&self) -> impl Iterator<Item = &Arc<Value>> {
        self.in_force.values()
    }

    /// Whether [`Self::in_force`] is other than when this was asked last.
    pub fn take_is_other(&mut self) -> bool {
        std::mem::take(&mut self.is_other)
    }

    /// Whether every kind has been listed, since the start or since [`Self::relist`].
    pub fn is_synced(&self) -> bool {
        self.reflectors.values().all(Reflector::is_synced)
    }

    /// Whether a list came that contradicts what was seen, and is not believed yet.
    pub fn is_in_doubt(&self) -> bool {
        self.reflectors.values().any(Reflector::is_in_doubt)
    }

    /// The objects of a kind as the API server gave them last, in force or not.
    pub fn seen(&self, kind: Kind) -> impl Iterator<Item = (&ObjectName, &Arc<Value>)> {
        self.reflectors.get(&kind).into_iter().flat_map(|it| it.items().iter())
    }

    /// The object as the API server gave it last.
    pub fn last_seen(&self, kind: Kind, name: &ObjectName) -> Option<&Arc<Value>> {
        self.reflectors.get(&kind)?.items().get(name)
    }

    /// Whether it is this version of the object that is in force; an older one is, where this one
    /// is at fault.
    pub fn is_in_force(&self, kind: Kind, name: &ObjectName, object: &Value) -> bool {
        let key = ObjectKey { kind, name: name.clone() };
        self.in_force.get(&key).is_some_and(|it| version_of(it) == version_of(object))
    }

    /// Asks for everything anew: what was seen so far may be older than something that others know.
    pub fn relist(&mut self) {
        self.reflectors.values_mut().for_each(Reflector::relist);
    }

    /// The next thing to ask the API server.
    pub fn next_request(&mut self, now: Instant) -> Option<(Kind, Request)> {
        let mut requests = self.reflectors.iter_mut();
        requests.find_map(|(kind, it)| Some((*kind, it.next_request(now)?)))
    }

    /// The next Secret to get.
    pub fn next_secret(&mut self, now: Instant) -> Option<ObjectName> {
        self.secrets.next_request(now)
    }

    /// When there may be something to ask.
    pub fn next_deadline(&self) -> Option<Instant> {
        let reflectors = self.reflectors.values().map(Reflector::next_deadline);
        reflectors.chain(self.secrets.next_deadline()).min()
    }

    /// Takes what the API server said about a kind; answers what became other in the index, and
    /// which objects were seen in a new version.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) -> (Changes, Vec<Delta>) {
        let Some(reflector) = self.reflectors.get_mut(&kind) else { return Default::default() };
        let deltas = reflector.handle(now, reply);
        let mut changes = Changes::default();
        if self.is_complete {
            for delta in &deltas {
                changes.absorb(self.follow(kind, delta));
            }
        } else if self.is_synced() {
            self.is_complete = true;
            changes = self.take_over();
        }
        changes.absorb(self.name_secrets(&changes));
        (changes, deltas)
    }

    /// Takes what the API server said about a Secret; answers what became other in the index.
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
            SecretReply::Is(secret) if self.in_force.get(&key) != Some(secret) => {
                self.put_in_force(Arc::clone(secret))
            }
            SecretReply::Missing => self.forget(&key),
            SecretReply::Is(_) | SecretReply::Failed => Changes::default(),
        }
    }

    /// Asks for the Secrets that are named now, and forgets the others.
    fn name_secrets(&mut self, changes: &Changes) -> Changes {
        if !changes.kinds.contains(&Kind::BgpPeer) && !changes.kinds.contains(&Kind::BfdProfile) {
            return Changes::default();
        }
        let mut forgotten = Changes::default();
        for name in self.secrets.set_named(named_secrets(&self.index)) {
            forgotten.absorb(self.forget(&ObjectKey { kind: Kind::Secret, name }));
        }
        forgotten
    }

    fn follow(&mut self, kind: Kind, delta: &Delta) -> Changes {
        match delta {
            Delta::Applied(object) => self.put_in_force(Arc::clone(object)),
            Delta::Deleted(name) => self.forget(&ObjectKey { kind, name: name.clone() }),
        }
    }

    /// All kinds are there for the first time: what an earlier run believed and nobody has any
    /// more goes.
    fn take_over(&mut self) -> Changes {
        let seen: Vec<_> = self.reflectors.iter().map(|(kind, it)| (*kind, it.items())).collect();
        let is_seen = |key: &ObjectKey| {
            seen.iter().any(|(kind, items)| *kind == key.kind && items.contains_key(&key.name))
        };
        // Secrets are not seen here; each stays until it is asked for.
        let is_gone = |key: &&ObjectKey| key.kind != Kind::Secret && !is_seen(key);
        let gone: Vec<_> = self.in_force.keys().filter(is_gone).cloned().collect();
        let all: Vec<_> = seen.iter().flat_map(|(_, items)| items.values().cloned()).collect();
        let mut changes = self.restore(all);
        for key in gone {
            changes.absorb(self.forget(&key));
        }
        changes
    }

    fn put_in_force(&mut self, value: Arc<Value>) -> Changes {
        let parsed = resources::parse_value(&value);
        let is_broken = parsed.is_broken();
        match (parsed.key, parsed.object) {
            (Some(key), Some(object)) => {
                self.in_force.insert(key, value);
                self.is_other = true;
                Arc::make_mut(&mut self.index).apply(object)
            }
            (Some(key), None) if !is_broken => self.forget(&key),
            _ => Changes::default(),
        }
    }

    fn forget(&mut self, key: &ObjectKey) -> Changes {
        if self.in_force.remove(key).is_none() {
            return Changes::default();
        }
        self.is_other = true;
        Arc::make_mut(&mut self.index).delete(key)
    }
}

/// The Secrets that peers and BFD profiles name.
fn named_secrets(index: &ClusterIndex) -> BTreeSet<ObjectName> {
    let of_peers = index.peers.values().flat_map(|peer| {
        let password = match &peer.password {
            PeerPassword::Secret(name) => Some(name),
            PeerPassword::None | PeerPassword::Text(_) => None,
        };
        password.into_iter().chain(peer.tcp_ao.iter().map(|key| &key.secret))
    });
    let profiles = index.bfd_profiles.values();
    let of_profiles = profiles.filter_map(|it| Some(&it.authentication.as_ref()?.secret));
    of_peers.chain(of_profiles).cloned().collect()
}
