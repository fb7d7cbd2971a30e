//! Pools and what else decides about addresses, from files: Calico's objects beside those of `fairway run`.
//!
//! A file that cannot be read, and an object that is at fault, leave what was known of them in force.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use fairway_ground::printable;
use fairway_ipam::calico::{Cluster, Refusal, refusal};
use fairway_ipam::cni::PodNotes;
use fairway_ipam::{Facts, PodName};
use fairway_resources::plain_documents;
use tokio::sync::{Notify, mpsc, watch};
use tracing::warn;

use super::knowledge::Knowledge;
use crate::source::{FileBatch, FileChange, FileSource, FileSourceError};

/// The label of a node that every node has.
const HOST_NAME_LABEL: &str = "kubernetes.io/hostname";

/// What was read.
#[derive(Debug, Default)]
struct Known {
    facts: Arc<Facts>,
    notes: BTreeMap<String, BTreeMap<String, String>>,
}

/// See the module.
pub(super) struct FileKnowledge(watch::Receiver<Option<Arc<Known>>>);

impl FileKnowledge {
    /// Begins to follow the files: what is returned beside has to be polled.
    pub(super) fn start(
        paths: &[PathBuf],
        node: &str,
    ) -> Result<(Self, FollowedFiles), FileSourceError> {
        let (source, batches) = FileSource::start(paths, BTreeSet::new())?;
        let (tell, known) = watch::channel(None);
        let files = Files { texts: BTreeMap::new(), node: node.to_owned(), told: BTreeSet::new() };
        Ok((Self(known), FollowedFiles { files, batches, tell, _source: source }))
    }
}

/// The files while they are followed.
pub(super) struct FollowedFiles {
    files: Files,
    batches: mpsc::Receiver<FileBatch>,
    tell: watch::Sender<Option<Arc<Known>>>,
    _source: FileSource,
}

impl FollowedFiles {
    /// Takes changes in and tells of them; ends if files cannot be followed any more.
    pub(super) async fn follow(mut self, news: Arc<Notify>) {
        while let Some(batch) = self.batches.recv().await {
            for change in batch.changes {
                match change {
                    FileChange::Read { path, text } => _ = self.files.texts.insert(path, text),
                    FileChange::Gone { path } => _ = self.files.texts.remove(&path),
                    FileChange::Unreadable { .. }
                    | FileChange::Ignored { .. }
                    | FileChange::Readable { .. } => {}
                }
            }
            self.tell.send_replace(Some(Arc::new(self.files.known())));
            news.notify_one();
        }
    }
}

impl Knowledge for FileKnowledge {
    fn facts(&self) -> Result<Arc<Facts>, String> {
        let known = self.0.borrow();
        let known = known.as_ref().ok_or("the files with IPPools are not read yet")?;
        Ok(Arc::clone(&known.facts))
    }

    async fn notes(&self, pod: &PodName, _: Option<&str>) -> Result<PodNotes, String> {
        let known = self.0.borrow();
        let of_namespace = known.as_ref().and_then(|it| it.notes.get(&pod.namespace)).cloned();
        Ok(PodNotes { of_namespace: of_namespace.unwrap_or_default(), ..PodNotes::default() })
    }
}

struct Files {
    /// The content of each file.
    texts: BTreeMap<String, String>,
    node: String,
    /// The faults that were logged.
    told: BTreeSet<String>,
}

impl Files {
    fn known(&mut self) -> Known {
        let (mut cluster, mut faults) = (Cluster::default(), BTreeSet::new());
        for (path, text) in &self.texts {
            // What is not YAML is told where resources are read.
            for object in plain_documents(text).flatten() {
                let before = cluster.faults.len();
                match refusal(&object) {
                    Some(Refusal { pool, mode }) => {
                        faults.insert(format!("{path}: IPPool {pool}: {mode}"));
                    }
                    None => cluster.read(&object),
                }
                let new = cluster.faults.iter().skip(before);
                faults.extend(new.map(|it| format!("{path}: {it}")));
            }
        }
        for fault in faults.difference(&self.told) {
            warn!("{}", printable(fault));
        }
        self.told = faults;
        let Cluster { mut facts, notes, .. } = cluster;
        // A machine without a Node object is there all the same.
        facts
            .nodes
            .entry(self.node.clone())
            .or_insert_with(|| BTreeMap::from([(HOST_NAME_LABEL.to_owned(), self.node.clone())]));
        Known { facts: Arc::new(facts), notes }
    }
}
