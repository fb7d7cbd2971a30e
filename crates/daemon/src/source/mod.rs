//! Where resources come from.
//!
//! An edge: knows files, threads and the kernel's notifications, and nothing of what the text
//! means. The daemon and the offline commands feed `resources` with what it brings.

mod disk;
mod files;
#[cfg(test)]
mod tests;
mod tracker;

pub use disk::FileSourceError;
pub use files::{FileSource, STANDARD_INPUT, read_all};

use std::time::Instant;

use fairway_resources::Catalog;

/// What one event changed.
#[derive(Debug)]
pub struct FileBatch {
    /// When it was heard of.
    pub at: Instant,
    /// What is new.
    pub changes: Vec<FileChange>,
}

/// What is new about one file or folder. Paths are as the user wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file has this content now.
    Read {
        /// The file.
        path: String,
        /// All of it.
        text: String,
    },
    /// The file was seen to be gone: its folder was listed, and it was not in it.
    Gone {
        /// The file.
        path: String,
    },
    /// The file or folder cannot be read, or the file is not text. What it held still counts.
    Unreadable {
        /// The file or folder.
        path: String,
        /// Why, for people.
        why: String,
    },
    /// What a folder holds under this name is no file, so it holds nothing.
    Ignored {
        /// The entry of the folder.
        path: String,
        /// What it is, for people.
        why: String,
    },
    /// The folder, unreadable before, can be read again. (For files, `Read` says so.)
    Readable {
        /// The folder.
        path: String,
    },
}

impl FileChange {
    /// Tells the catalog.
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
