//! Which version of each object is in force: the rules between objects admit one of its versions or none.
//!
//! Unchanged objects go first, so that a new one never replaces one that works; then those that
//! changed longer ago, if that is known; ties are broken by name. Where an object that was in force
//! would be lost because another changed, that change is the fault, and is reverted. Where it is not
//! known what was in force, the later change is the fault.
//! Knows no files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_model::{Kind, ObjectKey};

use super::advertisements::{Advertisements, Communities};
use super::extras::Extras;
use super::needs::needs;
use super::nodes::Nodes;
use super::peers::{Peers, Profiles};
use super::pools::{PoolFacts, Pools};
use super::resolve::StaleObject;
use super::supplies::{Supplies, is_supplier, united};
use super::version::Version;
use super::warnings::warnings;
use crate::backend::BackendKind;
use crate::field_path::FieldPath;
use crate::finding::{Finding, FindingObject, Severity};

/// Why a rule refuses a version of an object.
pub(super) struct Problem {
    path: FieldPath,
    message: String,
    causes: Vec<Cause>,
}

/// Another object that may be the cause of the problem, and the message for it.
struct Cause {
    key: ObjectKey,
    path: FieldPath,
    message: String,
}

impl Problem {
    /// Of the field at `path`.
    pub(super) fn new(path: FieldPath, message: impl Into<String>) -> Self {
        Self { path, message: message.into(), causes: Vec::new() }
    }

    /// The other object is the cause if it changed and this one is valid without the change.
    pub(super) fn because(
        mut self,
        key: &ObjectKey,
        path: FieldPath,
        message: impl Into<String>,
    ) -> Self {
        self.causes.push(Cause { key: key.clone(), path, message: message.into() });
        self
    }
}

/// A rule between objects of one kind, or between them and kinds admitted before.
pub(super) trait Rule {
    /// All reasons to refuse the version, given those admitted before.
    fn problems(&self, version: &Version) -> Vec<Problem>;

    /// The version is admitted, and later ones may depend on it.
    fn admit(&mut self, version: &Arc<Version>);

    /// Whether the version that was in force last stays although it is refused now, because losing it
    /// would be worse; if so, remembers it.
    fn keep(&mut self, _version: &Arc<Version>) -> bool {
        false
    }
}

/// No two objects of a kind have the same name: references to them have no namespace.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, Arc<ObjectKey>>);

impl Names {
    pub(super) fn problem(&self, version: &Version) -> Option<Problem> {
        let other = self.0.get(&version.key.name.name)?;
        let message = |other: &ObjectKey| {
            format!(
                "is the name of another {}, in namespace {}, and references to it have no \
                 namespace; expected another name",
                other.kind, other.name.namespace
            )
        };
        let path = || FieldPath::of("metadata.name");
        let problem = Problem::new(path(), message(other));
        Some(problem.because(other, path(), message(&version.key)))
    }

    pub(super) fn add(&mut self, version: &Version) {
        self.0.insert(version.key.name.name.clone(), Arc::clone(&version.key));
    }
}

/// An object that may be in force.
pub(super) struct Candidate<'a> {
    pub(super) key: &'a Arc<ObjectKey>,
    /// The version in its document.
    pub(super) current: Option<&'a Arc<Version>>,
    /// The version that was in force last.
    pub(super) held: Option<&'a Arc<Version>>,
    pub(super) file: &'a str,
    pub(super) line: usize,
    /// It has no document: it is in force only while another object needs it.
    pub(super) is_lost: bool,
}

impl Candidate<'_> {
    /// Whether the version in force last is still the one in the document, as far as is known.
    fn is_unchanged(&self) -> bool {
        match (self.current, self.held) {
            (Some(current), Some(held)) => is_same(current, held),
            (current, _) => current.is_none(),
        }
    }

    /// When its document was changed last, where that is known.
    fn changed_at(&self) -> Option<&str> {
        self.current.or(self.held)?.changed_at.as_deref()
    }

    /// Whether neither is known to have been in force, and this one changed later.
    fn is_younger(&self, other: &Candidate<'_>) -> bool {
        let are_new = self.held.is_none() && other.held.is_none();
        are_new && self.changed_at().zip(other.changed_at()).is_some_and(|(this, that)| this > that)
    }

    pub(super) fn is_current(&self, version: &Arc<Version>) -> bool {
        self.current.is_some_and(|current| Arc::ptr_eq(current, version))
    }

    /// As an object of which an earlier version is in force.
    pub(super) fn stale(&self) -> StaleObject {
        let (key, file) = (ObjectKey::clone(self.key), self.file.to_owned());
        StaleObject { key, file, line: self.line }
    }
}

pub(super) fn is_same(a: &Arc<Version>, b: &Arc<Version>) -> bool {
    Arc::ptr_eq(a, b) || a.object == b.object
}

/// A version in force.
pub(super) struct Admitted {
    /// Of the candidate.
    pub(super) position: usize,
    pub(super) version: Arc<Version>,
    /// It has a fault, and stays nevertheless.
    pub(super) is_kept: bool,
}

/// The versions in force, and the findings.
#[derive(Default)]
pub(super) struct Settlement {
    pub(super) admitted: Vec<Admitted>,
    pub(super) findings: Vec<Finding>,
    /// For each object that would be lost, the possible causes.
    lost: Vec<Vec<Cause>>,
}

/// Whether objects of this kind depend on no others.
fn is_free(kind: Kind) -> bool {
    match kind {
        Kind::BgpPeer
        | Kind::BfdProfile
        | Kind::IpAddressPool
        | Kind::BgpAdvertisement
        | Kind::Community
        | Kind::ConfigMap => false,
        Kind::Layer2Advertisement
        | Kind::BgpConfiguration
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Node
        | Kind::Namespace
        | Kind::Secret => true,
    }
}

/// Settles all candidates, which are sorted by key. A reverted change is dropped: its candidate has
/// no current version.
pub(super) fn settle(candidates: &mut [Candidate<'_>], backend: BackendKind) -> Settlement {
    let mut taken_back = Vec::new();
    loop {
        let mut settlement = Settlement::of(candidates, backend);
        let changes = take_back(candidates, std::mem::take(&mut settlement.lost));
        if changes.is_empty() {
            settlement.findings.extend(taken_back);
            settlement.add_warnings(candidates);
            return settlement;
        }
        taken_back.extend(changes);
    }
}

/// Reverts one change for each object that would be lost, if a change caused it. There are at most
/// as many rounds of this as changes, and usually one.
fn take_back(candidates: &mut [Candidate<'_>], lost: Vec<Vec<Cause>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut culprits = BTreeSet::new();
    for causes in lost {
        if causes.iter().any(|cause| culprits.contains(&cause.key)) {
            continue;
        }
        for Cause { key, path, message } in causes {
            let Some(candidate) = position(candidates, &key).and_then(|it| candidates.get_mut(it))
            else {
                continue;
            };
            if candidate.is_unchanged() {
                continue;
            }
            if let Some(current) = candidate.current.take() {
                let problem = Problem::new(path, message);
                findings.push(finding(current, Severity::Fault, problem));
                culprits.insert(key);
                break;
            }
        }
    }
    findings
}

/// The candidates of one kind, with their positions.
fn of_kind<'a, 'b>(
    candidates: &'a [Candidate<'b>],
    kind: Kind,
) -> impl Iterator<Item = (usize, &'a Candidate<'b>)> {
    let first = candidates.partition_point(|candidate| candidate.key.kind < kind);
    let end = candidates.partition_point(|candidate| candidate.key.kind <= kind);
    candidates.iter().enumerate().take(end).skip(first)
}

fn position(candidates: &[Candidate<'_>], key: &ObjectKey) -> Option<usize> {
    candidates.binary_search_by(|candidate| (**candidate.key).cmp(key)).ok()
}

impl Settlement {
    /// Settles kind by kind: each depends only on those before it.
    fn of(candidates: &[Candidate<'_>], backend: BackendKind) -> Self {
        let mut it = Self::default();
        for kind in Kind::ALL.into_iter().filter(|kind| is_free(*kind)) {
            for (position, candidate) in of_kind(candidates, kind) {
                let version = candidate.current.or(candidate.held);
                if let Some(version) = version.filter(|_| !candidate.is_lost) {
                    it.add(position, version);
                }
            }
        }
        it.settle(candidates, Kind::Community, &mut Communities::default());
        let suppliers = Kind::ALL.into_iter().filter(|kind| is_supplier(*kind));
        let suppliers = suppliers.flat_map(|kind| of_kind(candidates, kind));
        let former = Supplies::of(suppliers.filter_map(|(_, candidate)| candidate.held));
        let secrets = Supplies::of(it.versions());
        it.settle(candidates, Kind::BfdProfile, &mut Profiles::new(&secrets, &former));
        it.settle(candidates, Kind::IpAddressPool, &mut Pools::default());
        let now = Supplies::of(it.versions());
        let nodes = Nodes::of(it.versions());
        let pools = PoolFacts::of(it.versions());
        let mut advertisements = Advertisements::new(&now, &former, &pools, &nodes);
        it.settle(candidates, Kind::BgpAdvertisement, &mut advertisements);
        let mut peers = Peers::new(&now, &former, &nodes);
        if let BackendKind::Frr { .. } = backend {
            peers.follow_frr(it.versions(), &pools);
        }
        it.settle(candidates, Kind::BgpPeer, &mut peers);
        it.settle(candidates, Kind::ConfigMap, &mut Extras::default());
        it.add_needed(candidates, &now, &former);
        it
    }

    /// Those in force.
    fn versions(&self) -> impl Iterator<Item = &Arc<Version>> + Clone {
        self.admitted.iter().map(|admitted| &admitted.version)
    }

    fn add(&mut self, position: usize, version: &Arc<Version>) {
        let version = Arc::clone(version);
        self.admitted.push(Admitted { position, version, is_kept: false });
    }

    fn settle(&mut self, candidates: &[Candidate<'_>], kind: Kind, rule: &mut dyn Rule) {
        let of_kind = of_kind(candidates, kind).filter(|(_, candidate)| !candidate.is_lost);
        let mut order: Vec<_> = of_kind.collect();
        order.sort_by_cached_key(|(_, it)| (!it.is_unchanged(), it.changed_at()));
        for (position, candidate) in order {
            self.settle_one(candidates, position, candidate, rule);
        }
    }

    fn settle_one(
        &mut self,
        candidates: &[Candidate<'_>],
        position: usize,
        candidate: &Candidate<'_>,
        rule: &mut dyn Rule,
    ) {
        let mut refused: Option<&Arc<Version>> = None;
        let mut causes = Vec::new();
        for version in [candidate.current, candidate.held].into_iter().flatten() {
            if refused.is_some_and(|refused| is_same(refused, version)) {
                continue;
            }
            let mut problems = rule.problems(version);
            if problems.is_empty() {
                rule.admit(version);
                return self.add(position, version);
            }
            // The version in force last, which is tried last, worked before these changed.
            causes = problems.iter_mut().flat_map(|it| std::mem::take(&mut it.causes)).collect();
            // The second version is only a fallback; its faults are not reported.
            if refused.is_none() {
                let findings = problems.into_iter().map(|it| finding(version, Severity::Fault, it));
                self.findings.extend(findings);
                refused = Some(version);
            }
        }
        let Some(held) = candidate.held else {
            let younger = |cause: &Cause| {
                let cause = candidates.get(self::position(candidates, &cause.key)?)?;
                cause.is_younger(candidate).then(|| cause.changed_at())
            };
            causes.retain(|cause| younger(cause).is_some());
            causes.sort_by_key(|cause| std::cmp::Reverse(younger(cause)));
            return self.lost.push(causes);
        };
        self.lost.push(causes);
        if rule.keep(held) {
            let version = Arc::clone(held);
            self.admitted.push(Admitted { position, version, is_kept: true });
        }
    }

    /// Adds the deleted objects, or earlier versions, that objects in force still need.
    fn add_needed(&mut self, candidates: &[Candidate<'_>], now: &Supplies, former: &Supplies) {
        let needing: Vec<_> = self
            .versions()
            .filter(|version| needs(version).any(|need| now.supplier(&need).is_none()))
            .cloned()
            .collect();
        if needing.is_empty() {
            return;
        }
        let places = self.admitted.iter().enumerate();
        let mut places: BTreeMap<usize, usize> =
            places.map(|(place, admitted)| (admitted.position, place)).collect();
        for need in needing.iter().flat_map(|version| needs(version)) {
            let supplier = former.supplier(&need).filter(|_| now.supplier(&need).is_none());
            let Some(supplier) = supplier else { continue };
            let Some(position) = position(candidates, &supplier.key) else { continue };
            match places.get(&position).and_then(|place| self.admitted.get_mut(*place)) {
                None => {
                    places.insert(position, self.admitted.len());
                    self.add(position, supplier);
                }
                Some(admitted) => {
                    admitted.version = Arc::new(united(&admitted.version, supplier, &need));
                }
            }
        }
    }

    /// Warnings about the documents' current versions; versions that are not in force have faults instead.
    fn add_warnings(&mut self, candidates: &[Candidate<'_>]) {
        let current = self.admitted.iter().filter(|admitted| {
            let candidate = candidates.get(admitted.position);
            candidate.is_some_and(|candidate| candidate.is_current(&admitted.version))
        });
        let current = current.map(|admitted| &*admitted.version);
        let warnings = warnings(current, self.versions());
        let warnings: Vec<_> = warnings
            .into_iter()
            .map(|(version, problem)| finding(version, Severity::Warning, problem))
            .collect();
        self.findings.extend(warnings);
    }
}

pub(super) fn finding_object(key: &ObjectKey) -> FindingObject {
    FindingObject { kind: key.kind.to_string(), name: key.name.name.clone() }
}

/// A finding about the field at `path` of one version of an object.
fn finding(version: &Version, severity: Severity, problem: Problem) -> Finding {
    Finding {
        severity,
        file: version.file.to_string(),
        line: Some(version.lines.line(&problem.path).unwrap_or(version.line)),
        object: Some(finding_object(&version.key)),
        field: (!problem.path.is_empty()).then(|| problem.path.to_string()),
        message: problem.message,
    }
}
