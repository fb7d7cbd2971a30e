//! From the objects of all files to the set that is in force.
//!
//! Every object has up to two versions: the one in its document, and the one that was in force last.
//! `settle` decides between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{Kind, Object, ObjectChange, ObjectKey};

use super::file::{Entry, FileState, finding_of_file};
use super::independent::is_independent;
use super::settle::{Admitted, Candidate, finding_object, is_same, settle};
use super::supplies::Wanted;
use super::version::Version;
use super::{Catalog, first_of, is_unreadable, of_kind};
use crate::finding::{Finding, Severity};

/// The result of all files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution<O = Object> {
    /// The objects in force, in the order of kinds and names; or those that changed
    /// ([`Catalog::resolve_changes`]).
    pub objects: Vec<O>,
    /// Faults and warnings, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// Objects of which an earlier version is in force than the one in their files.
    pub stale: Vec<StaleObject>,
    /// Objects of which no version is in force.
    pub left_out: Vec<ObjectKey>,
    /// Documents of kinds that Fairway ignores.
    pub skipped: usize,
}

/// An object that keeps its last good version because its document is at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleObject {
    /// The object.
    pub key: ObjectKey,
    /// The file of the document at fault, as the user named it; empty where it comes from none.
    pub file: String,
    /// The line it begins on, or began on when the file was last readable; counted from 1.
    pub line: usize,
}

impl StaleObject {
    /// An object of an API server.
    pub fn without_place(key: ObjectKey) -> Self {
        Self { key, file: String::new(), line: 0 }
    }
}

impl<O> Default for Resolution<O> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            findings: Vec::new(),
            stale: Vec::new(),
            left_out: Vec::new(),
            skipped: 0,
        }
    }
}

impl<O> Resolution<O> {
    /// Whether anything is at fault.
    pub fn has_faults(&self) -> bool {
        self.findings.iter().any(Finding::is_fault)
    }
}

impl Catalog {
    /// Decides which objects are in force. Files that did not change cost no parsing.
    pub fn resolve(&mut self) -> Resolution {
        let Resolution { findings, stale, left_out, skipped, .. } = self.resolve_changes();
        let objects = self.in_force.values().map(|object| Object::clone(object)).collect();
        Resolution { objects, findings, stale, left_out, skipped }
    }

    /// As [`Self::resolve`], with the objects alone that are other ones than at the last call, in the same order: an
    /// unchanged object is the same shared value as before. Of objects that no rule relates to others, only those in
    /// changed files are looked at.
    pub fn resolve_changes(&mut self) -> Resolution<ObjectChange> {
        let mut independent = std::mem::take(&mut self.independent);
        let changed = independent.take_changed();
        let mut findings = self.findings_of_files();
        let (mut candidates, orphans) =
            self.candidates(&changed, &mut independent.duplicates, &mut findings);
        let mut settlement = settle(&mut candidates, self.backend);
        settlement.admitted.sort_unstable_by_key(|admitted| admitted.position);
        let (mut stale, mut left_out) = (BTreeMap::new(), BTreeSet::new());
        for key in self::left_out(&candidates, &settlement.admitted) {
            let left_out =
                if is_independent(key.kind) { &mut independent.left_out } else { &mut left_out };
            left_out.insert(Arc::clone(key));
        }
        let mut decided = Decided::default();
        let mut needed: BTreeSet<&Arc<ObjectKey>> = BTreeSet::new();
        for Admitted { position, version, is_kept, .. } in settlement.admitted {
            let Some(candidate) = candidates.get(position) else { continue };
            let key = candidate.key;
            if candidate.is_lost {
                needed.insert(key);
            }
            let is_current = candidate.is_current(&version);
            if !is_current || is_kept || self.unreadable.contains_key(candidate.file) {
                let stale =
                    if is_independent(key.kind) { &mut independent.stale } else { &mut stale };
                stale.insert(Arc::clone(key), candidate.stale());
            }
            decided.in_force.insert(Arc::clone(key), Some(Arc::clone(&version.object)));
            if is_current && !candidate.held.is_some_and(|held| Arc::ptr_eq(held, &version)) {
                decided.remembered.push(version);
            }
        }
        let dropped = orphans.into_iter().filter(|key| !needed.contains(key));
        decided.dropped = dropped.cloned().collect();
        drop(candidates);
        let objects = self.apply(decided, &changed);
        let is_orphan = |key: &Arc<ObjectKey>| {
            self.held.contains_key(key) && self.definitions_of(key).next().is_none()
        };
        independent.orphans = changed.into_iter().filter(is_orphan).collect();
        findings.extend(independent.duplicates.values().flatten().cloned());
        findings.append(&mut settlement.findings);
        findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        stale.extend(independent.stale.iter().map(|(key, it)| (Arc::clone(key), it.clone())));
        left_out.extend(independent.left_out.iter().cloned());
        self.independent = independent;
        Resolution {
            objects,
            findings,
            stale: stale.into_values().collect(),
            left_out: left_out.iter().map(|key| ObjectKey::clone(key)).collect(),
            skipped: self.remarked_files().map(|file| file.skipped).sum(),
        }
    }

    /// Remembers what was decided: about all objects, but of independent ones about `changed` alone. Returns the
    /// objects that are other ones now.
    fn apply(&mut self, decided: Decided, changed: &BTreeSet<Arc<ObjectKey>>) -> Vec<ObjectChange> {
        let Decided { mut in_force, remembered, dropped } = decided;
        for key in dropped {
            self.held.remove(&key);
            self.restored.remove(&key);
        }
        for version in remembered {
            self.restored.remove(&version.key);
            self.held.insert(Arc::clone(&version.key), version);
        }
        let related = kinds_with_rules().flat_map(|kind| of_kind(&self.in_force, kind));
        let independent = changed.iter().filter(|key| self.in_force.contains_key(*key));
        for key in related.map(|(key, _)| key).chain(independent) {
            in_force.entry(Arc::clone(key)).or_default();
        }
        in_force.retain(|key, now| match (self.in_force.get(key), now) {
            (Some(before), Some(now)) => !Arc::ptr_eq(before, now),
            _ => true,
        });
        for (key, now) in &in_force {
            match now {
                Some(now) => self.in_force.insert(Arc::clone(key), Arc::clone(now)),
                None => self.in_force.remove(key),
            };
        }
        in_force.into_iter().collect()
    }

    fn remarked_files(&self) -> impl Iterator<Item = &FileState> {
        self.remarked.iter().filter_map(|path| self.files.get(path))
    }

    fn findings_of_files(&self) -> Vec<Finding> {
        let unreadable =
            self.unreadable.iter().map(|(path, why)| finding_of_file(Severity::Fault, path, why));
        let of_files = self.remarked_files().flat_map(|file| file.findings.iter().cloned());
        unreadable.chain(of_files).collect()
    }

    /// The definitions of objects of one kind, in the order of keys, files and documents.
    fn definitions_of_kind(&self, kind: Kind) -> impl Iterator<Item = (&str, &Entry)> {
        let first = (Arc::new(first_of(kind)), Arc::from(""));
        let of_kind = self.definitions.range(first..);
        let of_kind = of_kind.take_while(move |(key, _)| key.kind == kind);
        of_kind.flat_map(|(key, path)| self.definitions_in(key, path))
    }

    /// The definitions of an object, in the order of files and documents.
    pub(super) fn definitions_of(
        &self,
        key: &Arc<ObjectKey>,
    ) -> impl Iterator<Item = (&str, &Entry)> {
        let first = (Arc::clone(key), Arc::from(""));
        let of_object = self.definitions.range(first..);
        let of_object = of_object.take_while(move |(it, _)| it == key);
        of_object.flat_map(|(key, path)| self.definitions_in(key, path))
    }

    fn definitions_in<'a>(
        &'a self,
        key: &ObjectKey,
        path: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let entries = self.files.get(path).map_or(&[][..], |file| file.definitions(key));
        entries.iter().map(move |entry| (path, entry))
    }

    /// The objects that may be in force, in the order of their keys, and those that were in force but have no document
    /// any more: all, but of independent ones those that `changed`. Duplicate definitions are noted.
    fn candidates<'a>(
        &'a self,
        changed: &'a BTreeSet<Arc<ObjectKey>>,
        duplicates: &mut BTreeMap<Arc<ObjectKey>, Vec<Finding>>,
        findings: &mut Vec<Finding>,
    ) -> (Vec<Candidate<'a>>, Vec<&'a Arc<ObjectKey>>) {
        let mut sorting = Sorting { catalog: self, candidates: Vec::new(), orphans: Vec::new() };
        let wanted = self.wanted();
        for kind in kinds_with_rules() {
            let entries: Vec<(&str, &Entry)> = self.definitions_of_kind(kind).collect();
            // Both sides are sorted by key, so one walk pairs them.
            let mut held = of_kind(&self.held, kind).peekable();
            for group in entries.chunk_by(|(_, a), (_, b)| a.key == b.key) {
                let Some((_, first)) = group.first() else { continue };
                while let Some((key, orphan)) = held.next_if(|(key, _)| **key < first.key) {
                    sorting.sort_out(key, orphan, &wanted);
                }
                let held = held.next_if(|(key, _)| **key == first.key).map(|(_, held)| held);
                sorting.candidates.extend(candidate(group, held, findings));
            }
            for (key, orphan) in held {
                sorting.sort_out(key, orphan, &wanted);
            }
        }
        for key in changed {
            let group: Vec<(&str, &Entry)> = self.definitions_of(key).collect();
            let held = self.held.get(key);
            let mut others = Vec::new();
            match candidate(&group, held, &mut others) {
                Some(candidate) => sorting.candidates.push(candidate),
                None => {
                    let orphan = held.into_iter();
                    orphan.for_each(|it| sorting.sort_out(key, it, &Wanted::default()));
                }
            }
            if !others.is_empty() {
                duplicates.insert(Arc::clone(key), others);
            }
        }
        let Sorting { mut candidates, orphans, .. } = sorting;
        candidates.sort_by_key(|candidate| candidate.key);
        (candidates, orphans)
    }
}

/// The kinds with rules between objects.
fn kinds_with_rules() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| !is_independent(*kind))
}

/// What a resolution decided.
#[derive(Default)]
struct Decided {
    /// `None` for an object that is in force no more.
    in_force: BTreeMap<Arc<ObjectKey>, Option<Arc<Object>>>,
    /// Versions that are in force for the first time.
    remembered: Vec<Arc<Version>>,
    /// Objects that are gone.
    dropped: Vec<Arc<ObjectKey>>,
}

/// Objects in the course of [`Catalog::candidates`].
struct Sorting<'a> {
    catalog: &'a Catalog,
    candidates: Vec<Candidate<'a>>,
    orphans: Vec<&'a Arc<ObjectKey>>,
}

impl<'a> Sorting<'a> {
    /// Decides about an object that was in force and has no document now: it may be in an unreadable
    /// document, or its file has not been read since a restart; otherwise it is gone. Those that are
    /// `wanted` are checked once more: a session may depend on one.
    fn sort_out(&mut self, key: &'a Arc<ObjectKey>, held: &'a Arc<Version>, wanted: &Wanted<'_>) {
        let file = self.catalog.files.get(&held.file);
        let is_hidden = file.is_some_and(|file| file.may_hide(key.kind));
        let is_lost = !is_hidden && !is_unreadable(&self.catalog.unreadable, &held.file);
        if !is_lost || wanted.includes(held) {
            self.candidates.push(Candidate {
                key,
                current: None,
                held: Some(held),
                file: &held.file,
                line: held.line,
                is_lost,
            });
        }
        if is_lost && (!self.catalog.restored.contains(key) || file.is_some()) {
            self.orphans.push(key);
        }
    }
}

/// Objects that have a document and are not among `admitted`, which has the same order.
fn left_out<'a>(candidates: &[Candidate<'a>], admitted: &[Admitted]) -> Vec<&'a Arc<ObjectKey>> {
    let mut admitted = admitted.iter().map(|it| it.position).peekable();
    let positions = candidates.iter().enumerate();
    let left_out = positions.filter(|(position, candidate)| {
        admitted.next_if_eq(position).is_none() && !candidate.is_lost
    });
    left_out.map(|(_, candidate)| candidate.key).collect()
}

/// Decides which of an object's documents counts: the first that is valid, or was.
fn candidate<'a>(
    group: &[(&'a str, &'a Entry)],
    held: Option<&'a Arc<Version>>,
    findings: &mut Vec<Finding>,
) -> Option<Candidate<'a>> {
    let first = *group.first()?;
    let is_held = |version: &Arc<Version>| held.is_some_and(|held| is_same(held, version));
    let has_held = group.len() > 1
        && group.iter().any(|(_, entry)| entry.version.as_ref().is_some_and(is_held));
    // Where another document has the version that was in force, the one at fault never had it.
    let was_valid = |file: &str| !has_held && held.is_some_and(|held| *held.file == *file);
    let counts = |(file, entry): &(&str, &Entry)| entry.version.is_some() || was_valid(file);
    let position = group.iter().position(counts).unwrap_or_default();
    let (file, entry) = group.get(position).copied().unwrap_or(first);
    for (other_file, other) in group.get(position + 1..).unwrap_or_default() {
        findings.push(Finding {
            severity: Severity::Fault,
            file: (*other_file).to_owned(),
            line: Some(other.line),
            object: Some(finding_object(&other.key)),
            field: None,
            message: format!(
                "is defined already at {file}:{}; this definition is ignored, remove one",
                entry.line
            ),
        });
    }
    Some(Candidate {
        key: &entry.key,
        current: entry.version.as_ref(),
        held,
        file,
        line: entry.line,
        is_lost: false,
    })
}
