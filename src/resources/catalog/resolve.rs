//! From the objects of all files to the set that is in force.
//!
//! Every object has up to two versions: what its document says now, and what was in force last.
//! The rules between objects admit one of them or none. Objects that did not change go first, so
//! that a new one never pushes out one that works; among equals the order is that of names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::file::{Entry, finding_of_file};
use super::needs::{needs, united};
use super::policies::{Advertisements, Communities};
use super::topology::{Peers, Pools};
use super::{Catalog, Held, Version, is_unreadable, policies, topology};
use crate::model::{Kind, Object, ObjectKey, ObjectName};
use crate::resources::field_path::FieldPath;
use crate::resources::finding::{Finding, FindingObject, Severity};

/// What all files come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// The objects in force, in the order of kinds and names.
    pub objects: Vec<Object>,
    /// Faults and warnings, in the order of files and lines.
    pub findings: Vec<Finding>,
    /// Objects of which an earlier version is in force than their files say.
    pub stale: Vec<StaleObject>,
    /// Documents of kinds that are none of our business.
    pub skipped: usize,
}

/// An object whose last good version is in force because its document is at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleObject {
    /// The object.
    pub key: ObjectKey,
    /// The file of the document at fault, as the user named it.
    pub file: String,
    /// The line it begins on, or began on when the file was last readable; counted from 1.
    pub line: usize,
}

impl Resolution {
    /// Whether anything is at fault.
    pub fn has_faults(&self) -> bool {
        self.findings.iter().any(Finding::is_fault)
    }
}

/// Why a rule refuses a version of an object.
pub(super) struct Problem {
    pub(super) path: FieldPath,
    pub(super) message: String,
}

/// A rule between objects of one kind, or between them and kinds admitted before.
pub(super) trait Rule {
    /// Admits the version, and remembers it where later ones depend on it; or says why not.
    fn admit(&mut self, version: &Arc<Version>) -> Result<(), Problem>;

    /// Whether the version that was in force last stays although it is refused now, because to
    /// lose it would be worse; remembers it then. `is_unchanged` says that its document still says
    /// the same, so that what is wrong with it came from elsewhere.
    fn keep(&mut self, _version: &Arc<Version>, _is_unchanged: bool) -> bool {
        false
    }
}

/// An object that may be in force.
struct Candidate<'a> {
    key: &'a ObjectKey,
    /// What its document says.
    current: Option<&'a Arc<Version>>,
    /// What was in force last.
    held: Option<&'a Arc<Version>>,
    file: &'a str,
    line: usize,
    /// No document stands for it: it is in force only while something else needs it.
    is_lost: bool,
}

impl Candidate<'_> {
    /// Whether what was in force last is still what the document says, as far as can be known.
    fn is_unchanged(&self) -> bool {
        match (self.current, self.held) {
            (Some(current), Some(held)) => is_same(current, held),
            (current, _) => current.is_none(),
        }
    }
}

fn is_same(a: &Arc<Version>, b: &Arc<Version>) -> bool {
    Arc::ptr_eq(a, b) || a.object == b.object
}

/// A version in force.
struct Admitted {
    /// Of the candidate.
    position: usize,
    version: Arc<Version>,
    /// It is at fault, and stays nevertheless.
    is_kept: bool,
}

/// The versions in force, and the findings on the way there.
#[derive(Default)]
struct Settlement {
    admitted: Vec<Admitted>,
    findings: Vec<Finding>,
}

impl Catalog {
    /// Decides which objects are in force. Files that did not change cost no parsing.
    pub fn resolve(&mut self) -> Resolution {
        let mut findings = self.findings_of_files();
        let (candidates, orphans) = self.candidates(&mut findings);
        let mut settlement = settle_all(&candidates);
        settlement.admitted.sort_unstable_by_key(|admitted| admitted.position);
        let mut resolution = Resolution {
            skipped: self.files.values().map(|file| file.skipped).sum(),
            ..Resolution::default()
        };
        let mut in_force = Vec::with_capacity(settlement.admitted.len());
        let mut needed: BTreeSet<&ObjectKey> = BTreeSet::new();
        for Admitted { position, version, is_kept } in settlement.admitted {
            let Some(candidate) = candidates.get(position) else { continue };
            if candidate.is_lost {
                needed.insert(candidate.key);
            }
            resolution.objects.push(version.object.clone());
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

    /// Keeps what is in force now, and drops what no document stands for any more.
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
    /// force but that no document stands for. Second definitions are noted.
    fn candidates(&self, findings: &mut Vec<Finding>) -> (Vec<Candidate<'_>>, Vec<&ObjectKey>) {
        let mut entries: Vec<(&str, &Entry)> = self
            .files
            .iter()
            .flat_map(|(file, state)| state.entries.iter().map(move |entry| (&**file, entry)))
            .collect();
        // Stable: the same key keeps the order of files and documents.
        entries.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key));
        let mut candidates = Vec::with_capacity(entries.len());
        let mut orphans = Vec::new();
        let needs = self.held.values().flat_map(|held| needs(&held.version));
        let wanted: BTreeSet<&ObjectName> = needs.map(|need| need.secret).collect();
        // Both sides are in the order of keys, so one walk pairs them.
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

    /// Decides about an object that was in force and has no document now: it may be in a document
    /// that cannot be read, or its file is still awaited after a restart; else it is gone. The
    /// `wanted` Secrets are asked about once more: a session may hang on one.
    fn sort_out<'a>(
        &'a self,
        key: &'a ObjectKey,
        held: &'a Held,
        wanted: &BTreeSet<&ObjectName>,
        candidates: &mut Vec<Candidate<'a>>,
        orphans: &mut Vec<&'a ObjectKey>,
    ) {
        let version = &held.version;
        let file = self.files.get(&version.file);
        let is_hidden = file.is_some_and(|file| file.may_hide(key.kind));
        let is_lost = !is_hidden && !is_unreadable(&self.unreadable, &version.file);
        if !is_lost || (key.kind == Kind::Secret && wanted.contains(&key.name)) {
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

/// Decides which of an object's documents counts: the first that is good, or that was.
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
                "is defined already at {file}:{}; this one does not count, remove one",
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

pub(super) fn finding_object(key: &ObjectKey) -> FindingObject {
    FindingObject { kind: key.kind.to_string(), name: key.name.name.clone() }
}

/// A finding about the field at `path` of one version of an object.
pub(super) fn finding(version: &Version, severity: Severity, problem: Problem) -> Finding {
    Finding {
        severity,
        file: version.file.to_string(),
        line: Some(version.lines.line(&problem.path).unwrap_or(version.line)),
        object: Some(finding_object(&version.key)),
        field: (!problem.path.is_empty()).then(|| problem.path.to_string()),
        message: problem.message,
    }
}

/// Whether objects of this kind depend on no others.
fn is_free(kind: Kind) -> bool {
    match kind {
        Kind::BgpPeer | Kind::IpAddressPool | Kind::BgpAdvertisement | Kind::Community => false,
        Kind::BfdProfile
        | Kind::Layer2Advertisement
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Node
        | Kind::Namespace
        | Kind::Secret => true,
    }
}

/// Settles kind by kind: each depends only on those before it.
fn settle_all(candidates: &[Candidate<'_>]) -> Settlement {
    let mut settlement = Settlement::default();
    for (position, candidate) in candidates.iter().enumerate() {
        if is_free(candidate.key.kind)
            && !candidate.is_lost
            && let Some(version) = candidate.current.or(candidate.held)
        {
            settlement.add(position, version);
        }
    }
    let mut communities = Communities::default();
    settlement.settle(candidates, Kind::Community, &mut communities);
    let mut pools = Pools::default();
    settlement.settle(candidates, Kind::IpAddressPool, &mut pools);
    let former =
        candidates.iter().filter(|candidate| !candidate.is_unchanged() || candidate.is_lost);
    let former_secrets: BTreeMap<ObjectName, Arc<Version>> = former
        .filter(|candidate| candidate.key.kind == Kind::Secret)
        .filter_map(|candidate| Some((candidate.key.name.clone(), Arc::clone(candidate.held?))))
        .collect();
    let mut peers = Peers::new(settlement.versions(), former_secrets);
    settlement.settle(candidates, Kind::BgpPeer, &mut peers);
    settlement.add_needed(candidates);
    let mut advertisements = Advertisements::new(settlement.versions());
    settlement.settle(candidates, Kind::BgpAdvertisement, &mut advertisements);

    let current: Vec<_> = settlement
        .admitted
        .iter()
        .filter(|admitted| !is_free(admitted.version.key.kind))
        .filter(|admitted| {
            candidates
                .get(admitted.position)
                .and_then(|candidate| candidate.current)
                .is_some_and(|current| Arc::ptr_eq(current, &admitted.version))
        })
        .map(|admitted| Arc::clone(&admitted.version))
        .collect();
    let mut warnings = policies::warnings(&current, settlement.versions());
    warnings.extend(topology::warnings(&current, settlement.versions()));
    let warnings: Vec<_> = warnings
        .into_iter()
        .map(|(version, problem)| finding(version, Severity::Warning, problem))
        .collect();
    settlement.findings.extend(warnings);
    settlement
}

impl Settlement {
    fn versions(&self) -> impl Iterator<Item = &Arc<Version>> + Clone {
        self.admitted.iter().map(|admitted| &admitted.version)
    }

    fn add(&mut self, position: usize, version: &Arc<Version>) {
        self.admitted.push(Admitted { position, version: Arc::clone(version), is_kept: false });
    }

    /// Adds what a peer in force still needs of Secrets that are lost, or have lost it.
    fn add_needed(&mut self, candidates: &[Candidate<'_>]) {
        let secrets: BTreeMap<&ObjectName, usize> = candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.key.kind == Kind::Secret && candidate.held.is_some())
            .map(|(position, candidate)| (&candidate.key.name, position))
            .collect();
        let versions = self.admitted.iter().map(|admitted| Arc::clone(&admitted.version));
        let peers: Vec<_> = versions.filter(|it| it.key.kind == Kind::BgpPeer).collect();
        for need in peers.iter().flat_map(|peer| needs(peer)) {
            let Some(position) = secrets.get(need.secret).copied() else { continue };
            let former = candidates.get(position).and_then(|candidate| candidate.held);
            let Some(former) = former.filter(|former| need.is_met_by(former)) else { continue };
            match self.admitted.iter_mut().find(|admitted| admitted.position == position) {
                None => self.add(position, former),
                Some(admitted) if !need.is_met_by(&admitted.version) => {
                    admitted.version = united(&admitted.version, former);
                }
                Some(_) => {}
            }
        }
    }

    fn settle(&mut self, candidates: &[Candidate<'_>], kind: Kind, rule: &mut dyn Rule) {
        let of_kind = || {
            candidates.iter().enumerate().filter(move |(_, candidate)| candidate.key.kind == kind)
        };
        let unchanged = of_kind().filter(|(_, candidate)| candidate.is_unchanged());
        let changed = of_kind().filter(|(_, candidate)| !candidate.is_unchanged());
        for (position, candidate) in unchanged.chain(changed) {
            self.settle_one(position, candidate, rule);
        }
    }

    fn settle_one(&mut self, position: usize, candidate: &Candidate<'_>, rule: &mut dyn Rule) {
        let versions = [candidate.current, candidate.held];
        let mut refused: Option<&Arc<Version>> = None;
        for version in versions.into_iter().flatten() {
            if refused.is_some_and(|refused| is_same(refused, version)) {
                continue;
            }
            match rule.admit(version) {
                Ok(()) => return self.add(position, version),
                // The second version is only a way out; its faults are no news.
                Err(problem) if refused.is_none() => {
                    self.findings.push(finding(version, Severity::Fault, problem));
                    refused = Some(version);
                }
                Err(_) => {}
            }
        }
        if let Some(version) = candidate.held
            && rule.keep(version, candidate.is_unchanged())
        {
            let version = Arc::clone(version);
            self.admitted.push(Admitted { position, version, is_kept: true });
        }
    }
}
