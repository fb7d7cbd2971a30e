//! ROUTE-REFRESH, sent and answered (RFC 2918), and the marks around an answer (RFC 7313).
//!
//! Another part of [`Peer`]. What is sent again is [`crate::rib::AdjRibOut`]'s, what was received again
//! [`crate::rib::AdjRibIn`]'s; this part knows when a mark counts, and for how long.

use std::time::Duration;

use super::peer::Peer;
use crate::wire::RouteRefresh;
use fairway_ground::{AddressFamily, Instant};
use fairway_seam::ClearError;

/// How long a neighbour may take to send its routes again. What it has not sent by then is removed:
/// a neighbour that forgets the end mark would keep dead routes with it (RFC 7313 §4 leaves the bound
/// to us). A full table takes a minute or two.
const REFRESH_TIME_MAX: Duration = Duration::from_secs(10 * 60);

impl Peer {
    /// The neighbour sent a ROUTE-REFRESH.
    pub(super) fn refresh_heard(&mut self, now: Instant, refresh: RouteRefresh) {
        let Some(up) = &self.established else { return };
        let Some(negotiated) = self.connection(up.connection).and_then(|it| it.negotiated.as_ref())
        else {
            return;
        };
        let Some(family) = refresh.family.family().filter(|it| up.families.contains(*it)) else {
            return;
        };
        let has_marks = negotiated.enhanced_route_refresh;
        let restarts = negotiated.restarts.sends_markers;
        match refresh.subtype {
            // Without RFC 7313 the octet is reserved and means nothing (RFC 2918 §3).
            _ if !has_marks => self.say_again(family),
            RouteRefresh::REQUEST => self.say_again(family),
            RouteRefresh::BEGIN => self.refresh_begins(now, family, restarts),
            RouteRefresh::END => self.refresh_ends(now, family),
            // Reserved values are ignored (RFC 7313 §5).
            _ => {}
        }
    }

    fn say_again(&mut self, family: AddressFamily) {
        if let Some(up) = &mut self.established {
            up.outbound.adj_rib_out.refresh(family);
        }
    }

    /// The neighbour begins to send all routes of `family` again. From one that restarts gracefully this
    /// means nothing before it has sent them once (RFC 7313 §4).
    fn refresh_begins(&mut self, now: Instant, family: AddressFamily, restarts: bool) {
        let Some(up) = &mut self.established else { return };
        if restarts && !up.inbound.end_of_rib_received.of(family) {
            return;
        }
        up.inbound.adj_rib_in.begin_refresh(family);
        up.inbound.refused.clear(family);
        *up.inbound.refresh_deadline.of_mut(family) = Some(now + REFRESH_TIME_MAX);
    }

    /// All routes of `family` were sent again, or should have been: the others are removed.
    fn refresh_ends(&mut self, now: Instant, family: AddressFamily) {
        let Some(up) = &mut self.established else { return };
        // The end of a refresh that has not begun, or that did not count.
        if up.inbound.refresh_deadline.of_mut(family).take().is_none() {
            return;
        }
        let changes = up.inbound.sweep(family);
        self.routes_changed(now, changes, None);
    }

    /// Ends the refreshes that take too long.
    pub(super) fn expire_refreshes(&mut self, now: Instant) {
        for family in AddressFamily::ALL {
            let up = self.established.as_ref();
            let deadline = up.and_then(|up| *up.inbound.refresh_deadline.of(family));
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.refresh_ends(now, family);
            }
        }
    }

    /// When the first of them ends.
    pub(super) fn refresh_deadline(&self) -> Option<Instant> {
        let up = self.established.as_ref()?;
        let deadlines = up.inbound.refresh_deadline;
        AddressFamily::ALL.into_iter().filter_map(|family| *deadlines.of(family)).min()
    }

    /// Requests all routes of the neighbour again (RFC 2918).
    pub fn refresh_in(&mut self) -> Result<(), ClearError> {
        let up = self.established.as_ref().ok_or(ClearError::NotEstablished)?;
        let (id, families) = (up.connection, up.families);
        let connection = self.connection_mut(id).ok_or(ClearError::NotEstablished)?;
        if !connection.negotiated.as_ref().is_some_and(|it| it.route_refresh) {
            return Err(ClearError::NoRouteRefresh);
        }
        connection.refresh_due = families;
        Ok(())
    }

    /// Whether it is about to send all its routes of a family again, or does so now (RFC 7313).
    pub fn is_refreshing(&self) -> bool {
        let Some(up) = self.established.as_ref() else { return false };
        let asked = self.connection(up.connection).is_some_and(|it| !it.refresh_due.is_empty());
        asked || self.refresh_deadline().is_some()
    }

    /// Sends all our routes again.
    pub fn refresh_out(&mut self) -> Result<(), ClearError> {
        let up = self.established.as_mut().ok_or(ClearError::NotEstablished)?;
        up.families.iter().for_each(|family| up.outbound.adj_rib_out.refresh(family));
        Ok(())
    }
}
