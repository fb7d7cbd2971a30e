//! The event loop of the box: the earliest event happens, its consequences become new events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use bytes::BytesMut;

use super::router::Router;
use super::wire::{Parcel, Wire};
use crate::backend::{SessionState, ViewScope};
use crate::bgp::{Action, Connected, ConnectionId, Event};
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::{Community, LocalNextHops, PeerConfig, Prefix};

/// Room that a socket offers at once.
const ROOM: usize = 16 * 1024;
/// How long an unanswered dial takes to fail, as at the edge.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// No two dials of one side may be closer than this: the shortest backoff with the most jitter.
const DIAL_GAP_MIN: Duration = Duration::from_millis(750);

/// What goes wrong, each with its chance in a hundred for each second of the faulty time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Every connection is reset, in flight bytes are lost.
    pub reset: u64,
    /// Nothing moves between the two for a while.
    pub partition: u64,
    /// One side dies and comes back.
    pub restart: u64,
    /// One side changes its routes.
    pub change: u64,
    /// The longest delay of a parcel, in milliseconds.
    pub delay_max_ms: u64,
}

impl Faults {
    /// A good network.
    pub const NONE: Self = Self { reset: 0, partition: 0, restart: 0, change: 0, delay_max_ms: 1 };
    /// A bad one.
    pub const MANY: Self =
        Self { reset: 15, partition: 10, restart: 10, change: 50, delay_max_ms: 1500 };
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The first parcel to this end of this wire arrives.
    Arrival { wire: usize, end: usize },
    /// A SYN arrives.
    Dial { side: usize, id: ConnectionId },
    /// A dial that nobody answered fails.
    DialFailed { side: usize, id: ConnectionId },
    /// A side may have something to do.
    Wake { side: usize },
    /// Faults are drawn.
    Chance,
    /// The partition heals.
    Heal,
}

/// Two routers, the wires between them, and time.
#[derive(Debug)]
pub struct World {
    now: Instant,
    sides: [Router; 2],
    wires: Vec<Wire>,
    due: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    sequence: u64,
    rng: Rng,
    faults: Faults,
    partitioned: bool,
    /// Events so far.
    pub steps: u64,
}

impl World {
    /// Two routers that have just started. `seed` decides everything that follows.
    pub fn seeded(seed: u64, left: PeerConfig, right: PeerConfig, faults: Faults) -> Self {
        let mut rng = Rng::seeded(seed);
        let sides = [left, right].map(|config| Router::new(Instant::ZERO, config, rng.next_u64()));
        let mut world = Self {
            now: Instant::ZERO,
            sides,
            wires: Vec::new(),
            due: BinaryHeap::new(),
            sequence: 0,
            rng,
            faults,
            partitioned: false,
            steps: 0,
        };
        world.schedule(Duration::ZERO, Due::Chance);
        for side in 0..2 {
            // They never start at quite the same time, or at exactly the same.
            let after = Duration::from_millis(world.rng.next_u64() % 4 * 50);
            world.schedule(after, Due::Wake { side });
        }
        world
    }

    /// Lets `duration` pass.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(Reverse((when, _, _))) = self.due.peek() {
            if *when > end {
                break;
            }
            if let Some(Reverse((when, _, due))) = self.due.pop() {
                self.now = self.now.max(when);
                self.steps += 1;
                self.happen(due);
            }
        }
        self.now = end;
    }

    /// From now on nothing goes wrong any more.
    pub fn stop_faults(&mut self) {
        self.faults = Faults::NONE;
        self.partitioned = false;
        self.resume_wires();
    }

    /// One session, up on both sides over the same connection, and each side has heard exactly
    /// what the other tells.
    pub fn assert_converged(&self) {
        let states = [self.sides[0].peer.state(), self.sides[1].peer.state()];
        assert_eq!(states, [SessionState::Established; 2], "at {:?}", self.now);
        let open: Vec<usize> = self.sides[0].wires.values().copied().collect();
        let others: Vec<usize> = self.sides[1].wires.values().copied().collect();
        assert_eq!(open.len(), 1, "one connection is left");
        assert_eq!(open, others, "and both sides mean the same");
        for (listener, teller) in [(0, 1), (1, 0)] {
            assert_eq!(self.sides[listener].heard, self.sides[teller].told());
        }
    }

    /// Sessions that either side lost after they were Established.
    pub fn sessions_dropped(&self) -> u64 {
        let dropped = |side: usize| {
            self.sides[side].peer.view(self.now, ViewScope::Sessions).connections_dropped
        };
        dropped(0) + dropped(1)
    }

    fn schedule(&mut self, after: Duration, due: Due) {
        self.sequence += 1;
        self.due.push(Reverse((self.now + after, self.sequence, due)));
    }

    fn delay(&mut self) -> Duration {
        Duration::from_millis(self.rng.next_u64() % (self.faults.delay_max_ms + 1))
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Arrival { wire, end } => self.arrive(wire, end),
            Due::Dial { side, id } => self.answer_dial(side, id),
            Due::DialFailed { side, id } => {
                let event = Event::ConnectFailed(id, "no answer".to_owned());
                self.sides[side].peer.handle(self.now, event);
                self.follow_up(side);
            }
            Due::Wake { side } => {
                let peer = &mut self.sides[side].peer;
                // A wake-up that is no longer wanted is not one.
                if peer.next_deadline().is_some_and(|deadline| deadline <= self.now) {
                    peer.handle(self.now, Event::Tick);
                    let next = peer.next_deadline();
                    assert!(next.is_none_or(|next| next > self.now), "a tick settles what was due");
                }
                self.follow_up(side);
            }
            Due::Chance => self.draw_faults(),
            Due::Heal => {
                self.partitioned = false;
                self.resume_wires();
            }
        }
    }

    /// Carries out what a side wants done, gives its sockets room, and notes when to wake it.
    fn follow_up(&mut self, side: usize) {
        while let Some(action) = self.sides[side].poll_action() {
            match action {
                Action::Connect(id) => {
                    let dials = &mut self.sides[side].dials;
                    let gap = dials.last().map(|last| self.now.since(*last));
                    assert!(gap.is_none_or(|gap| gap >= DIAL_GAP_MIN), "dials again after {gap:?}");
                    dials.push(self.now);
                    let after = self.delay();
                    self.schedule(after, Due::Dial { side, id });
                }
                Action::Close(id, last_words) => {
                    let Some(wire) = self.sides[side].wires.remove(&id) else { continue };
                    if let Some(bytes) = last_words {
                        self.send(side, wire, Parcel::Bytes(bytes.to_vec()));
                    }
                    self.send(side, wire, Parcel::End);
                }
                _ => {}
            }
        }
        for (id, wire) in self.sides[side].wires.clone() {
            let mut bytes = BytesMut::new();
            self.sides[side].peer.poll_transmit(self.now, id, ROOM, &mut bytes);
            if !bytes.is_empty() {
                self.send(side, wire, Parcel::Bytes(bytes.to_vec()));
            }
        }
        if let Some(deadline) = self.sides[side].peer.next_deadline() {
            let after = deadline.since(self.now);
            self.schedule(after, Due::Wake { side });
        }
    }

    /// Puts a parcel on its way to the other side, bytes cut in two at a random place.
    fn send(&mut self, from: usize, wire: usize, parcel: Parcel) {
        let parcels = match parcel {
            Parcel::Bytes(bytes) => {
                let length = u64::try_from(bytes.len()).unwrap_or(1).max(1);
                let cut = usize::try_from(self.rng.next_u64() % length).unwrap_or(0);
                let (front, back) = bytes.split_at(cut);
                vec![Parcel::Bytes(front.to_vec()), Parcel::Bytes(back.to_vec())]
            }
            other => vec![other],
        };
        for parcel in parcels {
            let end = 1 - self.wires[wire].end_of(from);
            self.wires[wire].to_end[end].push_back(parcel);
            let after = self.delay();
            self.schedule(after, Due::Arrival { wire, end });
        }
    }

    /// The first parcel on its way arrives; which arrival it is does not matter, order does.
    fn arrive(&mut self, wire: usize, end: usize) {
        if self.partitioned || self.wires[wire].dead {
            return; // Kept until the partition heals, or lost with the connection.
        }
        let (side, id) = self.wires[wire].ends[end];
        let Some(parcel) = self.wires[wire].to_end[end].pop_front() else { return };
        let router = &mut self.sides[side];
        match parcel {
            Parcel::Connected => {
                router.wires.insert(id, wire);
                router.peer.handle(self.now, Event::Connected(id, ends(side)));
            }
            Parcel::Bytes(bytes) => router.peer.handle(self.now, Event::Received(id, &bytes)),
            Parcel::End => {
                router.peer.handle(self.now, Event::Closed(id, None));
            }
        }
        self.follow_up(side);
    }

    fn answer_dial(&mut self, side: usize, id: ConnectionId) {
        if self.partitioned {
            self.schedule(DIAL_TIMEOUT, Due::DialFailed { side, id });
            return;
        }
        let other = 1 - side;
        let accepted = self.sides[other].peer.accept(self.now, ends(other));
        let wire = self.wires.len();
        self.wires.push(Wire {
            ends: [(side, id), (other, accepted)],
            to_end: [VecDeque::from([Parcel::Connected]), VecDeque::new()],
            dead: false,
        });
        self.sides[other].wires.insert(accepted, wire);
        let after = self.delay();
        self.schedule(after, Due::Arrival { wire, end: 0 });
        self.follow_up(other);
    }

    /// Parcels that a partition held back go on.
    fn resume_wires(&mut self) {
        let waiting: Vec<(usize, usize, usize)> = self
            .wires
            .iter()
            .enumerate()
            .flat_map(|(number, wire)| [0, 1].map(|end| (number, end, wire.to_end[end].len())))
            .collect();
        for (wire, end, count) in waiting {
            for _ in 0..count {
                self.schedule(Duration::ZERO, Due::Arrival { wire, end });
            }
        }
    }

    fn draw_faults(&mut self) {
        let faults = self.faults;
        let mut happens = |percent| self.rng.next_u64() % 100 < percent;
        let (reset, partition) = (happens(faults.reset), happens(faults.partition));
        let (restart, change) = (happens(faults.restart), happens(faults.change));
        if reset {
            self.reset_all();
        }
        if partition && !self.partitioned {
            self.partitioned = true;
            let after = Duration::from_millis(self.rng.next_u64() % 20_000);
            self.schedule(after, Due::Heal);
        }
        if restart {
            let side = self.any_side();
            self.reset_all();
            self.sides[side].restart(self.now);
            self.follow_up(side);
        }
        if change {
            let side = self.any_side();
            let routes = self.any_routes();
            self.sides[side].originate(&routes);
            self.follow_up(side);
        }
        if faults != Faults::NONE {
            self.schedule(Duration::from_secs(1), Due::Chance);
        }
    }

    fn any_side(&mut self) -> usize {
        usize::from(self.rng.next_u64() % 2 == 1)
    }

    fn any_routes(&mut self) -> BTreeMap<Prefix, Community> {
        let count = self.rng.next_u64() % 30;
        let route = |rng: &mut Rng| {
            let number = u32::try_from(rng.next_u64() % 40).ok()?;
            let prefix = Prefix::from_ipv4_bits(0x0A00_0000 + number, 32).ok()?;
            Some((prefix, Community(u32::try_from(rng.next_u64() % 3).ok()?)))
        };
        (0..count).filter_map(|_| route(&mut self.rng)).collect()
    }

    /// Every connection breaks; both ends learn it, at once or when it suits the network.
    fn reset_all(&mut self) {
        let open: Vec<(usize, ConnectionId)> = (0..2)
            .flat_map(|side| self.sides[side].wires.keys().map(move |id| (side, *id)))
            .collect();
        let mut dialling = Vec::new();
        for wire in self.wires.iter_mut().filter(|wire| !wire.dead) {
            wire.dead = true;
            if matches!(wire.to_end[0].front(), Some(Parcel::Connected)) {
                dialling.push(wire.ends[0]);
            }
        }
        for (side, id) in dialling {
            // The dialler has not heard that it is up; it hears that it is not.
            self.schedule(Duration::ZERO, Due::DialFailed { side, id });
        }
        for (side, id) in open {
            if self.sides[side].wires.remove(&id).is_some() {
                self.sides[side].peer.handle(self.now, Event::Closed(id, None));
                self.follow_up(side);
            }
        }
    }
}

/// The two ends of a connection as `side` sees them.
fn ends(side: usize) -> Connected {
    let number = u8::from(side == 1) + 1;
    Connected {
        local: ([192, 0, 2, number], 179).into(),
        remote: ([192, 0, 2, 3 - number], 179).into(),
        next_hops: LocalNextHops {
            ipv4: Some([192, 0, 2, number].into()),
            ipv6: None,
            ipv6_link_local: None,
        },
        networks: Vec::new(),
    }
}
