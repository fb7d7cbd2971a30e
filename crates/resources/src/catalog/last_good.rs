//! The last good versions as JSON, for the daemon to keep across restarts.
//!
//! Knows no disk. What is restored is in force only once its file is read and found broken, or
//! cannot be read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Catalog;
use super::file::FileState;
use super::version::Version;

/// The format of [`Catalog::last_good`].
const FORMAT: u64 = 1;

/// Why a kept value cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It was written by another version of Fairway.
    #[error("its format is {0}; this version reads format {FORMAT}")]
    Format(u64),
    /// It is not in Fairway's format.
    #[error("it cannot be read: {0}")]
    Content(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Envelope {
    format: u64,
}

#[derive(Serialize)]
struct Saving<'a> {
    format: u64,
    objects: Vec<SavingObject<'a>>,
}

#[derive(Serialize)]
struct SavingObject<'a> {
    file: &'a str,
    line: usize,
    document: &'a str,
}

#[derive(Deserialize)]
struct Saved {
    objects: Vec<SavedObject>,
}

#[derive(Deserialize)]
struct SavedObject {
    file: String,
    line: usize,
    document: String,
}

/// The last good version of each object. Cheap to take, whatever its size; two are equal if they
/// hold the same versions.
#[derive(Debug, Clone, Default)]
pub struct LastGood(Vec<Arc<Version>>);

impl PartialEq for LastGood {
    fn eq(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs().all(|(one, another)| Arc::ptr_eq(one, another))
    }
}

impl LastGood {
    /// The input of [`Catalog::restore`]. It contains Secrets in clear text: store it where other users
    /// cannot read it.
    pub fn to_json(&self) -> String {
        fn object(version: &Arc<Version>) -> SavingObject<'_> {
            let Version { file, line, source, .. } = &**version;
            SavingObject { file, line: *line, document: source }
        }
        let saving = Saving { format: FORMAT, objects: self.0.iter().map(object).collect() };
        // Texts and numbers always have a JSON form.
        serde_json::to_string(&saving).unwrap_or_default()
    }
}

impl Catalog {
    /// The last good version of every object that files are responsible for.
    pub fn last_good(&self) -> LastGood {
        let wanted = self.wanted();
        // Secrets that are not passwords are ignored until a peer
        // names them.
        let is_ours = |version: &Version| {
            version.secret().is_none_or(|it| it.password.is_some() || wanted.includes(version))
        };
        let ours = self.held.values().filter(|held| is_ours(held));
        LastGood(ours.cloned().collect())
    }

    /// Restores what [`LastGood::to_json`] returned earlier; call it before any file is read. Objects
    /// that this version of Fairway does not accept are dropped.
    pub fn restore(&mut self, json: &str) -> Result<(), RestoreError> {
        let Envelope { format } = serde_json::from_str(json)?;
        if format != FORMAT {
            return Err(RestoreError::Format(format));
        }
        let Saved { objects } = serde_json::from_str(json)?;
        for saved in objects {
            let file: Arc<str> = saved.file.into();
            let state = FileState::parse(&file, &saved.document, self.backend);
            for version in state.entries.into_iter().filter_map(|entry| entry.version) {
                let Some(mut version) = Arc::into_inner(version) else { continue };
                version.line = saved.line;
                // Its one line is not a line of the file.
                version.lines = Default::default();
                let key = Arc::clone(&version.key);
                if !self.held.contains_key(&key) {
                    self.restored.insert(Arc::clone(&key));
                    self.independent.version_changed(&key);
                    self.held.insert(key, Arc::new(version));
                }
            }
        }
        Ok(())
    }
}
