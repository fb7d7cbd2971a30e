//! Writes state to disk beside the loop, so that a slow disk never delays a route. Only the
//! latest state counts; what did not change is not written.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tracing::{error, info};

use crate::allocator::Assignment;
use crate::controller::announced::{self, ANNOUNCED_FILE, Announced};
use crate::controller::state::{self, FormatError, StateError, StateFile};
use crate::drain::{self, DRAIN_FILE, DrainStatus};
use crate::model::ObjectName;
use crate::resources::Catalog;

/// The file that holds the last good version of each object.
const RESOURCES_FILE: &str = "resources.json";

/// What keeps a second daemon out.
const LOCK_FILE: &str = "lock";

/// How soon a failed write is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Another daemon uses the directory: each would overwrite what the other keeps.
#[derive(Debug, thiserror::Error)]
#[error("another daemon uses the state directory {}; choose another --state-dir", .0.display())]
pub struct LockError(PathBuf);

/// What is to be on disk.
#[derive(Debug, Clone, PartialEq, Default)]
struct Wanted {
    assignments: Vec<(ObjectName, Assignment)>,
    resources: Value,
    /// `None` until the operator has wanted something, now or in an earlier run.
    drain: Option<DrainStatus>,
    /// `None` until it is known what is announced: what an earlier run left stays.
    announced: Option<Announced>,
}

/// The writing task.
pub(super) struct Saver {
    wanted: watch::Sender<Arc<Wanted>>,
    task: JoinHandle<()>,
}

impl Saver {
    pub(super) fn start(directory: PathBuf) -> Self {
        let (wanted, latest) = watch::channel(Arc::default());
        Self { wanted, task: tokio::spawn(write_changes(directory, latest)) }
    }

    /// These addresses should be on disk. Returns at once.
    pub(super) fn save_assignments(&self, assignments: Vec<(ObjectName, Assignment)>) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).assignments = assignments);
    }

    /// These resources should be on disk. Returns at once.
    pub(super) fn save_resources(&self, resources: Value) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).resources = resources);
    }

    /// This should be on disk. Returns at once.
    pub(super) fn save_drain(&self, drain: DrainStatus) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).drain = Some(drain));
    }

    /// These routes were announced. Returns at once.
    pub(super) fn save_announced(&self, announced: Announced) {
        self.wanted.send_modify(|wanted| Arc::make_mut(wanted).announced = Some(announced));
    }

    /// Waits until it is.
    pub(super) async fn finish(self) {
        drop(self.wanted);
        if let Err(error) = self.task.await {
            error!(%error, "state was not saved");
        }
    }
}

/// Takes up what [`Saver::save_resources`] left in an earlier run.
pub(super) fn restore(directory: &Path, catalog: &mut Catalog) -> Result<(), StateError> {
    let file = StateFile::new(directory, RESOURCES_FILE);
    let restored = file.load(|text| {
        let value: Value = serde_json::from_str(text)?;
        catalog.restore(&value).map_err(|error| FormatError::Content(error.to_string()))
    });
    restored.map(drop)
}

/// What [`Saver::save_drain`] left in an earlier run.
pub(super) fn restore_drain(directory: &Path) -> Result<Option<DrainStatus>, StateError> {
    StateFile::new(directory, DRAIN_FILE).load(drain::decode)
}

/// What an earlier run announced last; `None` if it left no word.
pub(super) fn restore_announced(directory: &Path) -> Result<Option<Announced>, StateError> {
    StateFile::new(directory, ANNOUNCED_FILE).load(announced::decode)
}

/// Whether there was an earlier run at all.
pub(super) fn has_resources(directory: &Path) -> bool {
    StateFile::new(directory, RESOURCES_FILE).path().exists()
}

/// Keeps `directory` to one daemon for as long as the file lives. `None` when the system does not
/// let us lock anything there; what cannot be written is said when it is written.
pub(super) fn lock(directory: &Path) -> Result<Option<File>, LockError> {
    let path = directory.join(LOCK_FILE);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let Ok(file) = made.and_then(|()| File::create(&path)) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(LockError(directory.to_owned())),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Runs until the saver is dropped, and writes what came last before it ends. What the disk does
/// not take is tried again.
async fn write_changes(directory: PathBuf, mut latest: watch::Receiver<Arc<Wanted>>) {
    let mut written: Arc<Wanted> = Arc::default();
    let mut failed = false;
    loop {
        let changed = match timeout(RETRY_INTERVAL, latest.changed()).await {
            Ok(changed) => changed.is_ok(),
            Err(_) if failed => true,
            Err(_) => continue,
        };
        let wanted = Arc::clone(&latest.borrow_and_update());
        if *written != *wanted {
            let (directory, before, next) = (directory.clone(), written.clone(), wanted.clone());
            // Flushing blocks; nothing else may.
            let outcome = spawn_blocking(move || write(&directory, &before, &next)).await;
            match outcome.map_err(|error| error.to_string()) {
                Ok(Ok(())) => {
                    if std::mem::take(&mut failed) {
                        info!("state is on disk again");
                    }
                    written = wanted;
                }
                Ok(Err(error)) => failed = report(failed, &error.to_string()),
                Err(error) => failed = report(failed, &error),
            }
        }
        if !changed {
            return;
        }
    }
}

/// Says once that state cannot be saved.
fn report(failed: bool, error: &str) -> bool {
    if !failed {
        error!("{error}; trying again, until then a restart may forget what changed");
    }
    true
}

fn write(directory: &Path, before: &Wanted, wanted: &Wanted) -> Result<(), StateError> {
    if before.assignments != wanted.assignments {
        state::save(directory, &wanted.assignments)?;
    }
    if let Some(status) = wanted.drain.filter(|_| before.drain != wanted.drain) {
        StateFile::new(directory, DRAIN_FILE).save(&drain::encode(status))?;
    }
    if before.resources != wanted.resources {
        StateFile::new(directory, RESOURCES_FILE).save(&wanted.resources.to_string())?;
    }
    if let Some(announced) =
        wanted.announced.as_ref().filter(|_| before.announced != wanted.announced)
    {
        StateFile::new(directory, ANNOUNCED_FILE).save(&announced::encode(announced))?;
    }
    Ok(())
}
