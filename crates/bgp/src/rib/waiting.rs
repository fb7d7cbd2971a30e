//! Which routes wait to be sent to one peer, in which order, and what was it told of each before?
//!
//! A route that waits has an entry; one that does not, has none. Routes with the same attributes wait in one group, and
//! groups are sent in the order in which they were created; withdrawals wait in groups of their own, and go first. Knows
//! no message and no policy. Used by [`super::AdjRibOut`].

use std::sync::Arc;

use super::entries::{Entries, Entry, GroupId, Place, ToldBefore};
use super::export::Outgoing;
use super::groups::{Group, Groups, Lane, withdrawals};
use super::prefix_table::PrefixId;
use fairway_ground::{AddressFamily, PathId, PerFamily};

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

    /// The prefixes with a path that waits; one with several paths several times.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = PrefixId> + '_ {
        self.entries.prefixes()
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
        told: ToldBefore,
        wanted: Option<&Arc<Outgoing>>,
    ) {
        let Some(group) = self.entries.get(place).map(|entry| entry.group) else {
            if !told.is_same(wanted) {
                self.join(family, place, told, false, wanted);
            }
            return;
        };
        if self.groups.find(family, wanted) == Some(group) {
            // It keeps its place.
            return;
        }
        let Some(entry) = self.entries.remove(place) else { return };
        let (is_owed, told) = (entry.is_owed, entry.told());
        if let Some(left) = self.groups.get_mut(group) {
            left.lane.leave(group, &self.entries);
        }
        self.groups.remove_if_empty(group);
        if is_owed || !told.is_same(wanted) {
            self.join(family, place, told, is_owed, wanted);
        }
    }

    /// A refresh asks for a route that the peer was told: it is sent again, or withdrawn if that waits.
    pub(super) fn owe(&mut self, family: AddressFamily, place: Place, told: &Arc<Outgoing>) {
        match self.entries.get_mut(place) {
            Some(entry) if entry.is_owed => return,
            Some(entry) => entry.is_owed = true,
            None => self.join(family, place, ToldBefore::This(Arc::clone(told)), true, Some(told)),
        }
        let owed = self.owed.of_mut(family);
        *owed = owed.saturating_add(1);
    }

    fn join(
        &mut self,
        family: AddressFamily,
        place: Place,
        told: ToldBefore,
        is_owed: bool,
        wanted: Option<&Arc<Outgoing>>,
    ) {
        let group = match (self.groups.find(family, wanted), wanted) {
            (None, Some(outgoing)) => self.groups.create(family, outgoing),
            (group, _) => group.unwrap_or_else(|| withdrawals(family)),
        };
        self.entries.insert(place, Entry::new(told, group, is_owed));
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
    pub(super) fn pop(&mut self) -> Option<ToldBefore> {
        let place = self.lane.joined.pop_front()?;
        self.lane.count = self.lane.count.saturating_sub(1);
        let entry = self.entries.remove(place)?;
        if entry.is_owed {
            *self.owed = self.owed.saturating_sub(1);
        }
        Some(entry.told())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::groups::{Group, LEFT_MAX};
    use super::*;

    /// What the parts of the table know of each other.
    pub(in super::super) fn expect_consistent(waiting: &Waiting, why: &str) {
        let entries: Vec<&Entry> = waiting.entries.all().collect();
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
        let nothing = |entry: &&Entry| {
            withdrawn.contains(&entry.group) && matches!(entry.known(), Some(None))
        };
        assert!(!entries.iter().any(nothing), "{why}: a withdrawal of what was never told");
    }
}
