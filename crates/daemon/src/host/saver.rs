//! Writes state to disk beside the loop, so that a slow disk never delays a route. Only the latest state is
//! written, and only if it changed.

use std::fmt::Write;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_allocator::{MemoryChange, MemoryCopy};
use fairway_cluster::{ObjectText, Snapshot};
use fairway_node::announced::{self, ANNOUNCED_FILE, LastAnnounced};
use fairway_node::document::{FormatError, decode_document};
use fairway_node::drain::{self, DRAIN_FILE, DrainRecord};
use fairway_resources::{Catalog, LastGood};
use rustix::fs::OFlags;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{error, info};

use crate::host::state_file::{self, StateError, StateFile};

/// The file that holds the last good version of each object.
const RESOURCES_FILE: &str = "resources.json";

/// The file that holds the cluster's objects that were in force.
const SNAPSHOT_FILE: &str = "cluster.json";
const SNAPSHOT_VERSION: u64 = 1;

/// The lock file that keeps a second daemon out.
const LOCK_FILE: &str = "lock";

/// How soon a failed write is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How often the snapshot is written at most: it is needed only for a restart without the API server, may be
/// large, and must not be written for each of many changes.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// When the snapshot is to be written.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    at: Option<Instant>,
    last: Option<Instant>,
}

impl Saving {
    /// Something changed.
    pub(crate) fn wanted(&mut self) {
        let earliest = self.last.map(|last| last + SAVE_INTERVAL);
        self.at = self.at.or(earliest.or_else(|| Some(Instant::now())));
    }

    /// Waits until it is time; forever if nothing changed. Cancel-safe.
    pub(crate) async fn due(&self) {
        match self.at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn done(&mut self) {
        self.at = None;
        self.last = Some(Instant::now());
    }
}

/// Another daemon uses the directory: each would overwrite the other's state.
#[derive(Debug, thiserror::Error)]
#[error("another daemon uses the state directory {}; choose another --state-dir", .0.display())]
pub struct LockError(PathBuf);

/// The state to keep on disk.
#[derive(Debug, Clone, PartialEq, Default)]
struct Wanted {
    resources: LastGood,
    /// `None` until the operator has given an order, now or in an earlier run.
    drain: Option<DrainRecord>,
    /// `None` until it is known what is announced: the file of an earlier run stays.
    announced: Option<LastAnnounced>,
    /// `None` if resources come from files.
    snapshot: Option<Arc<Snapshot>>,
}

/// How long the answer to an order waits for a slow disk.
const KEPT_WAIT: Duration = Duration::from_secs(2);

/// The drain record that was last attempted, and the one on disk.
#[derive(Debug, Clone, Copy, Default)]
struct KeptDrain {
    tried: Option<DrainRecord>,
    written: Option<DrainRecord>,
}

/// The writing task.
pub(crate) struct Saver {
    wanted: watch::Sender<Arc<Wanted>>,
    /// Of the assignments, what the task has not taken yet: at most one change for each Service that was assigned
    /// an address since.
    memory: Arc<Mutex<MemoryChange>>,
    drain: watch::Receiver<KeptDrain>,
    task: JoinHandle<()>,
}

impl Saver {
    pub(crate) fn start(directory: PathBuf) -> Self {
        let (wanted, latest) = watch::channel(Arc::default());
        let (tell, drain) = watch::channel(KeptDrain::default());
        let memory = Arc::default();
        let task = write_changes(directory, latest, Arc::clone(&memory), tell);
        Self { wanted, memory, drain, task: tokio::spawn(task) }
    }

    /// Saves what has changed of the assignments. Returns at once.
    pub(crate) fn save_memory(&self, change: MemoryChange) {
        if !change.is_empty() {
            locked(&self.memory).absorb(change);
            self.wanted.send_modify(|_| {});
        }
    }

    /// Saves the last good resources. Returns at once.
    pub(crate) fn save_resources(&self, resources: LastGood) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).resources = resources);
    }

    /// Saves the drain record. Returns at once.
    pub(crate) fn save_drain(&self, drain: DrainRecord) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).drain = Some(drain));
    }

    /// Whether the record of the last [`Saver::save_drain`] is on disk, once that has been tried. A disk that
    /// takes too long counts as failed.
    pub(crate) fn keeps_drain(&self) -> impl Future<Output = bool> + use<> {
        let (wanted, mut drain) = (self.wanted.borrow().drain, self.drain.clone());
        async move {
            let tried = drain.wait_for(|it| it.tried == wanted);
            timeout(KEPT_WAIT, tried).await.is_ok_and(|it| it.is_ok_and(|it| it.written == wanted))
        }
    }

    /// Saves the announced routes. Returns at once.
    pub(crate) fn save_announced(&self, announced: LastAnnounced) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).announced = Some(announced));
    }

    /// Saves the objects in force. Returns at once.
    pub(crate) fn save_snapshot(&self, snapshot: Snapshot) {
        let snapshot = Some(Arc::new(snapshot));
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).snapshot = snapshot);
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) {
        drop(self.wanted);
        if let Err(error) = self.task.await {
            error!(%error, "state was not saved");
        }
    }
}

/// Loads what [`Saver::save_resources`] wrote in an earlier run.
pub(crate) fn restore(directory: &Path, catalog: &mut Catalog) -> Result<(), StateError> {
    let file = StateFile::new(directory, RESOURCES_FILE);
    let restored = file.load(|text| {
        catalog.restore(text).map_err(|error| FormatError::Content(error.to_string()))
    });
    restored.map(drop)
}

/// Loads what [`Saver::save_drain`] wrote in an earlier run.
pub(crate) fn restore_drain(directory: &Path) -> Result<Option<DrainRecord>, StateError> {
    StateFile::new(directory, DRAIN_FILE).load(drain::decode)
}

/// Loads the routes that an earlier run announced last; `None` if it left no file.
pub(crate) fn restore_announced(directory: &Path) -> Result<Option<LastAnnounced>, StateError> {
    StateFile::new(directory, ANNOUNCED_FILE).load(announced::decode)
}

/// Loads what [`Saver::save_snapshot`] wrote in an earlier run.
pub(crate) fn restore_snapshot(directory: &Path) -> Result<Option<Snapshot>, StateError> {
    StateFile::new(directory, SNAPSHOT_FILE).load(|text| {
        let document = decode_document(text, SNAPSHOT_VERSION)?;
        let Value::Object(mut document) = document else { return Err(FormatError::NoVersion) };
        match document.remove("objects") {
            Some(Value::Array(objects)) => {
                Ok(Snapshot { objects: objects.iter().map(ObjectText::from).collect() })
            }
            _ => Err(FormatError::Content("damaged: no list \"objects\"".to_owned())),
        }
    })
}

/// The text of a snapshot. The objects are many, so no JSON tree is built.
fn encode_snapshot(snapshot: &Snapshot) -> String {
    let mut text = format!("{{\"version\":{SNAPSHOT_VERSION},\"objects\":[");
    for (position, object) in snapshot.objects.iter().enumerate() {
        let separator = if position == 0 { "\n" } else { ",\n" };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{}", object.as_str());
    }
    text.push_str("\n]}\n");
    text
}

/// Whether there was an earlier run.
pub(super) fn has_run(directory: &Path) -> bool {
    let files = [RESOURCES_FILE, SNAPSHOT_FILE];
    files.into_iter().any(|file| StateFile::new(directory, file).path().exists())
}

/// Locks `directory` for one daemon for as long as the file lives. `None` if the system does not allow
/// locking there; a directory that cannot be written is reported at the first write.
pub(crate) fn lock(directory: &Path) -> Result<Option<File>, LockError> {
    let path = directory.join(LOCK_FILE);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    // Whatever has the name can be locked, and nothing is written to it: a pipe must not wait for its other end.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags)
            .open(&path)
    };
    let Ok(file) = made.and_then(|()| open()) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(LockError(directory.to_owned())),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// A panic elsewhere leaves it as it is.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state on disk, and the assignments that belong there.
#[derive(Default)]
struct Written {
    memory: MemoryCopy,
    /// The assignments on disk are other ones.
    is_memory_other: bool,
    rest: Wanted,
}

impl Written {
    fn follow(&mut self, change: MemoryChange) {
        self.is_memory_other |= !change.is_empty();
        self.memory.apply(change);
    }
}

/// Runs until the saver is dropped, and writes the latest state before it ends. Retries what the disk does
/// not accept.
async fn write_changes(
    directory: PathBuf,
    mut latest: watch::Receiver<Arc<Wanted>>,
    memory: Arc<Mutex<MemoryChange>>,
    drain: watch::Sender<KeptDrain>,
) {
    let written = Arc::new(Mutex::new(Written::default()));
    let mut failed = false;
    loop {
        let changed = match timeout(RETRY_INTERVAL, latest.changed()).await {
            Ok(changed) => changed.is_ok(),
            Err(_) if failed => true,
            Err(_) => continue,
        };
        let wanted = Arc::clone(&latest.borrow_and_update());
        locked(&written).follow(std::mem::take(&mut *locked(&memory)));
        let (directory, written, next) =
            (directory.clone(), Arc::clone(&written), Arc::clone(&wanted));
        // Flushing blocks; nothing else may.
        let outcome = spawn_blocking(move || {
            let mut written = locked(&written);
            (write(&directory, &mut written, &next), written.rest.drain)
        });
        let (outcome, drained) = match outcome.await {
            Ok((outcome, drained)) => (outcome.map_err(|error| error.to_string()), drained),
            Err(error) => (Err(error.to_string()), None),
        };
        match outcome {
            Ok(()) if std::mem::take(&mut failed) => info!("state is saved again"),
            Ok(()) => {}
            Err(error) => failed = report(failed, &error),
        }
        // There may be no receiver.
        let _ = drain.send(KeptDrain { tried: wanted.drain, written: drained });
        if !changed {
            return;
        }
    }
}

/// Reports once that state cannot be saved.
fn report(failed: bool, error: &str) -> bool {
    if !failed {
        error!("{error}; trying again, until then a restart may lose the latest changes");
    }
    true
}

/// Writes what is not on disk yet. A file that cannot be written does not prevent the others; returns the first
/// error.
fn write(directory: &Path, written: &mut Written, wanted: &Wanted) -> Result<(), StateError> {
    let mut outcome = Ok(());
    let mut is_written = |saved: Result<(), StateError>| {
        let is_written = saved.is_ok();
        outcome = std::mem::replace(&mut outcome, Ok(())).and(saved);
        is_written
    };
    let file = |name| StateFile::new(directory, name);
    if written.is_memory_other && is_written(state_file::save(directory, &written.memory.memory()))
    {
        written.is_memory_other = false;
    }
    let written = &mut written.rest;
    if let Some(status) = wanted.drain.filter(|it| written.drain != Some(*it))
        && is_written(file(DRAIN_FILE).save(&drain::encode(status)))
    {
        written.drain = Some(status);
    }
    if let Some(announced) = wanted.announced.as_ref()
        && written.announced.as_ref() != Some(announced)
        && is_written(file(ANNOUNCED_FILE).save(&announced::encode(announced)))
    {
        written.announced = Some(announced.clone());
    }
    if let Some(snapshot) = wanted.snapshot.as_ref()
        && written.snapshot.as_ref() != Some(snapshot)
        && is_written(file(SNAPSHOT_FILE).save(&encode_snapshot(snapshot)))
    {
        written.snapshot = Some(snapshot.clone());
    }
    if written.resources != wanted.resources
        && is_written(file(RESOURCES_FILE).save(&wanted.resources.to_json()))
    {
        written.resources.clone_from(&wanted.resources);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use fairway_allocator::{Allocator, Assignment, Memory};
    use fairway_model::ObjectName;
    use fairway_node::assignments::ASSIGNMENTS_FILE;
    use fairway_node::drain::DrainStatus;

    use super::*;

    #[test]
    fn a_directory_is_for_one_daemon_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let first = lock(root.path()).unwrap();
        assert!(first.is_some() && lock(root.path()).is_err());
        drop(first);
        assert!(lock(root.path()).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_keeps_no_other_from_the_disk() {
        let root = tempfile::tempdir().unwrap();
        for name in [DRAIN_FILE, RESOURCES_FILE] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let saver = Saver::start(root.path().to_owned());
        let mut catalog = Catalog::new();
        catalog.file_read("a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
        catalog.resolve();
        saver.save_resources(catalog.last_good());
        saver.save_announced(LastAnnounced::default());
        let command = DrainStatus::Drained { since_epoch_seconds: 7 };
        saver.save_drain(DrainRecord { command, ..DrainRecord::default() });
        assert!(!saver.keeps_drain().await, "there is no room for it");
        std::fs::remove_dir(root.path().join(DRAIN_FILE)).unwrap();
        saver.save_drain(DrainRecord::default());
        assert!(saver.keeps_drain().await);
        saver.finish().await;
        assert_eq!(restore_drain(root.path()).unwrap(), Some(DrainRecord::default()));
        assert_eq!(restore_announced(root.path()).unwrap(), Some(LastAnnounced::default()));
    }

    #[tokio::test]
    async fn what_the_disk_refused_of_the_assignments_is_written_with_the_next_change() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(ASSIGNMENTS_FILE);
        std::fs::create_dir(&file).unwrap();
        let saver = Saver::start(root.path().to_owned());
        let assignment =
            Assignment { pool: "pool".to_owned(), addresses: vec!["192.0.2.1".parse().unwrap()] };
        let assignments = vec![(ObjectName::new("default", "web"), assignment)];
        let memory = Memory { assignments, released: Vec::new() };
        let mut allocator = Allocator::restore(None, memory.clone());
        saver.save_memory(allocator.memory_change());
        saver.save_drain(DrainRecord::default());
        assert!(saver.keeps_drain().await);
        std::fs::remove_dir(&file).unwrap();
        assert!(allocator.memory_change().is_empty());
        saver.save_announced(LastAnnounced::default());
        saver.finish().await;
        assert_eq!(state_file::load(root.path()).unwrap(), memory);
    }
}
