//! In which order are the routes sent that wait for one peer? Those with the same attributes wait in one group, and groups
//! are sent in the order in which they were created. Knows no message. Used by [`super::waiting`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::entries::{Entries, GroupId, Place};
use super::export::Outgoing;
use super::shared::Shared;
use super::unordered::Unordered;
use fairway_ground::AddressFamily;

/// Routes that have left a group may stay in its list until there are twice as many entries as routes, or as this.
pub(super) const LEFT_MAX: usize = if cfg!(test) { 4 } else { 64 };

/// The routes of one group, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Those that have left it since are still here.
    pub(super) joined: VecDeque<Place>,
    /// How many of them have not left.
    pub(super) count: usize,
    /// Some have left, and may have joined again.
    pub(super) has_left: bool,
}

impl Lane {
    pub(super) fn join(&mut self, place: Place) {
        self.joined.push_back(place);
        self.count = self.count.saturating_add(1);
    }

    /// One of its routes has left, and is in another group by now, or nowhere.
    pub(super) fn leave(&mut self, group: GroupId, entries: &Entries) {
        self.count = self.count.saturating_sub(1);
        self.has_left = true;
        self.compact(group, entries);
    }

    /// Forgets those that have left, if they are most of what is here: a route that flaps while the socket is busy would
    /// join again and again.
    pub(super) fn compact(&mut self, group: GroupId, entries: &Entries) {
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
    pub(super) fn first(&mut self, group: GroupId, entries: &Entries) -> Option<Place> {
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
pub(super) struct Group {
    pub(super) family: AddressFamily,
    pub(super) outgoing: Option<Arc<Outgoing>>,
    pub(super) lane: Lane,
    pub(super) before: Option<GroupId>,
    pub(super) after: Option<GroupId>,
}

type GroupKey = (AddressFamily, Shared<Outgoing>);

/// The groups, in the order in which they were created. Those of withdrawals are always there.
#[derive(Debug)]
pub(super) struct Groups {
    /// By their places.
    pub(super) all: Vec<Option<Group>>,
    free: Vec<GroupId>,
    pub(super) first: Option<GroupId>,
    pub(super) last: Option<GroupId>,
    /// By the place of the attributes, which the group keeps alive: values are compared where this knows nothing.
    by_place: Unordered<(AddressFamily, usize), GroupId>,
    pub(super) by_value: BTreeMap<GroupKey, GroupId>,
    /// The group that was found last: thousands of routes in succession share one.
    found: Option<(AddressFamily, Arc<Outgoing>, GroupId)>,
}

/// The group of withdrawals.
pub(super) fn withdrawals(family: AddressFamily) -> GroupId {
    match family {
        AddressFamily::Ipv4Unicast => GroupId::new(0),
        AddressFamily::Ipv6Unicast => GroupId::new(1),
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

impl Groups {
    pub(super) fn get(&self, id: GroupId) -> Option<&Group> {
        self.all.get(id.place())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: GroupId) -> Option<&mut Group> {
        self.all.get_mut(id.place())?.as_mut()
    }

    pub(super) fn has_withdrawals(&self, family: AddressFamily) -> bool {
        self.get(withdrawals(family)).is_some_and(|group| group.lane.count > 0)
    }

    /// The group of routes with attributes `wanted`, or to be withdrawn, if there is one.
    pub(super) fn find(
        &mut self,
        family: AddressFamily,
        wanted: Option<&Arc<Outgoing>>,
    ) -> Option<GroupId> {
        let Some(outgoing) = wanted else { return Some(withdrawals(family)) };
        if let Some((of, known, group)) = &self.found
            && *of == family
            && Arc::ptr_eq(known, outgoing)
        {
            return Some(*group);
        }
        let place = (family, Arc::as_ptr(outgoing).addr());
        let by_value = || {
            let key = (family, Shared(Arc::clone(outgoing)));
            self.by_value.get(&key).copied()
        };
        let group = self.by_place.get(&place).copied().or_else(by_value)?;
        self.found = Some((family, Arc::clone(outgoing), group));
        Some(group)
    }

    pub(super) fn create(&mut self, family: AddressFamily, outgoing: &Arc<Outgoing>) -> GroupId {
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
                // There are fewer groups than routes that wait.
                let id = GroupId::new(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
                self.all.push(Some(group));
                id
            }
        };
        match self.last.replace(id).and_then(|last| self.get_mut(last)) {
            Some(last) => last.after = Some(id),
            None => self.first = Some(id),
        }
        self.by_place.insert((family, Arc::as_ptr(outgoing).addr()), id);
        self.by_value.insert((family, Shared(Arc::clone(outgoing))), id);
        self.found = Some((family, Arc::clone(outgoing), id));
        id
    }

    /// Removes a group that has no routes any more. That of withdrawals stays.
    pub(super) fn remove_if_empty(&mut self, id: GroupId) {
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
        self.by_value.remove(&(family, Shared(outgoing)));
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
