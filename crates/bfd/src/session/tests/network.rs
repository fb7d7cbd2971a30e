//! Two sessions and the path between them, on virtual time.

use std::collections::VecDeque;

use super::model::Model;
use super::*;

/// Two systems with the same delay both ways. At equal times packets are delivered before deadlines expire.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) ends: [Session; 2],
    pub(super) models: [Model; 2],
    /// How many packets in a row may be lost in each direction.
    pub(super) losses_max: [u8; 2],
    losses: [u8; 2],
    pub(super) is_cut: bool,
    flights: VecDeque<(Instant, usize, [u8; PACKET_LENGTH_BYTES_MAX], usize)>,
    delay: Duration,
    pub(super) rng: Rng,
    pub(super) changes: [Vec<BfdChange>; 2],
    pub(super) events: u64,
}

impl World {
    pub(super) fn new(seed: u64, settings: [BfdSettings; 2], delay: Duration) -> Self {
        let mut rng = Rng::seeded(seed);
        let mut name = 0;
        let ends = settings.map(|settings| {
            name += 1;
            let name = NonZeroU32::new(name).unwrap();
            Session::new(Instant::ZERO, settings, false, name, rng.next_u64())
        });
        let mut world = Self {
            now: Instant::ZERO,
            ends,
            models: Default::default(),
            losses_max: [0; 2],
            losses: [0; 2],
            is_cut: false,
            flights: VecDeque::new(),
            delay,
            rng,
            changes: Default::default(),
            events: 0,
        };
        world.drain();
        world
    }

    /// Processes the next event, if it is before `end`.
    pub(super) fn step(&mut self, end: Instant) -> bool {
        let delivery = self.flights.front().map(|flight| flight.0);
        let deadline = self.ends.iter().filter_map(Session::next_deadline).min();
        let next = delivery.into_iter().chain(deadline).min();
        let Some(now) = next.filter(|now| *now < end) else {
            self.now = end;
            return false;
        };
        let is_delivery = delivery == Some(now);
        // A deadline that moved by a change of settings may be in the past.
        self.now = now.max(self.now);
        self.events += 1;
        if is_delivery {
            self.deliver();
        } else {
            for (session, model) in self.ends.iter_mut().zip(&mut self.models) {
                let was_known = session.remote.is_there();
                session.expire(self.now, None);
                if was_known && !session.remote.is_there() {
                    model.fell_silent();
                }
            }
        }
        self.drain();
        true
    }

    fn deliver(&mut self) {
        let Some((_, to, bytes, length)) = self.flights.pop_front() else { return };
        let (packet, covered) = ControlPacket::decode(&bytes[..length]).unwrap();
        self.models[to].received(&packet);
        self.ends[to].receive(self.now, self.now, &packet, covered).unwrap();
    }

    /// Sends the pending packets, and records changes.
    pub(super) fn drain(&mut self) {
        let mut bytes = [0; PACKET_LENGTH_BYTES_MAX];
        for from in 0..2 {
            while let Some(change) = self.ends[from].poll_event() {
                self.changes[from].push(change);
            }
            while let Some(written) = self.ends[from].poll_transmit(self.now, &mut bytes) {
                let (packet, _) = ControlPacket::decode(&bytes[..written.length]).unwrap();
                self.models[from].sent(self.now, &packet);
                let may_lose = self.losses[from] < self.losses_max[from];
                if self.is_cut || (may_lose && self.rng.next_u64().is_multiple_of(2)) {
                    self.losses[from] += 1;
                } else {
                    self.losses[from] = 0;
                    let flight = (self.now + self.delay, 1 - from, bytes, written.length);
                    self.flights.push_back(flight);
                }
            }
        }
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    pub(super) fn is_up(&self) -> bool {
        self.ends.iter().all(|end| end.state == State::Up)
    }

    pub(super) fn downs(&self) -> u64 {
        self.ends.iter().map(|end| end.counters.downs).sum()
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// `FAIRWAY_SEEDS` requests more than a test should take, `FAIRWAY_SEED` a single one.
pub(super) fn seeds(count: u64) -> std::ops::Range<u64> {
    match number("FAIRWAY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FAIRWAY_SEEDS").unwrap_or(count),
    }
}

/// From 10 to 310 ms, or slow.
pub(super) fn any_interval(rng: &mut Rng) -> Duration {
    if rng.next_u64().is_multiple_of(10) { ms(2_000) } else { ms(10 + rng.next_u64() % 300) }
}

pub(super) fn any_settings(rng: &mut Rng) -> BfdSettings {
    BfdSettings {
        transmit_interval: any_interval(rng),
        receive_interval: any_interval(rng),
        detect_multiplier: multiplier(u8::try_from(1 + rng.next_u64() % 5).unwrap()),
        ..BfdSettings::default()
    }
}

//= RFC 5880 §6.8.4 MUST: as many packets in a row as the multiplier says must be missed.
#[test]
fn fewer_losses_in_a_row_than_the_multiplier_never_drop_a_session() {
    for seed in seeds(150) {
        let mut rng = Rng::seeded(seed);
        let settings = [any_settings(&mut rng), any_settings(&mut rng)];
        let delay = Duration::from_micros(rng.next_u64() % 400_000);
        let mut world = World::new(seed, settings.clone(), delay);
        world.losses_max = [0, 1].map(|end: usize| settings[end].detect_multiplier.get() - 1);
        world.run_until(at(30_000));
        assert!(world.is_up(), "seed {seed}");
        // With new intervals meanwhile.
        for _ in 0..4 {
            let end = usize::from(world.rng.next_u64().is_multiple_of(2));
            let (transmit_interval, receive_interval) =
                (any_interval(&mut world.rng), any_interval(&mut world.rng));
            let changed =
                BfdSettings { transmit_interval, receive_interval, ..settings[end].clone() };
            let now = world.now;
            world.ends[end].configure(now, &changed);
            world.drain();
            let pause = ms(1 + world.rng.next_u64() % 1_000);
            world.run_until(now + pause);
        }
        assert_eq!(world.downs(), 0, "seed {seed}");
    }
}

#[test]
fn a_cut_is_noticed_in_the_detection_time_and_healed_in_seconds() {
    for seed in 0..50 {
        let mut world = World::new(seed, [settings(50, 50, 3), settings(50, 50, 3)], ms(1));
        world.run_until(at(5_000));
        assert!(world.is_up());
        world.is_cut = true;
        world.run_until(at(5_152));
        assert_eq!(world.downs(), 2, "seed {seed}: 150 ms after the last packet, 1 ms in flight");
        world.run_until(at(20_000));
        world.is_cut = false;
        world.run_until(at(23_000));
        assert!(world.is_up(), "seed {seed}");
        let ups = world.changes[0].iter().filter(|change| **change == BfdChange::Up).count();
        assert_eq!((ups, world.downs()), (2, 2), "seed {seed}");
    }
}

/// Coming up takes a packet each way and at most a second, if nothing is lost.
#[test]
fn two_ends_find_each_other_at_once() {
    for seed in 0..200 {
        let mut rng = Rng::seeded(seed);
        let passive = BfdSettings { passive: true, ..any_settings(&mut rng) };
        let mut world = World::new(seed, [any_settings(&mut rng), passive], ms(5));
        world.run_until(at(100));
        assert!(world.is_up(), "seed {seed}");
    }
}
