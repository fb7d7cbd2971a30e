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
mod independent;
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

use fairway_model::{Kind, Object, ObjectKey, ObjectName};

use self::file::FileState;
use self::independent::Independent;
use self::supplies::{Wanted, is_supplied};
use self::version::Version;
use super::backend::BackendKind;
use super::field_path::FieldPath;
use super::yaml;

/// The content of all files, and the last good version of every object in them.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// The backend that will apply it.
    backend: BackendKind,
    files: BTreeMap<Arc<str>, FileState>,
    /// Each object with each file that defines it.
    definitions: BTreeSet<(Arc<ObjectKey>, Arc<str>)>,
    /// The files with findings of their own, or with documents of kinds that Fairway ignores.
    remarked: BTreeSet<Arc<str>>,
    /// Files and folders that could not be read, with the reason.
    unreadable: BTreeMap<String, String>,
    /// The version of each object that was in force last.
    held: BTreeMap<Arc<ObjectKey>, Arc<Version>>,
    /// Those of them that were restored from disk, and their files have not been read since.
    restored: BTreeSet<Arc<ObjectKey>>,
    /// The objects in force, by the last resolution.
    in_force: BTreeMap<Arc<ObjectKey>, Arc<Object>>,
    independent: Independent,
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
        self.replace_file(path, Some(state));
    }

    /// The content of the file `path` from now on; `None` if there is no such file.
    fn replace_file(&mut self, path: Arc<str>, state: Option<FileState>) {
        self.independent.file_changed(self.files.get(&path));
        self.independent.file_changed(state.as_ref());
        for entry in self.files.remove(&path).into_iter().flat_map(|before| before.entries) {
            self.definitions.remove(&(entry.key, Arc::clone(&path)));
        }
        self.remarked.remove(&path);
        let Some(state) = state else { return };
        let keys = state.entries.iter().map(|entry| Arc::clone(&entry.key));
        self.definitions.extend(keys.map(|key| (key, Arc::clone(&path))));
        if !state.findings.is_empty() || state.skipped > 0 {
            self.remarked.insert(Arc::clone(&path));
        }
        self.files.insert(path, state);
    }

    /// Whether something that is in force was read from this file.
    fn is_responsible(&self, path: &str) -> bool {
        self.held.values().any(|held| *held.file == *path)
    }

    /// The file `path` is gone: its objects are removed, unless another file has them.
    pub fn file_gone(&mut self, path: &str) {
        self.unreadable.remove(path);
        self.replace_file(path.into(), None);
        let held = &self.held;
        self.restored.retain(|key| held.get(key).is_some_and(|held| *held.file != *path));
    }

    /// The entry `path` of a folder is not a file, so it holds no objects.
    pub fn file_ignored(&mut self, path: &str, why: &str) {
        self.file_gone(path);
        self.replace_file(path.into(), Some(FileState::ignored(path, why)));
    }

    /// The file or folder `path` is there but cannot be read, or is not text. Everything it held
    /// stays in force; the only change is a finding.
    pub fn file_unreadable(&mut self, path: &str, why: &str) {
        self.independent.file_changed(self.files.get(path));
        self.unreadable.insert(path.to_owned(), why.to_owned());
    }

    /// The folder `path` is readable again. (Files need no such call.)
    pub fn folder_readable(&mut self, path: &str) {
        self.independent.file_changed(self.files.get(path));
        self.unreadable.remove(path);
    }

    /// Whether the file or folder `path`, or the folder that the file is in, could not be read.
    pub fn is_unreadable(&self, path: &str) -> bool {
        is_unreadable(&self.unreadable, path)
    }

    /// The objects in force, in the order of their kinds and names.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.in_force.keys().map(|key| &**key)
    }

    /// The files with objects in force.
    pub fn files_in_force(&self) -> BTreeSet<String> {
        self.held.values().map(|held| held.file.to_string()).collect()
    }

    /// The file and line of the version of an object that is in force.
    pub fn place_of(&self, key: &ObjectKey) -> Option<(&str, usize)> {
        let version = self.held.get(key)?;
        Some((&version.file, version.line))
    }

    /// The line of a field, as in `spec.vrf`, of the version of an object that is in force.
    pub fn line_of(&self, key: &ObjectKey, field: &str) -> Option<usize> {
        self.held.get(key)?.lines.line(&FieldPath::of(field))
    }

    /// Whether the version of an object that is in force has a field, as in `spec.vrf`.
    pub fn is_written(&self, key: &ObjectKey, field: &str) -> bool {
        let held = self.held.get(key);
        held.is_some_and(|held| held.lines.has(&FieldPath::of(field)))
    }

    /// The text of a field of the version of an object that is in force, if it is neither a list nor a mapping.
    pub fn written(&self, key: &ObjectKey, field: &str) -> Option<&str> {
        let path = FieldPath::of(field);
        let (found, text) = self.held.get(key)?.lines.scalars(&path).next()?;
        (*found == path).then_some(text)
    }

    /// The objects to which those in force refer.
    fn wanted(&self) -> Wanted<'_> {
        let kinds = Kind::ALL.into_iter().filter(|kind| is_supplied(*kind));
        Wanted::by(kinds.flat_map(|kind| of_kind(&self.held, kind)).map(|(_, held)| &**held))
    }

    /// All files have been read once: drops what was restored from files that are not among them.
    /// (Objects of an unreadable folder stay, and so do the objects on which those that stay
    /// depend.)
    pub fn forget_unread(&mut self) {
        if self.restored.is_empty() {
            return;
        }
        let (files, unreadable, restored) = (&self.files, &self.unreadable, &self.restored);
        let is_awaited = |key: &Arc<ObjectKey>, held: &Version| {
            restored.contains(key)
                && !files.contains_key(&held.file)
                && !is_unreadable(unreadable, &held.file)
        };
        let staying = self.held.iter().filter(|(key, held)| !is_awaited(key, held));
        let wanted = Wanted::by(staying.map(|(_, held)| &**held));
        let awaited = self.held.iter().filter(|(key, held)| is_awaited(key, held));
        let (needed, needless): (Vec<_>, Vec<_>) = awaited
            .map(|(key, held)| (Arc::clone(key), held))
            .partition(|(_, it)| wanted.includes(it));
        let keys = |list: Vec<(Arc<ObjectKey>, &Arc<Version>)>| -> Vec<Arc<ObjectKey>> {
            list.into_iter().map(|(key, _)| key).collect()
        };
        let (needed, needless) = (keys(needed), keys(needless));
        for key in needless {
            self.held.remove(&key);
            self.restored.remove(&key);
            self.independent.version_changed(&key);
        }
        for key in needed {
            self.restored.remove(&key);
        }
    }
}

/// The entries for objects of this kind.
fn of_kind<V>(
    map: &BTreeMap<Arc<ObjectKey>, V>,
    kind: Kind,
) -> impl Iterator<Item = (&Arc<ObjectKey>, &V)> {
    map.range(first_of(kind)..).take_while(move |(key, _)| key.kind == kind)
}

/// No key of this kind is less.
fn first_of(kind: Kind) -> ObjectKey {
    ObjectKey { kind, name: ObjectName::new("", "") }
}

/// Whether the file, or the folder it is in, could not be read.
fn is_unreadable(unreadable: &BTreeMap<String, String>, file: &str) -> bool {
    let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
    !unreadable.is_empty()
        && (unreadable.contains_key(file)
            || unreadable.contains_key(folder)
            || unreadable.contains_key(&format!("{folder}/")))
}
