//! The server: its storage, its replicas, and its failures.

mod read;
mod watch;
mod write;

use crate::definition::ResourceDefinition;
use crate::request::{Request, Resource, Response, Verb};
use crate::status::Status;
use crate::storage::Storage;
use crate::time::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

use watch::Watch;

pub use watch::{EventKind, WatchEvent, WatchId, WatchStep};

/// The size and the precision of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Servers in front of the one storage. A client talks to one of them, numbered from 0.
    pub replicas: usize,
    /// A replica lags at most this many changes behind, whatever it is told. Default 200.
    pub lag_changes_max: u64,
    /// Every replica has seen a change as soon as it is made. Default true; otherwise it sees only what
    /// [`ApiServer::catch_up`] lets it see, and what `lag_changes_max` forces on it.
    pub in_step: bool,
    /// Changes that are remembered: requests for older ones get 410. Default 1000.
    pub history_changes: u64,
    /// How often a watch that wants bookmarks gets one. Default 60 s, as the real server.
    pub bookmark_seconds: u64,
    /// The duration of a watch without a timeout of its own. Default 1800 s; the real server draws a
    /// time of 30 to 60 minutes.
    pub watch_seconds: u64,
    /// Whether `metadata.managedFields` is kept. Default true; apply knows no conflicts without it.
    pub managed_fields: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            replicas: 1,
            lag_changes_max: 200,
            in_step: true,
            history_changes: 1000,
            bookmark_seconds: 60,
            watch_seconds: 1800,
            managed_fields: true,
        }
    }
}

/// What one replica has seen of the storage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    /// The version of its cache.
    pub(crate) seen: u64,
    /// Changes up to this version are not available.
    pub(crate) oldest: u64,
}

/// The API server, or several of them.
#[derive(Debug, Clone)]
pub struct ApiServer {
    pub(crate) settings: Settings,
    pub(crate) definitions: Vec<Arc<ResourceDefinition>>,
    pub(crate) storage: Storage,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) watches: BTreeMap<WatchId, Watch>,
    pub(crate) next_watch: u64,
    /// The number of uids and generated names so far.
    pub(crate) identities: u64,
}

impl ApiServer {
    /// A server with the built-in kinds, those of MetalLB, and the namespaces of every cluster.
    pub fn new(settings: Settings) -> Self {
        let mut definitions = ResourceDefinition::all_built_in();
        definitions.extend(ResourceDefinition::metallb());
        let definitions = definitions.into_iter().map(Arc::new).collect();
        let replicas = vec![Replica::default(); settings.replicas.max(1)];
        let mut server = Self {
            settings,
            definitions,
            storage: Storage::default(),
            replicas,
            watches: BTreeMap::new(),
            next_watch: 0,
            identities: 0,
        };
        for name in ["default", "kube-system", "kube-node-lease"] {
            let body = json!({"metadata": {"name": name}});
            let request = Request::create(&Resource::core("namespaces"), "", body);
            server.handle(Timestamp::default(), 0, &request);
        }
        for replica in 0..server.replicas.len() {
            server.catch_up(replica, u64::MAX);
        }
        server
    }

    /// Serves one more resource from now on, as after a CRD is established.
    pub fn define(&mut self, definition: ResourceDefinition) {
        self.definitions.push(Arc::new(definition));
    }

    /// The answer of `replica` (the last one, if there are fewer) to anything but a watch.
    pub fn handle(&mut self, now: Timestamp, replica: usize, request: &Request) -> Response {
        let Some(resource) = self.resource(&request.resource) else {
            return Status::unknown_resource().into();
        };
        let answer = match request.verb {
            Verb::Get => self.get(resource, replica, request),
            Verb::List => self.list(resource, replica, request),
            Verb::Watch => Err(Status::bad_request("a watch is not answered at once")),
            Verb::Create => self.create(resource, now, request),
            Verb::Update | Verb::MergePatch | Verb::Apply => self.change(resource, now, request),
            Verb::Delete => self.delete(resource, now, request),
        };
        self.settle();
        answer.unwrap_or_else(Response::from)
    }

    pub(crate) fn resource(&self, resource: &Resource) -> Option<usize> {
        self.definitions.iter().position(|it| it.resource == *resource)
    }

    pub(crate) fn replica(&self, number: usize) -> Replica {
        self.replicas.get(number).or(self.replicas.last()).cloned().unwrap_or_default()
    }

    /// The version of the last change.
    pub const fn revision(&self) -> u64 {
        self.storage.revision()
    }

    /// The version that a replica has seen.
    pub fn seen(&self, replica: usize) -> u64 {
        self.replica(replica).seen
    }

    /// A replica sees the next `changes` changes that it has not seen yet.
    pub fn catch_up(&mut self, replica: usize, changes: u64) {
        let latest = self.storage.revision();
        if let Some(replica) = self.replicas.get_mut(replica) {
            replica.seen = replica.seen.saturating_add(changes).min(latest);
        }
    }

    /// Forgets changes up to `revision`: watches from before it get 410.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.storage.revision());
        for replica in &mut self.replicas {
            // A replica still needs the changes that it has not seen yet.
            replica.oldest = replica.oldest.max(revision.min(replica.seen));
        }
        self.settle();
    }

    /// A server process restarts: its watches end, its cache has the present state, and it
    /// has no earlier changes.
    pub fn restart_replica(&mut self, replica: usize) {
        let latest = self.storage.revision();
        if let Some(state) = self.replicas.get_mut(replica) {
            *state = Replica { seen: latest, oldest: latest };
        }
        self.watches.retain(|_, watch| watch.replica != replica);
        self.settle();
    }

    /// The storage goes back to `revision`, as from a backup, and every server restarts. False:
    /// it cannot, since the history does not reach back that far.
    pub fn restore(&mut self, revision: u64) -> bool {
        if revision < self.storage.oldest() {
            return false;
        }
        self.storage.restore(revision);
        self.replicas.iter_mut().for_each(|it| *it = Replica { seen: 0, oldest: 0 });
        for replica in 0..self.replicas.len() {
            self.restart_replica(replica);
        }
        true
    }

    /// Keeps lag and history within their bounds.
    fn settle(&mut self) {
        let latest = self.storage.revision();
        let lag = if self.settings.in_step { 0 } else { self.settings.lag_changes_max };
        let oldest = latest.saturating_sub(self.settings.history_changes);
        for replica in &mut self.replicas {
            replica.seen = replica.seen.max(latest.saturating_sub(lag));
            replica.oldest = replica.oldest.max(oldest.min(replica.seen));
        }
        // A change can be forgotten once no replica needs it.
        let forgotten = self.replicas.iter().map(|replica| replica.oldest).min();
        self.storage.forget_until(forgotten.unwrap_or(latest));
    }
}
