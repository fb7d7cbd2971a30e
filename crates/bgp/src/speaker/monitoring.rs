//! What is told to those that monitor this node (RFC 7854, RFC 9069), and from when on.
//!
//! Another part of [`Speaker`]. What happens to one neighbour is noted by [`crate::session::Peer`].

use super::action::Action;
use super::guard::Guard;
use super::speaker::Speaker;
use crate::rib::Changes;
use crate::session::Best;
use fairway_ground::{BmpTables, Instant};

impl<G: Guard> Speaker<G> {
    /// From now on [`Action::Monitored`] and [`Action::LocRib`] tell what happens to these tables; `None` ends that. Sessions
    /// that are up come first.
    pub fn monitor(&mut self, now: Instant, tables: Option<BmpTables>) {
        if self.monitored == tables {
            return;
        }
        self.monitored = tables;
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, _, _| neighbour.peer.monitor(tables));
        }
    }

    /// What is told.
    pub fn monitored(&self) -> Option<BmpTables> {
        self.monitored
    }

    /// Asks all neighbours that can for all their routes again: what they announced is not kept as it was. `Ours:` the end is known,
    /// and told (RFC 7854 §5), only where a neighbour marks it.
    pub fn request_routes(&mut self, now: Instant) {
        for key in self.keys() {
            self.with_neighbour(now, key, |neighbour, _, _| {
                // It would begin again.
                if neighbour.peer.is_refreshing() {
                    return;
                }
                // One without a session says everything when it has one, and one without ROUTE-REFRESH (RFC 2918) never again.
                let _ = neighbour.peer.refresh_in();
            });
        }
    }

    /// `Ours:` changes are told as they happen, where RFC 9069 §5.4.2 has the last one of an interval: the history of the table
    /// is of interest, too.
    pub(super) fn monitor_best(&mut self, changes: &Changes) {
        if !self.monitored.is_some_and(|it| it.loc_rib) {
            return;
        }
        let used = changes.list.iter().filter(|it| it.concerns_all);
        let best = used.filter_map(|change| {
            let (prefix, routes) = self.rib.known_routes(change.id)?;
            let own = routes.offers().first().map(|it| Best::Originated(it.attributes.clone()));
            let best = own.or_else(|| Some(Best::Learned(routes.best()?.attributes.clone())));
            Some((prefix, best))
        });
        let best: Vec<_> = best.collect();
        if !best.is_empty() {
            self.outbox.push(Action::LocRib(best));
        }
    }
}
