//! Which routes wait to be sent to one peer, in which group, and what was it told of each before? Knows
//! no order and no message. Used by [`super::waiting`] and its groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::export::{Outgoing, is_same};
use super::pages::Pages;
use super::prefix_table::PrefixId;
use fairway_ground::PathId;

/// A path to a prefix; without identifiers, the only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) prefix: PrefixId,
    pub(super) path_id: PathId,
}

/// What the peer was told of a route.
#[derive(Debug, Clone)]
pub(super) enum ToldBefore {
    Nothing,
    /// It is not known what.
    Something,
    This(Arc<Outgoing>),
}

impl ToldBefore {
    /// Whether a peer that was told this needs not be told the other.
    pub(super) fn is_same(&self, wanted: Option<&Arc<Outgoing>>) -> bool {
        match self {
            Self::Nothing => wanted.is_none(),
            Self::Something => false,
            Self::This(told) => is_same(Some(told), wanted),
        }
    }
}

impl From<Option<Arc<Outgoing>>> for ToldBefore {
    fn from(told: Option<Arc<Outgoing>>) -> Self {
        told.map_or(Self::Nothing, Self::This)
    }
}

/// A route that waits.
#[derive(Debug)]
pub(super) struct Entry {
    /// What the peer was told of it, if that is known.
    known: Option<Arc<Outgoing>>,
    /// It was told something.
    is_told: bool,
    pub(super) group: GroupId,
    /// A refresh asked for it: it is sent even if the peer has it.
    pub(super) is_owed: bool,
}

impl Entry {
    pub(super) fn new(told: ToldBefore, group: GroupId, is_owed: bool) -> Self {
        let is_told = !matches!(told, ToldBefore::Nothing);
        let known = match told {
            ToldBefore::This(told) => Some(told),
            ToldBefore::Nothing | ToldBefore::Something => None,
        };
        Self { known, is_told, group, is_owed }
    }

    /// What the peer was told of it.
    pub(super) fn told(self) -> ToldBefore {
        match self.known {
            Some(told) => ToldBefore::This(told),
            None if self.is_told => ToldBefore::Something,
            None => ToldBefore::Nothing,
        }
    }

    /// The same; `None` if it is not known.
    pub(super) fn known(&self) -> Option<Option<&Arc<Outgoing>>> {
        match &self.known {
            None if self.is_told => None,
            known => Some(known.as_ref()),
        }
    }
}

/// The place of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupId(u32);

impl GroupId {
    pub(super) const fn new(number: u32) -> Self {
        Self(number)
    }

    pub(super) fn place(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Entries by their places.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Those without path identifier.
    single: Pages<Entry>,
    several: BTreeMap<Place, Entry>,
    pub(super) count: usize,
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
    pub(super) fn insert(&mut self, place: Place, entry: Entry) {
        self.count = self.count.saturating_add(1);
        match place.path_id {
            PathId::NONE => self.single.insert(place.prefix.place(), entry),
            _ => drop(self.several.insert(place, entry)),
        }
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Entry> {
        let removed = match place.path_id {
            PathId::NONE => self.single.remove(place.prefix.place()),
            _ => self.several.remove(&place),
        };
        self.count = self.count.saturating_sub(usize::from(removed.is_some()));
        removed
    }

    /// The paths to this prefix that wait.
    pub(super) fn paths(&self, prefix: PrefixId) -> impl Iterator<Item = PathId> + '_ {
        let place = |path_id| Place { prefix, path_id };
        let single = self.single.get(prefix.place()).map(|_| PathId::NONE);
        let several = self.several.range(place(PathId::NONE)..=place(PathId::MAX));
        single.into_iter().chain(several.map(|(place, _)| place.path_id))
    }

    /// The prefixes with a path that waits; one with several paths several times.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = PrefixId> + '_ {
        let single = self.single.numbers().filter_map(PrefixId::at);
        single.chain(self.several.keys().map(|place| place.prefix))
    }

    pub(super) fn is_in(&self, place: Place, group: GroupId) -> bool {
        self.get(place).is_some_and(|entry| entry.group == group)
    }
}

#[cfg(test)]
impl Entries {
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.single.values().chain(self.several.values())
    }
}
