//! The events of a box, and their times: drawn from a seed, as a list that can be shortened.
//!
//! Contains the user's actions and the failures. Does not know their effects.

use std::fmt;
use std::time::Duration;

use fairway_ground::Rng;

use crate::objects::{
    ADVERTISEMENT_VARIANTS, ADVERTISEMENTS, LAYER2_VARIANTS, NODE_VARIANTS, PEER_VARIANTS, PEERS,
    POOL_VARIANTS, POOLS, SECRET_VARIANTS, SERVICE_VARIANTS, SERVICES,
};

/// A process of the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The speaker of a node.
    Speaker(usize),
    /// A controller.
    Controller(usize),
}

/// One event. `number` counts objects of the kind, `variant` is one of `objects`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    /// The user creates a Service, or changes it to this variant.
    Service { number: u8, variant: u8 },
    /// The user deletes a Service.
    NoService { number: u8 },
    /// The endpoints of a Service are on these nodes (bits).
    Endpoints { number: u8, nodes: u8 },
    /// An IPAddressPool.
    Pool { number: u8, variant: u8 },
    /// The pool is deleted.
    NoPool { number: u8 },
    /// A BGPAdvertisement.
    Advertisement { number: u8, variant: u8 },
    /// The advertisement is deleted.
    NoAdvertisement { number: u8 },
    /// The L2Advertisement.
    Layer2 { variant: u8 },
    /// The L2Advertisement is deleted.
    NoLayer2,
    /// A BGPPeer.
    Peer { number: u8, variant: u8 },
    /// The Secret that peers may name.
    Secret { variant: u8 },
    /// A Node, with other labels or conditions.
    Node { number: u8, variant: u8 },
    /// The Node is gone for good.
    NoNode { number: u8 },
    /// Another writer sets a label of a Service.
    Label { number: u8, value: u8 },
    /// A process ends abruptly, and is started again after that time.
    Crash { who: Who, seconds: u64 },
    /// The same between two actions: before the one with this number from now.
    CrashAt { who: Who, actions: u64, seconds: u64 },
    /// A process is asked to end, and is started again.
    Restart { who: Who, seconds: u64 },
    /// The disk of a node loses everything.
    LoseDisk { node: usize },
    /// No process reaches the API server.
    Outage { seconds: u64 },
    /// One process does not reach the API server.
    Partition { who: Who, seconds: u64 },
    /// Its requests about the Lease get no answer.
    LeaseTrouble { who: Who, seconds: u64 },
    /// Its requests are executed, and the answers are lost.
    LoseAnswers { who: Who, seconds: u64 },
    /// Its requests and watches take seconds.
    Slow { who: Who, seconds: u64 },
    /// Its watches are cut.
    Cut { who: Who },
    /// A replica of the API server lags behind.
    Lag { replica: usize, seconds: u64 },
    /// The API server forgets its history.
    Compact,
    /// A router restarts.
    Router { number: usize },
}

/// An event and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// After the start of the box.
    pub at: Duration,
    /// The event.
    pub op: Op,
}

/// All events of one box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Where it comes from; also draws every delay.
    pub seed: u64,
    /// How many nodes, each with a speaker.
    pub nodes: usize,
    /// How many controllers.
    pub controllers: usize,
    /// In the order of time.
    pub steps: Vec<Step>,
}

/// The longest time from one step to the next.
const PAUSE_MAX_MS: u64 = 9000;

impl Schedule {
    /// The schedule of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice(Rng::seeded(seed));
        // Mostly small: a failure among five shows among two as well, and takes less time.
        let (nodes, controllers) = (2 + dice.below(4).min(dice.below(4)), 1 + dice.below(3));
        let mut steps = vec![];
        let mut at = Duration::ZERO;
        for op in dice.beginning(nodes) {
            steps.push(Step { at, op });
            at += Duration::from_millis(dice.number(40));
        }
        for _ in 0..8 + dice.below(18) {
            // Often at once, so that steps overlap with the effects of earlier ones.
            at += match dice.below(4) {
                0 => Duration::from_millis(dice.number(30)),
                1 => Duration::from_millis(dice.number(800)),
                _ => Duration::from_millis(dice.number(PAUSE_MAX_MS)),
            };
            steps.push(Step { at, op: dice.op(nodes, controllers) });
        }
        Self { seed, nodes, controllers, steps }
    }
}

struct Dice(Rng);

impl Dice {
    fn number(&mut self, below: u64) -> u64 {
        self.0.next_u64() % below.max(1)
    }

    fn below(&mut self, below: usize) -> usize {
        usize::try_from(self.number(below as u64)).unwrap_or_default()
    }

    fn small(&mut self, below: u8) -> u8 {
        u8::try_from(self.number(below.into())).unwrap_or_default()
    }

    /// What a user applies first, in the order of a shuffled `kubectl apply`.
    fn beginning(&mut self, nodes: usize) -> Vec<Op> {
        let mut ops: Vec<Op> = (0..PEERS).map(|number| Op::Peer { number, variant: 0 }).collect();
        ops.extend(
            (0..nodes).map(|node| Op::Node {
                number: u8::try_from(node).unwrap_or_default(),
                variant: 0,
            }),
        );
        ops.push(Op::Advertisement { number: 0, variant: 0 });
        ops.push(Op::Layer2 { variant: self.small(LAYER2_VARIANTS) });
        for number in 0..1 + self.small(POOLS) {
            ops.push(Op::Pool { number, variant: self.small(POOL_VARIANTS) });
        }
        for number in 0..2 + self.small(SERVICES - 2) {
            ops.push(Op::Service { number, variant: self.small(SERVICE_VARIANTS) });
            ops.push(Op::Endpoints { number, nodes: self.small(63) | 1 });
        }
        for place in (1..ops.len()).rev() {
            ops.swap(place, self.below(place + 1));
        }
        ops
    }

    fn who(&mut self, nodes: usize, controllers: usize) -> Who {
        if self.below(2) == 0 {
            Who::Speaker(self.below(nodes))
        } else {
            Who::Controller(self.below(controllers))
        }
    }

    fn op(&mut self, nodes: usize, controllers: usize) -> Op {
        if self.below(2) == 0 { self.wish(nodes) } else { self.fault(nodes, controllers) }
    }

    fn wish(&mut self, nodes: usize) -> Op {
        let number = self.small(SERVICES);
        let node = u8::try_from(self.below(nodes)).unwrap_or_default();
        match self.below(28) {
            0..=6 => Op::Service { number, variant: self.small(SERVICE_VARIANTS) },
            7..=9 => Op::NoService { number },
            10..=12 => Op::Endpoints { number, nodes: self.small(64) },
            13..=15 => Op::Pool { number: self.small(POOLS), variant: self.small(POOL_VARIANTS) },
            16 => Op::NoPool { number: self.small(POOLS) },
            17..=18 => Op::Advertisement {
                number: self.small(ADVERTISEMENTS),
                variant: self.small(ADVERTISEMENT_VARIANTS),
            },
            19 => Op::NoAdvertisement { number: self.small(ADVERTISEMENTS) },
            20 => Op::Peer { number: self.small(PEERS), variant: self.small(PEER_VARIANTS) },
            21 => Op::Node { number: node, variant: self.small(NODE_VARIANTS) },
            22 => Op::Layer2 { variant: self.small(LAYER2_VARIANTS) },
            23 => Op::NoLayer2,
            24 if node > 0 => Op::NoNode { number: node },
            25..=26 => Op::Secret { variant: self.small(SECRET_VARIANTS) },
            _ => Op::Label { number, value: self.small(3) },
        }
    }

    fn fault(&mut self, nodes: usize, controllers: usize) -> Op {
        let who = self.who(nodes, controllers);
        // The longest exceeds the time for which routers keep routes of a restarting node.
        let seconds = match self.below(7) {
            0 | 1 => self.number(4),
            2 | 3 => self.number(30),
            4 | 5 => self.number(90),
            _ => self.number(300),
        };
        match self.below(22) {
            0..=2 => Op::Crash { who, seconds },
            3..=5 => Op::CrashAt { who, actions: self.number(12), seconds },
            6..=7 => Op::Restart { who, seconds },
            8 => Op::LoseDisk { node: self.below(nodes) },
            9..=10 => Op::Outage { seconds },
            11..=12 => Op::Partition { who, seconds },
            13 => Op::LeaseTrouble { who: Who::Controller(self.below(controllers)), seconds },
            14..=15 => Op::LoseAnswers { who, seconds },
            16 => Op::Slow { who, seconds },
            17..=18 => Op::Cut { who },
            19 => Op::Lag { replica: self.below(2), seconds },
            20 => Op::Compact,
            _ => Op::Router { number: self.below(usize::from(PEERS)) },
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Speaker(node) => write!(f, "speaker {node}"),
            Self::Controller(number) => write!(f, "controller {number}"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
