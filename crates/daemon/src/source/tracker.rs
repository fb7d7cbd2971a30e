//! The known state of the files, and how an event changes it.
//!
//! Turns "something happened to this name" into definite changes: a file is gone only when
//! its folder was listed without it, content counts only when it differs. Knows no threads and no
//! notification library; `files` calls it under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::FileChange;
use super::disk::{self, ReadFailure, Signature, Target};

/// The link that Kubernetes swaps when it updates a mounted ConfigMap.
const SWAPPED_LINK: &str = "..data";

const LINK_TO_NOTHING: &str = "is a symbolic link to nothing";

/// How often a held folder must be seen with the same files before those that are missing are gone: twice a second.
const LOOKS_AT_REST: u32 = 6;

/// The last reported state of a file.
#[derive(Debug, PartialEq, Eq)]
enum Known {
    /// The hash of its text.
    Text(u64),
    Unreadable(String),
    /// Not a file, so it is ignored.
    Ignored(String),
}

/// A file by its absolute path, and its name for the user.
#[derive(Debug)]
struct TrackedFile {
    shown: String,
    known: Known,
}

/// A symbolic link. The folder of its target may not be watched, so the target is polled.
#[derive(Debug)]
struct Link {
    /// Its target when it was read.
    read: Option<Signature>,
    /// Its target at the last check.
    seen: Option<Signature>,
}

/// An event for a name in a watched folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// Written and closed, or moved here.
    Content,
    /// A new name, perhaps without content yet.
    Created,
    /// Moved away or removed.
    Vanished,
    /// Permissions or owner may have changed.
    Rights,
}

/// All files of all targets.
#[derive(Debug)]
pub(super) struct Tracker {
    targets: Vec<Target>,
    files: BTreeMap<PathBuf, TrackedFile>,
    links: BTreeMap<PathBuf, Link>,
    /// Folders that could not be listed, or that vanished, or that are held.
    lost: BTreeSet<PathBuf>,
    /// Folders that turned out to be empty: most likely a mount is lost.
    held: BTreeSet<PathBuf>,
    /// The files of held folders that have some again, and how often they were seen so.
    coming_back: BTreeMap<PathBuf, (BTreeSet<PathBuf>, u32)>,
    /// The identity of each folder when it was listed with files.
    seen: BTreeMap<PathBuf, (u64, u64)>,
    /// Files with objects of the previous run, as the user names them.
    expected: BTreeSet<String>,
    /// Files that could not be read for a reason that may pass without an event: they are tried again.
    busy: BTreeSet<PathBuf>,
    /// Files that vanished a moment ago, or became dangling links. git and most editors remove a
    /// file and create it again, and that must not withdraw its content.
    doubtful: BTreeSet<PathBuf>,
}

impl Tracker {
    /// `expected`: files that had objects when the previous run ended.
    pub(super) fn new(targets: Vec<Target>, expected: BTreeSet<String>) -> Self {
        Self {
            targets,
            held: BTreeSet::new(),
            coming_back: BTreeMap::new(),
            seen: BTreeMap::new(),
            expected,
            busy: BTreeSet::new(),
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            lost: BTreeSet::new(),
            doubtful: BTreeSet::new(),
        }
    }

    /// The folders to watch.
    pub(super) fn folders(&self) -> BTreeSet<PathBuf> {
        self.targets.iter().map(|target| target.folder().to_owned()).collect()
    }

    /// The folders that must be watched again.
    pub(super) fn lost(&self) -> &BTreeSet<PathBuf> {
        &self.lost
    }

    /// The files that vanished a moment ago.
    pub(super) fn doubtful(&self) -> &BTreeSet<PathBuf> {
        &self.doubtful
    }

    /// Decides about doubtful files: those still missing from their folder are gone. For
    /// the others, their new content is reported when it is complete.
    pub(super) fn settle(&mut self, doubtful: &BTreeSet<PathBuf>) -> Vec<FileChange> {
        let mut changes = Vec::new();
        let folders: BTreeSet<&Path> = doubtful.iter().filter_map(|path| path.parent()).collect();
        for folder in folders {
            if self.lost.contains(folder) {
                continue;
            }
            let names = match disk::list(folder) {
                Ok(names) => names,
                Err(error) => {
                    changes.extend(self.lose(folder, &error.to_string()));
                    continue;
                }
            };
            for path in doubtful.iter().filter(|path| path.parent() == Some(folder)) {
                if path.file_name().is_some_and(|name| !names.contains(name)) {
                    changes.extend(self.forget(path));
                } else if disk::is_dangling(path)
                    && let Some(shown) = self.shown(path)
                {
                    changes.extend(self.ignored(path, shown, LINK_TO_NOTHING.to_owned()));
                }
            }
        }
        self.doubtful.retain(|path| !doubtful.contains(path));
        changes
    }

    /// Reads everything.
    pub(super) fn rescan_all(&mut self) -> Vec<FileChange> {
        self.folders().iter().flat_map(|folder| self.rescan(folder)).collect()
    }

    /// Takes folders without files for what they are.
    pub(super) fn accept_empty(&mut self) -> Vec<FileChange> {
        let held = std::mem::take(&mut self.held);
        let mut changes = Vec::new();
        for folder in held {
            let targets: Vec<&Target> =
                self.targets.iter().filter(|it| it.path == folder).collect();
            self.expected.retain(|file| !targets.iter().any(|it| is_in(file, it)));
            self.seen.remove(&folder);
            changes.extend(self.rescan(&folder));
        }
        changes
    }

    /// Reads the links with changed targets again, once these are at rest, and files that could not be read for a
    /// while.
    pub(super) fn check_links(&mut self) -> Vec<FileChange> {
        // Those of a lost folder are read with it.
        let is_lost = |path: &PathBuf| path.parent().is_some_and(|it| self.lost.contains(it));
        let (waiting, ready) =
            std::mem::take(&mut self.busy).into_iter().partition::<BTreeSet<_>, _>(is_lost);
        self.busy = waiting;
        let mut changed: Vec<PathBuf> = ready.into_iter().collect();
        for (path, link) in &mut self.links {
            if path.parent().is_some_and(|folder| self.lost.contains(folder)) {
                continue;
            }
            let now = disk::signature(path);
            if now != link.read && now == link.seen {
                changed.push(path.clone());
            }
            link.seen = now;
        }
        let changed = changed.into_iter().filter_map(|path| {
            let shown = self.shown(&path)?;
            self.look_at(&path, shown)
        });
        changed.collect()
    }

    /// Whether the target of a link is perhaps being written.
    pub(super) fn has_restless_link(&self) -> bool {
        self.links.values().any(|link| link.seen != link.read)
    }

    /// Handles an event for `path`.
    pub(super) fn occurred(&mut self, path: &Path, occurrence: Occurrence) -> Vec<FileChange> {
        let folders = self.folders();
        if folders.contains(path) && occurrence == Occurrence::Vanished {
            return self.lose(path, "it was moved or deleted");
        }
        // A folder that cannot be read has no readable files.
        if folders.contains(path) && occurrence == Occurrence::Rights {
            return self.rescan(path);
        }
        if path.file_name().is_some_and(|name| name == SWAPPED_LINK)
            && let Some(folder) = path.parent().filter(|folder| folders.contains(*folder))
        {
            return self.rescan(folder);
        }
        // A folder that moved away still reports under its old name, until it is watched again and read
        // as a whole.
        if path.parent().is_some_and(|folder| self.lost.contains(folder)) {
            return Vec::new();
        }
        let Some(shown) = self.shown(path) else { return Vec::new() };
        let is_unreadable =
            self.files.get(path).is_some_and(|file| matches!(file.known, Known::Unreadable(_)));
        match occurrence {
            Occurrence::Content => self.look_at(path, shown).into_iter().collect(),
            Occurrence::Created if disk::is_whole_at_once(path) => {
                self.look_at(path, shown).into_iter().collect()
            }
            Occurrence::Rights if is_unreadable => self.look_at(path, shown).into_iter().collect(),
            Occurrence::Vanished => {
                if self.files.contains_key(path) {
                    self.doubtful.insert(path.to_owned());
                }
                Vec::new()
            }
            Occurrence::Created | Occurrence::Rights => Vec::new(),
        }
    }

    /// Lists a folder and reads all its files.
    pub(super) fn rescan(&mut self, folder: &Path) -> Vec<FileChange> {
        let names = match disk::list(folder) {
            Ok(names) => names,
            Err(error) => return self.lose(folder, &error.to_string()),
        };
        let present: BTreeSet<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        if present.iter().any(|path| self.target(path).is_some()) {
            if self.held.contains(folder) && !self.is_back(folder, &present) {
                return Vec::new();
            }
            self.coming_back.remove(folder);
            self.seen.extend(disk::identity(folder).map(|it| (folder.to_owned(), it)));
            self.held.remove(folder);
        } else if self.is_emptied(folder) {
            return self.hold(folder);
        }
        let mut changes = Vec::new();
        if self.lost.remove(folder) {
            changes.push(FileChange::Readable { path: self.shown_folder(folder) });
        }
        for path in &present {
            if let Some(shown) = self.shown(path) {
                changes.extend(self.look_at(path, shown));
            }
        }
        let gone: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|path| path.parent() == Some(folder) && !present.contains(*path))
            .cloned()
            .collect();
        changes.extend(gone.iter().filter_map(|path| self.forget(path)));
        changes
    }

    /// Whether a held folder has its files again: all of them, or others that are at rest. Somebody may be copying them
    /// back one by one.
    fn is_back(&mut self, folder: &Path, present: &BTreeSet<PathBuf>) -> bool {
        let known = self.files.keys().filter(|path| path.parent() == Some(folder));
        let is_any_missing = known.clone().any(|path| !present.contains(path));
        let targets: Vec<&Target> = self.targets.iter().filter(|it| it.path == folder).collect();
        let shown: BTreeSet<String> =
            targets.iter().flat_map(|it| present.iter().map(|path| it.show(path))).collect();
        let mut expected = self.expected.iter().filter(|it| targets.iter().any(|t| is_in(it, t)));
        if !is_any_missing && expected.all(|it| shown.contains(it)) {
            return true;
        }
        let (names, looks) = self.coming_back.entry(folder.to_owned()).or_default();
        if names != present {
            (*names, *looks) = (present.clone(), 0);
        }
        *looks = looks.saturating_add(1);
        *looks > LOOKS_AT_REST
    }

    /// Whether a folder without files is another one than that which had some: in this run, or in the previous one.
    /// Files that were removed from the same folder are gone.
    fn is_emptied(&self, folder: &Path) -> bool {
        // A folder may have the number of the lost one: that of a root is always the same.
        if self.held.contains(folder) {
            return true;
        }
        match self.seen.get(folder) {
            Some(before) => {
                self.files.keys().any(|path| path.parent() == Some(folder))
                    && disk::identity(folder) != Some(*before)
            }
            None => {
                let mut targets = self.targets.iter().filter(|it| it.is_folder);
                let target = targets.find(|it| it.path == folder);
                target.is_some_and(|target| self.expected.iter().any(|it| is_in(it, target)))
            }
        }
    }

    fn hold(&mut self, folder: &Path) -> Vec<FileChange> {
        self.lost.insert(folder.to_owned());
        if !self.held.insert(folder.to_owned()) {
            return Vec::new();
        }
        let why = "the folder has no files any more, and is not the one that had them (is a volume lost?), so its \
                   last content stays in force; if it is meant to be empty, run `fairway reload --empty`";
        vec![FileChange::Unreadable { path: self.shown_folder(folder), why: why.to_owned() }]
    }

    /// The folder cannot be relied on any more. Its content stays in force.
    fn lose(&mut self, folder: &Path, why: &str) -> Vec<FileChange> {
        if !self.lost.insert(folder.to_owned()) {
            return Vec::new();
        }
        let why = format!("the folder cannot be read, so its last content stays in force: {why}");
        vec![FileChange::Unreadable { path: self.shown_folder(folder), why }]
    }

    /// Reads a file that changed.
    fn look_at(&mut self, path: &Path, shown: String) -> Option<FileChange> {
        self.note_link(path);
        let is_in_folder = self.target(path).is_some_and(|target| target.is_folder);
        match disk::read(path) {
            Ok(text) => self.text(path, shown, text),
            Err(ReadFailure::Unreadable(why)) => self.unreadable(path, shown, why),
            Err(ReadFailure::Busy(why)) => {
                self.busy.insert(path.to_owned());
                self.unreadable(path, shown, why)
            }
            Err(ReadFailure::NoFile(why)) if is_in_folder => self.ignored(path, shown, why),
            Err(ReadFailure::NoFile(why)) => self.unreadable(path, shown, why),
            Err(ReadFailure::NotFound) if disk::is_dangling(path) => {
                self.dangling(path, shown, is_in_folder)
            }
            // It vanished since; the event that reports this follows.
            Err(ReadFailure::NotFound) => None,
        }
    }

    /// Before the file is read: changes during the reading are then seen at the next check.
    fn note_link(&mut self, path: &Path) {
        if disk::is_symbolic_link(path) {
            let now = disk::signature(path);
            self.links.insert(path.to_owned(), Link { read: now.clone(), seen: now });
        } else {
            self.links.remove(path);
        }
    }

    /// A dangling link. In a folder it counts as gone, after the time that a file has to come
    /// back: when a mounted ConfigMap loses a file, its link stays a moment longer.
    fn dangling(&mut self, path: &Path, shown: String, is_in_folder: bool) -> Option<FileChange> {
        let why = LINK_TO_NOTHING.to_owned();
        match self.files.get(path).map(|file| &file.known) {
            _ if !is_in_folder => self.unreadable(path, shown, why),
            Some(Known::Text(_) | Known::Unreadable(_)) => {
                self.doubtful.insert(path.to_owned());
                None
            }
            Some(Known::Ignored(_)) | None => self.ignored(path, shown, why),
        }
    }

    fn ignored(&mut self, path: &Path, shown: String, why: String) -> Option<FileChange> {
        let is_new = self.note(path, &shown, Known::Ignored(why.clone()));
        is_new.then(|| FileChange::Ignored { path: shown, why: format!("{why}; it is ignored") })
    }

    fn text(&mut self, path: &Path, shown: String, text: String) -> Option<FileChange> {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let is_new = self.note(path, &shown, Known::Text(hasher.finish()));
        is_new.then_some(FileChange::Read { path: shown, text })
    }

    fn unreadable(&mut self, path: &Path, shown: String, why: String) -> Option<FileChange> {
        let is_new = self.note(path, &shown, Known::Unreadable(why.clone()));
        is_new.then_some(FileChange::Unreadable { path: shown, why })
    }

    /// Returns whether this is a change.
    fn note(&mut self, path: &Path, shown: &str, known: Known) -> bool {
        if self.files.get(path).is_some_and(|file| file.known == known) {
            return false;
        }
        let file = TrackedFile { shown: shown.to_owned(), known };
        self.files.insert(path.to_owned(), file);
        true
    }

    fn forget(&mut self, path: &Path) -> Option<FileChange> {
        self.links.remove(path);
        self.files.remove(path).map(|file| FileChange::Gone { path: file.shown })
    }

    /// The user's name for the file; `None` if it is not one of the user's files.
    fn shown(&self, path: &Path) -> Option<String> {
        self.target(path).map(|target| target.show(path))
    }

    fn target(&self, path: &Path) -> Option<&Target> {
        self.targets.iter().find(|target| target.holds(path))
    }

    fn shown_folder(&self, folder: &Path) -> String {
        let target = self.targets.iter().find(|target| target.folder() == folder);
        let shown = match target {
            Some(target) if target.is_folder => target.shown.as_path(),
            Some(target) => match target.shown.parent() {
                Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
                Some(parent) => parent,
                None => folder,
            },
            None => folder,
        };
        shown.to_string_lossy().into_owned()
    }
}

/// Whether a file, as the user names it, is in the folder of a target.
fn is_in(file: &str, target: &Target) -> bool {
    Path::new(file).parent() == Some(&target.shown)
}
