//! Which routes this machine forwards by, as they change, and when they are all known after a start. Learned ones, and those
//! of our own whose packets it drops.
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
use fairway_seam::{
    Blackholes, Desired, DrainState, Forward, ForwardingChange, Gateway, PathSource, PeerConfig,
};

/// How long routes of an earlier run stay for neighbours that have not sent all of theirs: FRR's time for stale paths.
const COMPLETE_WAIT: Duration = Duration::from_secs(360);

/// What the speaker remembers of it.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// Until when neighbours are waited for.
    until: Instant,
    is_complete: bool,
    /// Where some neighbour had routes to install, or packets are dropped; none where nobody ever had.
    vrfs: BTreeSet<Option<InterfaceName>>,
    /// Where packets are dropped.
    blackholes: Arc<Blackholes>,
}

impl Forwarding {
    pub(super) fn new(now: Instant) -> Self {
        let until = now + COMPLETE_WAIT;
        Self { until, is_complete: false, vrfs: BTreeSet::new(), blackholes: Arc::default() }
    }

    /// A neighbour has these settings from now on.
    pub(super) fn note(&mut self, config: &PeerConfig) {
        if config.install_routes {
            self.vrfs.insert(config.key.vrf);
        }
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
                let vrf = *vrf;
                if self.forwarding.blackholes.contains(&(prefix, vrf)) {
                    changes.push(ForwardingChange { vrf, prefix, forward: Forward::Drop });
                    continue;
                }
                let gateways = gateways(routes, vrf, installs);
                if *last != *gateways {
                    last = gateways.into();
                }
                let forward = Forward::By(Arc::clone(&last));
                changes.push(ForwardingChange { vrf, prefix, forward });
            }
        }
        if !changes.is_empty() {
            self.outbox.push(Action::Forward(changes));
        }
    }

    /// Follows to which prefixes packets are dropped: to none while the node is drained, since other nodes announce
    /// them then.
    pub(super) fn drop_others(&mut self, desired: &Desired) {
        let now = match desired.drain {
            DrainState::Drained => Arc::default(),
            DrainState::InService | DrainState::Draining => Arc::clone(&desired.blackholes),
        };
        let before = std::mem::replace(&mut self.forwarding.blackholes, Arc::clone(&now));
        let (mut known, mut changes) = (Vec::new(), Vec::new());
        for (prefix, vrf) in now.symmetric_difference(&before).copied() {
            self.forwarding.vrfs.insert(vrf);
            if let Some(id) = self.rib.id_of(prefix) {
                known.push(id);
                continue;
            }
            let is_dropped = now.contains(&(prefix, vrf));
            let forward = if is_dropped { Forward::Drop } else { Forward::By(Arc::default()) };
            changes.push(ForwardingChange { vrf, prefix, forward });
        }
        if !changes.is_empty() {
            self.outbox.push(Action::Forward(changes));
        }
        self.forward(known.into_iter());
    }

    /// The same of all prefixes: a neighbour's routes are installed from now on, or not any more.
    pub(super) fn forward_all(&mut self) {
        let known = self.rib.known_between(PrefixId::FIRST, self.rib.end());
        let ids: Vec<PrefixId> = known.map(|(id, ..)| id).collect();
        self.forward(ids.into_iter());
    }

    /// When the wait for neighbours ends. Sources that are not ready are waited for without a bound, and say so themselves.
    pub(super) fn forwarding_deadline(&self) -> Option<Instant> {
        let Forwarding { until, is_complete, vrfs, .. } = &self.forwarding;
        let waits = !is_complete && !vrfs.is_empty() && !self.startup.awaits_sources();
        waits.then_some(*until)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Example as _;
    use crate::speaker::Event;

    /// Whether routes of an earlier run are given up by then.
    fn is_complete(speaker: &mut Speaker, now: Instant) -> bool {
        speaker.handle(now, Event::Tick);
        let actions: Vec<Action> = std::iter::from_fn(|| speaker.poll_action()).collect();
        actions.iter().any(|it| matches!(it, Action::ForwardingComplete))
    }

    #[test]
    fn routes_of_an_earlier_run_wait_for_sources_without_a_busy_loop() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let config = PeerConfig { install_routes: true, passive: true, ..PeerConfig::example(1) };
        let desired = |awaits_sources| {
            let peers = vec![config.clone()];
            Event::Desired(Arc::new(Desired { peers, awaits_sources, ..Desired::default() }), None)
        };
        let mut speaker = Speaker::new(Instant::ZERO, 1, None);
        speaker.handle(Instant::ZERO, desired(true));
        assert!(!is_complete(&mut speaker, at(400)));
        assert!(speaker.forwarding_deadline().is_none(), "nothing is due before the sources are");
        speaker.handle(at(400), desired(false));
        assert!(is_complete(&mut speaker, at(400)), "its neighbor had the time");
        assert!(speaker.forwarding_deadline().is_none());
    }

    #[test]
    fn packets_to_a_prefix_of_ours_are_dropped_as_long_as_that_is_asked() {
        let prefix: fairway_ground::Prefix = "10.20.0.0/16".parse().unwrap();
        let mut speaker = Speaker::new(Instant::ZERO, 1, None);
        let mut forwarded_from = |drain, blackholes: &[Option<InterfaceName>]| {
            let blackholes = Arc::new(blackholes.iter().map(|vrf| (prefix, *vrf)).collect());
            let desired = Desired { blackholes, drain, ..Desired::default() };
            speaker.handle(Instant::ZERO, Event::Desired(Arc::new(desired), None));
            let actions = std::iter::from_fn(|| speaker.poll_action());
            let changes = actions.filter_map(|it| match it {
                Action::Forward(changes) => Some(changes),
                _ => None,
            });
            changes.flatten().map(|it| (it.vrf, it.forward)).collect::<Vec<_>>()
        };
        let mut forwarded = |blackholes: &[_]| forwarded_from(DrainState::InService, blackholes);
        let (red, nothing) = ("red".parse().ok(), Forward::By(Arc::default()));
        assert_eq!(forwarded(&[None]), [(None, Forward::Drop)]);
        assert_eq!(forwarded(&[None]), []);
        assert_eq!(forwarded(&[red]), [(None, nothing.clone()), (red, Forward::Drop)]);
        assert_eq!(forwarded(&[]), [(red, nothing.clone())]);
        // Others announce what a drained node does not.
        assert_eq!(forwarded(&[red]), [(red, Forward::Drop)]);
        assert_eq!(forwarded_from(DrainState::Drained, &[red]), [(red, nothing)]);
        assert_eq!(forwarded_from(DrainState::InService, &[red]), [(red, Forward::Drop)]);
    }

    #[test]
    fn a_neighbour_that_is_away_is_waited_for_a_while() {
        let config = PeerConfig { install_routes: true, passive: true, ..PeerConfig::example(1) };
        let mut speaker = Speaker::new(Instant::ZERO, 1, None);
        let desired = Desired { peers: vec![config], ..Desired::default() };
        speaker.handle(Instant::ZERO, Event::Desired(Arc::new(desired), None));
        assert!(!is_complete(&mut speaker, Instant::ZERO));
        let deadline = speaker.forwarding_deadline().unwrap();
        assert!(is_complete(&mut speaker, deadline));
    }
}
