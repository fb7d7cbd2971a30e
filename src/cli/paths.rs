//! Where the socket and the state are when nobody says.

use std::path::PathBuf;

use nix::unistd::Uid;

/// `--socket`, for daemon and client alike: below /run for root, else in the user's own runtime
/// folder, else in a folder of /tmp that only the user may enter.
pub(super) fn default_socket() -> PathBuf {
    let uid = Uid::effective();
    if uid.is_root() {
        return PathBuf::from("/run/fairway/fairway.sock");
    }
    match folder_from("XDG_RUNTIME_DIR") {
        Some(folder) => folder.join("fairway.sock"),
        None => PathBuf::from(format!("/tmp/fairway-{uid}/fairway.sock")),
    }
}

/// `--state-dir`.
pub(super) fn default_state_dir() -> PathBuf {
    if Uid::effective().is_root() {
        return PathBuf::from("/var/lib/fairway");
    }
    let home = || folder_from("HOME").map(|home| home.join(".local/state"));
    folder_from("XDG_STATE_HOME")
        .or_else(home)
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/fairway-{}", Uid::effective())))
        .join("fairway")
}

/// A variable that names a folder; relative ones count as unset, as XDG wants it.
fn folder_from(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
