//! All sessions of a node: finds the session of a packet, and the next deadline.

mod demultiplex;
mod discriminators;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::arrival::{Arrival, Dropped, Received};
use super::deadlines::Deadlines;
use super::packet::PACKET_LENGTH_BYTES_MAX;
use super::session::{BfdChange, Session};
use super::{BfdSessionView, Drops, State};
use discriminators::Discriminators;
use fairway_ground::{BfdPath, BfdSettings, Instant, Rng};

/// Deadlines are rounded up to this, so that sessions share a wake-up.
const GRID_MICROS: u64 = 1_000;

/// Identifies a session for the edge. It is not reused before [`Sessions::poll_closed`] returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(usize);

impl SlotId {
    /// Small numbers without lasting gaps: suitable as index of an array.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A packet to send: the first `length` bytes of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Its session.
    pub slot: SlotId,
    /// Its length in bytes.
    pub length: usize,
    /// To the echo port instead of the port of the path.
    pub echo: bool,
}

/// A session went up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfdEvent {
    /// The path.
    pub path: BfdPath,
    /// The change.
    pub change: BfdChange,
}

/// All sessions of a node.
#[derive(Debug)]
pub struct Sessions {
    slots: Vec<Option<Slot>>,
    by_path: BTreeMap<BfdPath, usize>,
    discriminators: Discriminators,
    deadlines: Deadlines,
    /// Sessions with a packet to send, each once. Has room for all.
    ready: VecDeque<usize>,
    /// Sessions with an event to report, each once. Has room for all.
    telling: VecDeque<usize>,
    /// Deleted sessions that are not reported yet. Has room for all.
    closed: VecDeque<usize>,
    /// Free slots. Has room for all.
    free: Vec<usize>,
    drops: Drops,
    /// See [`Sessions::note_unheard`].
    has_unheard: bool,
    rng: Rng,
}

/// A session and its path.
#[derive(Debug)]
struct Slot {
    path: BfdPath,
    session: Session,
    interface_index: Option<u32>,
    is_ready: bool,
    is_telling: bool,
    drops: Drops,
}

impl Sessions {
    /// Without sessions. Discriminators, sequence numbers and jitter come from `seed`: it must be different
    /// in each run, and unpredictable.
    pub fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            by_path: BTreeMap::new(),
            discriminators: Discriminators::default(),
            deadlines: Deadlines::default(),
            ready: VecDeque::new(),
            telling: VecDeque::new(),
            closed: VecDeque::new(),
            free: Vec::new(),
            drops: Drops::default(),
            has_unheard: false,
            rng: Rng::seeded(seed),
        }
    }

    /// Sets the wanted sessions. New ones are opened, and returned; settings change on existing sessions;
    /// removed ones are shut down for one detection time, and then returned by [`Sessions::poll_closed`]. The
    /// only call that allocates, with [`Sessions::view`].
    pub fn set(&mut self, now: Instant, wanted: &BTreeMap<BfdPath, BfdSettings>) -> Vec<SlotId> {
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else { continue };
            match wanted.get(&slot.path) {
                Some(settings) => {
                    slot.session.configure(now, settings);
                    slot.session.enable(now);
                }
                None => slot.session.disable(now),
            }
            self.touch(now, index);
        }
        let is_new = |path: &BfdPath| !self.by_path.contains_key(path);
        let new: Vec<_> = wanted.iter().filter(|(path, _)| is_new(path)).collect();
        new.into_iter().map(|(path, settings)| self.open(now, *path, settings)).collect()
    }

    fn open(&mut self, now: Instant, path: BfdPath, settings: &BfdSettings) -> SlotId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len().saturating_sub(1)
        });
        let discriminator = self.discriminators.draw(index, &mut self.rng);
        let seed = self.rng.next_u64();
        let session = Session::new(now, settings.clone(), path.multihop, discriminator, seed);
        if let Some(place) = self.slots.get_mut(index) {
            *place = Some(Slot {
                path,
                session,
                interface_index: None,
                is_ready: false,
                is_telling: false,
                drops: Drops::default(),
            });
        }
        self.by_path.insert(path, index);
        let slots = self.slots.len();
        self.deadlines.reserve(slots);
        for queue in [&mut self.ready, &mut self.telling, &mut self.closed] {
            queue.reserve(slots.saturating_sub(queue.len()));
        }
        self.free.reserve(slots.saturating_sub(self.free.len()));
        self.touch(now, index);
        SlotId(index)
    }

    /// Reports again which sessions are up, for a user that lost track of them.
    pub fn tell_again(&mut self, now: Instant) {
        for index in 0..self.slots.len() {
            if let Some(Some(slot)) = self.slots.get_mut(index) {
                slot.session.tell_again();
            }
            self.touch(now, index);
        }
    }

    /// The path that a session monitors.
    pub fn path(&self, slot: SlotId) -> Option<&BfdPath> {
        self.slots.get(slot.0)?.as_ref().map(|slot| &slot.path)
    }

    /// Whether both systems receive packets.
    pub fn is_up(&self, slot: SlotId) -> bool {
        let slot = self.slots.get(slot.0).and_then(Option::as_ref);
        slot.is_some_and(|slot| slot.session.state() == State::Up)
    }

    /// Sets the current index of the interface of a path, if it has one. Until this is called, and while it
    /// is `None`, a session with an interface accepts no packets.
    pub fn set_interface_index(&mut self, slot: SlotId, index: Option<u32>) {
        if let Some(Some(slot)) = self.slots.get_mut(slot.0) {
            slot.interface_index = index;
        }
    }

    /// Processes a packet. Dropped packets are counted.
    pub fn receive(&mut self, now: Instant, arrival: Arrival<'_>) -> Result<Received, Dropped> {
        let mut found = None;
        let result = self.hear(now, &arrival, &mut found);
        let slot = found.and_then(|index| self.slots.get_mut(index)?.as_mut());
        if let Err(reason) = result {
            slot.map_or(&mut self.drops, |slot| &mut slot.drops).count(reason.reason());
        }
        if let Some(index) = found {
            self.touch(now, index);
        }
        result
    }

    /// Packets may have been lost before they were read. A detection that is due with the next
    /// [`Sessions::expire`] is postponed as if this process had been late.
    pub fn note_unheard(&mut self) {
        self.has_unheard = true;
    }

    /// Processes expired deadlines. Call it after the sockets were drained, so that waiting packets were
    /// processed. `own_stall` is how late this process is, if it is: a detection that is due then is
    /// postponed once, by one interval of the remote system, if the delay is more than half of that.
    pub fn expire(&mut self, now: Instant, own_stall: Option<Duration>) {
        if let Some(own_stall) = own_stall {
            self.slots.iter_mut().flatten().for_each(|slot| slot.session.note_stall(own_stall));
        }
        let hindered = match std::mem::take(&mut self.has_unheard) {
            true => Some(Duration::MAX),
            false => own_stall,
        };
        // Each slot is due once: what it is due for is done then, or ready to be sent.
        for _ in 0..self.slots.len() {
            let Some((_, index)) = self.deadlines.first().filter(|(at, _)| *at <= now) else {
                return;
            };
            if let Some(Some(slot)) = self.slots.get_mut(index) {
                slot.session.expire(now, hindered);
            }
            self.touch(now, index);
        }
    }

    /// The next packet to send at `now`, until there is none.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        bytes: &mut [u8; PACKET_LENGTH_BYTES_MAX],
    ) -> Option<Transmit> {
        while let Some(index) = self.ready.pop_front() {
            let Some(Some(slot)) = self.slots.get_mut(index) else { continue };
            slot.is_ready = false;
            let written = slot.session.poll_transmit(now, bytes);
            self.touch(now, index);
            if let Some(written) = written {
                let (length, echo) = (written.length, written.echo);
                return Some(Transmit { slot: SlotId(index), length, echo });
            }
        }
        None
    }

    /// The last packet of this session could not be sent. It is counted; the next one is sent on schedule.
    pub fn transmit_failed(&mut self, slot: SlotId) {
        if let Some(Some(slot)) = self.slots.get_mut(slot.0) {
            slot.session.transmit_failed();
        }
    }

    /// The next event. A session that went down and came up before this call reports both.
    pub fn poll_event(&mut self) -> Option<BfdEvent> {
        while let Some(&index) = self.telling.front() {
            if let Some(Some(slot)) = self.slots.get_mut(index) {
                if let Some(change) = slot.session.poll_event() {
                    return Some(BfdEvent { path: slot.path, change });
                }
                slot.is_telling = false;
            }
            self.telling.pop_front();
        }
        None
    }

    /// A deleted session; its slot may be reused by the next [`Sessions::set`].
    pub fn poll_closed(&mut self) -> Option<SlotId> {
        let index = self.closed.pop_front()?;
        self.free.push(index);
        Some(SlotId(index))
    }

    /// When to act next, after everything above was drained: on a grid of milliseconds, rounded up, so that
    /// sessions share a wake-up.
    pub fn next_deadline(&self) -> Option<Instant> {
        let (at, _) = self.deadlines.first()?;
        let ticks = at.as_micros().div_ceil(GRID_MICROS);
        Some(Instant::from_micros(ticks.saturating_mul(GRID_MICROS)))
    }

    /// Shuts all sessions down: each sends that at once, with the next [`Sessions::poll_transmit`].
    pub fn leave(&mut self, now: Instant) {
        self.set(now, &BTreeMap::new());
    }

    /// Every session, in the order of paths.
    pub fn view(&self, now: Instant) -> Vec<BfdSessionView> {
        let slots = self.by_path.values().filter_map(|index| self.slots.get(*index)?.as_ref());
        slots.map(|slot| slot.session.view(now, slot.path, slot.drops.clone())).collect()
    }

    /// Dropped packets of no session, or of deleted sessions. Those of a session are in its view.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Called after anything that may have changed a session: updates queues and deadlines.
    fn touch(&mut self, now: Instant, index: usize) {
        let Some(Some(slot)) = self.slots.get_mut(index) else { return };
        if slot.session.has_transmit(now) {
            if !slot.is_ready {
                slot.is_ready = true;
                self.ready.push_back(index);
            }
        } else if slot.session.is_closed(now) {
            self.close(index);
            return;
        }
        if slot.session.has_event() && !slot.is_telling {
            slot.is_telling = true;
            self.telling.push_back(index);
        }
        // A packet that is ready has no deadline: it waits only to be sent.
        let (next, expiry) = (slot.session.next_deadline(), slot.session.next_expiry());
        self.deadlines.set(index, if slot.is_ready { expiry } else { next });
    }

    fn close(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index).and_then(Option::take) else { return };
        self.by_path.remove(&slot.path);
        self.drops.add(&slot.drops);
        self.discriminators.retire(slot.session.local_discriminator());
        self.deadlines.set(index, None);
        self.ready.retain(|it| *it != index);
        self.telling.retain(|it| *it != index);
        self.closed.push_back(index);
    }
}

#[cfg(test)]
mod tests;
