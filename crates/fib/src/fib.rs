//! The machine: what is wanted, what the kernel has of it, and the orders that make both the same.
//!
//! One batch of orders is on its way at a time. An order that the kernel refuses is given again when the machine has
//! changed, or after a while.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use fairway_ground::Instant;
use fairway_netlink::{NextHop, Route};
use fairway_seam::{Forward, ForwardingChange, Gateway, TrackedNextHop};

pub use self::entry::Place;
use self::entry::{Entry, Group};
use super::interned::{Interned, Number};
use super::order::{DROP, Order, Outcome, Refused, ways_of};
use super::surroundings::{Surroundings, prefix};

/// How long a refused order waits: a million of them cost seconds.
const RETRY_WAIT: Duration = Duration::from_secs(30);
/// The most reports that wait for the log: more about one event help nobody.
const NOTES_MAX: usize = 16;

/// Something for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A route of somebody else leads to this destination: ours is not installed beside it.
    Foreign(Place, Route),
    /// A next hop cannot be reached: its routes are not used.
    Unreachable(TrackedNextHop),
    /// It can be reached again.
    Reachable(TrackedNextHop),
    /// The kernel refused an order.
    Refused(Place, Refused),
    /// The process may not change routes.
    NotPermitted,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Fib {
    surroundings: Surroundings,
    entries: BTreeMap<Place, Entry>,
    /// Where packets shall go; with each the ways there.
    groups: Interned<Group>,
    ways_of: BTreeMap<Number, Number>,
    ways: Interned<[NextHop]>,
    /// Next hops that cannot be reached, as was told, and those of which is to be told whether they can.
    unreachable: BTreeSet<TrackedNextHop>,
    untold: BTreeMap<TrackedNextHop, bool>,
    /// Places to look at.
    due: BTreeSet<Place>,
    /// All places behind this one are to be looked at, too.
    sweep: Option<Bound<Place>>,
    refused: BTreeSet<Place>,
    retry_at: Option<Instant>,
    /// Orders on their way, each with the number of its ways.
    on_the_way: Vec<(Place, Number)>,
    /// All that is wanted is known.
    is_complete: bool,
    may_not_write: bool,
    notes: VecDeque<Note>,
}

impl Fib {
    /// Nothing is wanted yet, and the kernel has `ours` of an earlier run.
    pub fn new(surroundings: Surroundings, ours: impl IntoIterator<Item = Route>) -> Self {
        let mut fib = Self { surroundings, ..Self::default() };
        for route in ours {
            let vrf = fib.surroundings.vrf_of_table(route.table);
            let (Some(vrf), Some(prefix)) = (vrf, prefix(route.destination)) else { continue };
            let table = route.table;
            let present = fib.ways.hold(ways_of(route));
            let entry = Entry { present, table, is_leftover: true, ..Entry::default() };
            fib.entries.insert(Place { vrf, prefix }, entry);
        }
        fib
    }

    /// Whether the kernel has no route of ours, and shall have none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether that is all there is to know.
    pub fn is_over(&self) -> bool {
        self.is_complete && self.is_empty() && self.unreachable.is_empty()
    }

    /// How many routes of ours the kernel has.
    pub fn installed(&self) -> usize {
        self.entries.values().filter(|it| it.present != 0).count()
    }

    /// BGP wants to forward otherwise.
    pub fn want(&mut self, changes: impl IntoIterator<Item = ForwardingChange>) {
        for ForwardingChange { vrf, prefix, forward } in changes {
            let place = Place { vrf, prefix };
            let is_nothing = forward.is_nothing();
            if is_nothing && !self.entries.contains_key(&place) {
                continue;
            }
            let wanted = if is_nothing { 0 } else { self.hold(Group { vrf, forward }) };
            let entry = self.entries.entry(place).or_default();
            let before = std::mem::replace(&mut entry.wanted, wanted);
            // A route that is withdrawn was known, so it is not one that may still come.
            entry.is_leftover &= wanted == 0 && before == 0;
            self.release(before);
            self.due.insert(place);
        }
    }

    /// All that is wanted has been said: what an earlier run left beside it goes.
    pub fn complete(&mut self) {
        self.is_complete = true;
        self.sweep = Some(Bound::Unbounded);
    }

    /// Nothing is wanted any more.
    pub fn give_up(&mut self) {
        let numbers: Vec<Number> = self.entries.values_mut().map(Entry::give_up).collect();
        for number in numbers {
            self.release(number);
        }
        self.unreachable.clear();
        self.complete();
    }

    /// The machine has changed.
    pub fn set_surroundings(&mut self, surroundings: Surroundings) {
        let before = std::mem::replace(&mut self.surroundings, surroundings);
        for (table, prefix) in self.surroundings.foreign_changes(&before) {
            let vrf = self.surroundings.vrf_of_table(table).or_else(|| before.vrf_of_table(table));
            let place = vrf.map(|vrf| Place { vrf, prefix });
            self.due.extend(place.filter(|it| self.entries.contains_key(it)));
        }
        let groups: Vec<(Number, Arc<Group>)> =
            self.groups.iter().map(|(number, group)| (number, Arc::clone(group))).collect();
        for (number, group) in groups {
            let known = self.ways_of.get(&number).copied().unwrap_or(0);
            let ways = self.ways_to(&group);
            self.ways_of.insert(number, ways);
            self.ways.release(known);
            if ways != known {
                self.sweep = Some(Bound::Unbounded);
            }
        }
        let known = self.unreachable.iter().copied();
        let next_hops: BTreeSet<TrackedNextHop> = self.next_hops().chain(known).collect();
        next_hops.into_iter().for_each(|it| self.look_at(it));
        self.due.append(&mut self.refused);
        self.retry_at = None;
    }

    /// The next hops whose reachability is another one than was told, or for the first time told to be none: each with
    /// whether it can be reached. Those that cannot are followed until [`Fib::untrack`], whatever is wanted.
    pub fn take_next_hops(&mut self) -> BTreeMap<TrackedNextHop, bool> {
        std::mem::take(&mut self.untold)
    }

    /// These next hops need not be followed any more.
    pub fn untrack(&mut self, next_hops: impl IntoIterator<Item = TrackedNextHop>) {
        let gone: BTreeSet<TrackedNextHop> = next_hops.into_iter().collect();
        for it in &gone {
            self.unreachable.remove(it);
        }
        let used: Vec<TrackedNextHop> = self.next_hops().filter(|it| gone.contains(it)).collect();
        used.into_iter().for_each(|it| self.look_at(it));
    }

    fn next_hops(&self) -> impl Iterator<Item = TrackedNextHop> + '_ {
        self.groups.iter().flat_map(|(_, group)| next_hops_of(group))
    }

    fn look_at(&mut self, next_hop: TrackedNextHop) {
        let is_reachable = self.surroundings.reaches(next_hop);
        let is_news = match is_reachable {
            true => self.unreachable.remove(&next_hop),
            false => self.unreachable.insert(next_hop),
        };
        if is_news {
            self.untold.insert(next_hop, is_reachable);
            self.note(match is_reachable {
                true => Note::Reachable(next_hop),
                false => Note::Unreachable(next_hop),
            });
        }
    }

    /// The kernel has these routes of ours: others may have removed or changed some, and an interface that was down for a
    /// moment takes its routes with it without a word.
    pub fn audit(&mut self, ours: impl IntoIterator<Item = Route>) {
        if !self.on_the_way.is_empty() {
            return;
        }
        let mut listed: BTreeMap<Place, (u32, Arc<[NextHop]>)> = BTreeMap::new();
        for route in ours {
            let vrf = self.surroundings.vrf_of_table(route.table);
            let (Some(vrf), Some(prefix)) = (vrf, prefix(route.destination)) else { continue };
            listed.insert(Place { vrf, prefix }, (route.table, ways_of(route)));
        }
        for (place, entry) in &mut self.entries {
            let (table, ways) = listed.remove(place).unwrap_or_default();
            let known = self.ways.get(entry.present);
            if known.map_or(&[][..], |it| it) == &*ways {
                continue;
            }
            let before = entry.present;
            entry.present = if ways.is_empty() { 0 } else { self.ways.hold(ways) };
            entry.table = table;
            self.ways.release(before);
            self.due.insert(*place);
        }
        for (place, (table, ways)) in listed {
            let entry = Entry { present: self.ways.hold(ways), table, ..Entry::default() };
            self.entries.insert(place, entry);
            self.due.insert(place);
        }
    }

    /// At `now` refused orders may be due again.
    pub fn tick(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.due.append(&mut self.refused);
        }
    }

    /// When [`Fib::tick`] is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Whether there may be orders.
    pub fn has_orders(&self) -> bool {
        let is_paused = self.may_not_write && self.retry_at.is_some();
        let has_places = !self.due.is_empty() || self.sweep.is_some();
        has_places && !is_paused
    }

    /// The next orders, at most `limit`; none before those on their way are answered.
    pub fn poll_orders(&mut self, limit: usize) -> Vec<Order> {
        let mut orders = Vec::new();
        if !self.on_the_way.is_empty() || !self.has_orders() {
            return orders;
        }
        // A place that is due may be swept, too: not before its order is answered.
        let sweeps = self.due.is_empty();
        while orders.len() < limit
            && let Some(place) = self.next_place(sweeps)
        {
            if let Some((order, ways)) = self.order_for(place) {
                self.ways.hold_again(ways);
                self.on_the_way.push((place, ways));
                orders.push(order);
            }
        }
        orders
    }

    /// What became of the orders, in their order. Those without an outcome were not carried out.
    pub fn answered(&mut self, now: Instant, outcomes: impl IntoIterator<Item = Outcome>) {
        let mut outcomes = outcomes.into_iter();
        for (place, ways) in std::mem::take(&mut self.on_the_way) {
            let outcome = outcomes.next().unwrap_or(Err(Refused::Other(0)));
            let Some(entry) = self.entries.get_mut(&place) else { continue };
            let is_removed = ways == 0 && outcome == Err(Refused::NotThere);
            if outcome.is_ok() || is_removed {
                let before = std::mem::replace(&mut entry.present, ways);
                entry.is_unknown = false;
                self.ways.release(before);
                self.may_not_write &= outcome.is_err();
                self.due.insert(place);
                continue;
            }
            entry.is_unknown |= outcome == Err(Refused::Exists);
            self.ways.release(ways);
            if let Err(refused) = outcome {
                self.note_refused(place, refused);
            }
            self.refused.insert(place);
            self.retry_at.get_or_insert(now + RETRY_WAIT);
        }
    }

    /// The next report.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    fn next_place(&mut self, sweeps: bool) -> Option<Place> {
        if let Some(place) = self.due.pop_first() {
            return Some(place);
        }
        let after = self.sweep.filter(|_| sweeps)?;
        let next = self.entries.range((after, Bound::Unbounded)).next().map(|(place, _)| *place);
        self.sweep = next.map(Bound::Excluded);
        next
    }

    /// What makes the kernel's route at `place` the wanted one, with the number of its ways. Forgets a place where nothing
    /// is, and nothing is wanted.
    fn order_for(&mut self, place: Place) -> Option<(Order, Number)> {
        let entry = *self.entries.get(&place)?;
        let table = self.surroundings.table(place.vrf);
        if entry.present != 0 && table != Some(entry.table) {
            // The VRF is another one now, or gone, and its table went with it.
            self.ways.release(entry.present);
            let entry = self.entries.get_mut(&place)?;
            (entry.present, entry.is_leftover) = (0, false);
            return self.order_for(place);
        }
        if entry.wanted == 0 && entry.present == 0 {
            self.entries.remove(&place);
            return None;
        }
        let table = table?;
        if entry.wanted == 0 && entry.is_leftover && !self.is_complete {
            return None;
        }
        let ways = self.ways_for(place, table, entry);
        if ways == entry.present {
            return None;
        }
        self.entries.get_mut(&place)?.table = table;
        let order = Order {
            table,
            prefix: place.prefix,
            ways: self.ways.get(ways).cloned(),
            replaces: entry.present != 0 || entry.is_unknown,
        };
        Some((order, ways))
    }

    /// The ways that the route shall have; 0 for none.
    fn ways_for(&mut self, place: Place, table: u32, entry: Entry) -> Number {
        if entry.wanted == 0 {
            return 0;
        }
        let foreign = self.surroundings.foreign(table, place.prefix).cloned();
        let is_new = foreign.is_some() && !entry.is_hidden;
        if let Some(entry) = self.entries.get_mut(&place) {
            entry.is_hidden = foreign.is_some();
        }
        match foreign {
            Some(foreign) => {
                if is_new {
                    self.note(Note::Foreign(place, foreign));
                }
                0
            }
            None => self.ways_of.get(&entry.wanted).copied().unwrap_or(0),
        }
    }

    fn ways_to(&mut self, group: &Group) -> Number {
        let ways = match &group.forward {
            Forward::By(gateways) => self.surroundings.ways(group.vrf, gateways),
            // Where there is no such VRF, there is no table.
            Forward::Drop => self.surroundings.table(group.vrf).map(|_| DROP).into_iter().collect(),
        };
        if ways.is_empty() { 0 } else { self.ways.hold(ways) }
    }

    fn hold(&mut self, group: Group) -> Number {
        let group = Arc::new(group);
        let number = self.groups.hold(Arc::clone(&group));
        if !self.ways_of.contains_key(&number) {
            let ways = self.ways_to(&group);
            self.ways_of.insert(number, ways);
            next_hops_of(&group).for_each(|it| self.look_at(it));
        }
        number
    }

    fn release(&mut self, number: Number) {
        self.groups.release(number);
        if number != 0
            && self.groups.get(number).is_none()
            && let Some(ways) = self.ways_of.remove(&number)
        {
            self.ways.release(ways);
        }
    }

    fn note_refused(&mut self, place: Place, refused: Refused) {
        if refused != Refused::NotPermitted {
            self.note(Note::Refused(place, refused));
        } else if !std::mem::replace(&mut self.may_not_write, true) {
            self.note(Note::NotPermitted);
        }
    }

    fn note(&mut self, note: Note) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push_back(note);
        }
    }
}

fn next_hops_of(group: &Group) -> impl Iterator<Item = TrackedNextHop> + '_ {
    let gateways: &[Gateway] = match &group.forward {
        Forward::By(gateways) => gateways,
        Forward::Drop => &[],
    };
    gateways.iter().map(|Gateway { address, on_link_of, .. }| TrackedNextHop {
        vrf: group.vrf,
        address: *address,
        on_link_of: *on_link_of,
    })
}
