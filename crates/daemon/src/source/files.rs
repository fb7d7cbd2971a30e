//! Files and folders as a stream of changes.
//!
//! The kernel reports events (inotify); its thread reads the file at once and sends the change
//! itself, so nothing waits for a timer. A second thread, the keeper, does what that one cannot:
//! restore watches of folders, and read everything again on request. Knows no kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self as std_mpsc, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::disk::{self, FileSourceError, Target};
use super::tracker::{Occurrence, Tracker};
use super::{FileBatch, FileChange};

/// Batches that wait for the consumer. A slow consumer stops the reading; the kernel then
/// keeps the events, and when its queue overflows everything is read again, so nothing is lost.
const BATCHES_MAX: usize = 64;

/// The first and the maximum interval of attempts to find a lost folder.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = CHECK_INTERVAL;

/// How often the keeper checks what no event of a watched folder reports: whether every path still
/// means the watched folder, and whether the targets of links have changed.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long the target of a link must be unchanged before it is read: there is no event when its
/// writer is done.
const LINK_REST: Duration = Duration::from_millis(50);

/// How long a file must be missing to count as gone. git and editors remove a file and create it
/// again; in between they may be descheduled for a while. Only withdrawals of whole files
/// wait for it, content never does.
const ABSENCE: Duration = Duration::from_millis(50);

/// How long the keeper may take for one round: it reads 16 MiB at most of each file, and every file of a folder at most.
/// Beyond that it hangs in the kernel.
const ROUND_MAX: Duration = Duration::from_secs(30);

/// Work for the keeper.
enum Request {
    /// A folder was lost, or a file vanished.
    Missing,
    /// Read everything again.
    Reread,
    /// The same, and take folders without files for what they are.
    AcceptEmpty,
    /// The source is dropped.
    Stop,
}

/// Watches files and folders for as long as it lives.
#[derive(Debug)]
pub struct FileSource {
    requests: std_mpsc::Sender<Request>,
    /// When the keeper last began to wait for work, in milliseconds since `begun`. It takes the lock of the other
    /// thread in each round, so it stands still with it.
    waited_at: Arc<AtomicU64>,
    begun: Instant,
}

/// Shared by both threads. Changes are sent under its lock, so their order is that of reading.
struct Shared {
    tracker: Tracker,
    batches: mpsc::Sender<FileBatch>,
    /// Events before the first complete reading are ignored, since it includes them.
    is_started: bool,
}

impl FileSource {
    /// Reads all of `paths` and watches them from then on. `expected`: files that had objects when the previous run
    /// ended, so that a folder without files is held in place of being taken for empty. The first batch is the complete content;
    /// later ones hold the changes of one event, and an empty one reports that everything was read again.
    /// A path that does not exist is an error.
    pub fn start(
        paths: &[PathBuf],
        expected: BTreeSet<String>,
    ) -> Result<(Self, mpsc::Receiver<FileBatch>), FileSourceError> {
        let targets: Vec<_> =
            paths.iter().map(|path| Target::new(path)).collect::<Result<_, _>>()?;
        let (batches, receiver) = mpsc::channel(BATCHES_MAX);
        let (requests, inbox) = std_mpsc::channel();
        let tracker = Tracker::new(targets, expected);
        let folders = tracker.folders();
        let shared = Arc::new(Mutex::new(Shared { tracker, batches, is_started: false }));

        let (for_events, to_keeper) = (Arc::clone(&shared), requests.clone());
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            on_event(&for_events, &to_keeper, event);
        })
        .map_err(FileSourceError::Watch)?;
        let (waited_at, begun) = (Arc::<AtomicU64>::default(), now());
        let mut keeper = Keeper {
            watcher,
            shared,
            folders,
            watched: BTreeMap::new(),
            failures: 0,
            waited_at: Arc::clone(&waited_at),
            begun,
        };
        // Watching first: what changes while the files are read is then reported.
        keeper.watch_missing();
        keeper.first_read();
        thread::Builder::new()
            .name("file-keeper".to_owned())
            .spawn(move || keeper.run(&inbox))
            .map_err(FileSourceError::Thread)?;
        Ok((Self { requests, waited_at, begun }, receiver))
    }

    /// Whether files are being read. A reader that hangs in the kernel does not know of it.
    pub fn is_at_work(&self) -> bool {
        let waited_at = Duration::from_millis(self.waited_at.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(waited_at) < ROUND_MAX
    }

    /// Reads everything again, and takes folders without files for what they are.
    pub fn accept_empty(&self) {
        // Without a keeper the process is ending.
        let _ = self.requests.send(Request::AcceptEmpty);
    }

    /// Reads everything again, as on SIGHUP. Changes arrive as a batch, followed by an empty one.
    pub fn reread(&self) {
        // Without a keeper the process is ending.
        let _ = self.requests.send(Request::Reread);
    }
}

impl Drop for FileSource {
    fn drop(&mut self) {
        let _ = self.requests.send(Request::Stop);
    }
}

/// The path that means standard input.
pub const STANDARD_INPUT: &str = "-";

/// Reads all of `paths` once, for offline commands; `-` is standard input.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<FileChange>, FileSourceError> {
    let (inputs, paths): (Vec<_>, Vec<_>) =
        paths.iter().partition(|path| path.as_os_str() == STANDARD_INPUT);
    let targets = paths.into_iter().map(|path| Target::new(path)).collect::<Result<_, _>>()?;
    let mut changes = Tracker::new(targets, BTreeSet::new()).rescan_all();
    if !inputs.is_empty() {
        changes.push(disk::read_standard_input());
    }
    Ok(changes)
}

/// The folders among `paths` in which there is nothing to read, each with the reason for people.
pub fn nothing_to_read(paths: &[PathBuf]) -> Vec<(String, String)> {
    let folders = paths.iter().filter(|path| path.is_dir());
    let reasons = folders.filter_map(|path| {
        Some((path.to_string_lossy().into_owned(), disk::nothing_to_read(path)?))
    });
    reasons.collect()
}

#[allow(clippy::disallowed_methods, reason = "an edge: what happens here has its time from here")]
fn now() -> Instant {
    Instant::now()
}

/// A thread that panicked left the tracker consistent: it changes one entry at a time.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Sends changes, waiting for room. Returns whether there is a receiver.
    fn send(&self, at: Instant, changes: Vec<FileChange>) -> bool {
        changes.is_empty() || self.batches.blocking_send(FileBatch { at, changes }).is_ok()
    }
}

/// Runs on the kernel's thread.
fn on_event(
    shared: &Mutex<Shared>,
    keeper: &std_mpsc::Sender<Request>,
    event: notify::Result<Event>,
) {
    let at = now();
    let event = match event {
        Ok(event) if event.need_rescan() => {
            warn!("more files changed than the kernel could report; reading all of them again");
            let _ = keeper.send(Request::Reread);
            return;
        }
        Ok(event) => event,
        Err(error) => {
            warn!(%error, "watching files failed; reading all of them again");
            let _ = keeper.send(Request::Reread);
            return;
        }
    };
    let Some(occurrence) = occurrence(event.kind) else { return };
    let mut shared = lock(shared);
    if !shared.is_started {
        return;
    }
    let missing_before = missing(&shared.tracker);
    let changes: Vec<_> =
        event.paths.iter().flat_map(|path| shared.tracker.occurred(path, occurrence)).collect();
    shared.send(at, changes);
    if missing(&shared.tracker) > missing_before {
        let _ = keeper.send(Request::Missing);
    }
}

fn missing(tracker: &Tracker) -> usize {
    tracker.lost().len() + tracker.doubtful().len()
}

/// What an event means for a name. A move inside a folder is reported with both its ends; the third
/// event, which names the two together, adds nothing.
fn occurrence(kind: EventKind) -> Option<Occurrence> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(Occurrence::Content),
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
            Some(Occurrence::Vanished)
        }
        EventKind::Create(_) => Some(Occurrence::Created),
        EventKind::Modify(ModifyKind::Metadata(_)) => Some(Occurrence::Rights),
        _ => None,
    }
}

/// Maintains the watches. Never calls the watcher with the lock held: the watcher answers on the
/// thread that may be waiting for it.
struct Keeper {
    watcher: RecommendedWatcher,
    shared: Arc<Mutex<Shared>>,
    folders: BTreeSet<PathBuf>,
    /// The identity of each watched folder in the kernel.
    watched: BTreeMap<PathBuf, (u64, u64)>,
    /// Consecutive attempts that did not find a folder.
    failures: u32,
    waited_at: Arc<AtomicU64>,
    begun: Instant,
}

impl Keeper {
    /// Runs before there is a receiver to wait for: the channel is empty, so there is room.
    fn first_read(&mut self) {
        let at = now();
        let mut shared = lock(&self.shared);
        shared.is_started = true;
        let changes = shared.tracker.rescan_all();
        let _ = shared.batches.try_send(FileBatch { at, changes });
    }

    fn run(mut self, inbox: &std_mpsc::Receiver<Request>) {
        loop {
            let pause = self.pause();
            let waits_since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.waited_at.store(waits_since, Ordering::Relaxed);
            let request = inbox.recv_timeout(pause);
            let is_wanted = match request {
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Request::Reread) => {
                    self.tend();
                    self.rescan_all()
                }
                Ok(Request::AcceptEmpty) => {
                    let at = now();
                    let mut shared = lock(&self.shared);
                    let changes = shared.tracker.accept_empty();
                    let is_wanted = shared.send(at, changes);
                    drop(shared);
                    self.tend();
                    is_wanted && self.rescan_all()
                }
                Ok(Request::Missing) => self.settle() && self.tend(),
                Err(RecvTimeoutError::Timeout) => {
                    self.tend() && self.check_links() && self.settle()
                }
            };
            if !is_wanted {
                return;
            }
        }
    }

    fn pause(&self) -> Duration {
        let usual = match self.failures {
            0 => CHECK_INTERVAL,
            failures => RETRY_FIRST.saturating_mul(1 << failures.min(10)).min(RETRY_MAX),
        };
        if lock(&self.shared).tracker.has_restless_link() { usual.min(LINK_REST) } else { usual }
    }

    /// Reads the targets of links that changed. Returns whether there is a receiver.
    fn check_links(&self) -> bool {
        let at = now();
        let mut shared = lock(&self.shared);
        let changes = shared.tracker.check_links();
        shared.send(at, changes)
    }

    /// Gives vanished files time to come back, and reports those that do not. Returns whether there is
    /// a receiver.
    fn settle(&self) -> bool {
        let doubtful = lock(&self.shared).tracker.doubtful().clone();
        if doubtful.is_empty() {
            return true;
        }
        let at = now();
        // Waking early, which the standard library allows, only shortens the time.
        thread::park_timeout(ABSENCE);
        let mut shared = lock(&self.shared);
        let changes = shared.tracker.settle(&doubtful);
        shared.send(at, changes)
    }

    /// Watches folders that are not watched, or that were replaced, and reads them. Returns whether
    /// there is a receiver.
    fn tend(&mut self) -> bool {
        let at = now();
        let lost = lock(&self.shared).tracker.lost().clone();
        let is_stale = |folder: &PathBuf, identity: &(u64, u64)| {
            lost.contains(folder) || disk::identity(folder) != Some(*identity)
        };
        let stale: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(folder, identity)| is_stale(folder, identity))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in &stale {
            self.watched.remove(folder);
            // The watch follows a folder that moved away; for a removed one it is gone already.
            let _ = self.watcher.unwatch(folder);
        }
        let fresh = self.watch_missing();
        let missing: Vec<_> =
            self.folders.iter().filter(|folder| !self.watched.contains_key(*folder)).collect();
        let mut shared = lock(&self.shared);
        let mut changes: Vec<FileChange> = Vec::new();
        // A folder that cannot be watched is at least read.
        for folder in fresh.iter().chain(missing.iter().copied()) {
            changes.extend(shared.tracker.rescan(folder));
        }
        let is_whole = missing.is_empty() && shared.tracker.lost().is_empty();
        self.failures = if is_whole { 0 } else { self.failures.saturating_add(1) };
        for folder in fresh.iter().filter(|_| is_whole) {
            info!(folder = %folder.display(), "watching the folder again");
        }
        shared.send(at, changes) && !shared.batches.is_closed()
    }

    /// Watches the folders that are not watched. Returns those that are now.
    fn watch_missing(&mut self) -> Vec<PathBuf> {
        let mut fresh = Vec::new();
        for folder in &self.folders {
            if self.watched.contains_key(folder) {
                continue;
            }
            // Read before watching: if the folder is replaced in between, the next check sees it.
            let Some(identity) = disk::identity(folder) else { continue };
            match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(folder.clone(), identity);
                    fresh.push(folder.clone());
                }
                Err(error) if self.failures == 0 => {
                    warn!(folder = %folder.display(), %error, "cannot watch the folder; retrying");
                }
                Err(_) => {}
            }
        }
        fresh
    }

    fn rescan_all(&self) -> bool {
        let at = now();
        let mut shared = lock(&self.shared);
        let changes = shared.tracker.rescan_all();
        let all_read = FileBatch { at, changes: Vec::new() };
        shared.send(at, changes) && shared.batches.blocking_send(all_read).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_not_come_back_for_long_hangs() {
        let (requests, _inbox) = std_mpsc::channel();
        let since = |ago: Duration| {
            let begun = now().checked_sub(ago).unwrap();
            FileSource { requests: requests.clone(), waited_at: Arc::default(), begun }
        };
        assert!(since(ROUND_MAX / 2).is_at_work());
        assert!(!since(ROUND_MAX).is_at_work());
    }
}
