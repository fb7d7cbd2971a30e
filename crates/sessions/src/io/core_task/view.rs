//! What a client of the backend is shown: a snapshot of all sessions and of the RIB.
//!
//! Another part of [`CoreTask`]; changes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::error;

use super::CoreTask;
use crate::backend::{BgpView, LearnedRoute, ViewScope};
use crate::types::Nlri;

impl CoreTask {
    /// Who said it knows whether it is stale.
    fn marked_stale(&self, route: LearnedRoute) -> LearnedRoute {
        let nlri = Nlri { prefix: route.prefix, path_id: route.path.path_id };
        let neighbour = self.neighbours.get(&route.path.source.key);
        LearnedRoute { stale: neighbour.is_some_and(|it| it.peer.is_stale(nlri)), ..route }
    }

    pub(super) fn view(&self, scope: ViewScope) -> BgpView {
        let now = self.clock.now();
        let views = self.neighbours.iter().filter_map(|(key, neighbour)| {
            let mut view = catch_unwind(AssertUnwindSafe(|| neighbour.peer.view(now, scope)));
            if let Ok(view) = &mut view {
                let not_accepted = self.listeners.not_accepted(*key);
                view.not_accepted = not_accepted.filter(|_| view.set_aside.is_none());
                view.is_being_told = neighbour.is_being_told();
                view.bfd_path = self.bfd_path(*key);
            }
            if view.is_err() {
                error!(peer = %key, "a fault of ours: it cannot be shown");
            }
            view.ok()
        });
        let mut listen_ranges = self.ranges.view();
        for range in &mut listen_ranges {
            range.not_accepted = self.listeners.not_accepted(range.config.key);
        }
        let rib = &self.surroundings.rib;
        let originated = scope.originated.then(|| rib.originated().cloned().collect());
        let learned = scope.learned.then(|| {
            let mark = |route| self.marked_stale(route);
            rib.learned().map(mark).collect()
        });
        BgpView {
            generation: self.desired.generation,
            drain: self.desired.drain,
            peers: views.collect(),
            listen_ranges,
            routes: originated.unwrap_or_default(),
            learned: learned.unwrap_or_default(),
            prefixes: rib.counts(),
            changes_told: self.changes_told.clone(),
            bfd: None,
            faults: Vec::new(),
        }
    }
}
