//! Calls that wait in a folder, a file each: the containers of a node that were deleted while nobody could release their
//! addresses.
//!
//! A file is there as a whole or not at all, and is on disk before its caller is answered. Their names sort by the time of
//! their call.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairway_ipam::cni::CALL_BYTES_MAX;

/// How many calls may wait: a node has a few hundred containers. Beyond that, a runtime has to repeat its call.
const CALLS_MAX: usize = 16_384;
/// After that, a file that is not whole will not become so.
const LEFT_OVER: Duration = Duration::from_secs(600);
/// How many calls that cannot be read are kept for people.
const UNREADABLE_MAX: usize = 100;
/// How the file of a call ends.
const ENDING: &str = "call";
/// How one ends that cannot be read.
const UNREADABLE: &str = "unreadable";

/// Puts a call into the folder, which is made if it is missing.
///
/// # Errors
/// The system's; or there are too many.
pub fn put(folder: &Path, call: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if list(folder)?.len() >= CALLS_MAX {
        return Err(io::Error::other(format!("{CALLS_MAX} calls wait already")));
    }
    // The name has no other purpose than to be new and to sort.
    #[expect(clippy::disallowed_methods, reason = "a name, which nothing is decided by")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{:020}-{}", since.as_nanos(), std::process::id());
    let new = folder.join(format!(".{name}"));
    let written = write(&new, call).and_then(|()| give_to_owner(folder, &new));
    let renamed = written.and_then(|()| fs::rename(&new, folder.join(format!("{name}.{ENDING}"))));
    if let Err(error) = renamed {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    File::open(folder)?.sync_all()
}

fn write(path: &Path, call: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(call)?;
    file.sync_all()
}

/// The plugin runs as root, and the daemon, whose folder it is, perhaps not.
fn give_to_owner(folder: &Path, file: &Path) -> io::Result<()> {
    let (owner, own) = (fs::metadata(folder)?, fs::metadata(file)?);
    match (owner.uid(), owner.gid()) == (own.uid(), own.gid()) {
        true => Ok(()),
        false => chown(file, Some(owner.uid()), Some(owner.gid())),
    }
}

/// The calls that wait, the first one first; none if there is no such folder.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if path.extension() == Some(OsStr::new(ENDING)) {
            paths.push(path);
        } else if entry.file_name().as_encoded_bytes().starts_with(b".") && is_left_over(&path) {
            // Somebody else may have removed it.
            let _ = fs::remove_file(&path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Whether it is what a plugin has left that was ended while it wrote.
fn is_left_over(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|it| it.modified());
    modified.is_ok_and(|it| it.elapsed().is_ok_and(|age| age > LEFT_OVER))
}

/// The bytes of a call.
///
/// # Errors
/// It cannot be read, or is no file, or is longer than a call.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe of that name would keep its reader waiting.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let limit = u64::try_from(CALL_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() <= CALL_BYTES_MAX {
        true => Ok(bytes),
        false => Err(io::Error::other(format!("it is longer than {CALL_BYTES_MAX} bytes"))),
    }
}

/// Takes a call away that was answered.
///
/// # Errors
/// The system's.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Keeps what cannot be read for people, under a name that is not listed. Returns that name.
///
/// # Errors
/// The system's.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let kept = fs::read_dir(folder)?.flatten().map(|it| it.path());
    if kept.filter(|it| it.extension() == Some(OsStr::new(UNREADABLE))).count() >= UNREADABLE_MAX {
        fs::remove_file(path)?;
        return Err(io::Error::other("removed, since there are many such files already"));
    }
    let aside = path.with_extension(UNREADABLE);
    fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_wait_in_their_order_until_they_are_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("a/b");
        assert_eq!(list(&spool).unwrap(), Vec::<PathBuf>::new());
        for call in ["first", "second"] {
            put(&spool, call.as_bytes()).unwrap();
        }
        fs::write(spool.join(".half"), "half").unwrap();
        let waiting = list(&spool).unwrap();
        let read: Vec<Vec<u8>> = waiting.iter().map(|it| read(it).unwrap()).collect();
        assert_eq!(read, [b"first".to_vec(), b"second".to_vec()]);
        remove(&waiting[0]).unwrap();
        remove(&waiting[0]).unwrap();
        set_aside(&waiting[1]).unwrap();
        assert!(list(&spool).unwrap().is_empty());
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.call");
        fs::create_dir(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("not a regular file"));
    }
}
