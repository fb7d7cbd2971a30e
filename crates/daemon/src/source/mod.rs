//! Where resources come from.
//!
//! An edge: knows files, threads and the kernel's notifications, and nothing of the meaning of the
//! text. The daemon and the offline commands feed `resources` with its changes.

mod disk;
mod files;
#[cfg(test)]
mod tests;
mod tracker;

pub use disk::FileSourceError;
pub use files::{FileSource, STANDARD_INPUT, nothing_to_read, read_all};

use std::time::Instant;

use fairway_resources::Catalog;

/// The changes of one event.
#[derive(Debug)]
pub struct FileBatch {
    /// When the event was received.
    pub at: Instant,
    /// The changes.
    pub changes: Vec<FileChange>,
}

/// A change of one file or folder. Paths are as the user wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file has this content now.
    Read {
        /// The file.
        path: String,
        /// All of it.
        text: String,
    },
    /// The file is gone: its folder was listed, and the file was not in it.
    Gone {
        /// The file.
        path: String,
    },
    /// The file or folder cannot be read, or the file is not text. Its last content stays in force.
    Unreadable {
        /// The file or folder.
        path: String,
        /// Why, for people.
        why: String,
    },
    /// The entry of a folder is not a file, so it holds nothing.
    Ignored {
        /// The entry of the folder.
        path: String,
        /// What it is, for people.
        why: String,
    },
    /// The folder is readable again. (For files, `Read` is sent.)
    Readable {
        /// The folder.
        path: String,
    },
}

impl FileChange {
    /// Applies the change to the catalog.
    pub fn apply_to(&self, catalog: &mut Catalog) {
        match self {
            Self::Read { path, text } => catalog.file_read(path, text),
            Self::Gone { path } => catalog.file_gone(path),
            Self::Unreadable { path, why } => catalog.file_unreadable(path, why),
            Self::Ignored { path, why } => catalog.file_ignored(path, why),
            Self::Readable { path } => catalog.folder_readable(path),
        }
    }
}
