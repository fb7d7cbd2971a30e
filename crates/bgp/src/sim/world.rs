//! The event loop of the simulation: the earliest event happens, its consequences become new events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::faults::{Faults, Refusal};
use super::log::{Line, Log};
use super::restart::{Restart, without_notifications};
use super::router::{Effect, Router};
use super::wire::{Parcel, Wire};
use crate::session::ConnectionId;
use crate::wire::Notification;
use crate::wire::notification::cease;
use fairway_ground::{HoldTime, Instant, Rng};
use fairway_seam::{PeerConfig, SessionState, ViewScope};

/// How long an unanswered dial takes to fail, as at the edge.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// When the kernel detects that a connection has vanished, for sessions without a hold timer. The edge's
/// own setting is a minute and more; it would only make every schedule longer.
const KERNEL_KEEPALIVE: Duration = Duration::from_secs(12);
/// The most that the timers that detect silence need: the longest delay of an OPEN that is drawn, 30 s of
/// waiting for the neighbour's, and a little.
const SILENCE_MAX: Duration = Duration::from_secs(3 + 30 + 1);
/// An open session proves itself for this long before a schedule is over: more than the longest
/// hold time that is drawn.
const PROOF: Duration = Duration::from_secs(10);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The first parcel to this end of this wire arrives.
    Arrival { wire: usize, end: usize },
    /// A SYN arrives.
    Dial { side: usize, id: ConnectionId },
    /// A dial without an answer fails.
    DialFailed { side: usize, id: ConnectionId },
    /// A side may have something to do.
    Wake { side: usize },
    /// Faults are drawn.
    Chance,
    /// What is held back from this side is delivered.
    Heal { side: usize },
    /// A direction moves again.
    Resume { wire: usize, end: usize },
    /// A side no longer refuses.
    Welcome { side: usize },
    /// The kernel probes the other end of a wire that vanished.
    Probe { wire: usize },
    /// A process begins, after the one with this number.
    Start { side: usize, incarnation: u64 },
    /// The sources of the process with this number become ready.
    Sources { side: usize, incarnation: u64 },
}

/// Two routers, the wires between them, and time.
#[derive(Debug)]
pub struct World {
    pub(super) now: Instant,
    pub(super) sides: [Router; 2],
    pub(super) wires: Vec<Wire>,
    due: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    sequence: u64,
    /// When each side is to be woken next.
    pub(super) wake_at: [Option<Instant>; 2],
    /// How each side starts that is away.
    pub(super) next: [Option<Restart>; 2],
    /// Before which event a side restarts.
    pub(super) restart_at: Option<(u64, Option<Restart>)>,
    pub(super) rng: Rng,
    pub(super) faults: Faults,
    /// Nothing reaches this side.
    cut_off: [bool; 2],
    refusing: [Option<Refusal>; 2],
    /// Neither supports RFC 8538: what OPENs advertise about it is lost on the way.
    pub(super) is_plain: bool,
    /// Events so far.
    pub steps: u64,
}

impl World {
    /// Two routers that have just started. `seed` decides everything that follows.
    pub fn seeded(seed: u64, configs: [PeerConfig; 2], faults: Faults, keep_log: bool) -> Self {
        let mut rng = Rng::seeded(seed);
        let [left, right] = configs;
        let log = |side| Log::of_side(side, keep_log);
        let sides = [
            Router::new(0, left, rng.next_u64(), log(0)),
            Router::new(1, right, rng.next_u64(), log(1)),
        ];
        let mut world = Self {
            now: Instant::ZERO,
            sides,
            wires: Vec::new(),
            due: BinaryHeap::new(),
            sequence: 0,
            wake_at: [None; 2],
            next: [None; 2],
            restart_at: None,
            rng,
            faults,
            cut_off: [false; 2],
            refusing: [None; 2],
            is_plain: false,
            steps: 0,
        };
        world.schedule(Duration::ZERO, Due::Chance);
        world.choose_restart();
        for side in 0..2 {
            // They never start at quite the same time, or at exactly the same.
            let after = world.up_to_ms(3).saturating_mul(50);
            world.wake(side, world.now + after);
            if faults.change > 0 {
                let routes = world.any_routes();
                world.sides[side].originate(world.now, routes);
            }
        }
        world
    }

    /// Lets `duration` pass.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(duration, |_| false);
    }

    /// Lets time pass until `enough`, but not more than `most`. Returns whether it was enough.
    fn run_until(&mut self, most: Duration, enough: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + most;
        loop {
            if enough(self) {
                return true;
            }
            match self.due.peek() {
                Some(Reverse((when, _, _))) if *when <= end => {}
                _ => break,
            }
            if let Some(Reverse((when, _, due))) = self.due.pop() {
                assert!(when >= self.now, "time never goes back");
                self.now = when;
                self.restart_if_due();
                self.steps += 1;
                self.happen(due);
            }
        }
        self.now = end;
        false
    }

    /// From now on no fault happens any more. Within `bound` of the moment when the last vanished
    /// connection is detected, one session is up and stays up.
    pub fn heal_and_converge(&mut self, bound: Duration) {
        self.faults = Faults::NONE;
        self.restart_at = None;
        self.refusing = [None; 2];
        self.cut_off = [false; 2];
        self.end_restarts();
        for wire in 0..self.wires.len() {
            for end in 0..2 {
                self.wires[wire].stalled[end] = false;
                self.deliver_waiting(wire, end);
            }
        }
        let found = self.run_until(SILENCE_MAX, |world| !world.is_anybody_fooled());
        assert!(found, "a connection that vanished is detected");
        let converged = self.run_until(bound, Self::is_converged);
        assert!(converged, "after {bound:?}: {:?}", self.states());
        let dropped = self.sessions_dropped();
        self.run_for(PROOF);
        self.assert_converged();
        assert_eq!(self.sessions_dropped(), dropped, "a session stays up without faults");
    }

    /// One session, up on both sides over the same connection, and each side has received exactly what
    /// the other advertises.
    pub fn assert_converged(&self) {
        assert_eq!(self.states(), [SessionState::Established; 2], "at {:?}", self.now);
        let [left, right] = [0, 1].map(|side| self.sides[side].wires.values().collect::<Vec<_>>());
        assert_eq!(left.len(), 1, "one connection is left");
        assert_eq!(left, right, "and both sides mean the same");
        for (listener, teller) in [(0, 1), (1, 0)] {
            assert_eq!(self.sides[listener].heard(), self.sides[teller].told());
            assert!(!self.sides[listener].helper.has_stale(), "nothing is stale");
        }
    }

    fn is_converged(&self) -> bool {
        self.states() == [SessionState::Established; 2]
            && self.sides[0].wires.values().eq(self.sides[1].wires.values())
            // A reset that is on its way counts already.
            && self.sides[0].wires.values().all(|wire| !self.wires[*wire].closed)
            && !self.sides.iter().any(|side| side.helper.has_stale())
            && self.sides[0].heard() == self.sides[1].told()
            && self.sides[1].heard() == self.sides[0].told()
    }

    fn states(&self) -> [SessionState; 2] {
        [self.sides[0].peer().state(), self.sides[1].peer().state()]
    }

    /// A side believes in a connection that has vanished.
    fn is_anybody_fooled(&self) -> bool {
        let mut believed = self.sides.iter().flat_map(|side| side.wires.values());
        believed.any(|wire| self.wires[*wire].vanished)
    }

    /// Sessions that either side lost after they were Established.
    pub fn sessions_dropped(&self) -> u64 {
        let dropped = |side: usize| {
            self.sides[side].peer().view(self.now, ViewScope::SESSIONS).connections_dropped
        };
        dropped(0) + dropped(1)
    }

    /// The inputs and outputs of both sides, in the order of time.
    pub(super) fn log(&self) -> Vec<&Line> {
        let mut lines: Vec<_> = self.sides.iter().flat_map(|side| side.log.lines()).collect();
        lines.sort_by_key(|line| line.at_micros);
        lines
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn schedule(&mut self, after: Duration, due: Due) {
        self.sequence += 1;
        self.due.push(Reverse((self.now + after, self.sequence, due)));
    }

    pub(super) fn up_to_ms(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.rng.next_u64() % (most + 1))
    }

    pub(super) fn any_side(&mut self) -> usize {
        usize::from(self.rng.next_u64() % 2 == 1)
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Arrival { wire, end } => self.arrive(wire, end),
            Due::Dial { side, id } => self.answer_dial(side, id),
            Due::DialFailed { side, id } => {
                if self.sides[side].connect_failed(self.now, id, "no answer") {
                    self.follow_up(side);
                }
            }
            Due::Wake { side } => {
                // A wake-up that was replaced is ignored.
                if self.wake_at[side] != Some(self.now) {
                    return;
                }
                self.wake_at[side] = None;
                self.sides[side].tick(self.now);
                self.follow_up(side);
            }
            Due::Chance => self.draw_faults(),
            Due::Heal { side } => {
                self.cut_off[side] = false;
                for wire in 0..self.wires.len() {
                    self.deliver_waiting(wire, self.wires[wire].end_of(side));
                }
            }
            Due::Resume { wire, end } => {
                self.wires[wire].stalled[end] = false;
                self.deliver_waiting(wire, end);
            }
            Due::Welcome { side } => self.refusing[side] = None,
            Due::Probe { wire } => self.probe(wire),
            // Events of a process that has ended meanwhile are dropped.
            Due::Start { side, incarnation } | Due::Sources { side, incarnation }
                if self.sides[side].incarnation != incarnation => {}
            Due::Start { side, .. } => self.start(side),
            Due::Sources { side, .. } => self.sources_speak(side),
        }
    }

    /// Carries out the actions of a side, and notes when to wake it.
    pub(super) fn follow_up(&mut self, side: usize) {
        if !self.sides[side].is_running {
            return;
        }
        let effects = self.sides[side].settle(self.now);
        self.carry_out(side, effects);
        if let Some(deadline) = self.sides[side].next_deadline() {
            self.wake(side, deadline);
        }
    }

    pub(super) fn carry_out(&mut self, side: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Dial(id) => {
                    let after = self.up_to_ms(self.faults.delay_max_ms);
                    self.schedule(after, Due::Dial { side, id });
                    self.schedule(DIAL_TIMEOUT, Due::DialFailed { side, id });
                }
                Effect::Write(wire, bytes) => self.write(side, wire, &bytes),
                Effect::Close(wire) => {
                    self.send(1 - self.wires[wire].end_of(side), wire, Parcel::End)
                }
            }
        }
    }

    /// Wakes a side at `at`, unless it is woken before that and may then ask again: a wake-up for every
    /// event would be one more for each of them, forever.
    fn wake(&mut self, side: usize, at: Instant) {
        let at = at.max(self.now);
        if self.wake_at[side].is_none_or(|earlier| at < earlier) {
            self.wake_at[side] = Some(at);
            self.schedule(at.since(self.now), Due::Wake { side });
        }
    }

    /// Writes bytes, cut at random places.
    fn write(&mut self, from: usize, wire: usize, bytes: &[u8]) {
        let end = 1 - self.wires[wire].end_of(from);
        let plain = self.is_plain.then(|| without_notifications(bytes));
        let mut rest = plain.as_deref().unwrap_or(bytes);
        if self.faults.byte_by_byte {
            for byte in rest {
                self.send(end, wire, Parcel::Bytes(vec![*byte]));
            }
            return;
        }
        for _ in 1..self.faults.pieces_max {
            let length = u64::try_from(rest.len()).unwrap_or(1).max(1);
            let cut = usize::try_from(self.rng.next_u64() % length).unwrap_or(0);
            if cut > 0 {
                let (piece, others) = rest.split_at(cut);
                self.send(end, wire, Parcel::Bytes(piece.to_vec()));
                rest = others;
            }
        }
        self.send(end, wire, Parcel::Bytes(rest.to_vec()));
    }

    pub(super) fn send(&mut self, end: usize, wire: usize, parcel: Parcel) {
        if self.wires[wire].push(end, parcel) {
            let after = self.up_to_ms(self.faults.delay_max_ms);
            self.schedule(after, Due::Arrival { wire, end });
        }
    }

    /// The first parcel on its way arrives; which arrival it is does not matter, order does.
    fn arrive(&mut self, wire: usize, end: usize) {
        let (side, id) = self.wires[wire].ends[end];
        if self.cut_off[side] || self.wires[wire].stalled[end] {
            return; // Kept until it moves again.
        }
        let Some(parcel) = self.wires[wire].to_end[end].pop_front() else { return };
        if !self.sides[side].is_running {
            // The kernel answers for a process that is gone.
            return self.reset(wire);
        }
        self.sides[side].take(self.now, id, wire, parcel);
        self.follow_up(side);
    }

    /// A SYN arrives at the other side, if it can.
    fn answer_dial(&mut self, side: usize, id: ConnectionId) {
        let other = 1 - side;
        if self.cut_off[side] || self.cut_off[other] {
            return; // The handshake needs both directions; the dial will time out.
        }
        let number = self.wires.len();
        let nobody = (other, ConnectionId::default());
        let mut wire = Wire::between((side, id), nobody);
        let is_away = !self.sides[other].is_running;
        match self.refusing[other].or(is_away.then_some(Refusal::Reset)) {
            None => wire.ends[1].1 = self.sides[other].accept(self.now, number),
            Some(Refusal::Reset) => wire.reset(),
            Some(Refusal::Close) => drop(wire.push(0, Parcel::End)),
            Some(Refusal::Notification) => {
                let notification = Notification::cease(cease::CONNECTION_REJECTED).encode();
                wire.push(0, Parcel::Bytes(notification.to_vec()));
                wire.push(0, Parcel::End);
            }
        }
        let waiting = wire.to_end[0].len();
        self.wires.push(wire);
        for _ in 0..waiting {
            let after = self.up_to_ms(self.faults.delay_max_ms);
            self.schedule(after, Due::Arrival { wire: number, end: 0 });
        }
        self.follow_up(other);
    }

    /// Parcels that were held back go on.
    fn deliver_waiting(&mut self, wire: usize, end: usize) {
        for _ in 0..self.wires[wire].to_end[end].len() {
            self.schedule(Duration::ZERO, Due::Arrival { wire, end });
        }
    }

    fn draw_faults(&mut self) {
        let faults = self.faults;
        if faults == Faults::NONE {
            return;
        }
        if self.happens(faults.reset) {
            self.wires_that(|_| true).into_iter().for_each(|wire| self.reset(wire));
        }
        if self.happens(faults.reset_one) {
            self.any_wire().into_iter().for_each(|wire| self.reset(wire));
        }
        if self.happens(faults.vanish) {
            self.any_wire().into_iter().for_each(|wire| self.vanish(wire));
        }
        if self.happens(faults.stall)
            && let Some(wire) = self.any_wire()
        {
            let end = self.any_side();
            self.wires[wire].stalled[end] = true;
            let after = self.up_to_ms(8_000);
            self.schedule(after, Due::Resume { wire, end });
        }
        let (both, one) = (self.happens(faults.partition), self.happens(faults.partition_one_way));
        if both || one {
            let first = self.any_side();
            let after = self.up_to_ms(15_000);
            for side in [first, 1 - first].into_iter().take(if both { 2 } else { 1 }) {
                self.cut_off[side] = true;
                self.schedule(after, Due::Heal { side });
            }
        }
        if self.happens(faults.refuse) {
            let side = self.any_side();
            let kind = usize::try_from(self.rng.next_u64() % 3).unwrap_or(0);
            self.refusing[side] = Some(Refusal::ALL[kind]);
            let after = self.up_to_ms(15_000);
            self.schedule(after, Due::Welcome { side });
        }
        if self.happens(faults.clear) {
            let side = self.any_side();
            self.clear(side);
        }
        if self.happens(faults.change) {
            let side = self.any_side();
            let routes = self.any_routes();
            self.configure(side, routes);
        }
        self.schedule(Duration::from_secs(1), Due::Chance);
    }

    fn happens(&mut self, percent: u64) -> bool {
        percent > 0 && self.rng.next_u64() % 100 < percent
    }

    /// Wires that still carry something, or could.
    fn wires_that(&self, wanted: impl Fn(&Wire) -> bool) -> Vec<usize> {
        let alive = |wire: &Wire| !wire.closed && !wire.vanished && wanted(wire);
        (0..self.wires.len()).filter(|number| alive(&self.wires[*number])).collect()
    }

    /// One of the wires that a side uses.
    fn any_wire(&mut self) -> Option<usize> {
        let used: Vec<usize> =
            self.sides.iter().flat_map(|side| side.wires.values().copied()).collect();
        let count = u64::try_from(used.len()).ok().filter(|count| *count > 0)?;
        used.get(usize::try_from(self.rng.next_u64() % count).ok()?).copied()
    }

    pub(super) fn reset(&mut self, wire: usize) {
        self.wires[wire].reset();
        for end in 0..2 {
            self.deliver_waiting(wire, end);
        }
    }

    pub(super) fn vanish(&mut self, wire: usize) {
        self.wires[wire].vanish();
        self.schedule(KERNEL_KEEPALIVE, Due::Probe { wire });
    }

    /// The kernel resets what has vanished, where there is no hold timer to detect it.
    fn probe(&mut self, wire: usize) {
        for (side, id) in self.wires[wire].ends {
            let router = &mut self.sides[side];
            let without = router
                .peer()
                .view(self.now, ViewScope::SESSIONS)
                .session
                .is_some_and(|session| session.hold_time_seconds == HoldTime::OFF.seconds());
            if without && router.wires.contains_key(&id) {
                router.closed(self.now, id, Some("timed out"));
                self.follow_up(side);
            }
        }
        // One that was not Established yet may be by then.
        if self.is_anybody_fooled() {
            self.schedule(KERNEL_KEEPALIVE, Due::Probe { wire });
        }
    }
}
