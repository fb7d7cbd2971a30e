//! From the objects of all files to the set that is in force.
//!
//! Every object has up to two versions: the one in its document, and the one that was in force last.
//! `settle` decides between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use fairway_model::{Object, ObjectKey};

use super::file::{Entry, finding_of_file};
use super::settle::{Admitted, Candidate, finding_object, settle};
use super::supplies::Wanted;
use super::version::Version;
use super::{Catalog, Held, is_unreadable};
use crate::finding::{Finding, Severity};

/// The result of all files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution<O = Object> {
    /// The objects in force, in the order of kinds and names.
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
        let Resolution { objects, findings, stale, left_out, skipped } = self.resolve_shared();
        let objects = objects.into_iter().map(Arc::unwrap_or_clone).collect();
        Resolution { objects, findings, stale, left_out, skipped }
    }

    /// As [`Self::resolve`], without a copy of each object: an unchanged object is the same shared value
    /// as before.
    pub fn resolve_shared(&mut self) -> Resolution<Arc<Object>> {
        let mut findings = self.findings_of_files();
        let (mut candidates, orphans) = self.candidates(&mut findings);
        let mut settlement = settle(&mut candidates, self.backend);
        settlement.admitted.sort_unstable_by_key(|admitted| admitted.position);
        let left_out = left_out(&candidates, &settlement.admitted);
        let mut resolution = Resolution {
            left_out,
            skipped: self.files.values().map(|file| file.skipped).sum(),
            ..Resolution::default()
        };
        let mut in_force = Vec::with_capacity(settlement.admitted.len());
        let mut needed: BTreeSet<&ObjectKey> = BTreeSet::new();
        for Admitted { position, version, is_kept, .. } in settlement.admitted {
            let Some(candidate) = candidates.get(position) else { continue };
            if candidate.is_lost {
                needed.insert(candidate.key);
            }
            resolution.objects.push(Arc::clone(&version.object));
            let is_current =
                candidate.current.is_some_and(|current| Arc::ptr_eq(current, &version));
            if !is_current || is_kept || self.unreadable.contains_key(candidate.file) {
                resolution.stale.push(StaleObject {
                    key: candidate.key.clone(),
                    file: candidate.file.to_owned(),
                    line: candidate.line,
                });
            }
            if is_current && !candidate.held.is_some_and(|held| Arc::ptr_eq(held, &version)) {
                in_force.push(version);
            }
        }
        let dropped = orphans.into_iter().filter(|key| !needed.contains(key));
        let dropped: Vec<ObjectKey> = dropped.cloned().collect();
        drop(candidates);
        self.remember(in_force, &dropped);
        findings.append(&mut settlement.findings);
        findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        resolution.findings = findings;
        resolution
    }

    /// Keeps what is in force now, and drops objects without a document.
    fn remember(&mut self, in_force: Vec<Arc<Version>>, dropped: &[ObjectKey]) {
        for key in dropped {
            self.held.remove(key);
        }
        for version in in_force {
            self.held.insert(version.key.clone(), Held { version, is_restored: false });
        }
    }

    fn findings_of_files(&self) -> Vec<Finding> {
        let unreadable =
            self.unreadable.iter().map(|(path, why)| finding_of_file(Severity::Fault, path, why));
        let of_files = self.files.values().flat_map(|file| file.findings.iter().cloned());
        unreadable.chain(of_files).collect()
    }

    /// The objects that may be in force, in the order of their keys, and the objects that were in
    /// force but have no document any more. Duplicate definitions are noted.
    fn candidates(&self, findings: &mut Vec<Finding>) -> (Vec<Candidate<'_>>, Vec<&ObjectKey>) {
        let mut entries: Vec<(&str, &Entry)> = self
            .files
            .iter()
            .flat_map(|(file, state)| state.entries.iter().map(move |entry| (&**file, entry)))
            .collect();
        // Stable: the same key keeps the order of files and documents. Those of a file are in this order already.
        entries.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key));
        let mut candidates = Vec::with_capacity(entries.len());
        let mut orphans = Vec::new();
        let wanted = self.wanted();
        // Both sides are sorted by key, so one walk pairs them.
        let mut held = self.held.iter().peekable();
        for group in entries.chunk_by(|(_, a), (_, b)| a.key == b.key) {
            let Some((_, first)) = group.first() else { continue };
            while let Some((key, orphan)) = held.next_if(|(key, _)| **key < first.key) {
                self.sort_out(key, orphan, &wanted, &mut candidates, &mut orphans);
            }
            let held = held.next_if(|(key, _)| **key == first.key).map(|(_, held)| &held.version);
            candidates.extend(candidate(group, held, findings));
        }
        for (key, orphan) in held {
            self.sort_out(key, orphan, &wanted, &mut candidates, &mut orphans);
        }
        (candidates, orphans)
    }

    /// Decides about an object that was in force and has no document now: it may be in an unreadable
    /// document, or its file has not been read since a restart; otherwise it is gone. Those that are
    /// `wanted` are checked once more: a session may depend on one.
    fn sort_out<'a>(
        &'a self,
        key: &'a ObjectKey,
        held: &'a Held,
        wanted: &Wanted<'_>,
        candidates: &mut Vec<Candidate<'a>>,
        orphans: &mut Vec<&'a ObjectKey>,
    ) {
        let version = &held.version;
        let file = self.files.get(&version.file);
        let is_hidden = file.is_some_and(|file| file.may_hide(key.kind));
        let is_lost = !is_hidden && !is_unreadable(&self.unreadable, &version.file);
        if !is_lost || wanted.includes(version) {
            candidates.push(Candidate {
                key,
                current: None,
                held: Some(version),
                file: &version.file,
                line: version.line,
                is_lost,
            });
        }
        if is_lost && (!held.is_restored || file.is_some()) {
            orphans.push(key);
        }
    }
}

/// Objects that have a document and are not among `admitted`, which has the same order.
fn left_out(candidates: &[Candidate<'_>], admitted: &[Admitted]) -> Vec<ObjectKey> {
    let mut admitted = admitted.iter().map(|it| it.position).peekable();
    let positions = candidates.iter().enumerate();
    let left_out = positions.filter(|(position, candidate)| {
        admitted.next_if_eq(position).is_none() && !candidate.is_lost
    });
    left_out.map(|(_, candidate)| candidate.key.clone()).collect()
}

/// Decides which of an object's documents counts: the first that is valid, or was.
fn candidate<'a>(
    group: &[(&'a str, &'a Entry)],
    held: Option<&'a Arc<Version>>,
    findings: &mut Vec<Finding>,
) -> Option<Candidate<'a>> {
    let first = *group.first()?;
    let counts = |(file, entry): &(&str, &Entry)| {
        entry.version.is_some() || held.is_some_and(|held| *held.file == **file)
    };
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
