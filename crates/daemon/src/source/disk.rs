//! Reading files and folders, and its errors.
//!
//! Knows which files of a folder count and how large a file may be. Knows no events and no
//! history; `tracker` calls it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fairway_resources::FILE_BYTES_MAX;

use super::FileChange;
use crate::host::open_at_once;

/// Why files cannot be watched or read at all.
#[derive(Debug, thiserror::Error)]
pub enum FileSourceError {
    /// A path given by the user does not exist.
    #[error("{path}: {error}")]
    Path {
        /// The path.
        path: String,
        /// Why. It is part of the text, so it is not a `source`.
        error: io::Error,
    },
    /// The kernel refuses to report changes.
    #[error("cannot watch files for changes: {0}")]
    Watch(notify::Error),
    /// The watcher thread cannot start.
    #[error("the file watcher thread cannot start: {0}")]
    Thread(io::Error),
}

/// Why a file has no text.
#[derive(Debug)]
pub(super) enum ReadFailure {
    /// It does not exist, or is a dangling symbolic link.
    NotFound,
    /// It is not a file; what it is, for people.
    NoFile(String),
    /// What is wrong with its content, for people.
    Unreadable(String),
    /// The error, for people, which may pass without a change of the file.
    Busy(String),
}

/// A path given by the user: a file, or a folder of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// As the user wrote it.
    pub(super) shown: PathBuf,
    /// The absolute path.
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
}

impl Target {
    pub(super) fn new(shown: &Path) -> Result<Self, FileSourceError> {
        let name = |error| FileSourceError::Path { path: shown.display().to_string(), error };
        let path = std::path::absolute(shown).map_err(name)?;
        let is_folder = fs::metadata(&path).map_err(name)?.is_dir();
        Ok(Self { shown: shown.to_owned(), path, is_folder })
    }

    /// The folder to watch for it.
    pub(super) fn folder(&self) -> &Path {
        if self.is_folder { &self.path } else { self.path.parent().unwrap_or(&self.path) }
    }

    /// How the user would write `path`, a file of this target.
    pub(super) fn show(&self, path: &Path) -> String {
        let shown = match path.file_name() {
            Some(name) if self.is_folder => self.shown.join(name),
            _ => self.shown.clone(),
        };
        shown.to_string_lossy().into_owned()
    }

    /// Whether `path` is this file, or a file of this folder that counts.
    pub(super) fn holds(&self, path: &Path) -> bool {
        if !self.is_folder {
            return path == self.path;
        }
        path.parent() == Some(&self.path) && is_resource(path)
    }
}

/// Whether a file of this name counts in a folder.
fn is_resource(path: &Path) -> bool {
    let has_ending = path
        .extension()
        .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|it| extension == *it));
    let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    has_ending && !is_hidden
}

/// Why nothing of a folder is read, for people; `None` if something is, or if it cannot be listed, which is reported
/// elsewhere.
pub(super) fn nothing_to_read(folder: &Path) -> Option<String> {
    let paths: Vec<PathBuf> = list(folder).ok()?.iter().map(|name| folder.join(name)).collect();
    if paths.iter().any(|path| is_resource(path)) {
        return None;
    }
    let (folders, files): (Vec<&PathBuf>, Vec<_>) = paths.iter().partition(|path| path.is_dir());
    let named = |found: &[&PathBuf], one: &str, several: &str| {
        let name = found.first()?.file_name()?.to_string_lossy();
        Some(match found.len() {
            1 => format!("1 {one}, {name}"),
            count => format!("{count} {several}, such as {name}"),
        })
    };
    let found = [named(&folders, "folder", "folders"), named(&files, "other file", "other files")];
    let found: Vec<String> = found.into_iter().flatten().collect();
    let has = if found.is_empty() {
        "it is empty".to_owned()
    } else {
        format!("it has {}", found.join(", and "))
    };
    Some(format!(
        "holds nothing to read: {has}; expected files with names that end in .yaml, .yml or .json (files in folders \
         inside are not read)"
    ))
}

/// The names in a folder.
pub(super) fn list(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, ReadFailure> {
    let failure = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ReadFailure::NotFound,
        io::ErrorKind::WouldBlock => {
            ReadFailure::Busy("cannot be read: another process has a lease on it".to_owned())
        }
        // Too many open files, a server that is away: no event says when it is over.
        _ => ReadFailure::Busy(format!("cannot be read: {error}")),
    };
    // Whatever has the name by now: to open a pipe would wait for a writer, and a file with a lease for its holder.
    let file = match open_at_once(path) {
        Ok(file) => file,
        // A socket cannot be opened.
        Err(error) => {
            return Err(fs::metadata(path)
                .ok()
                .as_ref()
                .and_then(no_file)
                .unwrap_or_else(|| failure(error)));
        }
    };
    let metadata = file.metadata().map_err(failure)?;
    if let Some(no_file) = no_file(&metadata) {
        return Err(no_file);
    }
    text_of(file, metadata.len()).map_err(|error| match error {
        Unread::Error(error) => failure(error),
        Unread::Why(why) => ReadFailure::Unreadable(why),
    })
}

/// What is not a file.
fn no_file(metadata: &fs::Metadata) -> Option<ReadFailure> {
    let what = if metadata.is_dir() { "a folder" } else { "a special file" };
    let why = || ReadFailure::NoFile(format!("is {what}, not a regular file"));
    (!metadata.is_file()).then(why)
}

/// Standard input, as a file named `stdin`.
pub(super) fn read_standard_input() -> FileChange {
    let path = "stdin".to_owned();
    match text_of(io::stdin().lock(), 0) {
        Ok(text) => FileChange::Read { path, text },
        Err(Unread::Error(error)) => {
            FileChange::Unreadable { path, why: format!("cannot be read: {error}") }
        }
        Err(Unread::Why(why)) => FileChange::Unreadable { path, why },
    }
}

/// Why there is no text.
enum Unread {
    Error(io::Error),
    /// The error, for people.
    Why(String),
}

/// The whole content of `source`, which probably has this many bytes.
fn text_of(source: impl Read, bytes_probably: u64) -> Result<String, Unread> {
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    let capacity = usize::try_from(bytes_probably.min(limit)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(capacity);
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(Unread::Error)?;
    if bytes.len() > FILE_BYTES_MAX {
        let megabytes = FILE_BYTES_MAX / 1024 / 1024;
        let why = format!("is larger than {megabytes} MiB; split it into several files");
        return Err(Unread::Why(why));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let lines = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
        Unread::Why(format!("is not text: line {} is not UTF-8", lines + 1))
    })
}

/// The identity of a folder in the kernel: a path may come to mean another folder. `None` while the
/// folder cannot be listed.
pub(super) fn identity(folder: &Path) -> Option<(u64, u64)> {
    fs::read_dir(folder).ok()?;
    fs::metadata(folder).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether a new name in a folder is complete without being written: a link, or not a file at all.
pub(super) fn is_whole_at_once(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file() || metadata.nlink() > 1)
}

/// Whether it is a symbolic link, dangling or not.
pub(super) fn is_symbolic_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

/// Whether it is a dangling symbolic link.
pub(super) fn is_dangling(path: &Path) -> bool {
    let is_missing =
        || fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    is_symbolic_link(path) && is_missing()
}

/// Distinguishes two states of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// The signature of the file behind `path`, if it is accessible.
pub(super) fn signature(path: &Path) -> Option<Signature> {
    fs::metadata(path).ok().map(|metadata| Signature {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}
