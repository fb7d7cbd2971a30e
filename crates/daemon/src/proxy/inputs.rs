//! What the service proxy reads: files, or the API server and a file of options.
//!
//! Joins both into one stream of changed objects. Knows no packet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_ground::printable;
use fairway_model::{Kind, ObjectChange};
use fairway_resources::{BackendKind, Catalog, Finding};
use tokio::sync::mpsc;
use tracing::warn;

use super::ProxyError;
use super::assigned::AssignedAddresses;
use super::options::{ProxyOptions, ServiceSource};
use crate::kubernetes::{Proxied, ProxiedOptions};
use crate::metrics::ClientCounters;
use crate::source::{FileBatch, FileSource, nothing_to_read};

/// See the module.
pub(super) struct Inputs {
    files: Option<Files>,
    cluster: Option<Proxied>,
    assigned: Option<AssignedAddresses>,
    /// What the files had at the start.
    first: Option<Update>,
    counters: Arc<ClientCounters>,
}

/// What arrived.
pub(super) struct Update {
    /// Objects that came into force or went.
    pub(super) changes: Vec<ObjectChange>,
    /// Faults and warnings about files.
    pub(super) findings: Vec<Finding>,
}

struct Files {
    source: FileSource,
    batches: mpsc::Receiver<FileBatch>,
    catalog: Catalog,
    paths: Vec<PathBuf>,
    /// Only options are read, since Services come from elsewhere.
    are_options: bool,
    /// Everything was read once.
    is_read: bool,
    before: Vec<Finding>,
}

impl Inputs {
    pub(super) async fn start(options: &ProxyOptions) -> Result<Self, ProxyError> {
        let file = options.config_file.iter().cloned();
        let (paths, cluster): (Vec<PathBuf>, _) = match &options.services {
            ServiceSource::Files(paths, _) => (paths.iter().cloned().chain(file).collect(), None),
            ServiceSource::Cluster { connection, empty_list_hold, state_dir } => {
                let proxied = Proxied::start(ProxiedOptions {
                    connection: connection.clone(),
                    node: options.node.clone(),
                    empty_list_hold: *empty_list_hold,
                    state_dir: state_dir.clone(),
                });
                (file.collect(), Some(proxied.await?))
            }
        };
        let counters = match &cluster {
            Some(cluster) => Arc::clone(cluster.counters()),
            None => Arc::default(),
        };
        let mut files = match paths.is_empty() {
            true => None,
            false => Some(Files::start(paths, cluster.is_some())?),
        };
        // The first reading is complete, and options come before what they are about.
        let first = match &mut files {
            Some(files) => files.batches.recv().await,
            None => None,
        };
        let first = first.zip(files.as_mut()).map(|(batch, it)| it.follow(&batch, &counters));
        let assigned = match &options.services {
            ServiceSource::Files(_, Some(assigned)) => {
                Some(AssignedAddresses::new(assigned.clone()))
            }
            _ => None,
        };
        Ok(Self { files, cluster, assigned, first, counters })
    }

    /// The next changes; `None` if files cannot be followed any more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Update> {
        let files = async {
            match &mut self.files {
                Some(files) => files.batches.recv().await,
                None => std::future::pending().await,
            }
        };
        let cluster = async {
            match &mut self.cluster {
                Some(cluster) => {
                    cluster.step().await;
                    cluster
                }
                None => std::future::pending().await,
            }
        };
        let assigned = async {
            match &mut self.assigned {
                Some(assigned) => assigned.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            batch = files => {
                let batch = batch?;
                let mut update = self.files.as_mut()?.follow(&batch, &self.counters);
                if let Some(assigned) = &mut self.assigned {
                    update.changes = assigned.over(update.changes);
                }
                self.note_complete();
                Some(update)
            }
            changes = assigned => Some(Update { changes, findings: Vec::new() }),
            cluster = cluster => {
                Some(Update { changes: cluster.take_changes(), findings: Vec::new() })
            }
        }
    }

    /// What is known at the start: all files, and then what an earlier run has left of the cluster.
    pub(super) fn first(&mut self) -> Update {
        let first = self.first.take();
        let mut update = first.unwrap_or(Update { changes: Vec::new(), findings: Vec::new() });
        if let Some(assigned) = &mut self.assigned {
            update.changes = assigned.over(update.changes);
        }
        update.changes.extend(self.cluster.as_mut().map(Proxied::take_changes).unwrap_or_default());
        self.note_complete();
        update
    }

    /// Whether files have options and no Service: they were probably meant for `--config-file`.
    pub(super) fn are_options_alone(&self) -> bool {
        let kinds = |it: &Files| {
            let mut keys = it.catalog.keys();
            keys.any(|key| key.kind == Kind::ConfigMap)
        };
        self.cluster.is_none() && self.files.as_ref().is_some_and(kinds)
    }

    /// Whether all objects are known: what is not there is gone.
    pub(super) fn is_complete(&self) -> bool {
        self.has_options()
            && self.cluster.as_ref().is_none_or(Proxied::is_complete)
            && self.assigned.as_ref().is_none_or(AssignedAddresses::is_known)
    }

    /// Whether all files have been read.
    pub(super) fn has_options(&self) -> bool {
        self.files.as_ref().is_none_or(|it| it.is_read)
    }

    /// Whether Nodes are known: one that is not there does not exist.
    pub(super) fn knows_nodes(&self) -> bool {
        self.cluster.is_some()
    }

    pub(super) fn counters(&self) -> &Arc<ClientCounters> {
        &self.counters
    }

    /// Reads all files again.
    pub(super) fn reread(&self) {
        if let Some(files) = &self.files {
            files.source.reread();
        }
    }

    /// Waits until the last known state is on disk.
    pub(super) async fn finish(self) {
        if let Some(cluster) = self.cluster {
            cluster.finish().await;
        }
    }

    fn note_complete(&self) {
        if self.is_complete() {
            self.counters.loaded();
        }
    }
}

impl Files {
    fn start(paths: Vec<PathBuf>, are_options: bool) -> Result<Self, ProxyError> {
        let (source, batches) = FileSource::start(&paths, BTreeSet::new())?;
        for (folder, why) in nothing_to_read(&paths) {
            warn!("{}: {}", printable(&folder), printable(&why));
        }
        let catalog = Catalog::for_backend(BackendKind::Proxy);
        let (is_read, before) = (false, Vec::new());
        Ok(Self { source, batches, catalog, paths, are_options, is_read, before })
    }

    fn follow(&mut self, batch: &FileBatch, counters: &ClientCounters) -> Update {
        for change in &batch.changes {
            change.apply_to(&mut self.catalog);
        }
        let mut paths = self.paths.iter().map(|path| path.display().to_string());
        let is_readable = !paths.any(|path| self.catalog.is_unreadable(&path));
        let resolution = self.catalog.resolve_changes();
        // Options at fault are not the same as none.
        let is_at_fault = self.are_options && resolution.findings.iter().any(Finding::is_fault);
        self.is_read = self.is_read || (is_readable && !is_at_fault);
        if !self.is_read {
            warn!(
                "the options are at fault, or cannot be read: nothing in the kernel is changed until they are good"
            );
        }
        counters.updated(batch.changes.len());
        counters.judged(&self.before, &resolution.findings);
        self.before.clone_from(&resolution.findings);
        let mut changes = resolution.objects;
        if self.are_options {
            let count = changes.len();
            changes.retain(|(key, _)| key.kind == Kind::ConfigMap);
            if changes.len() < count {
                let file = self.paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
                warn!(
                    "{}: only the KubeProxyConfiguration is read of it; Services come from the API server",
                    printable(&file.display().to_string())
                );
            }
        }
        Update { changes, findings: resolution.findings }
    }
}
