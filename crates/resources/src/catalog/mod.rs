//! All files together: which objects are in force, and what is wrong with the others.
//!
//! One rule precedes all others: a fault in one object never removes another that worked. A broken
//! object keeps its last good version until it is fixed, or until its document is really gone.
//! Pure: `source` reports the content of files, the daemon and `fairway check` read the
//! [`Resolution`]. Objects of an API server are handled the same way (`objects`).

mod advertisements;
mod contradictions;
mod extras;
mod file;
mod frr;
mod last_good;
mod needs;
mod nodes;
mod objects;
mod peers;
mod pools;
mod resolve;
mod settle;
mod supplies;
mod version;
mod warnings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::last_good::{LastGood, RestoreError};
pub use self::resolve::{Resolution, StaleObject};

use fairway_model::ObjectKey;

use self::file::FileState;
use self::supplies::{Wanted, is_supplied};
use self::version::Version;
use super::backend::BackendKind;
use super::field_path::FieldPath;
use super::yaml;

/// The version of an object that was in force last.
#[derive(Debug, Clone)]
struct Held {
    version: Arc<Version>,
    /// It was restored from disk and its file has not been read since.
    is_restored: bool,
}

/// The content of all files, and the last good version of every object in them.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// The backend that will apply it.
    backend: BackendKind,
    files: BTreeMap<Arc<str>, FileState>,
    /// Files and folders that could not be read, with the reason.
    unreadable: BTreeMap<String, String>,
    held: BTreeMap<ObjectKey, Held>,
}

impl Catalog {
    /// No files, for the native backend.
    pub fn new() -> Self {
        Self::default()
    }

    /// No files. What `backend` does not support is a fault.
    pub fn for_backend(backend: BackendKind) -> Self {
        Self { backend, ..Self::default() }
    }

    /// The file `path` holds `text` now. Parses this file and no other. A file that had content and is
    /// empty now is taken as a failed write, and withdraws nothing.
    pub fn file_read(&mut self, path: &str, text: &str) {
        let path: Arc<str> = path.into();
        self.unreadable.remove(&*path);
        let state = if yaml::is_blank(text) && self.is_responsible(&path) {
            FileState::emptied(&path)
        } else {
            FileState::parse(&path, text, self.backend)
        };
        self.files.insert(path, state);
    }

    /// Whether something that is in force was read from this file.
    fn is_responsible(&self, path: &str) -> bool {
        self.held.values().any(|held| *held.version.file == *path)
    }

    /// The file `path` is gone: its objects are removed, unless another file has them.
    pub fn file_gone(&mut self, path: &str) {
        self.unreadable.remove(path);
        self.files.remove(path);
        for held in self.held.values_mut().filter(|held| *held.version.file == *path) {
            held.is_restored = false;
        }
    }

    /// The entry `path` of a folder is not a file, so it holds no objects.
    pub fn file_ignored(&mut self, path: &str, why: &str) {
        self.file_gone(path);
        self.files.insert(path.into(), FileState::ignored(path, why));
    }

    /// The file or folder `path` is there but cannot be read, or is not text. Everything it held
    /// stays in force; the only change is a finding.
    pub fn file_unreadable(&mut self, path: &str, why: &str) {
        self.unreadable.insert(path.to_owned(), why.to_owned());
    }

    /// The folder `path` is readable again. (Files need no such call.)
    pub fn folder_readable(&mut self, path: &str) {
        self.unreadable.remove(path);
    }

    /// Whether the file or folder `path`, or the folder that the file is in, could not be read.
    pub fn is_unreadable(&self, path: &str) -> bool {
        is_unreadable(&self.unreadable, path)
    }

    /// The objects in force, in the order of their kinds and names.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.held.keys()
    }

    /// The files with objects in force.
    pub fn files_in_force(&self) -> BTreeSet<String> {
        self.held.values().map(|held| held.version.file.to_string()).collect()
    }

    /// The file and line of the version of an object that is in force.
    pub fn place_of(&self, key: &ObjectKey) -> Option<(&str, usize)> {
        let version = &self.held.get(key)?.version;
        Some((&version.file, version.line))
    }

    /// The line of a field, as in `spec.vrf`, of the version of an object that is in force.
    pub fn line_of(&self, key: &ObjectKey, field: &str) -> Option<usize> {
        self.held.get(key)?.version.lines.line(&FieldPath::of(field))
    }

    /// Whether the version of an object that is in force has a field, as in `spec.vrf`.
    pub fn is_written(&self, key: &ObjectKey, field: &str) -> bool {
        let held = self.held.get(key);
        held.is_some_and(|held| held.version.lines.has(&FieldPath::of(field)))
    }

    /// The objects to which those in force refer.
    fn wanted(&self) -> Wanted<'_> {
        let supplied = self.held.iter().filter(|(key, _)| is_supplied(key.kind));
        Wanted::by(supplied.map(|(_, held)| &*held.version))
    }

    /// All files have been read once: drops what was restored from files that are not among them.
    /// (Objects of an unreadable folder stay, and so do the objects on which those that stay
    /// depend.)
    pub fn forget_unread(&mut self) {
        if !self.held.values().any(|held| held.is_restored) {
            return;
        }
        let (files, unreadable) = (&self.files, &self.unreadable);
        let is_awaited = |held: &Held| {
            held.is_restored
                && !files.contains_key(&held.version.file)
                && !is_unreadable(unreadable, &held.version.file)
        };
        let staying = self.held.values().filter(|held| !is_awaited(held));
        let wanted = Wanted::by(staying.map(|held| &*held.version));
        let (needed, needless): (Vec<_>, Vec<_>) = self
            .held
            .iter()
            .filter(|(_, held)| is_awaited(held))
            .partition(|(_, held)| wanted.includes(&held.version));
        let keys = |list: Vec<(&ObjectKey, &Held)>| -> Vec<ObjectKey> {
            list.into_iter().map(|(key, _)| key.clone()).collect()
        };
        let (needed, needless) = (keys(needed), keys(needless));
        for key in needless {
            self.held.remove(&key);
        }
        for key in needed {
            if let Some(held) = self.held.get_mut(&key) {
                held.is_restored = false;
            }
        }
    }
}

/// Whether the file, or the folder it is in, could not be read.
fn is_unreadable(unreadable: &BTreeMap<String, String>, file: &str) -> bool {
    let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
    !unreadable.is_empty()
        && (unreadable.contains_key(file)
            || unreadable.contains_key(folder)
            || unreadable.contains_key(&format!("{folder}/")))
}
