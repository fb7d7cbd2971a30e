//! Two speakers without a clock or randomness of their own: the caller chooses what happens next, so
//! that every order can be tried.
//!
//! A state is named by the choices that lead to it, and recreated from them: the machines need no
//! copying for tests.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::log::Log;
use super::router::{Effect, Router};
use super::wire::{Parcel, Wire};
use crate::session::ConnectionId;
use fairway_ground::Instant;
use fairway_seam::{PeerConfig, SessionState};

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Choice {
    /// The next thing on its way to this end arrives: the answer to a dial, an OPEN, a KEEPALIVE, any other
    /// message, a FIN, a reset.
    Deliver { wire: usize, end: usize },
    /// A dial reaches the other side, which accepts it.
    Accept { dial: usize },
    /// A dial is refused.
    Refuse { dial: usize },
    /// The next timer of this side expires. Time advances to then.
    Timer { side: usize },
    /// Something on the way ends the stream to this end, in order.
    Fin { wire: usize, end: usize },
    /// The connection is reset; what is on its way is lost.
    Reset { wire: usize },
}

/// Two speakers and what is on its way between them.
#[derive(Debug)]
pub(super) struct Crossing {
    now: Instant,
    sides: [Router; 2],
    wires: Vec<Wire>,
    dials: Vec<(usize, ConnectionId)>,
}

impl Crossing {
    /// Two speakers that have just started.
    pub(super) fn new(configs: [PeerConfig; 2]) -> Self {
        let [left, right] = configs;
        let sides =
            [Router::new(0, left, 1, Log::default()), Router::new(1, right, 2, Log::default())];
        Self { now: Instant::ZERO, sides, wires: Vec::new(), dials: Vec::new() }
    }

    /// Everything that may happen now. Messages may take any time; timers expire in their order.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut choices = self.deliveries();
        for dial in 0..self.dials.len() {
            choices.extend([Choice::Accept { dial }, Choice::Refuse { dial }]);
        }
        choices.extend(self.timers());
        for (wire, it) in self.wires.iter().enumerate().filter(|(_, it)| !it.closed) {
            for end in 0..2 {
                let (side, id) = it.ends[end];
                let has_ended = it.to_end[end].iter().any(|parcel| matches!(parcel, Parcel::End));
                if !has_ended && self.sides[side].wires.contains_key(&id) {
                    choices.push(Choice::Fin { wire, end });
                }
            }
            if it.ends.iter().any(|(side, id)| self.sides[*side].wires.contains_key(id)) {
                choices.push(Choice::Reset { wire });
            }
        }
        choices
    }

    fn deliveries(&self) -> Vec<Choice> {
        let wires = self.wires.iter().enumerate();
        let waiting = wires.flat_map(|(wire, it)| {
            let ends = (0..2).filter(|end| !it.to_end[*end].is_empty());
            ends.map(move |end| Choice::Deliver { wire, end })
        });
        waiting.collect()
    }

    /// The side with the earlier timer; both when they expire at once.
    fn timers(&self) -> Vec<Choice> {
        let deadlines = [0, 1].map(|side| self.sides[side].peer().next_deadline());
        let first = deadlines.iter().flatten().min();
        let next = (0..2).filter(|side| first.is_some() && deadlines[*side].as_ref() == first);
        next.map(|side| Choice::Timer { side }).collect()
    }

    /// Lets one of [`Crossing::choices`] happen, and checks the rules on both sides.
    pub(super) fn take(&mut self, choice: Choice) {
        match choice {
            Choice::Deliver { wire, end } => self.deliver(wire, end),
            Choice::Accept { dial } => self.accept(dial),
            Choice::Refuse { dial } => {
                let (side, id) = self.dials.remove(dial);
                self.sides[side].connect_failed(self.now, id, "refused");
                self.follow_up(side);
            }
            Choice::Timer { side } => {
                if let Some(deadline) = self.sides[side].peer().next_deadline() {
                    self.now = self.now.max(deadline);
                }
                self.sides[side].tick(self.now);
                self.follow_up(side);
            }
            Choice::Fin { wire, end } => drop(self.wires[wire].push(end, Parcel::End)),
            Choice::Reset { wire } => self.wires[wire].reset(),
        }
    }

    fn deliver(&mut self, wire: usize, end: usize) {
        let (side, id) = self.wires[wire].ends[end];
        let Some(parcel) = self.wires[wire].to_end[end].pop_front() else { return };
        self.sides[side].take(self.now, id, wire, parcel);
        self.follow_up(side);
    }

    fn accept(&mut self, dial: usize) {
        let (side, id) = self.dials.remove(dial);
        let other = 1 - side;
        let accepted = self.sides[other].accept(self.now, self.wires.len());
        self.wires.push(Wire::between((side, id), (other, accepted)));
        self.follow_up(other);
    }

    fn follow_up(&mut self, side: usize) {
        for effect in self.sides[side].settle(self.now) {
            let (wire, parcel) = match effect {
                Effect::Dial(id) => {
                    self.dials.push((side, id));
                    continue;
                }
                Effect::Write(wire, bytes) => (wire, Parcel::Bytes(bytes)),
                Effect::Close(wire) => (wire, Parcel::End),
            };
            let end = 1 - self.wires[wire].end_of(side);
            self.wires[wire].push(end, parcel);
        }
    }

    /// From here on everything arrives at once and nothing is refused: within `bound`, both are
    /// Established over the same connection.
    pub(super) fn heal(&mut self, bound: Duration) {
        let end = self.now + bound;
        while self.now <= end {
            let dialled = (!self.dials.is_empty()).then_some(Choice::Accept { dial: 0 });
            if let Some(choice) = self.deliveries().first().copied().or(dialled) {
                self.take(choice);
            } else if self.is_converged() {
                return;
            } else if let Some(timer) = self.timers().first() {
                self.take(*timer);
            } else {
                break;
            }
        }
        let states = [0, 1].map(|side| self.sides[side].peer().state());
        panic!("{states:?} at {:?}, {bound:?} after the last fault", self.now);
    }

    fn is_converged(&self) -> bool {
        let is_up = |router: &Router| router.peer().state() == SessionState::Established;
        self.sides.iter().all(is_up)
            && self.sides[0].wires.values().eq(self.sides[1].wires.values())
    }

    /// A name for everything that the future depends on. Two states with one name have one future,
    /// but for one chance in 2^100: so only one of them is followed.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut name = Fingerprint(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        let wires = self.wires.iter().map(|wire| (&wire.ends, &wire.to_end, wire.closed));
        let peers = self.sides.iter().map(|side| (side.peer(), &side.wires, &side.dialling));
        for it in peers {
            // Writing to a number cannot fail.
            let _ = write!(name, "{it:?}");
        }
        for wire in wires {
            let _ = write!(name, "{wire:?}");
        }
        let _ = write!(name, "{:?}{:?}", self.now, self.dials);
        name.0
    }
}

/// FNV-1a of 128 bits over text.
struct Fingerprint(u128);

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 =
                (self.0 ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Ok(())
    }
}
