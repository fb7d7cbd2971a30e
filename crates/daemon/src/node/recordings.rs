//! A session that ends leaves its last messages in a file.
//!
//! Watches the backend's sessions beside the loop of the node. Knows no format; `recording` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::PeerKey;
use fairway_recording::DumpFormat;
use fairway_seam::{Backend, ViewScope};
use tracing::{info, warn};

use crate::admin::dump_now;
use crate::host::epoch_seconds;

/// The folder in the state folder.
const FOLDER: &str = "recordings";
/// The newest ones are kept: a few of one neighbor that flaps, and some of others. Each has 256 KiB and a little more.
const FILES_OF_A_NEIGHBOR_MAX: usize = 4;
const FILES_MAX: usize = 32;
/// Sessions that end together are looked at together, and one that flaps all the time costs one look in two seconds.
const PAUSE: Duration = Duration::from_secs(2);
/// Of so many neighbors at a look: where hundreds flap, a few tell why.
const NEIGHBORS_MAX: usize = 2;
/// How long nothing more is written of a neighbor: what one that flaps said at first is not overwritten within seconds.
const REST: Duration = Duration::from_secs(60);

/// Writes the recordings of sessions that end, for as long as the backend runs.
pub(super) async fn keep(backend: Arc<dyn Backend>, state_dir: PathBuf) {
    let folder = state_dir.join(FOLDER);
    let mut dropped: BTreeMap<PeerKey, u64> = BTreeMap::new();
    let mut written: BTreeMap<PeerKey, tokio::time::Instant> = BTreeMap::new();
    let mut seen = 0;
    loop {
        seen = backend.changed(seen).await;
        let Ok(view) = backend.view(ViewScope::SESSIONS).await else { return };
        let now: BTreeMap<PeerKey, u64> =
            view.peers.iter().map(|it| (it.config.key, it.connections_dropped)).collect();
        let ended =
            |(key, count): &(&PeerKey, &u64)| dropped.get(key).copied().unwrap_or(0) < **count;
        written.retain(|_, at| at.elapsed() < REST);
        let rests = |(key, _): &(&PeerKey, &u64)| written.contains_key(*key);
        let chosen = now.iter().filter(ended).filter(|it| !rests(it)).take(NEIGHBORS_MAX);
        let chosen: Vec<PeerKey> = chosen.map(|(key, _)| *key).collect();
        for key in &chosen {
            written.insert(*key, tokio::time::Instant::now());
            let scope = ViewScope { recording: Some(*key), ..ViewScope::SESSIONS };
            let stamp = dump_now();
            let Ok(view) = backend.view(scope).await else { return };
            let Some(recording) = view.peers.into_iter().find_map(|it| it.recording) else {
                continue;
            };
            let bytes = DumpFormat::Mrt.write(&recording, stamp);
            let (folder, name) = (folder.clone(), file_name(*key));
            let kept = tokio::task::spawn_blocking(move || write(&folder, &name, &bytes)).await;
            match kept {
                Ok(Ok(path)) => {
                    info!(peer = %key, path = %path.display(), "last messages of the session kept")
                }
                Ok(Err(error)) => {
                    warn!(peer = %key, %error, "the last messages of the session could not be kept")
                }
                Err(_) => {}
            }
        }
        dropped = now;
        tokio::time::sleep(PAUSE).await;
    }
}

/// The neighbor, in characters that a file may have.
fn file_name(key: PeerKey) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
    key.to_string().chars().map(|it| if is_plain(it) { it } else { '_' }).collect()
}

fn write(folder: &Path, neighbor: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    // Numbers of one length sort as their values do.
    let path = folder.join(format!("{:010}-{neighbor}.mrt", epoch_seconds()));
    let unfinished = folder.join(".unfinished");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(bytes)?;
    fs::rename(&unfinished, &path)?;
    tidy(folder, &format!("-{neighbor}.mrt"))?;
    Ok(path)
}

/// Removes the oldest recordings.
fn tidy(folder: &Path, of_neighbor: &str) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_ours = name.ends_with(".mrt")
            && name.get(..10).is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
        if is_ours {
            names.push(name);
        }
    }
    names.sort();
    let own: Vec<&String> = names.iter().filter(|it| it.get(10..) == Some(of_neighbor)).collect();
    let too_many = own.len().saturating_sub(FILES_OF_A_NEIGHBOR_MAX);
    let mut gone: Vec<String> = own.into_iter().take(too_many).cloned().collect();
    let left: Vec<&String> = names.iter().filter(|it| !gone.contains(it)).collect();
    let too_many = left.len().saturating_sub(FILES_MAX);
    let older: Vec<String> = left.into_iter().take(too_many).cloned().collect();
    gone.extend(older);
    gone.iter().try_for_each(|name| fs::remove_file(folder.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_neighbor_the_newest_files_stay_and_what_is_not_ours_too() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str| fs::write(folder.path().join(name), "x").unwrap();
        for second in 0..6 {
            put(&format!("{second:010}-192.0.2.1.mrt"));
        }
        for neighbor in 0..30 {
            put(&format!("0000000100-192.0.2.{}.mrt", 100 + neighbor));
        }
        put("notes.mrt");
        let path = write(folder.path(), "192.0.2.1", b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), FILES_MAX + 1, "{left:?}");
        assert!(left.contains(&"notes.mrt".to_owned()));
        let own: Vec<_> = left.iter().filter(|it| it.ends_with("-192.0.2.1.mrt")).collect();
        assert_eq!(own.len(), 2, "{own:?}: 4 of it are kept, and 2 of these are the oldest of all");
    }

    #[test]
    fn the_name_of_a_file_has_no_character_with_a_meaning() {
        let key = PeerKey {
            remote: fairway_ground::Remote::Address("2001:db8::1".parse().unwrap()),
            vrf: None,
        };
        assert_eq!(file_name(key), "2001_db8__1");
    }
}
