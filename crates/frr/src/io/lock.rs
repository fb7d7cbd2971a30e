//! One Fairway for each FRR: the folder of FRR's sockets is locked while a process configures it.
//!
//! The lock is on the folder itself, which nobody has to write to, and is seen from every container that has the folder.
//! The kernel gives it back when the process ends. Used by the backend and by [`super::forget`].

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The lock, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(Option<File>);

/// Another process has it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("another Fairway on this machine configures the FRR in {}; stop one of them", .0.display())]
pub struct Locked(PathBuf);

impl Lock {
    /// Takes it. A folder that is not there yet, or a file system without locks, has none.
    pub(super) fn take(socket_dir: &Path) -> Result<Self, Locked> {
        let Ok(folder) = File::open(socket_dir) else { return Ok(Self(None)) };
        match folder.try_lock() {
            Ok(()) => Ok(Self(Some(folder))),
            Err(TryLockError::WouldBlock) => Err(Locked(socket_dir.to_owned())),
            Err(TryLockError::Error(_)) => Ok(Self(None)),
        }
    }

    /// Whether it is held, and not only not needed.
    pub(super) fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_is_told_and_follows_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path()).unwrap();
        assert!(first.is_held());
        let second = Lock::take(folder.path()).unwrap_err();
        assert!(second.to_string().contains(folder.path().to_str().unwrap()));
        drop(first);
        assert!(Lock::take(folder.path()).unwrap().is_held());
        assert!(!Lock::take(&folder.path().join("absent")).unwrap().is_held());
    }
}
