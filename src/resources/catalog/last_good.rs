//! The last good versions as one JSON value, for the daemon to keep across restarts.
//!
//! Knows no disk. What is restored is in force only once its file is read and found broken, or
//! cannot be read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::file::FileState;
use super::supplies::Wanted;
use super::version::Version;
use super::{Catalog, Held};

/// The form of what [`Catalog::last_good`] makes.
const FORMAT: u64 = 1;

/// Why a kept value cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It was written by another version of Fairway.
    #[error("its format is {0}; this version reads format {FORMAT}")]
    Format(u64),
    /// It is not what Fairway writes.
    #[error("it cannot be read: {0}")]
    Content(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Envelope {
    format: u64,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    format: u64,
    objects: Vec<SavedObject>,
}

#[derive(Serialize, Deserialize)]
struct SavedObject {
    file: String,
    line: usize,
    document: String,
}

impl Catalog {
    /// The last good version of every object that files are responsible for. It contains Secrets
    /// in clear: whoever stores it must keep it from other users.
    pub fn last_good(&self) -> serde_json::Value {
        let wanted = Wanted::by(self.held.values().map(|held| &*held.version));
        // What is in other Secrets than those for passwords is none of our business until a peer
        // names them.
        let is_ours = |version: &Version| {
            version.secret().is_none_or(|it| it.password.is_some() || wanted.includes(version))
        };
        let objects: Vec<_> = self
            .held
            .values()
            .filter(|held| is_ours(&held.version))
            .map(|held| {
                let version = &held.version;
                serde_json::json!({
                    "file": &*version.file,
                    "line": version.line,
                    "document": &*version.source,
                })
            })
            .collect();
        serde_json::json!({ "format": FORMAT, "objects": objects })
    }

    /// Takes up what [`Catalog::last_good`] made earlier; call it before any file is read. Objects
    /// that this version of Fairway does not accept any more are left out.
    pub fn restore(&mut self, value: &serde_json::Value) -> Result<(), RestoreError> {
        let Envelope { format } = Envelope::deserialize(value)?;
        if format != FORMAT {
            return Err(RestoreError::Format(format));
        }
        for saved in Saved::deserialize(value)?.objects {
            let file: Arc<str> = saved.file.into();
            let state = FileState::parse(&file, &saved.document, self.backend);
            for version in state.entries.into_iter().filter_map(|entry| entry.version) {
                let Some(mut version) = Arc::into_inner(version) else { continue };
                version.line = saved.line;
                // Its one line is none of the file's.
                version.lines = Default::default();
                let held = Held { version: Arc::new(version), is_restored: true };
                self.held.entry(held.version.key.clone()).or_insert(held);
            }
        }
        Ok(())
    }
}
