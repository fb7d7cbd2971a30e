//! What other data of RPKI changes in the routes of a neighbour.
//!
//! Another part of [`Peer`] and [`Inbound`]. What a route's state is, [`OriginTable`] says; what follows from it, the rules of the
//! import policy.

use std::sync::Arc;

use super::peer::Peer;
use super::receive::Inbound;
use fairway_ground::{AddressFamily, Instant};
use fairway_rpki::{Concerned, OriginTable};
use fairway_seam::RouteChange;

impl Inbound {
    /// RPKI says something else about the origins of routes that `concerned` names: the policy decides again. The
    /// neighbour need not announce them again (RFC 9324). Stops at the first prefix above the maximum, and returns its
    /// family.
    fn validate_again(
        &mut self,
        origins: &OriginTable,
        concerned: &Concerned,
    ) -> (Vec<RouteChange>, Option<AddressFamily>) {
        let mut changes = Vec::new();
        if !self.importer.validates_origins() {
            return (changes, None);
        }
        let concerns = |prefix| concerned.contains(prefix);
        let routes = self.adj_rib_in.announced(concerns).chain(self.refused.ruled(concerns));
        let routes: Vec<_> = routes.map(|(nlri, heard)| (nlri, Arc::clone(heard))).collect();
        for (nlri, heard) in routes {
            let ruled = self.importer.ruled(nlri.prefix, &heard, origins, &mut None);
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
}

impl Peer {
    /// What RPKI caches say from now on.
    pub fn set_origins(&mut self, origins: Arc<OriginTable>) {
        self.origins = origins;
    }

    /// The same, and it is something else about the origins of routes that `concerned` names.
    pub fn validate_again(
        &mut self,
        now: Instant,
        origins: Arc<OriginTable>,
        concerned: &Concerned,
    ) {
        self.set_origins(origins);
        if let Some(up) = &mut self.established {
            let (changes, over) = up.inbound.validate_again(&self.origins, concerned);
            self.routes_changed(now, changes, over);
        }
        if let Some(mut inbound) = self.retained.take() {
            let (changes, _) = inbound.validate_again(&self.origins, concerned);
            self.stale_changed(&inbound.source, changes);
            self.retained = Some(inbound).filter(Inbound::has_stale);
        }
    }
}
