//! Which routes this machine forwards by, as they change, and when they are all known after a start.
//!
//! Another part of [`Speaker`]; which routers a route has is [`crate::rib::gateways`]'s.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::action::Action;
use super::guard::Guard;
use super::speaker::Speaker;
use crate::rib::{PrefixId, gateways};
use fairway_ground::{Instant, InterfaceName};
use fairway_seam::{ForwardingChange, Gateway, PathSource, PeerConfig};

/// How long routes of an earlier run stay for neighbours that have not sent all of theirs: FRR's time for stale paths.
const COMPLETE_WAIT: Duration = Duration::from_secs(360);

/// What the speaker remembers of it.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Until when neighbours are waited for.
    until: Instant,
    is_complete: bool,
    /// Where some neighbour had routes to install; none where nobody ever had.
    vrfs: BTreeSet<Option<InterfaceName>>,
}

impl Forwarding {
    pub(super) fn new(now: Instant) -> Self {
        let until = now + COMPLETE_WAIT;
        Self { until, is_complete: false, vrfs: BTreeSet::new() }
    }

    /// A neighbour has these settings from now on.
    pub(super) fn note(&mut self, config: &PeerConfig) {
        if config.install_routes {
            self.vrfs.insert(config.key.vrf);
        }
    }

    /// When the wait for neighbours ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_complete && !self.vrfs.is_empty()).then_some(self.until)
    }
}

impl<G: Guard> Speaker<G> {
    /// Reports by which routers packets to these prefixes go now.
    pub(super) fn forward(&mut self, ids: impl Iterator<Item = PrefixId>) {
        if self.forwarding.vrfs.is_empty() {
            return;
        }
        let installs = |source: &PathSource| {
            let neighbour = self.neighbours.get(&source.key);
            neighbour.is_some_and(|it| it.peer.config().install_routes)
        };
        let mut changes: Vec<ForwardingChange> = Vec::new();
        // Thousands of prefixes have the same routers.
        let mut last: Arc<[Gateway]> = Arc::default();
        for id in ids {
            let Some((prefix, routes)) = self.rib.known_routes(id) else { continue };
            for vrf in &self.forwarding.vrfs {
                let gateways = gateways(routes, *vrf, installs);
                if *last != *gateways {
                    last = gateways.into();
                }
                changes.push(ForwardingChange { vrf: *vrf, prefix, gateways: Arc::clone(&last) });
            }
        }
        if !changes.is_empty() {
            self.outbox.push(Action::Forward(changes));
        }
    }

    /// The same of all prefixes: a neighbour's routes are installed from now on, or not any more.
    pub(super) fn forward_all(&mut self) {
        let known = self.rib.known_between(PrefixId::FIRST, self.rib.end());
        let ids: Vec<PrefixId> = known.map(|(id, ..)| id).collect();
        self.forward(ids.into_iter());
    }

    /// Notices when all neighbours whose routes are installed have sent theirs, or had the time.
    pub(super) fn complete_forwarding(&mut self, now: Instant) {
        if self.forwarding.is_complete || self.startup.awaits_sources() {
            return;
        }
        let owes = |it: &super::neighbour::Neighbour| {
            it.peer.config().install_routes
                && (it.peer.may_owe_routes() || !it.unlearned.is_empty())
        };
        if now < self.forwarding.until && self.neighbours.values().any(|it| owes(it)) {
            return;
        }
        self.forwarding.is_complete = true;
        self.outbox.push(Action::ForwardingComplete);
    }
}
