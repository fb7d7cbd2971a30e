//! Pools and what else decides about addresses, from files: Calico's objects beside those of `fairway run`.
//!
//! A file that cannot be read, and an object that is at fault, leave what was known of them in force; where nothing was, no
//! address is given, since it may be what a reservation keeps or another pool's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use fairway_ground::printable;
use fairway_ipam::calico::{Cluster, Refusal, refusal};
use fairway_ipam::cni::PodNotes;
use fairway_ipam::{Facts, PodName};
use fairway_resources::plain_documents;
use serde_json::Value;
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
    /// Why no address may be given.
    undecided: Option<String>,
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
        let files = Files::new(node);
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
            batch.changes.into_iter().for_each(|it| self.files.follow(it));
            self.tell.send_replace(Some(Arc::new(self.files.known())));
            news.notify_one();
        }
    }
}

impl Knowledge for FileKnowledge {
    fn facts(&self) -> Result<Arc<Facts>, String> {
        let known = self.0.borrow();
        let known = known.as_ref().ok_or("the files with IPPools are not read yet")?;
        match &known.undecided {
            None => Ok(Arc::clone(&known.facts)),
            Some(fault) => Err(fault.clone()),
        }
    }

    async fn notes(&self, pod: &PodName, _: Option<&str>) -> Result<PodNotes, String> {
        let known = self.0.borrow();
        let of_namespace = known.as_ref().and_then(|it| it.notes.get(&pod.namespace)).cloned();
        Ok(PodNotes { of_namespace: of_namespace.unwrap_or_default(), ..PodNotes::default() })
    }
}

struct Files {
    /// The objects of each file, as they are in force.
    objects: BTreeMap<String, Vec<Value>>,
    /// What is wrong with files and objects, by file. What is at fault and was never good keeps addresses from being given.
    faults: BTreeMap<String, Vec<Fault>>,
    node: String,
    /// The faults that were logged.
    told: BTreeSet<String>,
}

struct Fault {
    text: String,
    /// An earlier version is in force.
    has_earlier: bool,
}

/// What is known of an object by its name.
fn key(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (text("/kind").to_owned(), text("/metadata/name").to_owned())
}

impl Files {
    fn new(node: &str) -> Self {
        let (objects, faults, told) = Default::default();
        Self { objects, faults, node: node.to_owned(), told }
    }

    fn follow(&mut self, change: FileChange) {
        match change {
            FileChange::Read { path, text } => self.read(path, &text),
            FileChange::Gone { path } => {
                self.objects.remove(&path);
                self.faults.remove(&path);
            }
            FileChange::Unreadable { .. }
            | FileChange::Ignored { .. }
            | FileChange::Readable { .. } => {}
        }
    }

    fn read(&mut self, path: String, text: &str) {
        let documents: Result<Vec<Value>, _> = plain_documents(text).collect();
        let before = self.objects.remove(&path).unwrap_or_default();
        let (mut objects, mut faults) = (Vec::new(), Vec::new());
        match documents {
            Ok(documents) => {
                for object in documents {
                    let Some(text) = fault(&object) else {
                        objects.push(object);
                        continue;
                    };
                    let earlier = before.iter().find(|it| key(it) == key(&object));
                    faults.push(Fault { text, has_earlier: earlier.is_some() });
                    objects.extend(earlier.cloned());
                }
            }
            // Which objects it would have is unknown.
            Err(error) => {
                let has_earlier = !before.is_empty();
                faults.push(Fault { text: error.to_string(), has_earlier });
                objects = before;
            }
        }
        self.objects.insert(path.clone(), objects);
        self.faults.insert(path, faults);
    }

    fn known(&mut self) -> Known {
        let mut cluster = Cluster::default();
        self.objects.values().flatten().for_each(|it| cluster.read(it));
        let faults =
            self.faults.iter().flat_map(|(path, all)| all.iter().map(move |it| (path, it)));
        let (mut texts, mut undecided) = (BTreeSet::new(), None);
        for (path, Fault { text, has_earlier }) in faults {
            let line = format!("{path}: {text}");
            texts.insert(match has_earlier {
                true => format!("{line}; the version before it stays in force"),
                false => format!("{line}; no Pod is given an address until that is put right"),
            });
            if !has_earlier {
                undecided.get_or_insert(line);
            }
        }
        for text in texts.difference(&self.told) {
            warn!("{}", printable(text));
        }
        self.told = texts;
        let Cluster { mut facts, notes, .. } = cluster;
        // A machine without a Node object is there all the same.
        facts
            .nodes
            .entry(self.node.clone())
            .or_insert_with(|| BTreeMap::from([(HOST_NAME_LABEL.to_owned(), self.node.clone())]));
        Known { facts: Arc::new(facts), notes, undecided }
    }
}

/// What is wrong with an object, if it decides about addresses.
fn fault(object: &Value) -> Option<String> {
    if let Some(Refusal { pool, mode }) = refusal(object) {
        return Some(format!("IPPool {pool}: {mode}"));
    }
    let mut cluster = Cluster::default();
    cluster.read(object);
    cluster.faults.first().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "{apiVersion: crd.projectcalico.org/v1, kind: IPPool, metadata: {name: a}, spec: {cidr: 10.0.0.0/24, blockSize: 28}}\n";

    fn known(texts: &[&str]) -> Known {
        let mut files = Files::new("n1");
        for text in texts {
            files.follow(FileChange::Read {
                path: "pools.yaml".to_owned(),
                text: (*text).to_owned(),
            });
        }
        files.known()
    }

    #[test]
    fn an_object_at_fault_leaves_its_earlier_version_in_force() {
        let bad = POOL.replace("blockSize: 28", "blockSize: 99");
        let broken = format!("{POOL}---\n: [\n");
        for second in [bad.as_str(), broken.as_str()] {
            let known = known(&[POOL, second]);
            let lengths: Vec<u8> = known.facts.pools.iter().map(|it| it.block_length).collect();
            assert_eq!((lengths, &known.undecided), (vec![28], &None), "{second}");
        }
        assert!(known(&[POOL, ""]).facts.pools.is_empty(), "it is gone");
    }

    #[test]
    fn what_was_never_good_keeps_addresses_from_being_given() {
        let reservation = "{apiVersion: crd.projectcalico.org/v1, kind: IPReservation, metadata: {name: r}, spec: {reservedCIDRs: [10.0.0.1, x]}}";
        let tunnelled = POOL.replace("blockSize: 28", "vxlanMode: Always");
        for text in [format!("{POOL}---\n{reservation}"), tunnelled, POOL.replace("28", "99")] {
            let undecided = known(&[&text]).undecided.unwrap_or_default();
            assert!(undecided.starts_with("pools.yaml: "), "{text}: {undecided}");
        }
        assert!(
            known(&["{kind: Service, spec: 7}"]).undecided.is_none(),
            "it is for somebody else"
        );
    }
}
