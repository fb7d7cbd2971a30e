//! A listening socket with a name in the file system: only its owner may connect.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;
use tracing::debug;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon has it.
    #[error("another daemon answers at {}; stop it, or choose another {option}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
        /// What chooses its place.
        option: &'static str,
    },
    /// Something that is no socket has its name.
    #[error("{} is in the way and is no socket; choose another {option}", path.display())]
    InTheWay {
        /// Its name.
        path: PathBuf,
        /// What chooses the socket's place.
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

/// The socket's name in the file system. Dropping it takes the name away, however the daemon ends.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            debug!(%error, path = %self.0.display(), "a socket was gone already");
        }
    }
}

/// Opens the socket at `path`, mode 0600; a missing folder is made, mode 0700. What a dead daemon
/// left behind is replaced. `option` is what chose the place.
pub(super) fn listen(
    path: &Path,
    option: &'static str,
) -> Result<(UnixListener, SocketFile), SocketError> {
    let system = |cause| SocketError::System { path: path.to_owned(), cause };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(system)?;
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
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(system)?;
    Ok((listener, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_daemon_that_ends_early_leaves_no_socket_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/fairway.sock");
        let bound = listen(&path, "--socket").unwrap();
        assert!(matches!(listen(&path, "--socket"), Err(SocketError::InUse { .. })));
        drop(bound);
        assert!(!path.exists());
    }
}
