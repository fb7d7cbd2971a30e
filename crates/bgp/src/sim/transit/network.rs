//! The event loop: the earliest event happens, its consequences become new events. When no event is left,
//! the network is quiet.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::fixpoint::{self, Accepted};
use super::node::{Effect, Node};
use super::topology::{self, Wishes, one_of};
use crate::session::ConnectionId;
use crate::sim::wire::Parcel;
use fairway_ground::{Instant, Rng};

/// Faults happen for this long.
const FAULTY: Duration = Duration::from_secs(6);
/// More events than any of these worlds needs to become quiet.
const EVENTS_MAX: u64 = 100_000;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The first parcel to this end of this cable arrives.
    Arrival { cable: usize, end: usize },
    /// A SYN arrives.
    Dial { node: usize, to: usize, id: ConnectionId },
    /// What a socket was given has been written.
    Written { node: usize, to: usize, id: ConnectionId },
    /// A speaker may have something to do.
    Wake { node: usize },
    /// A fault happens.
    Chance,
    /// A process starts, after the one with this number.
    Start { node: usize, run: u64 },
}

/// A TCP connection.
#[derive(Debug)]
pub(super) struct Cable {
    /// The dialler, then the other end; each with its peer, and the name of its connection.
    ends: [(usize, usize, ConnectionId); 2],
    to_end: [VecDeque<Parcel>; 2],
    pub(super) is_closed: bool,
}

/// Several speakers, the connections between them, and time.
#[derive(Debug)]
pub(in crate::sim) struct Network {
    pub(super) now: Instant,
    pub(super) all: Vec<Wishes>,
    pub(super) nodes: Vec<Node>,
    pub(super) cables: Vec<Cable>,
    due: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    sequence: u64,
    wake_at: Vec<Option<Instant>>,
    pub(super) rng: Rng,
    delay_max_ms: u64,
    /// One in so many steps of work on a peer panics.
    pub(super) fault_every: u64,
    /// Events so far.
    pub(in crate::sim) events: u64,
}

impl Network {
    /// Speakers that have just started. `seed` decides everything that follows.
    pub(in crate::sim) fn seeded(seed: u64) -> Self {
        let mut rng = Rng::seeded(seed ^ 0x7261_6e73_6974);
        let all = topology::drawn(&mut rng);
        let delay_max_ms = [0, 5, 80, 900][one_of(&mut rng, 4)];
        let fault_every = [0, 0, 400, 2_000][one_of(&mut rng, 4)];
        let nodes = (0..all.len()).map(|node| Node::new(node, &all, rng.next_u64(), fault_every));
        let nodes: Vec<Node> = nodes.collect();
        let wake_at = vec![None; nodes.len()];
        let mut network = Self {
            now: Instant::ZERO,
            all,
            nodes,
            cables: Vec::new(),
            due: BinaryHeap::new(),
            sequence: 0,
            wake_at,
            rng,
            delay_max_ms,
            fault_every,
            events: 0,
        };
        for node in 0..network.nodes.len() {
            let after = network.delay();
            network.wake(node, network.now + after);
        }
        network.schedule(Duration::ZERO, Due::Chance);
        network
    }

    /// Faults happen for a while, and then stop: all tables become those of the fixpoint.
    pub(in crate::sim) fn live_through(&mut self) {
        self.run_until(Some(Instant::ZERO + FAULTY));
        self.heal();
        self.run_until(None);
        self.assert_settled();
    }

    /// Lets everything happen that is due by `end`, or whatever there is.
    fn run_until(&mut self, end: Option<Instant>) {
        let first = self.events;
        while let Some(Reverse((when, _, due))) = self.due.pop() {
            self.events += 1;
            assert!(self.events - first < EVENTS_MAX, "it never becomes quiet");
            self.now = when;
            self.happen(due);
            if end.is_some_and(|end| when >= end) {
                return;
            }
        }
    }

    /// Faults stop.
    fn heal(&mut self) {
        self.due.retain(|Reverse((_, _, due))| *due != Due::Chance);
        self.fault_every = 0;
        for node in 0..self.nodes.len() {
            self.nodes[node].never_panics_again();
            self.start(node, self.nodes[node].run);
        }
    }

    fn assert_settled(&self) {
        let expected = fixpoint::settled(&self.all);
        for (node, expected) in self.nodes.iter().zip(expected) {
            for neighbour in self.all[node.number].neighbours.keys() {
                assert!(node.is_up(*neighbour), "{} and {neighbour} have no session", node.number);
            }
            let some = |accepted: Accepted| -> Accepted {
                accepted.into_iter().filter(|(_, table)| !table.is_empty()).collect()
            };
            assert_eq!(some(node.accepted()), some(expected), "the table of {}", node.number);
            node.assert_quiet(self.now);
        }
    }

    /// Panics in the work on peers, so far.
    pub(in crate::sim) fn panics(&self) -> u64 {
        self.nodes.iter().map(|node| node.panics).sum()
    }

    /// Routes in all tables.
    pub(in crate::sim) fn routes(&self) -> usize {
        self.nodes.iter().flat_map(|node| node.accepted().into_values()).map(|it| it.len()).sum()
    }

    pub(super) fn schedule(&mut self, after: Duration, due: Due) {
        self.sequence += 1;
        self.due.push(Reverse((self.now + after, self.sequence, due)));
    }

    pub(super) fn delay(&mut self) -> Duration {
        Duration::from_micros(self.rng.next_u64() % (self.delay_max_ms * 1_000 + 1))
    }

    fn wake(&mut self, node: usize, at: Instant) {
        let at = at.max(self.now);
        if self.wake_at[node].is_none_or(|earlier| at < earlier) {
            self.wake_at[node] = Some(at);
            self.schedule(at.since(self.now), Due::Wake { node });
        }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Arrival { cable, end } => self.arrive(cable, end),
            Due::Dial { node, to, id } => self.answer(node, to, id),
            Due::Written { node, to, id } => {
                self.nodes[node].written(self.now, to, id);
                self.follow_up(node);
            }
            Due::Wake { node } => {
                if self.wake_at[node] == Some(self.now) {
                    self.wake_at[node] = None;
                    self.follow_up(node);
                }
            }
            Due::Chance => self.draw_fault(),
            Due::Start { node, run } => self.start(node, run),
        }
    }

    pub(super) fn start(&mut self, node: usize, run: u64) {
        if !self.nodes[node].is_running && self.nodes[node].run == run {
            self.nodes[node].start(self.now, &self.all, self.fault_every);
            self.follow_up(node);
        }
    }

    /// A speaker has its turn.
    pub(super) fn follow_up(&mut self, node: usize) {
        if !self.nodes[node].is_running {
            return;
        }
        for effect in self.nodes[node].settle(self.now, &self.all) {
            match effect {
                Effect::Dial(to, id) => {
                    let after = self.delay();
                    self.schedule(after, Due::Dial { node, to, id });
                }
                Effect::Write(cable, to, id, bytes) => {
                    // It may be cut anywhere.
                    let cut = one_of(&mut self.rng, bytes.len());
                    let (front, back) = bytes.split_at(cut);
                    for part in [front, back].into_iter().filter(|it| !it.is_empty()) {
                        self.send(node, cable, Parcel::Bytes(part.to_vec()));
                    }
                    let after = self.delay();
                    self.schedule(after, Due::Written { node, to, id });
                }
                Effect::Close(cable) => self.send(node, cable, Parcel::End),
            }
        }
        if let Some(deadline) = self.nodes[node].speaker.next_deadline() {
            self.wake(node, deadline);
        }
    }

    fn send(&mut self, from: usize, cable: usize, parcel: Parcel) {
        let end = usize::from(self.cables[cable].ends[0].0 == from);
        if !self.cables[cable].is_closed {
            self.cables[cable].to_end[end].push_back(parcel);
            let after = self.delay();
            self.schedule(after, Due::Arrival { cable, end });
        }
    }

    /// The first parcel on its way arrives; which arrival it is does not matter, order does.
    fn arrive(&mut self, cable: usize, end: usize) {
        let (node, from, id) = self.cables[cable].ends[end];
        let Some(parcel) = self.cables[cable].to_end[end].pop_front() else { return };
        if !self.nodes[node].is_running {
            // The kernel answers for a process that is gone.
            return self.reset(cable);
        }
        let it = &mut self.nodes[node];
        match parcel {
            Parcel::Connected => it.connected(self.now, from, id, cable),
            Parcel::Refused => it.connect_failed(self.now, from, id),
            Parcel::Bytes(bytes) => it.received(self.now, &self.all, from, id, &bytes),
            Parcel::End | Parcel::Reset => it.closed(self.now, from, id),
        }
        self.follow_up(node);
    }

    /// A SYN arrives at the other speaker, if it runs.
    fn answer(&mut self, node: usize, to: usize, id: ConnectionId) {
        let number = self.cables.len();
        let accepted = if self.nodes[to].is_running {
            self.nodes[to].accept(self.now, node, number)
        } else {
            None
        };
        let ends = [(node, to, id), (to, node, accepted.unwrap_or_default())];
        let news = if accepted.is_some() { Parcel::Connected } else { Parcel::Refused };
        let to_end = [VecDeque::from([news]), VecDeque::new()];
        self.cables.push(Cable { ends, to_end, is_closed: accepted.is_none() });
        let after = self.delay();
        self.schedule(after, Due::Arrival { cable: number, end: 0 });
        self.follow_up(to);
    }

    /// What is on its way over a cable is lost, and both ends learn of it.
    pub(super) fn reset(&mut self, cable: usize) {
        if self.cables[cable].is_closed {
            return;
        }
        self.cables[cable].is_closed = true;
        for end in 0..2 {
            let queue = &mut self.cables[cable].to_end[end];
            let is_dialling = matches!(queue.front(), Some(Parcel::Connected));
            *queue = VecDeque::from([if is_dialling { Parcel::Refused } else { Parcel::Reset }]);
            self.schedule(Duration::ZERO, Due::Arrival { cable, end });
        }
    }
}
