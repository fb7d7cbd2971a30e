//! Which received paths are not used because this machine cannot reach their next hop (RFC 4271 §9.1.2), and are to be
//! used once it can?
//!
//! Whether a next hop can be reached is told from outside, of those of routes that are installed; one of which nothing is
//! told counts as reachable. Kept by [`super::LocRib`], which has the paths that are used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::forwarding::tracked;
use fairway_ground::{Nlri, PeerKey};
use fairway_seam::{DecisionStep, LearnedRoute, Path, PathSource, RouteChange, TrackedNextHop};

/// See the module. Paths enter and leave it as they are announced and withdrawn: a change of reachability alone moves none.
#[derive(Debug, Default)]
pub(super) struct Unreachable {
    next_hops: BTreeSet<TrackedNextHop>,
    paths: BTreeMap<PeerKey, BTreeMap<Nlri, Path>>,
    /// How many paths have each next hop.
    counts: BTreeMap<TrackedNextHop, usize>,
    /// Those among which the next hops are that no path has. A hostile neighbour has a million others.
    may_be_unused: BTreeSet<TrackedNextHop>,
}

impl Unreachable {
    pub(super) fn is_empty(&self) -> bool {
        self.next_hops.is_empty() && self.paths.is_empty()
    }

    /// Whether nothing is known of the next hop of a path, or that it can be reached.
    pub(super) fn permits(&self, path: &Path) -> bool {
        !self.next_hops.contains(&tracked(path))
    }

    /// Notes for each next hop whether it can be reached.
    pub(super) fn note(&mut self, next_hop: TrackedNextHop, is_reachable: bool) {
        match is_reachable {
            true => drop(self.next_hops.remove(&next_hop)),
            false => {
                self.next_hops.insert(next_hop);
                self.may_be_unused.insert(next_hop);
            }
        }
    }

    /// What a change by a neighbour means for the paths that are used.
    pub(super) fn sort_out(
        &mut self,
        source: &Arc<PathSource>,
        change: RouteChange,
    ) -> RouteChange {
        let RouteChange { nlri, attributes } = change;
        if let Some(paths) = self.paths.get_mut(&source.key)
            && let Some(before) = paths.remove(&nlri)
        {
            if paths.is_empty() {
                self.paths.remove(&source.key);
            }
            self.discount(&before);
        }
        let Some(attributes) = attributes else { return RouteChange { nlri, attributes: None } };
        let path = Path { source: Arc::clone(source), path_id: nlri.path_id, attributes };
        if self.permits(&path) {
            return RouteChange { nlri, attributes: Some(path.attributes) };
        }
        let count = self.counts.entry(tracked(&path)).or_default();
        *count = count.saturating_add(1);
        self.paths.entry(source.key).or_default().insert(nlri, path);
        RouteChange { nlri, attributes: None }
    }

    /// Forgets the paths of a neighbour.
    pub(super) fn forget(&mut self, peer: PeerKey) {
        for path in self.paths.remove(&peer).unwrap_or_default().into_values() {
            self.discount(&path);
        }
    }

    fn discount(&mut self, path: &Path) {
        let next_hop = tracked(path);
        let count = self.counts.get_mut(&next_hop);
        let left = count.map(|count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == Some(0) {
            self.counts.remove(&next_hop);
            self.may_be_unused.insert(next_hop);
        }
    }

    /// The paths that may be used now.
    pub(super) fn released(&self) -> impl Iterator<Item = (Nlri, &Path)> {
        let paths = self.paths.values().flatten();
        paths.map(|(nlri, path)| (*nlri, path)).filter(|(_, path)| self.permits(path))
    }

    /// Forgets the next hops that no path has any more, and returns them.
    pub(super) fn take_unused(&mut self) -> Vec<TrackedNextHop> {
        let unused = std::mem::take(&mut self.may_be_unused).into_iter();
        unused.filter(|it| !self.counts.contains_key(it) && self.next_hops.remove(it)).collect()
    }

    /// Whether there may be any of those.
    pub(super) fn may_have_unused(&self) -> bool {
        !self.may_be_unused.is_empty()
    }

    /// The next hops that cannot be reached.
    pub(super) fn next_hops(&self) -> impl Iterator<Item = TrackedNextHop> + '_ {
        self.next_hops.iter().copied()
    }

    /// The paths, as they are shown.
    pub(super) fn learned(&self) -> impl Iterator<Item = LearnedRoute> + '_ {
        let paths = self.paths.values().flatten();
        paths.map(|(nlri, path)| LearnedRoute {
            prefix: nlri.prefix,
            path: path.clone(),
            lost_at: Some(DecisionStep::NextHop),
            stale: false,
            origin_validation: None,
        })
    }
}
