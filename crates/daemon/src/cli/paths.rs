//! Where the socket and the state directory are by default.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use nix::unistd::Uid;

/// The folder of this user in /tmp, if the user has no other. Any user can create a folder of that name
/// there, so it counts only if it is a real folder that this user owns and others cannot enter.
fn private_folder() -> Result<PathBuf> {
    let uid = Uid::effective();
    let path = PathBuf::from(format!("/tmp/fairway-{uid}"));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| path.display().to_string());
        }
        _ => {}
    }
    let metadata = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
    let is_ours = metadata.is_dir() && metadata.uid() == uid.as_raw();
    ensure!(
        is_ours && metadata.mode() & 0o077 == 0,
        "{} is not a folder that this user owns and others cannot enter; choose other \
         places with --socket and --state-dir",
        path.display()
    );
    Ok(path)
}

/// The socket of a daemon that root or systemd started.
const SYSTEM_SOCKET: &str = "/run/fairway/fairway.sock";

/// `--socket` of the clients: the daemon of this user, else that of the system.
pub(super) fn socket_of_daemon(chosen: Option<&Path>) -> Result<PathBuf> {
    if let Some(socket) = chosen {
        return Ok(socket.to_owned());
    }
    let (own, system) = (default_socket()?, Path::new(SYSTEM_SOCKET));
    Ok(if !own.exists() && system.exists() { system.to_owned() } else { own })
}

/// `--socket` of the daemon: below /run for root, else in the user's own runtime
/// folder, else in a folder of /tmp that only the user may enter.
pub(super) fn default_socket() -> Result<PathBuf> {
    if Uid::effective().is_root() {
        return Ok(PathBuf::from(SYSTEM_SOCKET));
    }
    let folder = match folder_from("XDG_RUNTIME_DIR") {
        Some(folder) => folder,
        None => private_folder()?,
    };
    Ok(folder.join("fairway.sock"))
}

/// `--state-dir`.
pub(super) fn default_state_dir() -> Result<PathBuf> {
    if Uid::effective().is_root() {
        return Ok(PathBuf::from("/var/lib/fairway"));
    }
    let home = || folder_from("HOME").map(|home| home.join(".local/state"));
    let folder = match folder_from("XDG_STATE_HOME").or_else(home) {
        Some(folder) => folder,
        None => private_folder()?,
    };
    Ok(folder.join("fairway"))
}

/// A variable that names a folder; relative ones count as unset, as XDG wants it.
fn folder_from(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
