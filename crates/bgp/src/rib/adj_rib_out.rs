//! The routes advertised to one peer, and the pending changes (RFC 4271 §3.2, Adj-RIB-Out).
//!
//! Messages are built when the socket has room, from what is pending at that time: the last change of a
//! prefix wins, withdrawals are sent first, announcements are grouped by attributes and packed into full
//! messages. A prefix that flaps while the socket is busy costs one message.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::BytesMut;

use super::path_ids::{PathIds, PathKey};
use super::shared::Shared;
use super::unordered::Unordered;
use crate::wire::announce::{self, AttributeBlock, TooLong, Unsent};
use crate::wire::{
    EXTENDED_MESSAGE_LENGTH_BYTES_MAX, MESSAGE_LENGTH_BYTES_MAX, MessageType, RouteRefresh,
};
use fairway_ground::{AddressFamily, FamilySet, Nlri, PerFamily, Prefix};
use fairway_seam::PathAttributes;

/// The Adj-RIB-Out of one session, with the same lifetime.
#[derive(Debug)]
pub struct AdjRibOut {
    four_octet_as: bool,
    /// The longest message that the peer accepts.
    message_length_bytes_max: usize,
    /// Families in which the peer is sent several paths to a prefix.
    add_path: FamilySet,
    path_ids: PathIds,
    routes: Unordered<Nlri, Known>,
    counts: PerFamily<u32>,
    withdrawals: PerFamily<BTreeSet<Nlri>>,
    groups: Groups,
    /// The last attributes that were too long: a thousand routes may share them.
    too_long: Option<Arc<PathAttributes>>,
    /// Routes that a refresh requested and that have not been sent or withdrawn since: they are sent even if
    /// the peer has them.
    owed: PerFamily<BTreeSet<Nlri>>,
    /// Families with a requested refresh that is not yet expanded into `owed`. A neighbour may send a
    /// thousand requests while the socket is busy: they cost a bit here, and one iteration over the table
    /// later.
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

/// What the peer has been told of a route, and what it will be told. At least one of them, or there is no entry.
#[derive(Debug, Default)]
struct Known {
    advertised: Option<Arc<PathAttributes>>,
    /// The group of the pending announcement.
    pending: Option<GroupId>,
}

/// Routes that have left a group may stay in its list until there are twice as many entries as routes, or as this.
const LEFT_MAX: usize = if cfg!(test) { 4 } else { 64 };

/// In the order in which the groups were created, which is the order in which they are sent.
type GroupId = u64;

type GroupKey = (AddressFamily, Shared);

/// Pending announcements, by their attributes.
#[derive(Debug, Default)]
struct Groups {
    by_id: BTreeMap<GroupId, Group>,
    by_value: BTreeMap<GroupKey, GroupId>,
    /// By the place of the attributes, which the group keeps alive: values are compared where this knows nothing.
    by_place: Unordered<(AddressFamily, usize), GroupId>,
    next: GroupId,
}

#[derive(Debug)]
struct Group {
    key: GroupKey,
    block: AttributeBlock,
    /// Routes that joined the group. Those that have left it since are still here.
    joined: VecDeque<Nlri>,
    /// How many of them have not left.
    count: usize,
    /// Some have left, and may have joined again.
    has_left: bool,
}

impl Groups {
    fn find(&self, family: AddressFamily, attributes: &Arc<PathAttributes>) -> Option<GroupId> {
        let place = (family, Arc::as_ptr(attributes).addr());
        self.by_place.get(&place).copied().or_else(|| {
            let key = (family, Shared(Arc::clone(attributes)));
            self.by_value.get(&key).copied()
        })
    }

    fn create(&mut self, key: GroupKey, block: AttributeBlock) -> GroupId {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.by_place.insert((key.0, Arc::as_ptr(&key.1.0).addr()), id);
        self.by_value.insert(key.clone(), id);
        self.by_id
            .insert(id, Group { key, block, joined: VecDeque::new(), count: 0, has_left: false });
        id
    }

    fn join(&mut self, id: GroupId, nlri: Nlri) {
        if let Some(group) = self.by_id.get_mut(&id) {
            group.joined.push_back(nlri);
            group.count = group.count.saturating_add(1);
        }
    }

    /// Forgets those that have left, if they are most of what is here: a route that flaps while the socket is busy would
    /// join again and again.
    fn compact(&mut self, id: GroupId, routes: &Unordered<Nlri, Known>) {
        let Some(group) = self.by_id.get_mut(&id) else { return };
        if group.joined.len() / 2 <= group.count.max(LEFT_MAX) {
            return;
        }
        let mut joined = Vec::from(std::mem::take(&mut group.joined));
        joined.retain(|nlri| routes.get(nlri).is_some_and(|known| known.pending == Some(id)));
        joined.sort_unstable();
        joined.dedup();
        group.joined = VecDeque::from(joined);
        group.has_left = false;
    }

    /// A route has left, and is not pending in this group any more.
    fn leave(&mut self, id: GroupId, routes: &Unordered<Nlri, Known>) {
        if let Some(group) = self.by_id.get_mut(&id) {
            group.count = group.count.saturating_sub(1);
            group.has_left = true;
            if group.count == 0 {
                self.remove(id);
            } else {
                self.compact(id, routes);
            }
        }
    }

    fn remove(&mut self, id: GroupId) {
        if let Some(Group { key, .. }) = self.by_id.remove(&id) {
            self.by_place.remove(&(key.0, Arc::as_ptr(&key.1.0).addr()));
            self.by_value.remove(&key);
        }
    }
}

/// The routes of a group that have not left it.
struct Pending<'a> {
    id: GroupId,
    group: &'a mut Group,
    routes: &'a mut Unordered<Nlri, Known>,
}

impl Unsent for Pending<'_> {
    fn next(&mut self) -> Option<Nlri> {
        if !self.group.has_left {
            return self.group.joined.front().copied();
        }
        while let Some(nlri) = self.group.joined.front() {
            if self.routes.get(nlri).is_some_and(|known| known.pending == Some(self.id)) {
                return Some(*nlri);
            }
            self.group.joined.pop_front();
        }
        None
    }

    fn pop(&mut self) {
        let Some(nlri) = self.group.joined.pop_front() else { return };
        self.group.count = self.group.count.saturating_sub(1);
        // A route that has joined twice is sent once.
        if self.group.has_left
            && let Some(known) = self.routes.get_mut(&nlri)
        {
            known.pending = None;
        }
    }
}

impl AdjRibOut {
    /// An empty table. An End-of-RIB marker is pending for each of `families` from the start; in the families
    /// of `add_path` the peer is sent several paths to a prefix.
    pub fn new(families: FamilySet, add_path: FamilySet, four_octet_as: bool) -> Self {
        Self {
            four_octet_as,
            message_length_bytes_max: MESSAGE_LENGTH_BYTES_MAX,
            add_path,
            path_ids: PathIds::default(),
            routes: Unordered::default(),
            counts: PerFamily::default(),
            withdrawals: PerFamily::default(),
            groups: Groups::default(),
            too_long: None,
            owed: PerFamily::default(),
            refresh: FamilySet::EMPTY,
            marks_refreshes: false,
            begin: FamilySet::EMPTY,
            end: FamilySet::EMPTY,
            end_of_rib: families,
            end_of_rib_held: false,
            end_of_rib_sent: PerFamily::default(),
        }
    }

    /// The peer supports extended messages (RFC 8654).
    pub fn allow_extended_messages(&mut self) {
        self.message_length_bytes_max = EXTENDED_MESSAGE_LENGTH_BYTES_MAX;
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

    /// Advertises exactly `paths` for `prefix`, and only the first of them if the peer is sent no more. Paths
    /// that do not fit into a message are not advertised.
    pub fn tell(
        &mut self,
        prefix: Prefix,
        paths: Vec<(PathKey, Arc<PathAttributes>)>,
    ) -> Result<(), TooLong> {
        if !self.add_path.contains(prefix.family()) {
            return match paths.into_iter().next() {
                Some((_, attributes)) => self.set(prefix.into(), attributes),
                None => {
                    self.remove(prefix.into());
                    Ok(())
                }
            };
        }
        let is_wanted = |path: &PathKey| paths.iter().any(|(wanted, _)| wanted == path);
        let gone = self.path_ids.of(prefix).filter(|(_, path)| !is_wanted(path));
        let gone: Vec<Nlri> = gone.map(|(nlri, _)| *nlri).collect();
        gone.into_iter().for_each(|nlri| self.remove(nlri));
        let mut outcome = Ok(());
        for (path, attributes) in paths {
            let nlri = self.path_ids.assign(prefix, path);
            outcome = outcome.and(self.set(nlri, attributes));
        }
        outcome
    }

    /// Advertises `nlri` with `attributes`. Attributes that do not fit into a message withdraw the previous
    /// ones: a stuck session would be worse.
    fn set(&mut self, nlri: Nlri, attributes: Arc<PathAttributes>) -> Result<(), TooLong> {
        let family = nlri.prefix.family();
        self.withdrawals.of_mut(family).remove(&nlri);
        let found = self.groups.find(family, &attributes);
        let known = self.routes.get_or_default(nlri);
        if known.pending.is_some() && known.pending == found {
            // It keeps its place.
            return Ok(());
        }
        let left = known.pending.take();
        let is_known = known.advertised.as_ref() == Some(&attributes);
        if let Some(id) = left {
            self.groups.leave(id, &self.routes);
        }
        if is_known && !self.owed.of(family).contains(&nlri) {
            return Ok(());
        }
        let length_max = self.message_length_bytes_max;
        if self.too_long.as_ref().is_some_and(|it| Arc::ptr_eq(it, &attributes)) {
            self.remove(nlri);
            return Err(TooLong(length_max));
        }
        let id = match found {
            Some(id) => id,
            None => {
                match AttributeBlock::encode_within(length_max, &attributes, self.four_octet_as) {
                    Ok(block) => self.groups.create((family, Shared(attributes)), block),
                    Err(error) => {
                        self.too_long = Some(attributes);
                        self.remove(nlri);
                        return Err(error);
                    }
                }
            }
        };
        self.routes.get_or_default(nlri).pending = Some(id);
        self.groups.join(id, nlri);
        self.groups.compact(id, &self.routes);
        Ok(())
    }

    /// Withdraws `nlri`. Until that is sent, no other path gets the identifier.
    fn remove(&mut self, nlri: Nlri) {
        if let Some(known) = self.routes.get_mut(&nlri) {
            let (left, is_advertised) = (known.pending.take(), known.advertised.is_some());
            if let Some(id) = left {
                self.groups.leave(id, &self.routes);
            }
            if is_advertised {
                self.withdrawals.of_mut(nlri.prefix.family()).insert(nlri);
                return;
            }
            self.routes.remove(&nlri);
        }
        self.path_ids.release(nlri);
    }

    /// Sends all of `family` again (RFC 2918), followed by the marker. The initial routes and those of an
    /// earlier refresh are sent first.
    pub fn refresh(&mut self, family: AddressFamily) {
        self.refresh.insert(family);
    }

    /// Expands requested refreshes into the prefixes to send.
    fn expand_refreshes(&mut self) {
        for family in AddressFamily::ALL {
            if self.refresh.contains(family) && self.can_refresh(family) {
                self.refresh.remove(family);
                self.owe_all(family);
            }
        }
    }

    /// Whether the answer to a refresh can start.
    fn can_refresh(&self, family: AddressFamily) -> bool {
        // RFC 7313 §4: no marker before End-of-RIB.
        let is_busy =
            self.end.contains(family) || self.marks_refreshes && self.end_of_rib.contains(family);
        self.owed.of(family).is_empty() && !is_busy
    }

    /// The next family with an End-of-RIB marker to send.
    fn due_end_of_rib(&self) -> Option<AddressFamily> {
        self.end_of_rib.iter().next().filter(|_| !self.end_of_rib_held)
    }

    fn owe_all(&mut self, family: AddressFamily) {
        let of_family = |nlri: &Nlri, known: &Known| {
            known.advertised.clone().filter(|_| nlri.prefix.family() == family)
        };
        for (nlri, attributes) in self.routes.sorted(of_family) {
            // Pending changes and withdrawals are owed, too: the change may be reverted.
            self.owed.of_mut(family).insert(nlri);
            let waits = self.withdrawals.of(family).contains(&nlri);
            let is_pending = self.routes.get(&nlri).is_some_and(|it| it.pending.is_some());
            if !waits && !is_pending {
                // It was encoded before, so it fits.
                let _ = self.set(nlri, attributes);
            }
        }
        if self.marks_refreshes {
            self.begin.insert(family);
            self.end.insert(family);
        } else {
            self.end_of_rib.insert(family);
        }
    }

    /// Whether the peer may have a route that it should not have: a withdrawal is pending, or the End-of-RIB
    /// marker, which removes routes of an earlier session.
    pub fn owes_withdrawals(&self) -> bool {
        !self.end_of_rib.is_empty()
            || AddressFamily::ALL.iter().any(|family| !self.withdrawals.of(*family).is_empty())
    }

    /// Whether there is anything to send.
    pub fn has_pending(&self) -> bool {
        self.due_end_of_rib().is_some()
            || !self.end.is_empty()
            || self.refresh.iter().any(|family| self.can_refresh(family))
            || !self.groups.by_id.is_empty()
            || AddressFamily::ALL.iter().any(|family| !self.withdrawals.of(*family).is_empty())
    }

    /// Appends the next message to `to`: the start marker of a refresh, withdrawals, announcements,
    /// End-of-RIB, the end marker of a refresh. Returns its type, if there was one.
    pub fn next_message(&mut self, to: &mut BytesMut) -> Option<MessageType> {
        if !self.refresh.is_empty() {
            self.expand_refreshes();
        }
        if let Some(family) = self.begin.iter().next() {
            self.begin.remove(family);
            to.extend_from_slice(&RouteRefresh::begin(family).encode());
            return Some(MessageType::RouteRefresh);
        }
        for family in AddressFamily::ALL {
            let withdrawals = self.withdrawals.of_mut(family);
            if !withdrawals.is_empty() {
                let path_ids = self.add_path.contains(family);
                for nlri in announce::withdrawal(family, path_ids, withdrawals, to) {
                    let gone = self.routes.remove(&nlri).and_then(|it| it.advertised);
                    if gone.is_some() {
                        let count = self.counts.of_mut(family);
                        *count = count.saturating_sub(1);
                    }
                    self.owed.of_mut(family).remove(&nlri);
                    self.path_ids.release(nlri);
                }
                return Some(MessageType::Update);
            }
        }
        if let Some(mut entry) = self.groups.by_id.first_entry() {
            let (id, group) = (*entry.key(), entry.get_mut());
            let (family, Shared(attributes)) = group.key.clone();
            let (path_ids, block) = (self.add_path.contains(family), group.block.clone());
            let mut pending = Pending { id, group, routes: &mut self.routes };
            let taken = announce::announcement(family, path_ids, &block, &mut pending, to);
            if entry.get().count == 0 {
                self.groups.remove(id);
            }
            for nlri in taken {
                self.owed.of_mut(family).remove(&nlri);
                let known = self.routes.get_or_default(nlri);
                known.pending = None;
                if known.advertised.replace(Arc::clone(&attributes)).is_none() {
                    let count = self.counts.of_mut(family);
                    *count = count.saturating_add(1);
                }
            }
            self.groups.compact(id, &self.routes);
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

    /// The advertised routes, in the order of prefixes.
    pub fn advertised(&self) -> Vec<(Nlri, Arc<PathAttributes>)> {
        self.routes.sorted(|_, known| known.advertised.clone())
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
