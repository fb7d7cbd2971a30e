//! How a process ends and restarts, at any moment: another part of [`World`].

use std::time::Duration;

use super::process::{Found, Routes};
use super::wire::Parcel;
use super::world::{Due, World};
use crate::wire::{Capability, Framing, MessageType, Open};
use fairway_ground::{Community, Prefix, Rng};
use fairway_seam::Leave;

/// How a process ends, and what becomes of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// SIGTERM.
    Terminated,
    /// It is stopped for good; it still comes back later.
    Left,
    /// SIGKILL: the kernel ends its streams in order.
    Killed,
    /// The same while something was not read: the kernel resets its connections.
    KilledReading,
    /// The same while the network is gone: no peer notices.
    KilledUnheard,
    /// The machine is switched off and on.
    PoweredOff,
}

impl Ending {
    pub(super) const ALL: [Self; 6] = [
        Self::Terminated,
        Self::Left,
        Self::Killed,
        Self::KilledReading,
        Self::KilledUnheard,
        Self::PoweredOff,
    ];

    /// Whether the kernel goes on forwarding.
    fn forwards(self) -> bool {
        self != Self::PoweredOff
    }
}

/// One process ends, and what the next one finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Restart {
    pub(super) side: usize,
    pub(super) ending: Ending,
    /// Until the next one begins.
    pub(super) after: Duration,
    pub(super) found: Found,
    /// For how long its sources are not ready.
    pub(super) silence: Duration,
}

impl World {
    /// Ends the process of a side, if there is one, and starts another one.
    pub(super) fn restart(&mut self, restart: Restart) {
        let Restart { side, ending, after, .. } = restart;
        if !self.sides[side].is_running {
            return;
        }
        let open: Vec<usize> = self.sides[side].wires.values().copied().collect();
        match ending {
            Ending::Terminated => self.leave(side, Leave::ForRestart),
            Ending::Left => self.leave(side, Leave::ForGood),
            Ending::Killed => {
                for wire in open {
                    self.send(1 - self.wires[wire].end_of(side), wire, Parcel::End);
                }
            }
            Ending::KilledReading => open.into_iter().for_each(|wire| self.reset(wire)),
            Ending::KilledUnheard | Ending::PoweredOff => {
                open.into_iter().for_each(|wire| self.vanish(wire));
            }
        }
        self.sides[side].stop(self.now, &format!("{restart:?}"));
        self.wake_at[side] = None;
        self.next[side] = Some(restart);
        let incarnation = self.sides[side].incarnation;
        self.schedule(after, Due::Start { side, incarnation });
    }

    fn leave(&mut self, side: usize, how: Leave) {
        let effects = self.sides[side].leave(self.now, how);
        self.carry_out(side, effects);
    }

    /// The next process begins, if it is still awaited.
    pub(super) fn start(&mut self, side: usize) {
        let Some(Restart { ending, found, silence, .. }) = self.next[side].take() else { return };
        let awaits = !silence.is_zero();
        self.sides[side].start(self.now, found, ending.forwards(), awaits);
        if awaits {
            let incarnation = self.sides[side].incarnation;
            self.schedule(silence, Due::Sources { side, incarnation });
        }
        self.follow_up(side);
    }

    pub(super) fn sources_speak(&mut self, side: usize) {
        self.sides[side].sources_speak(self.now);
        self.follow_up(side);
    }

    /// The operator of a side clears the session.
    pub(super) fn clear(&mut self, side: usize) {
        if self.sides[side].is_running {
            self.sides[side].clear(self.now);
            self.follow_up(side);
        }
    }

    /// Other routes are configured on a side.
    pub(super) fn configure(&mut self, side: usize, routes: Routes) {
        self.sides[side].originate(self.now, routes);
        self.follow_up(side);
    }

    /// A side requests all routes again, if there is a session.
    pub(super) fn ask_again(&mut self, side: usize) {
        self.sides[side].ask_again(self.now);
        self.follow_up(side);
    }

    /// Both processes run, and all their sources are ready.
    pub(super) fn end_restarts(&mut self) {
        for side in 0..2 {
            self.start(side);
            self.sources_speak(side);
        }
    }

    /// Draws before which event the next restart comes.
    pub(super) fn choose_restart(&mut self) {
        let every = self.faults.restart_every;
        self.restart_at = (every > 0).then(|| {
            let after = self.rng.next_u64() % (2 * every);
            (self.steps + after, None)
        });
    }

    /// A side restarts before the next event, if its turn has come.
    pub(super) fn restart_if_due(&mut self) {
        let Some((_, restart)) = self.restart_at.take_if(|(at, _)| *at <= self.steps) else {
            return;
        };
        match restart {
            Some(restart) => self.restart(restart),
            None => {
                let restart = self.any_restart();
                self.restart(restart);
                self.choose_restart();
            }
        }
    }

    /// Any restart of any side.
    pub(super) fn any_restart(&mut self) -> Restart {
        let side = self.any_side();
        let mut one_of = |count: u64| self.rng.next_u64() % count;
        let ending = usize::try_from(one_of(6)).unwrap_or(0);
        let away_ms = [0, 50, 2_000, 15_000][usize::try_from(one_of(4)).unwrap_or(0)];
        let silent_ms = [0, 500, 5_000, 60_000][usize::try_from(one_of(4)).unwrap_or(0)];
        let found = match one_of(16) {
            0 => Found::Nothing,
            1..=4 => Found::AllButTheLast,
            _ => Found::Everything,
        };
        Restart {
            side,
            ending: Ending::ALL[ending],
            after: self.up_to_ms(away_ms),
            found,
            silence: self.up_to_ms(silent_ms),
        }
    }

    /// Some prefixes that each side always announces, and some that come and go.
    pub(super) fn any_routes(&mut self) -> Routes {
        let count = self.rng.next_u64() % 12;
        let route = |rng: &mut Rng| {
            let number = u32::try_from(rng.next_u64() % 16).ok()?;
            let prefix = Prefix::from_ipv4_bits(0x0A00_0000 + number, 32).ok()?;
            Some((prefix, Community(u32::try_from(rng.next_u64() % 3).ok()?)))
        };
        let changing = (0..count).filter_map(|_| route(&mut self.rng));
        changing.chain(routes_that_stay()).collect()
    }
}

/// What is configured all the time.
pub(super) fn routes_that_stay() -> Routes {
    let prefix = |number: u32| Prefix::from_ipv4_bits(0x0A01_0000 + number, 32).ok();
    (0..4).filter_map(prefix).map(|prefix| (prefix, Community(7))).collect()
}

/// What two speakers advertise to each other that support RFC 4724 and not RFC 8538: no bit N.
pub(super) fn without_notifications(bytes: &[u8]) -> Vec<u8> {
    let mut framing = Framing::default();
    framing.push(bytes);
    let first = framing.next_message().ok().flatten();
    let Some(first) = first.filter(|first| first.kind == MessageType::Open) else {
        return bytes.to_vec();
    };
    let Ok(mut open) = Open::parse(&first.body) else { return bytes.to_vec() };
    let length = open.encode().len();
    for capability in &mut open.capabilities {
        if let Capability::GracefulRestart(offer) = capability {
            offer.notifications = false;
        }
    }
    [&open.encode(), &bytes[length..]].concat()
}
