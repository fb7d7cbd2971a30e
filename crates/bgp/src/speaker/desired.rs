//! How the desired state is applied: which peers exist, with which settings.
//!
//! Another part of [`Speaker`]. Which routes are originated meanwhile is [`super::startup`]'s.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::action::{PeerAction, Report};
use super::admission::Admission;
use super::guard::Guard;
use super::neighbour::Neighbour;
use super::ranges::{Joined, Refused};
use super::speaker::Speaker;
use crate::rib::MedScope;
use crate::session::Peer;
use crate::wire::notification::cease;
use fairway_ground::{Instant, PeerKey, Remote};
use fairway_seam::{Desired, PeerConfig};

impl<G: Guard> Speaker<G> {
    /// Applies the desired state: peers first, so that routes find them.
    pub(super) fn apply(
        &mut self,
        now: Instant,
        desired: Arc<Desired>,
        changed_at: Option<Instant>,
    ) {
        self.has_changed = true;
        let routes = self.startup.routes(&desired);
        self.desired = Arc::clone(&desired);
        self.ranges.set(desired.peers.iter());
        self.rib.keep_path_ids(desired.peers.iter().any(|config| config.add_path.send.is_some()));
        let meds = if desired.always_compare_med { MedScope::All } else { MedScope::SameAs };
        self.rib.compare_meds(meds);
        let wanted = self.wanted(&desired);
        let mut installs_others = false;
        for key in self.keys() {
            if !wanted.contains_key(&key) {
                self.remove(now, key);
            }
        }
        for (key, config) in &wanted {
            let Some(neighbour) = self.neighbours.get(key) else {
                self.insert(now, config.clone());
                continue;
            };
            if neighbour.peer.config() == config {
                continue;
            }
            installs_others |= neighbour.peer.config().install_routes != config.install_routes;
            self.forwarding.note(config);
            self.with_neighbour(now, *key, |neighbour, rib, _| {
                neighbour.peer.reconfigure(now, config.clone());
                neighbour.peer.announce_all(rib);
            });
            self.outbox.push_for(*key, PeerAction::Configured(Box::new(config.clone())));
        }
        self.originate(now, routes);
        self.drop_others(&desired);
        if installs_others {
            self.forward_all();
        }
        self.give_up_next_hops();
        self.note_change(changed_at);
    }

    /// The neighbours that should exist: the configured ones, and of those that came from a range all that
    /// could connect again, with the settings that they would have then.
    fn wanted(&mut self, desired: &Desired) -> BTreeMap<PeerKey, PeerConfig> {
        let named = desired.peers.iter().filter(|config| !config.key.is_range());
        let mut wanted: BTreeMap<PeerKey, PeerConfig> =
            named.map(|config| (config.key, config.clone())).collect();
        let dynamic = self.neighbours.values().filter(|it| it.peer.config().is_dynamic());
        let dynamic: Vec<PeerKey> = dynamic.map(|it| it.peer.config().key).collect();
        if dynamic.is_empty() {
            return wanted;
        }
        let admission: Admission = desired.peers.iter().collect();
        for key in dynamic {
            let Some(address) = key.address() else { continue };
            let range = admission.name(key.vrf, address, None);
            match range.and_then(|range| Some((range, self.ranges.member(range, address)?))) {
                Some((range, config)) => {
                    self.ranges.move_to(range, key);
                    wanted.insert(key, config);
                }
                // It is configured by address now, or no range contains it any more.
                None => self.ranges.leave(key),
            }
        }
        wanted
    }

    fn insert(&mut self, now: Instant, config: PeerConfig) {
        let key = config.key;
        self.forwarding.note(&config);
        self.incarnations = self.incarnations.saturating_add(1);
        let hold_until = self.startup.hold_end_of_rib_until(now, &config);
        self.holds_end_of_rib |= hold_until.is_some();
        let configured = PeerAction::Configured(Box::new(config.clone()));
        let mut peer = Peer::new(now, config, self.seed, self.incarnations);
        peer.restarted(self.startup.own_restart(now, peer.config()), hold_until);
        peer.set_drain(&self.rib, self.desired.drain);
        peer.set_origins(Arc::clone(&self.origins));
        peer.monitor(self.monitored);
        let count = self.neighbours.len().saturating_add(1);
        peer.share_recordings(count.next_power_of_two());
        self.neighbours.insert(key, Box::new(Neighbour::new(peer)));
        self.share_recordings(count.saturating_sub(1));
        self.outbox.push_for(key, configured);
        self.agenda.touch(key);
    }

    fn remove(&mut self, now: Instant, key: PeerKey) {
        self.outbox.report(key, Report::Deconfigured);
        self.with_neighbour(now, key, |neighbour, _, _| {
            neighbour.peer.stop(now, cease::PEER_DECONFIGURED, "the peer was removed");
        });
        self.forget(key);
    }

    /// There were `before` neighbours. Shares are those of the next power of two: few changes of their number change them.
    fn share_recordings(&mut self, before: usize) {
        let count = self.neighbours.len().next_power_of_two();
        if count != before.next_power_of_two() {
            self.neighbours.values_mut().for_each(|it| it.peer.share_recordings(count));
        }
    }

    pub(super) fn forget(&mut self, key: PeerKey) {
        let Some(mut gone) = self.neighbours.remove(&key) else { return };
        gone.unlearned.learn_all(&mut self.rib);
        self.share_recordings(self.neighbours.len().saturating_add(1));
        self.has_changed = true;
        self.startup.forget(key, gone.peer.had_session());
        self.agenda.forget(key);
        self.ranges.leave(key);
        self.outbox.push_for(key, PeerAction::Removed);
    }

    /// The neighbour that dials from `address` in `range`, which may be a new one; an error when the range
    /// is full. Of those that have sent no OPEN, the one that came first makes room: silent strangers keep no
    /// neighbour out.
    pub fn join(
        &mut self,
        now: Instant,
        range: PeerKey,
        address: IpAddr,
    ) -> Result<Joined, Refused> {
        let key = PeerKey { remote: Remote::Address(address), ..range };
        let mut in_place_of = None;
        if !self.neighbours.contains_key(&key) {
            let config = match self.ranges.join(now, range, address) {
                Err(full @ Refused::Full { .. }) if self.make_room(range) => {
                    in_place_of = Some(full);
                    self.ranges.join(now, range, address).map_err(|_| full)
                }
                joined => joined,
            }?;
            self.insert(now, config);
        }
        Ok(Joined { key, in_place_of })
    }

    /// Whether a neighbour of the range was given up.
    fn make_room(&mut self, range: PeerKey) -> bool {
        // Of a limit that was lowered, one place more is none.
        if self.ranges.is_over(range) {
            return false;
        }
        let silent = self
            .ranges
            .members(range)
            .filter_map(|key| Some((self.neighbours.get(&key)?.peer.silent_since()?, key)));
        let Some((_, first)) = silent.min() else { return false };
        self.forget(first);
        true
    }
}
