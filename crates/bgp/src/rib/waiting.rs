//! Which routes wait to be sent to one peer, in which order, and what was it told of each before?
//!
//! A route that waits has an entry; one that does not, has none. Routes with the same attributes wait in one group, and
//! groups are sent in the order in which they were created; withdrawals wait in groups of their own, and go first. Knows
//! no message and no policy. Used by [`super::AdjRibOut`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::export::Outgoing;
use super::pages::Pages;
use super::prefix_table::PrefixId;
use super::shared::Shared;
use super::unordered::Unordered;
use fairway_ground::{AddressFamily, PathId, PerFamily};

/// A path to a prefix; without identifiers, the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) prefix: PrefixId,
    pub(super) path_id: PathId,
}

/// A route that waits.
#[derive(Debug)]
pub(super) struct Entry {
    /// What the peer was told of it; `None` if nothing.
    pub(super) told: Option<Arc<Outgoing>>,
    group: GroupId,
    /// A refresh asked for it: it is sent even if the peer has it.
    is_owed: bool,
}

/// The place of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupId(u32);

/// Routes that have left a group may stay in its list until there are twice as many entries as routes, or as this.
const LEFT_MAX: usize = if cfg!(test) { 4 } else { 64 };

/// Entries by their places.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Those without path identifier.
    single: Pages<Entry>,
    several: BTreeMap<Place, Entry>,
    count: usize,
}

impl Entries {
    pub(super) fn get(&self, place: Place) -> Option<&Entry> {
        match place.path_id {
            PathId::NONE => self.single.get(place.prefix.place()),
            _ => self.several.get(&place),
        }
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Entry> {
        match place.path_id {
            PathId::NONE => self.single.get_mut(place.prefix.place()),
            _ => self.several.get_mut(&place),
        }
    }

    /// Adds an entry where there is none.
    fn insert(&mut self, place: Place, entry: Entry) {
        self.count = self.count.saturating_add(1);
        match place.path_id {
            PathId::NONE => self.single.insert(place.prefix.place(), entry),
            _ => drop(self.several.insert(place, entry)),
        }
    }

    fn remove(&mut self, place: Place) -> Option<Entry> {
        let removed = match place.path_id {
            PathId::NONE => self.single.remove(place.prefix.place()),
            _ => self.several.remove(&place),
        };
        self.count = self.count.saturating_sub(usize::from(removed.is_some()));
        removed
    }

    /// The paths to this prefix that wait.
    fn paths(&self, prefix: PrefixId) -> impl Iterator<Item = PathId> + '_ {
        let place = |path_id| Place { prefix, path_id };
        let single = self.single.get(prefix.place()).map(|_| PathId::NONE);
        let several = self.several.range(place(PathId::NONE)..=place(PathId::MAX));
        single.into_iter().chain(several.map(|(place, _)| place.path_id))
    }

    fn is_in(&self, place: Place, group: GroupId) -> bool {
        self.get(place).is_some_and(|entry| entry.group == group)
    }
}

/// The routes of one group, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Those that have left it since are still here.
    joined: VecDeque<Place>,
    /// How many of them have not left.
    count: usize,
    /// Some have left, and may have joined again.
    has_left: bool,
}

impl Lane {
    fn join(&mut self, place: Place) {
        self.joined.push_back(place);
        self.count = self.count.saturating_add(1);
    }

    /// One of its routes has left, and is in another group by now, or nowhere.
    fn leave(&mut self, group: GroupId, entries: &Entries) {
        self.count = self.count.saturating_sub(1);
        self.has_left = true;
        self.compact(group, entries);
    }

    /// Forgets those that have left, if they are most of what is here: a route that flaps while the socket is busy would
    /// join again and again.
    fn compact(&mut self, group: GroupId, entries: &Entries) {
        if self.count == 0 {
            *self = Self::default();
        }
        if self.joined.len() / 2 <= self.count.max(LEFT_MAX) {
            return;
        }
        let mut joined = Vec::from(std::mem::take(&mut self.joined));
        joined.retain(|place| entries.is_in(*place, group));
        joined.sort_unstable();
        joined.dedup();
        self.joined = VecDeque::from(joined);
        self.has_left = false;
    }

    /// The next route.
    fn first(&mut self, group: GroupId, entries: &Entries) -> Option<Place> {
        if !self.has_left {
            return self.joined.front().copied();
        }
        while let Some(place) = self.joined.front() {
            if entries.is_in(*place, group) {
                return Some(*place);
            }
            self.joined.pop_front();
        }
        None
    }
}

/// Routes that wait for one message: with these attributes, or to be withdrawn.
#[derive(Debug)]
struct Group {
    family: AddressFamily,
    outgoing: Option<Arc<Outgoing>>,
    lane: Lane,
    before: Option<GroupId>,
    after: Option<GroupId>,
}

type GroupKey = (AddressFamily, Shared);

/// The groups, in the order in which they were created. Those of withdrawals are always there.
#[derive(Debug)]
struct Groups {
    /// By their places.
    all: Vec<Option<Group>>,
    free: Vec<GroupId>,
    first: Option<GroupId>,
    last: Option<GroupId>,
    /// By the place of the attributes, which the group keeps alive: values are compared where this knows nothing.
    by_place: Unordered<(AddressFamily, usize), GroupId>,
    by_value: BTreeMap<GroupKey, GroupId>,
    /// The group that was found last: thousands of routes in succession share one.
    found: Option<(AddressFamily, Arc<Outgoing>, GroupId)>,
}

/// The group of withdrawals.
fn withdrawals(family: AddressFamily) -> GroupId {
    match family {
        AddressFamily::Ipv4Unicast => GroupId(0),
        AddressFamily::Ipv6Unicast => GroupId(1),
    }
}

impl Default for Groups {
    fn default() -> Self {
        let group = |family| {
            let lane = Lane::default();
            Some(Group { family, outgoing: None, lane, before: None, after: None })
        };
        Self {
            all: vec![group(AddressFamily::Ipv4Unicast), group(AddressFamily::Ipv6Unicast)],
            free: Vec::new(),
            first: None,
            last: None,
            by_place: Unordered::default(),
            by_value: BTreeMap::new(),
            found: None,
        }
    }
}

impl GroupId {
    fn place(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Groups {
    fn get(&self, id: GroupId) -> Option<&Group> {
        self.all.get(id.place())?.as_ref()
    }

    fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.all.get_mut(id.place())?.as_mut()
    }

    fn has_withdrawals(&self, family: AddressFamily) -> bool {
        self.get(withdrawals(family)).is_some_and(|group| group.lane.count > 0)
    }

    /// The group of routes with attributes `wanted`, or to be withdrawn, if there is one.
    fn find(&mut self, family: AddressFamily, wanted: Option<&Arc<Outgoing>>) -> Option<GroupId> {
        let Some(outgoing) = wanted else { return Some(withdrawals(family)) };
        if let Some((of, known, group)) = &self.found
            && *of == family
            && Arc::ptr_eq(known, outgoing)
        {
            return Some(*group);
        }
        let place = (family, Arc::as_ptr(outgoing).addr());
        let by_value = || {
            let key = (family, Shared(Arc::clone(&outgoing.attributes)));
            self.by_value.get(&key).copied()
        };
        let group = self.by_place.get(&place).copied().or_else(by_value)?;
        self.found = Some((family, Arc::clone(outgoing), group));
        Some(group)
    }

    fn create(&mut self, family: AddressFamily, outgoing: &Arc<Outgoing>) -> GroupId {
        let group = Group {
            family,
            outgoing: Some(Arc::clone(outgoing)),
            lane: Lane::default(),
            before: self.last,
            after: None,
        };
        let id = match self.free.pop() {
            Some(id) => {
                if let Some(place) = self.all.get_mut(id.place()) {
                    *place = Some(group);
                }
                id
            }
            None => {
                // There are fewer groups than prefixes.
                let id = GroupId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
                self.all.push(Some(group));
                id
            }
        };
        match self.last.replace(id).and_then(|last| self.get_mut(last)) {
            Some(last) => last.after = Some(id),
            None => self.first = Some(id),
        }
        self.by_place.insert((family, Arc::as_ptr(outgoing).addr()), id);
        self.by_value.insert((family, Shared(Arc::clone(&outgoing.attributes))), id);
        self.found = Some((family, Arc::clone(outgoing), id));
        id
    }

    /// Removes a group that has no routes any more. That of withdrawals stays.
    fn remove_if_empty(&mut self, id: GroupId) {
        let is_empty = |group: &&mut Option<Group>| {
            group.as_ref().is_some_and(|it| it.lane.count == 0 && it.outgoing.is_some())
        };
        let group = self.all.get_mut(id.place()).filter(is_empty).and_then(Option::take);
        let Some(Group { family, outgoing: Some(outgoing), before, after, .. }) = group else {
            return;
        };
        match before.and_then(|before| self.get_mut(before)) {
            Some(before) => before.after = after,
            None => self.first = after,
        }
        match after.and_then(|after| self.get_mut(after)) {
            Some(after) => after.before = before,
            None => self.last = before,
        }
        self.by_place.remove(&(family, Arc::as_ptr(&outgoing).addr()));
        self.by_value.remove(&(family, Shared(outgoing.attributes.clone())));
        self.found.take_if(|(_, _, found)| *found == id);
        self.free.push(id);
        if self.first.is_none() {
            // What thousands of groups took is given back.
            self.all.truncate(2);
            self.all.shrink_to(LEFT_MAX);
            self.free = Vec::new();
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    entries: Entries,
    groups: Groups,
    owed: PerFamily<usize>,
}

impl Waiting {
    /// How many routes wait.
    pub(super) fn count(&self) -> usize {
        self.entries.count
    }

    /// Whether this route waits, and so knows what the peer was told of it.
    pub(super) fn entry(&self, place: Place) -> Option<&Entry> {
        self.entries.get(place)
    }

    /// The paths to this prefix that wait.
    pub(super) fn paths(&self, prefix: PrefixId) -> impl Iterator<Item = PathId> + '_ {
        self.entries.paths(prefix)
    }

    /// How many routes of `family` wait that a refresh asked for.
    pub(super) fn owed(&self, family: AddressFamily) -> usize {
        *self.owed.of(family)
    }

    pub(super) fn has_withdrawals(&self, family: AddressFamily) -> bool {
        self.groups.has_withdrawals(family)
    }

    pub(super) fn has_announcements(&self) -> bool {
        self.groups.first.is_some()
    }

    /// The peer is to have the route with attributes `wanted`, or not to have it. `told` is what it was told, if the
    /// route does not wait yet.
    pub(super) fn want(
        &mut self,
        family: AddressFamily,
        place: Place,
        told: Option<Arc<Outgoing>>,
        wanted: Option<&Arc<Outgoing>>,
    ) {
        let Some(group) = self.entries.get(place).map(|entry| entry.group) else {
            if !is_same(told.as_ref(), wanted) {
                self.join(family, place, told, false, wanted);
            }
            return;
        };
        if self.groups.find(family, wanted) == Some(group) {
            // It keeps its place.
            return;
        }
        let Some(Entry { told, is_owed, .. }) = self.entries.remove(place) else { return };
        if let Some(left) = self.groups.get_mut(group) {
            left.lane.leave(group, &self.entries);
        }
        self.groups.remove_if_empty(group);
        if is_owed || !is_same(told.as_ref(), wanted) {
            self.join(family, place, told, is_owed, wanted);
        }
    }

    /// A refresh asks for a route that the peer was told: it is sent again, or withdrawn if that waits.
    pub(super) fn owe(&mut self, family: AddressFamily, place: Place, told: &Arc<Outgoing>) {
        match self.entries.get_mut(place) {
            Some(entry) if entry.is_owed => return,
            Some(entry) => entry.is_owed = true,
            None => self.join(family, place, Some(Arc::clone(told)), true, Some(told)),
        }
        let owed = self.owed.of_mut(family);
        *owed = owed.saturating_add(1);
    }

    fn join(
        &mut self,
        family: AddressFamily,
        place: Place,
        told: Option<Arc<Outgoing>>,
        is_owed: bool,
        wanted: Option<&Arc<Outgoing>>,
    ) {
        let group = match (self.groups.find(family, wanted), wanted) {
            (None, Some(outgoing)) => self.groups.create(family, outgoing),
            (group, _) => group.unwrap_or_else(|| withdrawals(family)),
        };
        self.entries.insert(place, Entry { told, group, is_owed });
        if let Some(joined) = self.groups.get_mut(group) {
            joined.lane.join(place);
            joined.lane.compact(group, &self.entries);
        }
    }

    /// The routes of `family` that wait to be withdrawn.
    pub(super) fn withdrawals(&mut self, family: AddressFamily) -> Option<Sending<'_>> {
        self.sending(withdrawals(family)).map(|(_, sending)| sending)
    }

    /// The routes that wait to be announced next, and with which attributes.
    pub(super) fn announcements(&mut self) -> Option<(AddressFamily, Arc<Outgoing>, Sending<'_>)> {
        let (outgoing, sending) = self.sending(self.groups.first?)?;
        Some((sending.family, outgoing?, sending))
    }

    fn sending(&mut self, group: GroupId) -> Option<(Option<Arc<Outgoing>>, Sending<'_>)> {
        let Self { entries, groups, owed } = self;
        let Group { family, outgoing, lane, .. } = groups.all.get_mut(group.place())?.as_mut()?;
        let (family, owed) = (*family, owed.of_mut(*family));
        Some((outgoing.clone(), Sending { family, group, lane, entries, owed }))
    }

    /// A message with routes of a group is complete.
    pub(super) fn sent(&mut self, group: GroupId) {
        if let Some(sent) = self.groups.get_mut(group) {
            sent.lane.compact(group, &self.entries);
        }
        self.groups.remove_if_empty(group);
    }
}

/// The routes of a group, while a message is filled. [`Waiting::sent`] is due after it.
pub(super) struct Sending<'a> {
    family: AddressFamily,
    pub(super) group: GroupId,
    lane: &'a mut Lane,
    entries: &'a mut Entries,
    owed: &'a mut usize,
}

impl Sending<'_> {
    /// The next route.
    pub(super) fn first(&mut self) -> Option<Place> {
        self.lane.first(self.group, self.entries)
    }

    /// The route that [`Sending::first`] returned last is sent. Returns what the peer was told of it before.
    pub(super) fn pop(&mut self) -> Option<Option<Arc<Outgoing>>> {
        let place = self.lane.joined.pop_front()?;
        self.lane.count = self.lane.count.saturating_sub(1);
        let Entry { told, is_owed, .. } = self.entries.remove(place)?;
        if is_owed {
            *self.owed = self.owed.saturating_sub(1);
        }
        Some(told)
    }
}

/// Whether a peer that has the one needs not be told the other.
fn is_same(told: Option<&Arc<Outgoing>>, wanted: Option<&Arc<Outgoing>>) -> bool {
    match (told, wanted) {
        (None, None) => true,
        (Some(told), Some(wanted)) => {
            Arc::ptr_eq(told, wanted) || told.attributes == wanted.attributes
        }
        _ => false,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What the parts of the table know of each other.
    pub(in super::super) fn expect_consistent(waiting: &Waiting, why: &str) {
        let single = waiting.entries.single.values();
        let entries: Vec<&Entry> = single.chain(waiting.entries.several.values()).collect();
        assert_eq!(waiting.count(), entries.len(), "{why}: a count");
        let in_group = |id| entries.iter().filter(|entry| entry.group == id).count();
        let of = |id| waiting.groups.get(id).unwrap();
        let mut order = Vec::new();
        let mut next = waiting.groups.first;
        while let Some(id) = next {
            let Group { lane, before, after, outgoing, .. } = of(id);
            assert_eq!(lane.count, in_group(id), "{why}: members of a group");
            assert!(lane.count > 0 && outgoing.is_some(), "{why}: an empty group");
            assert!(lane.has_left || lane.joined.len() == lane.count, "{why}: entries");
            assert!(lane.joined.len() / 2 <= lane.count.max(LEFT_MAX), "{why}: too many have left");
            assert_eq!(*before, order.last().copied(), "{why}: the order");
            order.push(id);
            next = *after;
        }
        assert_eq!(waiting.groups.last, order.last().copied(), "{why}: the order");
        assert_eq!(waiting.groups.by_value.len(), order.len(), "{why}: groups");
        let withdrawn = AddressFamily::ALL.map(withdrawals);
        assert!(
            withdrawn.iter().all(|id| of(*id).lane.count == in_group(*id)),
            "{why}: withdrawals"
        );
        let owed = AddressFamily::ALL.iter().map(|it| waiting.owed(*it)).sum::<usize>();
        assert_eq!(owed, entries.iter().filter(|entry| entry.is_owed).count(), "{why}: owed");
        let is_gone =
            |entry: &&Entry| !order.contains(&entry.group) && !withdrawn.contains(&entry.group);
        assert!(!entries.iter().any(is_gone), "{why}: a group that is gone");
        let nothing = |entry: &&Entry| withdrawn.contains(&entry.group) && entry.told.is_none();
        assert!(!entries.iter().any(nothing), "{why}: a withdrawal of what was never told");
    }
}
