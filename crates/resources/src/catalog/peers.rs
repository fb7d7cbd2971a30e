//! Rules between peers, and between peers and the objects that they reference.
//!
//! No node has two sessions to one router, references of a peer exist, and names are unique.
//! Knows no files.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_ground::{PeerKey, Remote};
use fairway_model::{ObjectKey, Peer};

use super::frr::FrrRules;
use super::needs::needs;
use super::nodes::Nodes;
use super::pools::PoolFacts;
use super::settle::{Names, Problem, Rule};
use super::supplies::Supplies;
use super::version::Version;
use crate::field_path::FieldPath;

/// Each BFDProfile has a unique name, and its signing key exists.
pub(super) struct Profiles<'a> {
    names: Names,
    secrets: &'a Supplies,
    /// What each object could refer to when it was in force last.
    former: &'a Supplies,
}

impl<'a> Profiles<'a> {
    /// Among the Secrets that are in force already.
    pub(super) fn new(secrets: &'a Supplies, former: &'a Supplies) -> Self {
        Self { names: Names::default(), secrets, former }
    }
}

impl Rule for Profiles<'_> {
    fn problems(&self, version: &Version) -> Vec<Problem> {
        let unmet = needs(version).filter(|need| self.secrets.supplier(need).is_none());
        let unmet = unmet.map(|need| need.problem(version));
        self.names.problem(version).into_iter().chain(unmet).collect()
    }

    fn admit(&mut self, version: &Arc<Version>) {
        self.names.add(version);
    }

    /// BFD never continues unsigned because a Secret is deleted: both stay as they were.
    fn keep(&mut self, version: &Arc<Version>) -> bool {
        let is_met =
            |need| [self.secrets, self.former].iter().any(|all| all.supplier(&need).is_some());
        let stays = self.names.problem(version).is_none() && needs(version).all(is_met);
        if stays {
            self.names.add(version);
        }
        stays
    }
}

/// No node has two peers with one address, interface or range, and references of peers exist.
pub(super) struct Peers<'a> {
    names: Names,
    by_key: BTreeMap<PeerKey, Vec<Arc<Version>>>,
    frr: Option<FrrRules>,
    supplies: &'a Supplies,
    /// What each object could refer to when it was in force last.
    former: &'a Supplies,
    nodes: &'a Nodes,
}

impl<'a> Peers<'a> {
    /// Among the objects that are in force already.
    pub(super) fn new(supplies: &'a Supplies, former: &'a Supplies, nodes: &'a Nodes) -> Self {
        Self {
            names: Names::default(),
            by_key: BTreeMap::new(),
            frr: None,
            supplies,
            former,
            nodes,
        }
    }

    /// Applies FRR's rules too.
    pub(super) fn follow_frr<'b>(
        &mut self,
        in_force: impl Iterator<Item = &'b Arc<Version>> + Clone,
        pools: &BTreeMap<String, PoolFacts>,
    ) {
        self.frr = Some(FrrRules::new(in_force, pools));
    }

    /// Another peer that has the same address, interface or range and may be on the same node.
    fn rival(&self, version: &Version, it: &Peer) -> Option<Problem> {
        let others = self.by_key.get(&it.key()).map_or(&[][..], Vec::as_slice);
        let other = others.iter().find(|other| {
            let other = other.peer();
            other.is_some_and(|it_too| {
                self.nodes.may_share(&it.node_selectors, &it_too.node_selectors)
            })
        })?;
        let (field, noun) = match it.remote {
            Remote::Address(_) => ("spec.peerAddress", "address"),
            Remote::Interface(_) => ("spec.interface", "interface"),
            Remote::Range(_) => ("spec.listenRange", "range"),
            Remote::DefaultGateway(_) => ("spec.autoDiscovery", "peer"),
        };
        let message = |other: &ObjectKey| {
            format!(
                "{} is the {noun} of {other} too, and one node may have both; expected another \
                 {noun}, or nodeSelectors that exclude each other",
                it.key(),
            )
        };
        let path = || FieldPath::of(field);
        let problem = Problem::new(path(), message(&other.key));
        Some(problem.because(&other.key, path(), message(&version.key)))
    }

    fn remember(&mut self, version: &Arc<Version>, it: &Peer) {
        self.names.add(version);
        self.by_key.entry(it.key()).or_default().push(Arc::clone(version));
        if let Some(frr) = &mut self.frr {
            frr.remember(version, it);
        }
    }
}

impl Rule for Peers<'_> {
    fn problems(&self, version: &Version) -> Vec<Problem> {
        let Some(it) = version.peer() else { return Vec::new() };
        let unmet = needs(version).filter(|need| self.supplies.supplier(need).is_none());
        let unmet = unmet.map(|need| need.problem(version));
        let rivals = self.names.problem(version).into_iter().chain(self.rival(version, it));
        let frr = self.frr.iter().flat_map(|frr| frr.problems(version, it, self.nodes));
        unmet.chain(rivals).chain(frr).collect()
    }

    fn admit(&mut self, version: &Arc<Version>) {
        if let Some(it) = version.peer() {
            self.remember(version, it);
        }
    }

    /// A session does not end because an object that its peer references is deleted, or lost a key: both
    /// stay as they were. Nor does it because a node's labels changed; where two peers then meet on one
    /// node, the plan decides for that node.
    fn keep(&mut self, version: &Arc<Version>) -> bool {
        let Some(it) = version.peer() else { return false };
        let is_met =
            |need| [self.supplies, self.former].iter().any(|all| all.supplier(&need).is_some());
        if !needs(version).all(is_met) {
            return false;
        }
        self.remember(version, it);
        true
    }
}
