//! Takes the saved lines of an owner out of FRR's files.
//!
//! A file that cannot be read or replaced is reported, and the others are changed all the same. Called by
//! [`super::forget`].

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::forget::Forgotten;
use crate::daemon::Daemon;
use crate::file::{record_in, without_owner};
use crate::owner::Owner;
use crate::record::Record;

/// The file of all daemons.
const INTEGRATED: &[(&str, &[Daemon])] = &[("frr.conf", &Daemon::ALL)];
/// Those of single daemons. The record is in that of bgpd.
const OF_DAEMONS: &[(&str, &[Daemon])] = &[
    ("bgpd.conf", &[Daemon::Bgpd]),
    ("mgmtd.conf", &[Daemon::Mgmtd]),
    ("zebra.conf", &[Daemon::Zebra]),
    ("staticd.conf", &[Daemon::Staticd]),
    ("bfdd.conf", &[Daemon::Bfdd]),
];
/// More than any configuration has.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Behind the name of a file as it was before the last change.
const SAVED: &str = ".before-frr-forget";

/// Changes the files in `config_dir`, and adds to what was forgotten, and to what is left.
pub(super) fn forget(config_dir: &Path, owner: Owner, forgotten: &mut Forgotten) {
    for group in [INTEGRATED, OF_DAEMONS] {
        let mut record = Record::default();
        for (name, daemons) in group {
            let path = config_dir.join(name);
            match forget_in(&path, daemons, owner, &mut record) {
                Ok(true) => forgotten.files.push(path),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    forgotten.left.push(format!("{} is not changed: {error}", path.display()));
                }
            }
        }
    }
}

/// Whether the file was changed. Takes its record, if it has one.
fn forget_in(
    path: &Path,
    daemons: &[Daemon],
    owner: Owner,
    record: &mut Record,
) -> io::Result<bool> {
    let text = read(path)?;
    if daemons.contains(&Daemon::Bgpd) {
        *record = record_in(&text, owner);
    }
    let left = without_owner(&text, owner, record, daemons);
    let is_ours = text.contains(&owner.mark()) || !record.0.is_empty();
    if !is_ours || left == text {
        return Ok(false);
    }
    replace(path, &left)?;
    Ok(true)
}

fn read(path: &Path) -> io::Result<String> {
    // Not through a link, and nothing that blocks.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX.saturating_add(1)).read_to_string(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|it| it <= FILE_BYTES_MAX) {
        Ok(text)
    } else {
        Err(io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes")))
    }
}

/// Replaces a file by one with the same owner and mode, and keeps the old one. There is a file at each moment.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let (new, saved, saved_new) =
        (beside(".new-frr-forget"), beside(SAVED), beside(".saved-frr-forget"));
    // Of a time that was cut short.
    for leftover in [&new, &saved_new] {
        match std::fs::remove_file(leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let before = std::fs::metadata(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    fchown(&file, Some(before.uid()), Some(before.gid()))?;
    file.set_permissions(before.permissions())?;
    file.sync_all()?;
    std::fs::hard_link(path, &saved_new)?;
    std::fs::rename(&saved_new, &saved)?;
    std::fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "route-map fairway-0000002a-kernel deny 10\nexit\n";
    const THEIRS: &str = "router bgp 65001\n bgp router-id 192.0.2.1\nexit\n";

    fn forgotten(folder: &Path) -> Forgotten {
        let mut forgotten = Forgotten::default();
        forget(folder, "0000002a".parse().unwrap(), &mut forgotten);
        forgotten
    }

    #[test]
    fn files_that_cannot_be_changed_are_reported_and_the_others_are_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("elsewhere"), OURS).unwrap();
        std::os::unix::fs::symlink(path("elsewhere"), path("frr.conf")).unwrap();
        std::fs::write(path("zebra.conf"), [0xFF]).unwrap();
        std::fs::write(path("bgpd.conf"), format!("{OURS}{THEIRS}")).unwrap();
        std::fs::write(path("bgpd.conf.new-frr-forget"), "of a time that was cut short").unwrap();
        let first = forgotten(folder.path());
        assert_eq!(first.files, [path("bgpd.conf")]);
        assert_eq!(first.left.len(), 2, "{:?}", first.left);
        assert_eq!(std::fs::read_to_string(path("bgpd.conf")).unwrap(), THEIRS);
        assert_eq!(std::fs::read_to_string(path("elsewhere")).unwrap(), OURS);
        std::fs::write(path("bgpd.conf"), format!("{THEIRS}{OURS}")).unwrap();
        assert_eq!(forgotten(folder.path()).files, [path("bgpd.conf")]);
        let saved = std::fs::read_to_string(path("bgpd.conf.before-frr-forget")).unwrap();
        assert_eq!(saved, format!("{THEIRS}{OURS}"));
    }

    #[test]
    fn a_record_is_for_its_own_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let record = "route-map fairway-0000002a-record permit 1\n description bgpd: router bgp 65001\nexit\n";
        std::fs::write(path("bgpd.conf"), record).unwrap();
        std::fs::write(path("frr.conf"), THEIRS).unwrap();
        assert_eq!(forgotten(folder.path()).files, [path("bgpd.conf")]);
        assert_eq!(std::fs::read_to_string(path("frr.conf")).unwrap(), THEIRS);
    }
}
