//! What other data of RPKI changes in the routes of a neighbour, and in those that it is sent.
//!
//! Another part of [`Peer`] and [`Inbound`]. What a route's state is, [`OriginTable`] says; what follows from it, the rules of the
//! import policy. A new table may concern a million routes: they are judged again in parts, one each turn.

use std::sync::Arc;

use super::peer::Peer;
use super::receive::Inbound;
use crate::rib::{LocRib, PrefixSet, Rulings};
use fairway_ground::{AddressFamily, Instant, Nlri};
use fairway_rpki::{Concerned, OriginTable};
use fairway_seam::{PathAttributes, RouteChange};

/// Routes that are to be judged again.
#[derive(Debug, Default)]
pub(super) struct Validation {
    /// Those with the same attributes, by their place in memory, follow each other.
    pending: Vec<(usize, Nlri)>,
}

impl Inbound {
    /// RPKI says something else about the origins of routes that `concerned` names. The neighbour need not announce them
    /// again (RFC 9324).
    fn validate_again(&mut self, concerned: &Concerned) {
        if !self.importer.validates_origins() {
            return;
        }
        let concerns = |prefix| concerned.contains(prefix);
        let routes = self.adj_rib_in.announced(concerns).chain(self.refused.ruled(concerns));
        let routes = routes.map(|(nlri, heard)| (Arc::as_ptr(heard).addr(), nlri));
        let pending = &mut self.validation.pending;
        pending.extend(routes);
        pending.sort_unstable();
        pending.dedup();
    }

    /// The policy decides again about `count` of them. Stops at the first prefix above the maximum, and returns its family.
    fn validate_part(
        &mut self,
        origins: &OriginTable,
        count: usize,
    ) -> (Vec<RouteChange>, Option<AddressFamily>) {
        let mut changes = Vec::new();
        let (mut known, mut last) = (Rulings::default(), None);
        for _ in 0..count {
            let Some((place, nlri)) = self.validation.pending.pop() else { break };
            // It may be another one by now, which the table was used for, or be gone.
            let heard = self.heard(nlri).filter(|it| Arc::as_ptr(it).addr() == place);
            let Some(heard) = heard.map(Arc::clone) else { continue };
            if last.replace(place) != Some(place) {
                known.clear();
            }
            let ruled = self.importer.ruled(nlri.prefix, &heard, origins, &mut known);
            if self.is_stale(nlri) || self.adj_rib_in.is_awaited(nlri) {
                // It stays as it is until it is announced again.
                if ruled.is_err() {
                    self.withdraw(nlri, &mut changes);
                }
                continue;
            }
            let allowed = self.importer.judge(&heard).and_then(|()| self.allows(nlri));
            if self.place(nlri, &heard, allowed.and(ruled), &mut changes) {
                return (changes, Some(nlri.prefix.family()));
            }
        }
        (changes, None)
    }

    /// What the neighbour announced: a route that is used, or one that a rule refused.
    fn heard(&self, nlri: Nlri) -> Option<&Arc<PathAttributes>> {
        self.adj_rib_in.announced_as(nlri).or_else(|| self.refused.ruled_route(nlri))
    }
}

impl Peer {
    /// What RPKI caches say from now on.
    pub fn set_origins(&mut self, origins: Arc<OriginTable>) {
        self.origins = origins;
    }

    /// The same, and it is something else about the origins of routes that `concerned` names: [`Peer::announce_all`] is due,
    /// and [`Peer::look_again`] while [`Peer::has_to_look_again`]. `known` are the concerned prefixes of the table, if
    /// [`Peer::exports_by_origin`].
    pub fn validate_again(
        &mut self,
        origins: Arc<OriginTable>,
        concerned: &Concerned,
        known: &PrefixSet,
    ) {
        if let Some(up) = &mut self.established {
            up.outbound.validate_again(&origins, known);
        }
        self.set_origins(origins);
        let inbound = self.established.as_mut().map(|up| &mut up.inbound);
        let mut lacks_some = false;
        for inbound in inbound.into_iter().chain(&mut self.retained) {
            inbound.validate_again(concerned);
            lacks_some |= inbound.importer.validates_origins() && inbound.refused.lacks_ruled();
        }
        if lacks_some {
            // There was no room for all that a rule refused.
            self.ask_again();
        }
    }

    /// Whether routes are withheld from the peer or changed for it by the state of their origin.
    pub fn exports_by_origin(&self) -> bool {
        self.established.as_ref().is_some_and(|up| up.outbound.validates_origins())
    }

    /// Whether it is to look again at routes that it was announced, or that it was told by an earlier policy.
    pub fn has_to_look_again(&self) -> bool {
        self.has_to_validate()
            || self.established.as_ref().is_some_and(|up| up.outbound.has_to_look_again())
    }

    fn has_to_validate(&self) -> bool {
        self.inbound().is_some_and(|it| !it.validation.pending.is_empty())
    }

    /// Looks again at `count` of either.
    pub fn look_again(&mut self, now: Instant, rib: &LocRib, count: usize) {
        if let Some(up) = self.established.as_mut().filter(|it| it.outbound.has_to_look_again()) {
            up.outbound.look_again(rib, count);
        }
        if !self.has_to_validate() {
            return;
        }
        if let Some(up) = &mut self.established {
            let (changes, over) = up.inbound.validate_part(&self.origins, count);
            self.routes_changed(now, changes, over);
        } else if let Some(mut inbound) = self.retained.take() {
            let (changes, _) = inbound.validate_part(&self.origins, count);
            self.stale_changed(&inbound.source, changes);
            self.retained = Some(inbound).filter(Inbound::has_stale);
        }
    }
}
