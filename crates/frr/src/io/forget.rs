//! Takes the configuration of an owner out of FRR and its files, without a backend.
//!
//! Called by `fairway frr-forget`.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use tokio::time::{Instant, sleep_until, timeout};

use super::daemons::{Daemons, Look};
use super::lock::{Lock, Locked};
use crate::application::{Application, Next};
use crate::configuration::without_secrets;
use crate::daemon::Daemon;
use crate::file::{record_in, without_owner};
use crate::owner::Owner;
use crate::record::Record;

/// How long FRR may take to remove it all.
const FORGET_TIMEOUT: Duration = Duration::from_secs(60);

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// The commands, in order.
    pub commands: Vec<String>,
}

/// Why something is left.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// A daemon configures FRR, and would put everything back.
    #[error(transparent)]
    Running(#[from] Locked),
    /// FRR is down, refuses lines, or takes too long.
    #[error("FRR still has configuration of Fairway: {}", .0.join("; "))]
    Left(Vec<String>),
}

/// Removes all configuration of `owner` from the FRR whose sockets are in `socket_dir`, and puts back what it replaced.
pub async fn forget(socket_dir: &Path, owner: Owner) -> Result<Forgotten, ForgetError> {
    let _lock = Lock::take(socket_dir)?;
    let begun = Instant::now();
    let mut application = Application::new(owner, Duration::ZERO);
    application.forget();
    let mut daemons = Daemons::new(socket_dir);
    let mut forgotten = Forgotten::default();
    let work = async {
        while application.in_force() != Some(1) {
            match application.next(begun.elapsed()) {
                Next::Read => {
                    let Look { running, new } = daemons.look().await;
                    let is_away = running.daemons.is_empty();
                    new.into_iter().for_each(|daemon| application.connected(daemon));
                    application.read(begun.elapsed(), running);
                    if is_away {
                        return;
                    }
                }
                Next::Say(orders) => {
                    let said = daemons.say(&orders).await;
                    let lines = said.taken.iter().map(|(_, step)| without_secrets(&step.line));
                    forgotten.commands.extend(lines);
                    application.said(begun.elapsed(), said);
                }
                Next::EndLoad => {
                    daemons.end_load().await;
                    application.ended_load(begun.elapsed());
                }
                Next::Wait(until) => {
                    if application.in_force() != Some(1) {
                        sleep_until(begun + until).await;
                    }
                }
            }
        }
    };
    let is_late = timeout(FORGET_TIMEOUT, work).await.is_err();
    match application.in_force() {
        Some(_) => Ok(forgotten),
        None if is_late => Err(ForgetError::Left(vec![format!(
            "it took longer than {} s",
            FORGET_TIMEOUT.as_secs()
        )])),
        None => Err(ForgetError::Left(application.faults())),
    }
}

/// The files that FRR's daemons and vtysh read, and whose lines they have.
const FILES: [(&str, &[Daemon]); 6] = [
    ("frr.conf", &Daemon::ALL),
    ("mgmtd.conf", &[Daemon::Mgmtd]),
    ("zebra.conf", &[Daemon::Zebra]),
    ("staticd.conf", &[Daemon::Staticd]),
    ("bfdd.conf", &[Daemon::Bfdd]),
    ("bgpd.conf", &[Daemon::Bgpd]),
];
/// More than any configuration has.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Behind the name of a file as it was.
const SAVED: &str = ".before-frr-forget";

/// A file of FRR that cannot be read or replaced.
#[derive(Debug, thiserror::Error)]
#[error("{} is not changed: {source}", .path.display())]
pub struct FileError {
    path: PathBuf,
    source: io::Error,
}

/// Removes the saved lines of `owner` from FRR's files, and puts back what they replaced. Returns the files that were
/// changed; each is kept as it was beside itself.
pub fn forget_files(config_dir: &Path, owner: Owner) -> Result<Vec<PathBuf>, FileError> {
    let mut texts = Vec::new();
    for (name, daemons) in FILES {
        let path = config_dir.join(name);
        match read(&path) {
            Ok(text) => texts.push((path, text, daemons)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(FileError { path, source }),
        }
    }
    let mut record = Record::default();
    for (_, text, daemons) in &texts {
        if daemons.contains(&Daemon::Bgpd) {
            record.0.extend(record_in(text, owner).0);
        }
    }
    let mut changed = Vec::new();
    for (path, text, daemons) in texts {
        let left = without_owner(&text, owner, &record, daemons);
        let is_ours = text.contains(&owner.mark()) || !record.0.is_empty();
        if is_ours && left != text {
            replace(&path, &left).map_err(|source| FileError { path: path.clone(), source })?;
            changed.push(path);
        }
    }
    Ok(changed)
}

fn read(path: &Path) -> io::Result<String> {
    // Not through a link, and nothing that blocks.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces a file by one with the same owner and mode, and keeps the old one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let (new, saved) = (beside(".new-frr-forget"), beside(SAVED));
    let before = std::fs::metadata(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = (|| {
        file.write_all(text.as_bytes())?;
        fchown(&file, Some(before.uid()), Some(before.gid()))?;
        file.set_permissions(before.permissions())?;
        file.sync_all()?;
        std::fs::hard_link(path, &saved).or_else(|error| match error.kind() {
            // Of an earlier time.
            io::ErrorKind::AlreadyExists => std::fs::rename(path, &saved),
            _ => Err(error),
        })?;
        std::fs::rename(&new, path)
    })();
    if written.is_err() {
        // What failed is said; the rest of it is in nobody's way.
        let _ = std::fs::remove_file(&new);
    }
    written
}
