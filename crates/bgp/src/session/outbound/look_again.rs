//! What a neighbour was told by an earlier policy is looked at again. Another part of [`Outbound`].

use super::{Before, Outbound, WAITING_MAX};
use crate::rib::{Exporter, LocRib, PrefixId};

impl Outbound {
    /// Routes of our own are looked at again at once: an address whose route is withdrawn is given to another Service.
    pub(super) fn look_at_own_again(&mut self, rib: &LocRib) {
        if self.earlier.is_empty() {
            return;
        }
        let mut earlier = std::mem::take(&mut self.earlier);
        for id in rib.originated_ids() {
            if let Some(exporter) = earlier.take(id) {
                self.update_by_earlier(rib, id, exporter);
            }
        }
        while earlier.are_too_many()
            && let Some((id, exporter)) = earlier.pop()
        {
            self.update_by_earlier(rib, id, exporter);
        }
        self.exporter.forget();
        earlier.forget();
        self.earlier = earlier;
    }

    /// Whether the neighbour was told some prefixes by an earlier policy, or by data of RPKI that are no longer those in force.
    pub(in crate::session) fn has_earlier(&self) -> bool {
        !self.earlier.is_empty() || self.postponed.is_some()
    }

    /// The same, and there is room for what they are now.
    pub(in crate::session) fn has_to_look_again(&self) -> bool {
        self.has_earlier() && self.adj_rib_out.waiting_count() < WAITING_MAX
    }

    /// Looks again at prefixes that the neighbour was told by an earlier policy: at `count`, while there is room for what
    /// they are now.
    pub(in crate::session) fn look_again(&mut self, rib: &LocRib, count: usize) {
        let mut earlier = std::mem::take(&mut self.earlier);
        for _ in 0..count {
            if self.adj_rib_out.waiting_count() >= WAITING_MAX {
                break;
            }
            let Some((id, exporter)) = earlier.pop() else { break };
            self.update_by_earlier(rib, id, exporter);
        }
        self.exporter.forget();
        earlier.forget();
        self.earlier = earlier;
        if self.earlier.is_empty()
            && let Some(origins) = self.postponed.take()
        {
            // Of all: prefixes that are new since were told by the data of before.
            self.replace_policy_of_all(self.exporter.with_own_cache().validate(&origins));
            self.look_at_own_again(rib);
        }
    }

    fn update_by_earlier(&mut self, rib: &LocRib, id: PrefixId, exporter: &mut Exporter) {
        if let Some((prefix, routes)) = rib.known_routes(id) {
            self.update(id, prefix, Before::ByEarlier(exporter, routes), routes);
        }
    }
}
