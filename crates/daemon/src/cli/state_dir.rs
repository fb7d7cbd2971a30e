//! `fairway state-dir`: prepares a state folder that the daemon's user may write; run by root.
//!
//! In a cluster the folder is on the host and belongs to root, and the daemon does not run as root. Its init
//! container runs this command: the image has no shell.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::paths;

/// A user and a group, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    user: u32,
    group: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("expected UID or UID:GID, as numbers, as in 65532:65532")]
pub(super) struct OwnerError;

impl FromStr for Owner {
    type Err = OwnerError;

    fn from_str(text: &str) -> Result<Self, OwnerError> {
        let (user, group) = text.split_once(':').unwrap_or((text, text));
        let number = |text: &str| text.parse().map_err(|_| OwnerError);
        Ok(Self { user: number(user)?, group: number(group)? })
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fairway state-dir --owner 65532:65532
  fairway state-dir --owner 65532 --state-dir /var/lib/fairway")]
pub(super) struct StateDirArguments {
    /// The owner of the folder and the files in it; without :GID the group of the same number
    #[arg(long, value_name = "UID[:GID]")]
    owner: Owner,

    /// The folder [default: /var/lib/fairway, or without root $XDG_STATE_HOME/fairway]
    #[arg(long, value_name = "PATH", env = "FAIRWAY_STATE_DIR")]
    state_dir: Option<PathBuf>,
}

pub(super) fn run(arguments: StateDirArguments) -> Result<ExitCode> {
    let StateDirArguments { owner, state_dir } = arguments;
    let folder = state_dir.map_or_else(paths::default_state_dir, Ok)?;
    for line in prepare(&folder, owner)? {
        eprintln!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates the folder and changes mode and owner; returns what it did. Links are left alone, of both kinds.
pub(super) fn prepare(folder: &Path, owner: Owner) -> Result<Vec<String>> {
    let named = || folder.display().to_string();
    let mut done = Vec::new();
    if !folder.exists() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).with_context(named)?;
        done.push(format!("{} created", folder.display()));
    }
    let metadata = fs::symlink_metadata(folder).with_context(named)?;
    ensure!(metadata.is_dir(), "{} is not a folder", folder.display());
    for entry in fs::read_dir(folder).with_context(named)? {
        let path = entry.with_context(named)?.path();
        let metadata = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
        if metadata.is_file() && metadata.nlink() > 1 {
            // Its other name may be in a folder of somebody else.
            done.push(format!("{} stays as it is: it is a hard link", path.display()));
        } else if metadata.is_file() {
            done.extend(give(&path, &metadata, owner)?);
        }
    }
    if metadata.mode() & 0o777 != 0o700 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).with_context(named)?;
        done.push(format!("{} closed to others", folder.display()));
    }
    // Last, since after that this process does not own it any more.
    done.extend(give(folder, &metadata, owner)?);
    Ok(done)
}

fn give(path: &Path, metadata: &fs::Metadata, owner: Owner) -> Result<Option<String>> {
    let Owner { user, group } = owner;
    if (metadata.uid(), metadata.gid()) == (user, group) {
        return Ok(None);
    }
    lchown(path, Some(user), Some(group))
        .with_context(|| format!("cannot give {} to {user}:{group}", path.display()))?;
    Ok(Some(format!("{} now belongs to {user}:{group}", path.display())))
}

#[cfg(test)]
mod tests {
    use nix::unistd::{Gid, Uid};

    use super::*;

    #[test]
    fn a_hard_link_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        fs::create_dir(&folder).unwrap();
        fs::write(place.path().join("elsewhere"), "").unwrap();
        fs::hard_link(place.path().join("elsewhere"), folder.join("announced.json")).unwrap();
        let owner = Owner { user: Uid::current().as_raw(), group: Gid::current().as_raw() };
        let done = prepare(&folder, owner).unwrap();
        assert!(done.iter().any(|it| it.contains("hard link")), "{done:?}");
    }

    #[test]
    fn an_owner_is_one_number_or_two() {
        assert_eq!("7".parse::<Owner>().unwrap(), Owner { user: 7, group: 7 });
        assert_eq!("7:8".parse::<Owner>().unwrap(), Owner { user: 7, group: 8 });
        for bad in ["", "root", "7:", ":7", "-1", "1:2:3"] {
            assert!(bad.parse::<Owner>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_right_already_is_left_alone_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("below/state");
        let outside = root.path().join("outside");
        fs::write(&outside, "").unwrap();
        let ours = Owner { user: Uid::effective().as_raw(), group: Gid::effective().as_raw() };
        assert_eq!(prepare(&folder, ours).unwrap().len(), 1);
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        fs::write(folder.join("lock"), "").unwrap();
        assert_eq!(prepare(&folder, ours).unwrap(), Vec::<String>::new());
        assert!(prepare(&outside, ours).is_err());
        if ours.user == 0 {
            let other = Owner { user: 65_532, group: 65_532 };
            let done = prepare(&folder, other).unwrap();
            assert_eq!(done.len(), 2, "the file and the folder: {done:?}");
            assert_eq!(fs::metadata(folder.join("lock")).unwrap().uid(), 65_532);
            assert_eq!(fs::metadata(&outside).unwrap().uid(), 0);
        }
    }
}
