//! What one peer has still to be told (RFC 4271 §3.2, Adj-RIB-Out).
//!
//! Messages are built when the socket has room, from what is pending at that time: the last change of a
//! prefix wins, withdrawals are sent first, announcements are grouped by attributes and packed into full
//! messages. A prefix that flaps while the socket is busy costs one message.
//!
//! What the peer has been told is not kept for each route: where nothing is pending, it follows from the Loc-RIB and the
//! export policy, and so callers say it when a route changes.

use std::sync::Arc;

use bytes::BytesMut;

use super::LocRib;
use super::entries::{Place, ToldBefore};
use super::export::Outgoing;
use super::lagging::Lagging;
use super::prefix_table::PrefixId;
use super::waiting::{Sending, Waiting};
use crate::wire::announce::{self, Unsent};
use crate::wire::{MessageType, RouteRefresh};
use fairway_ground::{AddressFamily, FamilySet, Nlri, PathId, PerFamily};

/// If so many routes wait, other prefixes are only noted: a peer that reads slowly, or not at all until its session ends,
/// takes some 20 KiB of memory, so that hundreds of them may do so, and what waits stays in the cache. They fill UPDATEs all the same: routes that were
/// announced together have numbers in succession.
pub(crate) const WAITING_MAX: usize = if cfg!(test) { 4 } else { 128 };

/// The Adj-RIB-Out of one session, with the same lifetime.
#[derive(Debug)]
pub struct AdjRibOut {
    /// Families in which the peer is sent several paths to a prefix.
    add_path: FamilySet,
    waiting: Waiting,
    /// What has changed since so much waited: it waits there when its turn comes.
    lagging: Lagging,
    counts: PerFamily<u32>,
    /// Families with a requested refresh that has not begun. A neighbour may send a thousand requests while the socket
    /// is busy: they cost a bit here, and one iteration over the table later.
    refresh: FamilySet,
    /// The peer supports the markers of RFC 7313.
    marks_refreshes: bool,
    /// Families with an answer that starts with a marker.
    begin: FamilySet,
    /// Families with an answer that ends with a marker.
    end: FamilySet,
    /// Families with a pending End-of-RIB marker.
    end_of_rib: FamilySet,
    /// End-of-RIB markers are held back: the initial routes are not complete yet.
    end_of_rib_held: bool,
    /// Families for which the End-of-RIB marker was sent.
    end_of_rib_sent: PerFamily<bool>,
}

/// The routes of a group, as they are packed into a message.
struct Packing<'a> {
    sending: Sending<'a>,
    announces: bool,
    /// How many routes of the family the peer has.
    count: &'a mut u32,
    rib: &'a LocRib,
}

impl Unsent for Packing<'_> {
    fn next(&mut self) -> Option<Nlri> {
        loop {
            let Place { prefix, path_id } = self.sending.first()?;
            if let Some(prefix) = self.rib.prefix(prefix) {
                return Some(Nlri { prefix, path_id });
            }
            // Does not happen: the number of a prefix is kept as long as it waits here.
            self.sending.pop();
        }
    }

    fn pop(&mut self) {
        match (self.announces, self.sending.pop()) {
            (false, Some(_)) => *self.count = self.count.saturating_sub(1),
            (true, Some(ToldBefore::Nothing)) => *self.count = self.count.saturating_add(1),
            _ => {}
        }
    }
}

impl AdjRibOut {
    /// An empty table. An End-of-RIB marker is pending for each of `families` from the start; in the families
    /// of `add_path` the peer is sent several paths to a prefix.
    pub fn new(families: FamilySet, add_path: FamilySet) -> Self {
        Self {
            add_path,
            waiting: Waiting::default(),
            lagging: Lagging::default(),
            counts: PerFamily::default(),
            refresh: FamilySet::EMPTY,
            marks_refreshes: false,
            begin: FamilySet::EMPTY,
            end: FamilySet::EMPTY,
            end_of_rib: families,
            end_of_rib_held: false,
            end_of_rib_sent: PerFamily::default(),
        }
    }

    /// Answers to refreshes start and end with markers (RFC 7313). Otherwise, they end with an End-of-RIB
    /// marker.
    pub fn mark_refreshes(&mut self) {
        self.marks_refreshes = true;
    }

    /// No End-of-RIB marker is sent before [`AdjRibOut::release_end_of_rib`].
    pub fn hold_end_of_rib(&mut self) {
        self.end_of_rib_held = true;
    }

    /// The initial routes are complete: the markers may be sent after them.
    pub fn release_end_of_rib(&mut self) {
        self.end_of_rib_held = false;
    }

    /// Families in which the peer is sent several paths to a prefix.
    pub fn add_path(&self) -> FamilySet {
        self.add_path
    }

    /// Whether so much waits that another prefix is only noted: [`AdjRibOut::lag`].
    pub fn is_full(&self) -> bool {
        self.waiting.count() >= WAITING_MAX
    }

    /// A prefix has changed, of which the peer was told something, or nothing: it is looked at again when less waits.
    pub fn lag(&mut self, prefix: PrefixId, is_told: bool) {
        self.lagging.insert(prefix, is_told);
    }

    /// Whether this prefix was noted, and if so, whether the peer was told something of it.
    pub fn lags(&self, prefix: PrefixId) -> Option<bool> {
        self.lagging.is_told(prefix)
    }

    /// A prefix that was noted, if less waits than `count`; the same of it. [`AdjRibOut::want`] or
    /// [`AdjRibOut::want_again`] is due.
    pub fn catch_up(&mut self, count: usize) -> Option<(PrefixId, bool)> {
        if self.waiting.count() >= count { None } else { self.lagging.pop() }
    }

    /// Whether a change of this path to a prefix waits.
    pub fn is_waiting(&self, prefix: PrefixId, path_id: PathId) -> bool {
        self.waiting.entry(Place { prefix, path_id }).is_some()
    }

    /// What the peer has been told of this path to a prefix, if a change of it waits and that is known; else it follows
    /// from the Loc-RIB, or is about that.
    pub fn told(&self, prefix: PrefixId, path_id: PathId) -> Option<Option<&Arc<Outgoing>>> {
        self.waiting.entry(Place { prefix, path_id })?.known()
    }

    /// The same of a prefix of which the peer was told it is not known what.
    pub fn want_again(
        &mut self,
        family: AddressFamily,
        prefix: PrefixId,
        wanted: Option<&Arc<Outgoing>>,
    ) {
        let place = Place { prefix, path_id: PathId::NONE };
        self.waiting.want(family, place, ToldBefore::Something, wanted);
    }

    /// The paths to a prefix of which a change waits.
    pub fn waiting_paths(&self, prefix: PrefixId) -> impl Iterator<Item = PathId> + '_ {
        self.waiting.paths(prefix)
    }

    /// The prefixes of which a change waits; one with several paths several times.
    pub fn waiting_prefixes(&self) -> impl Iterator<Item = PrefixId> + '_ {
        self.waiting.prefixes().chain(self.lagging.prefixes())
    }

    /// How many changes wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.count().saturating_add(self.lagging.count())
    }

    /// Whether any change of a prefix waits, so that its number must be kept.
    pub fn awaits(&self, prefix: PrefixId) -> bool {
        self.waiting.paths(prefix).next().is_some() || self.lagging.contains(prefix)
    }

    /// The peer is to have this path to a prefix with attributes `wanted`, or is not to have it. `told` is what it has
    /// been told, unless a change waits.
    pub fn want(
        &mut self,
        family: AddressFamily,
        (prefix, path_id): (PrefixId, PathId),
        told: Option<Arc<Outgoing>>,
        wanted: Option<&Arc<Outgoing>>,
    ) {
        self.waiting.want(family, Place { prefix, path_id }, told.into(), wanted);
    }

    /// The peer is sent routes that do not wait here: it has so many more, or fewer.
    pub fn grow(&mut self, growth: PerFamily<i32>) {
        for family in AddressFamily::ALL {
            let count = self.counts.of_mut(family);
            *count = count.saturating_add_signed(*growth.of(family));
        }
    }

    /// Sends all of `family` again (RFC 2918), followed by the marker. The initial routes and those of an
    /// earlier refresh are sent first.
    pub fn refresh(&mut self, family: AddressFamily) {
        self.refresh.insert(family);
    }

    /// The next family whose refresh can begin: [`AdjRibOut::begin_refresh`] is due.
    pub fn due_refresh(&self) -> Option<AddressFamily> {
        self.refresh.iter().find(|family| self.can_refresh(*family))
    }

    /// All of `family` that the peer has been told is sent again.
    pub fn begin_refresh(
        &mut self,
        family: AddressFamily,
        told: impl IntoIterator<Item = (PrefixId, PathId, Arc<Outgoing>)>,
    ) {
        self.refresh.remove(family);
        for (prefix, path_id, outgoing) in told {
            // Pending changes and withdrawals are owed, too: the change may be reverted.
            self.waiting.owe(family, Place { prefix, path_id }, &outgoing);
        }
        if self.marks_refreshes {
            self.begin.insert(family);
            self.end.insert(family);
        } else {
            self.end_of_rib.insert(family);
        }
    }

    /// Whether the answer to a refresh can start.
    fn can_refresh(&self, family: AddressFamily) -> bool {
        // RFC 7313 §4: no marker before End-of-RIB.
        let is_busy =
            self.end.contains(family) || self.marks_refreshes && self.end_of_rib.contains(family);
        self.waiting.owed(family) == 0 && self.lagging.count() == 0 && !is_busy
    }

    /// Whether the start marker of a refresh is to be sent: of routes that the peer is sent before it and not after it
    /// again, it would believe that they are gone (RFC 7313 §4).
    pub fn owes_start_marker(&self) -> bool {
        !self.begin.is_empty()
    }

    /// The next family with an End-of-RIB marker to send.
    fn due_end_of_rib(&self) -> Option<AddressFamily> {
        self.end_of_rib.iter().next().filter(|_| !self.end_of_rib_held)
    }

    fn has_withdrawals(&self) -> bool {
        AddressFamily::ALL.into_iter().any(|family| self.waiting.has_withdrawals(family))
    }

    /// Whether the peer may have a route that it should not have: a withdrawal is pending, or the End-of-RIB
    /// marker, which removes routes of an earlier session.
    pub fn owes_withdrawals(&self) -> bool {
        !self.end_of_rib.is_empty() || self.has_withdrawals() || self.lagging.count() > 0
    }

    /// Whether there is anything to send.
    pub fn has_pending(&self) -> bool {
        self.due_end_of_rib().is_some()
            || !self.end.is_empty()
            || self.due_refresh().is_some()
            || self.waiting.has_announcements()
            || self.lagging.count() > 0
            || self.has_withdrawals()
    }

    /// Appends the next message to `to`: the start marker of a refresh, withdrawals, announcements,
    /// End-of-RIB, the end marker of a refresh. Returns its type, if there was one.
    pub fn next_message(&mut self, rib: &LocRib, to: &mut BytesMut) -> Option<MessageType> {
        if let Some(family) = self.begin.iter().next() {
            self.begin.remove(family);
            to.extend_from_slice(&RouteRefresh::begin(family).encode());
            return Some(MessageType::RouteRefresh);
        }
        for family in AddressFamily::ALL {
            if !self.waiting.has_withdrawals(family) {
                continue;
            }
            let sending = self.waiting.withdrawals(family)?;
            let (group, count) = (sending.group, self.counts.of_mut(family));
            let mut packing = Packing { sending, announces: false, count, rib };
            announce::withdrawal(family, self.add_path.contains(family), &mut packing, to);
            self.waiting.sent(group);
            return Some(MessageType::Update);
        }
        if let Some((family, outgoing, sending)) = self.waiting.announcements() {
            let (group, count) = (sending.group, self.counts.of_mut(family));
            let mut packing = Packing { sending, announces: true, count, rib };
            let path_ids = self.add_path.contains(family);
            announce::announcement(family, path_ids, &outgoing.block, &mut packing, to);
            self.waiting.sent(group);
            return Some(MessageType::Update);
        }
        if let Some(family) = self.due_end_of_rib() {
            self.end_of_rib.remove(family);
            *self.end_of_rib_sent.of_mut(family) = true;
            announce::end_of_rib(family, to);
            return Some(MessageType::Update);
        }
        let family = self.end.iter().next()?;
        self.end.remove(family);
        to.extend_from_slice(&RouteRefresh::end(family).encode());
        Some(MessageType::RouteRefresh)
    }

    /// The number of advertised routes of each family. Several paths to one prefix are several.
    pub fn counts(&self) -> PerFamily<u32> {
        self.counts
    }

    /// The families for which the End-of-RIB marker was sent.
    pub fn end_of_rib_sent(&self) -> PerFamily<bool> {
        self.end_of_rib_sent
    }
}

#[cfg(test)]
mod tests;
