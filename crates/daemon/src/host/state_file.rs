//! What survives a restart: small files in the state directory, each replaced as a whole.
//!
//! A reader sees the old file or the new one, never a part (written beside, flushed, renamed). A file that
//! cannot be parsed is moved aside and named in the error, so that the daemon can continue without it and no
//! data is destroyed. What the files hold is `fairway-node`'s.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fairway_allocator::Memory;
use fairway_node::assignments::{ASSIGNMENTS_FILE, decode_assignments, encode_assignments};
use fairway_node::document::FormatError;

use super::open_at_once;

/// The maximum of unreadable files that are kept beside each other.
const SET_ASIDE_MAX: u32 = 1000;
/// Maximum size of a state file: one of 50,000 Services has 50 MB.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Why state cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be parsed; it is moved aside, and there is no state.
    #[error("{}: {cause}; moved to {}, continuing without it", path.display(), aside.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Its new path.
        aside: PathBuf,
        /// Why it cannot be parsed.
        cause: FormatError,
    },
    /// The file cannot be parsed and cannot be moved either: the next save would destroy it.
    #[error("{}: {cause}; cannot move it aside: {error}", path.display())]
    Stuck {
        /// The file.
        path: PathBuf,
        /// Why it cannot be parsed.
        cause: FormatError,
        /// Why it cannot be moved.
        error: io::Error,
    },
    /// The system refuses to read it.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// The system refuses to write it. The earlier content is intact.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
}

/// One file of the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    directory: PathBuf,
    name: String,
}

impl StateFile {
    /// The file `name` in `directory`. Nothing is accessed yet.
    pub fn new(directory: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self { directory: directory.into(), name: name.into() }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// The content; `None` if there is no such file. A file that `decode` refuses is moved aside.
    pub fn load<T>(
        &self,
        decode: impl FnOnce(&str) -> Result<T, FormatError>,
    ) -> Result<Option<T>, StateError> {
        let path = self.path();
        let bytes = match read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::Read { path, error }),
        };
        // Bytes that are not UTF-8 become text that is not JSON, and `decode` reports that.
        match decode(&String::from_utf8_lossy(&bytes)) {
            Ok(value) => Ok(Some(value)),
            Err(cause) => Err(match self.set_aside() {
                Ok(aside) => StateError::Unreadable { path, aside, cause },
                Err(error) => StateError::Stuck { path, cause, error },
            }),
        }
    }

    /// Replaces its content. Creates a missing directory; both are accessible to this user only.
    pub fn save(&self, text: &str) -> Result<(), StateError> {
        self.replace(text).map_err(|error| StateError::Write { path: self.path(), error })
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let fresh = self.directory.join(format!("{}.new", self.name));
        let written = write_flushed(&fresh, text).and_then(|()| fs::rename(&fresh, self.path()));
        if let Err(error) = written {
            // The first error is the one to report; a left-over is overwritten next time.
            let _ = fs::remove_file(&fresh);
            return Err(error);
        }
        // The rename itself is on disk only once the directory is.
        File::open(&self.directory)?.sync_all()
    }

    /// Renames the file to the first free `NAME.unreadable-N`.
    fn set_aside(&self) -> io::Result<PathBuf> {
        let names = (1..=SET_ASIDE_MAX).map(|number| format!("{}.unreadable-{number}", self.name));
        let free = names.map(|name| self.directory.join(name)).find(|path| !path.exists());
        let aside = free.ok_or_else(|| io::Error::other("too many unreadable files beside it"))?;
        fs::rename(self.path(), &aside)?;
        Ok(aside)
    }
}

/// The content of a file; anything else that has its name is an error and keeps nobody waiting.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_at_once(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|it| it <= FILE_BYTES_MAX) {
        true => Ok(bytes),
        false => Err(io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes"))),
    }
}

fn write_flushed(path: &Path, text: &str) -> io::Result<()> {
    // A left-over, or something that is not a file.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Reads the allocator's memory from `directory`; empty if there is no file.
pub fn load(directory: &Path) -> Result<Memory, StateError> {
    let memory = StateFile::new(directory, ASSIGNMENTS_FILE).load(decode_assignments)?;
    Ok(memory.unwrap_or_default())
}

/// Writes the allocator's memory to `directory`.
pub fn save(directory: &Path, memory: &Memory) -> Result<(), StateError> {
    StateFile::new(directory, ASSIGNMENTS_FILE).save(&encode_assignments(memory))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use fairway_allocator::Assignment;
    use fairway_model::ObjectName;
    use fairway_node::document::{decode_document, encode_document};
    use serde_json::Value;

    use super::*;

    fn memory() -> Memory {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let assignments = vec![
            (
                ObjectName::new("prod", "web"),
                Assignment {
                    pool: "four,six".to_owned(),
                    addresses: addresses(&["192.0.2.1", "2001:db8::1"]),
                },
            ),
            (
                ObjectName::new("default", "dns"),
                Assignment { pool: "four".to_owned(), addresses: addresses(&["192.0.2.2"]) },
            ),
        ];
        let gone = ("192.0.2.9".parse().unwrap(), ObjectName::new("default", "gone"));
        Memory { assignments, released: vec![gone] }
    }

    /// The last assignment only, as builds without released addresses wrote it.
    fn short() -> Memory {
        Memory { assignments: memory().assignments.split_off(1), released: Vec::new() }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_saved_is_what_is_loaded_in_the_same_order() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("state/fairway");
        assert_eq!(load(&directory).unwrap(), Memory::default());
        save(&directory, &memory()).unwrap();
        save(&directory, &memory()).unwrap();
        assert_eq!(load(&directory).unwrap(), memory());
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join(ASSIGNMENTS_FILE)), 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_was_cut_short_is_set_aside_wherever_the_cut_is() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(ASSIGNMENTS_FILE);
        let text = encode_assignments(&memory());
        let whole = text.trim_end();
        for length in 0..whole.len() {
            fs::write(&file, &whole.as_bytes()[..length]).unwrap();
            let error = load(root.path()).unwrap_err();
            let StateError::Unreadable { path, aside, .. } = &error else { panic!("{error}") };
            assert_eq!(path, &file);
            assert_eq!(fs::read(aside).unwrap().len(), length);
            assert!(!file.exists());
            assert!(error.to_string().contains(".unreadable-"), "{error}");
            fs::remove_file(aside).unwrap();
        }
    }

    #[test]
    fn unreadable_files_do_not_displace_each_other() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(ASSIGNMENTS_FILE);
        for content in [&b"first"[..], &b"\xFF\xFE"[..]] {
            fs::write(&file, content).unwrap();
            load(root.path()).unwrap_err();
        }
        let aside =
            |number| fs::read(root.path().join(format!("{ASSIGNMENTS_FILE}.unreadable-{number}")));
        assert_eq!(aside(1).unwrap(), b"first");
        assert_eq!(aside(2).unwrap(), b"\xFF\xFE");
        save(root.path(), &memory()).unwrap();
        assert_eq!(load(root.path()).unwrap(), memory());
    }

    #[test]
    fn a_file_of_a_later_version_is_named_as_such_and_kept() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(ASSIGNMENTS_FILE);
        fs::write(&file, r#"{"version": 2, "services": {}, "more": true}"#).unwrap();
        let error = load(root.path()).unwrap_err().to_string();
        assert!(
            error.contains("format version 2 is not supported; this Fairway reads version 1"),
            "{error}"
        );
        assert!(root.path().join(format!("{ASSIGNMENTS_FILE}.unreadable-1")).exists());
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error_and_loses_nothing() {
        let root = tempfile::tempdir().unwrap();
        save(root.path(), &memory()).unwrap();
        // Below a plain file no user can create a directory, not even root.
        let blocked = root.path().join(ASSIGNMENTS_FILE).join("below");
        let error = save(&blocked, &memory()).unwrap_err();
        assert!(matches!(error, StateError::Write { .. }), "{error}");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o500)).unwrap();
        // Root may write anywhere; other users are refused. Either way the content is whole.
        let result = save(root.path(), &short());
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let expected = if result.is_ok() { short() } else { memory() };
        assert_eq!(load(root.path()).unwrap(), expected);
    }

    #[test]
    fn a_left_over_of_a_crash_is_overwritten_and_gets_the_right_mode() {
        let root = tempfile::tempdir().unwrap();
        let left_over = root.path().join(format!("{ASSIGNMENTS_FILE}.new"));
        fs::write(&left_over, "half a fi").unwrap();
        fs::set_permissions(&left_over, fs::Permissions::from_mode(0o644)).unwrap();
        save(root.path(), &memory()).unwrap();
        assert!(!left_over.exists());
        assert_eq!(mode(&root.path().join(ASSIGNMENTS_FILE)), 0o600);
    }

    #[test]
    fn any_document_with_a_version_is_kept_the_same_way() {
        let root = tempfile::tempdir().unwrap();
        let file = StateFile::new(root.path(), "resources.json");
        let body = serde_json::json!({"version": 9, "objects": [{"kind": "Service"}]});
        let Value::Object(body) = body else { panic!() };
        file.save(&encode_document(3, body)).unwrap();
        let document = file.load(|text| decode_document(text, 3)).unwrap().unwrap();
        assert_eq!(document, serde_json::json!({"version": 3, "objects": [{"kind": "Service"}]}));
        assert!(file.load(|text| decode_document(text, 4)).is_err());
        assert!(file.load(|text| decode_document(text, 4)).unwrap().is_none());
    }
}
