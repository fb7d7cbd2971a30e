//! The record of settings of the kernel that we changed, so that they can be put back.
//!
//! A file of lines `NAME BEFORE AFTER`, written before the setting is. It belongs where it does not outlive the kernel's
//! settings (`/run`). What was found first is what is put back, however often a setting was changed since.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub struct SettingsRecord {
    path: PathBuf,
    changes: BTreeMap<String, Changed>,
}

/// A setting that was changed. The values have no spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Its value before.
    pub before: String,
    /// The one that it was given.
    pub after: String,
}

impl SettingsRecord {
    /// What the file at `path` says; nothing if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub fn open(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut changes = BTreeMap::new();
        for line in text.lines() {
            let [name, before, after] = line.split(' ').collect::<Vec<_>>()[..] else {
                let message = format!("{line:?} is no line of the record of settings");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            };
            let (before, after) = (before.to_owned(), after.to_owned());
            changes.insert(name.to_owned(), Changed { before, after });
        }
        Ok(Self { path: path.to_owned(), changes })
    }

    /// The settings that were changed.
    pub fn changes(&self) -> &BTreeMap<String, Changed> {
        &self.changes
    }

    /// Notes a change that is about to be made.
    pub(super) fn note(&mut self, name: &str, before: &str, after: &str) -> io::Result<()> {
        let after = after.to_owned();
        match self.changes.get_mut(name) {
            Some(changed) => changed.after = after,
            None => {
                let before = before.to_owned();
                self.changes.insert(name.to_owned(), Changed { before, after });
            }
        }
        let line = |(name, it): (&String, &Changed)| format!("{name} {} {}\n", it.before, it.after);
        let text: String = self.changes.iter().map(line).collect();
        let fresh = PathBuf::from(format!("{}.new", self.path.display()));
        std::fs::write(&fresh, text)?;
        std::fs::rename(&fresh, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_first_is_kept_for_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxy-settings");
        let mut record = SettingsRecord::open(&path).unwrap();
        record.note("net.ipv4.ip_forward", "0", "1").unwrap();
        let mut record = SettingsRecord::open(&path).unwrap();
        record.note("net.ipv4.ip_forward", "2", "1").unwrap();
        record.note("ipvs-timeouts", "900,120,300", "7200,120,300").unwrap();
        let record = SettingsRecord::open(&path).unwrap();
        let changed = |before: &str, after: &str| Changed {
            before: before.to_owned(),
            after: after.to_owned(),
        };
        let expected = [
            ("ipvs-timeouts".to_owned(), changed("900,120,300", "7200,120,300")),
            ("net.ipv4.ip_forward".to_owned(), changed("0", "1")),
        ];
        assert_eq!(record.changes(), &BTreeMap::from(expected));
        std::fs::write(&path, "something else entirely here\n").unwrap();
        let error = SettingsRecord::open(&path).unwrap_err().to_string();
        assert!(error.contains("is no line of the record of settings"), "{error}");
    }
}
