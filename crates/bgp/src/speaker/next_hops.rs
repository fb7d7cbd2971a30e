//! Which next hops cannot be reached, and what becomes of their paths: they are not used, nor passed on, until they can be.
//!
//! Another part of [`Speaker`]. The thread that installs routes asks the kernel about their next hops; one that cannot be
//! reached is followed until no path has it.

use std::collections::BTreeSet;

use super::action::Action;
use super::guard::Guard;
use super::speaker::Speaker;
use fairway_ground::InterfaceName;
use fairway_seam::TrackedNextHop;

impl<G: Guard> Speaker<G> {
    /// Takes what has changed. Paths enter and leave the RIB in parts, like those of a session that ends.
    pub(super) fn follow_next_hops(&mut self, next_hops: Vec<(TrackedNextHop, bool)>) {
        for neighbour in self.neighbours.values_mut() {
            // Otherwise what waits would be older than what the RIB has.
            neighbour.unlearned.learn_all(&mut self.rib);
        }
        for (source, changes) in self.rib.follow_next_hops(next_hops) {
            if let Some(neighbour) = self.neighbours.get_mut(&source.key) {
                self.agenda.touch(source.key);
                neighbour.unlearned.push(source, changes, &mut self.rib);
            }
        }
    }

    /// Lets go of next hops that no path has any more.
    pub(super) fn untrack(&mut self) {
        let waits = || self.neighbours.values().any(|it| !it.unlearned.is_empty());
        if !self.rib.may_have_unused_next_hops() || waits() {
            return;
        }
        let unused = self.rib.take_unused_next_hops();
        if !unused.is_empty() {
            self.outbox.push(Action::Untrack(unused));
        }
    }

    /// Where no neighbour's routes are installed any more, nothing is told of next hops.
    pub(super) fn give_up_next_hops(&mut self) {
        let installing = self.neighbours.values().map(|it| it.peer.config());
        let installing = installing.filter(|it| it.install_routes).map(|it| it.key.vrf);
        let installing: BTreeSet<Option<InterfaceName>> = installing.collect();
        let all = self.rib.unreachable_next_hops();
        let given_up: Vec<TrackedNextHop> =
            all.filter(|it| !installing.contains(&it.vrf)).collect();
        if !given_up.is_empty() {
            self.follow_next_hops(given_up.iter().map(|it| (*it, true)).collect());
            self.outbox.push(Action::Untrack(given_up));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::*;
    use crate::example::Example as _;
    use crate::speaker::Event;
    use crate::speaker::parts::PART_MAX;
    use fairway_ground::{
        AsPath, Asn, Instant, NextHop, Nlri, PeerKey, PeerKind, Prefix, Rng, RouterId,
    };
    use fairway_seam::{
        DecisionStep, Desired, PathAttributes, PathSource, PeerConfig, RouteChange,
    };

    const NEXT_HOPS: u8 = 3;

    fn next_hop(number: u8) -> TrackedNextHop {
        TrackedNextHop { vrf: None, address: [203, 0, 113, number].into(), on_link_of: None }
    }

    /// A speaker with neighbours whose routes arrive as if they had sessions, and what it should make of them.
    struct History {
        rng: Rng,
        speaker: Speaker,
        sources: Vec<Arc<PathSource>>,
        announced: BTreeMap<(PeerKey, Nlri), u8>,
        unreachable: BTreeSet<TrackedNextHop>,
    }

    impl History {
        fn new(seed: u64) -> Self {
            let peers: Vec<PeerConfig> = (1..4)
                .map(|number| PeerConfig {
                    install_routes: true,
                    passive: true,
                    ..PeerConfig::example(number)
                })
                .collect();
            let source = |config: &PeerConfig| {
                let address = config.key.address().unwrap();
                Arc::new(PathSource {
                    key: config.key,
                    address,
                    kind: PeerKind::External,
                    remote_asn: Asn::new(65_002).unwrap(),
                    router_id: RouterId::new(2).unwrap(),
                    is_client: false,
                })
            };
            let sources = peers.iter().map(source).collect();
            let mut speaker = Speaker::new(Instant::ZERO, seed, None);
            let desired = Desired { peers, ..Desired::default() };
            speaker.handle(Instant::ZERO, Event::Desired(Arc::new(desired), None));
            let rng = Rng::seeded(seed);
            let (announced, unreachable) = (BTreeMap::new(), BTreeSet::new());
            Self { rng, speaker, sources, announced, unreachable }
        }

        fn below(&mut self, bound: usize) -> usize {
            usize::try_from(self.rng.next_u64()).unwrap_or(usize::MAX) % bound
        }

        fn step(&mut self) {
            match self.below(8) {
                0..4 => self.announce(),
                4 | 5 => {
                    let number = u8::try_from(self.below(usize::from(NEXT_HOPS))).unwrap();
                    // The kernel is told nothing twice.
                    let is_reachable = self.unreachable.contains(&next_hop(number));
                    match is_reachable {
                        true => self.unreachable.remove(&next_hop(number)),
                        false => self.unreachable.insert(next_hop(number)),
                    };
                    let told = vec![(next_hop(number), is_reachable)];
                    self.speaker.handle(Instant::ZERO, Event::NextHops(told));
                }
                _ => self.tick(),
            }
        }

        /// Some routes of one neighbour, in one list as long as that of a session that ends, or shorter.
        fn announce(&mut self) {
            let place = self.below(self.sources.len());
            let source = Arc::clone(&self.sources[place]);
            let (first, count) = (self.below(20), 1 + self.below(3 * PART_MAX));
            let mut changes = Vec::new();
            for number in first..first + count {
                let prefix = Prefix::from_ipv4_bits(u32::try_from(number << 8).unwrap(), 24);
                let nlri = Nlri::from(prefix.unwrap());
                let via = u8::try_from(self.below(usize::from(NEXT_HOPS))).unwrap();
                let attributes = match self.below(3) {
                    0 => {
                        self.announced.remove(&(source.key, nlri));
                        None
                    }
                    _ => {
                        self.announced.insert((source.key, nlri), via);
                        let IpAddr::V4(address) = next_hop(via).address else { panic!() };
                        let as_path = AsPath::sequence(vec![65_002]);
                        let next_hop = NextHop::Ipv4(address);
                        Some(Arc::new(PathAttributes::originated(as_path, next_hop)))
                    }
                };
                changes.push(RouteChange { nlri, attributes });
            }
            let neighbour = self.speaker.neighbours.get_mut(&source.key).unwrap();
            neighbour.unlearned.push(Arc::clone(&source), changes, &mut self.speaker.rib);
            self.speaker.agenda.touch(source.key);
        }

        fn tick(&mut self) {
            self.speaker.handle(Instant::ZERO, Event::Tick);
            let mut buffer = bytes::BytesMut::new();
            while self.speaker.poll_transmit(Instant::ZERO, 0, &mut buffer).is_some() {}
            while let Some(action) = self.speaker.poll_action() {
                let Action::Untrack(next_hops) = action else { continue };
                for it in next_hops {
                    let mut vias = self.announced.values();
                    assert!(!vias.any(|via| next_hop(*via) == it), "{it:?} has paths");
                    assert!(self.unreachable.remove(&it), "{it:?} is not known");
                }
            }
        }

        fn check(&mut self, seed: u64) {
            for _ in 0..100 {
                self.tick();
            }
            let mut expected: BTreeMap<(PeerKey, Nlri), (u8, bool)> = BTreeMap::new();
            for (place, via) in &self.announced {
                expected.insert(*place, (*via, !self.unreachable.contains(&next_hop(*via))));
            }
            let learned = self.speaker.rib.learned().map(|it| {
                let nlri = Nlri { prefix: it.prefix, path_id: it.path.path_id };
                let IpAddr::V4(address) = it.path.attributes.next_hop.address() else { panic!() };
                let is_used = it.lost_at != Some(DecisionStep::NextHop);
                ((it.path.source.key, nlri), (address.octets()[3], is_used))
            });
            let learned: Vec<_> = learned.collect();
            assert_eq!(learned.len(), expected.len(), "seed {seed}: none twice");
            assert_eq!(learned.into_iter().collect::<BTreeMap<_, _>>(), expected, "seed {seed}");
            let of_no_path = self
                .unreachable
                .iter()
                .filter(|it| !self.announced.values().any(|via| next_hop(*via) == **it));
            assert_eq!(of_no_path.count(), 0, "seed {seed}: each is let go");
        }
    }

    /// `FAIRWAY_SEED` replays one history, `FAIRWAY_SEEDS` says how many there are.
    #[test]
    fn after_any_history_the_paths_are_used_whose_next_hop_can_be_reached() {
        let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
        let first = number("FAIRWAY_SEED").unwrap_or(1);
        for seed in first..first + number("FAIRWAY_SEEDS").unwrap_or(300) {
            let mut history = History::new(seed);
            for _ in 0..40 {
                history.step();
            }
            history.check(seed);
        }
    }

    #[test]
    fn without_a_neighbour_whose_routes_are_installed_all_next_hops_count_as_reachable() {
        let mut history = History::new(1);
        history.announced.clear();
        while history.announced.is_empty() {
            history.announce();
        }
        let all: Vec<_> = (0..NEXT_HOPS).map(|it| (next_hop(it), false)).collect();
        history.unreachable.extend(all.iter().map(|(it, _)| *it));
        history.speaker.handle(Instant::ZERO, Event::NextHops(all));
        history.check(1);
        let mut desired = Desired::clone(&history.speaker.desired);
        desired.peers.iter_mut().for_each(|it| it.install_routes = false);
        history.speaker.handle(Instant::ZERO, Event::Desired(Arc::new(desired), None));
        // They are let go although paths have them.
        while history.speaker.poll_action().is_some() {}
        history.unreachable.clear();
        history.check(1);
    }
}
