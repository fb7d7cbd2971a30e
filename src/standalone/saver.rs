//! Writes state to disk beside the loop, so that a slow disk never delays a route. Only the
//! latest state counts; what did not change is not written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::error;

use crate::allocator::Assignment;
use crate::controller::state::{self, FormatError, StateError, StateFile};
use crate::model::ObjectName;
use crate::resources::Catalog;

/// The file that holds the last good version of each object.
const RESOURCES_FILE: &str = "resources.json";

/// What is to be on disk.
#[derive(Debug, Clone, PartialEq, Default)]
struct Wanted {
    assignments: Vec<(ObjectName, Assignment)>,
    resources: Value,
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

    /// This should be on disk. Returns at once.
    pub(super) fn save(&self, assignments: Vec<(ObjectName, Assignment)>, resources: Value) {
        self.wanted.send_replace(Arc::new(Wanted { assignments, resources }));
    }

    /// Waits until it is.
    pub(super) async fn finish(self) {
        drop(self.wanted);
        if let Err(error) = self.task.await {
            error!(%error, "state was not saved");
        }
    }
}

/// Takes up what [`Saver::save`] left in an earlier run.
pub(super) fn restore(directory: &Path, catalog: &mut Catalog) -> Result<(), StateError> {
    let file = StateFile::new(directory, RESOURCES_FILE);
    let restored = file.load(|text| {
        let value: Value = serde_json::from_str(text)?;
        catalog.restore(&value).map_err(|error| FormatError::Content(error.to_string()))
    });
    restored.map(drop)
}

/// Runs until the saver is dropped, and writes what came last before it ends.
async fn write_changes(directory: PathBuf, mut latest: watch::Receiver<Arc<Wanted>>) {
    let mut written: Arc<Wanted> = Arc::default();
    while latest.changed().await.is_ok() {
        let wanted = Arc::clone(&latest.borrow_and_update());
        let (directory, before, next) = (directory.clone(), written, Arc::clone(&wanted));
        // Flushing blocks; nothing else may.
        let outcome = tokio::task::spawn_blocking(move || write(&directory, &before, &next)).await;
        if let Ok(Err(error)) = outcome {
            error!("{error}; a restart may forget what changed since");
        }
        written = wanted;
    }
}

fn write(directory: &Path, before: &Wanted, wanted: &Wanted) -> Result<(), StateError> {
    if before.assignments != wanted.assignments {
        state::save(directory, &wanted.assignments)?;
    }
    if before.resources != wanted.resources {
        StateFile::new(directory, RESOURCES_FILE).save(&wanted.resources.to_string())?;
    }
    Ok(())
}
