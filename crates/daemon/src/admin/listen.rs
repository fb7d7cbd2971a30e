//! A listening Unix socket in the file system: its owner may connect, and its group if the operator allows
//! it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::UnixListener;
use tracing::debug;

/// Which users may connect to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SocketMode {
    /// The daemon's user, and root.
    #[default]
    Owner,
    /// The daemon's group as well.
    Group,
}

impl SocketMode {
    fn of_socket(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o660,
        }
    }

    fn of_folder(self) -> u32 {
        match self {
            Self::Owner => 0o700,
            Self::Group => 0o750,
        }
    }
}

/// A mode that is neither of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 0600, for the daemon's user only, or 0660, for its group as well")]
pub struct SocketModeError;

impl FromStr for SocketMode {
    type Err = SocketModeError;

    fn from_str(text: &str) -> Result<Self, SocketModeError> {
        match text {
            "0600" | "600" => Ok(Self::Owner),
            "0660" | "660" => Ok(Self::Group),
            _ => Err(SocketModeError),
        }
    }
}

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon listens there.
    #[error("another daemon answers at {}; stop it, or choose another {option}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
        /// The option that sets the path.
        option: &'static str,
    },
    /// Something that is not a socket has this path.
    #[error("{} exists and is not a socket; remove it or choose another {option}", path.display())]
    InTheWay {
        /// The path.
        path: PathBuf,
        /// The option that sets the path.
        option: &'static str,
    },
    /// The system refuses.
    #[error("cannot open the socket {}: {cause}", path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
}

/// The path of the socket. Dropping it removes the socket, however the daemon ends.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            debug!(%error, path = %self.0.display(), "the socket was already removed");
        }
    }
}

/// Opens the socket at `path`; creates a missing folder with the same access. Replaces a socket that a dead
/// daemon left behind. `option` is the option that sets the path, for errors.
pub(crate) fn listen(
    path: &Path,
    mode: SocketMode,
    option: &'static str,
) -> Result<(UnixListener, SocketFile), SocketError> {
    let system = |cause| SocketError::System { path: path.to_owned(), cause };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(mode.of_folder())
            .create(folder)
            .map_err(system)?;
    }
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
        Err(cause) => return Err(system(cause)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(SocketError::InTheWay { path: path.to_owned(), option });
        }
        Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
            return Err(SocketError::InUse { path: path.to_owned(), option });
        }
        Ok(_) => fs::remove_file(path).map_err(system)?,
    }
    let listener = UnixListener::bind(path).map_err(system)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, fs::Permissions::from_mode(mode.of_socket())).map_err(system)?;
    Ok((listener, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_daemon_that_ends_early_leaves_no_socket_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/fairway.sock");
        let bound = listen(&path, SocketMode::Owner, "--socket").unwrap();
        let again = listen(&path, SocketMode::Owner, "--socket");
        assert!(matches!(again, Err(SocketError::InUse { .. })));
        drop(bound);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_is_for_its_owner_and_for_its_group_when_that_was_said() {
        let folder = tempfile::tempdir().unwrap();
        for (word, of_socket, of_folder) in [("0600", 0o600, 0o700), ("0660", 0o660, 0o750)] {
            let path = folder.path().join(word).join("fairway.sock");
            let _bound = listen(&path, word.parse().unwrap(), "--socket").unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), of_socket);
            assert_eq!(mode(path.parent().unwrap()), of_folder);
        }
        assert_eq!("0666".parse::<SocketMode>(), Err(SocketModeError));
    }
}
