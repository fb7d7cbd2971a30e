//! Who waits for what, so that a change reaches those whom it can help and nobody else.
//!
//! Knows no rule. The allocator enters every Service that does not have all it wants under the
//! places from which help could come, and asks who waits there when something becomes other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;

use fairway_sessions::types::AddressFamily;

use crate::model::ObjectName;

/// Where help could come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Another user of this address, or none.
    Address(IpAddr),
    /// A free address of this pool and family.
    Pool(ObjectName, AddressFamily),
    /// Another user of an address with this sharing key.
    SharingKey(String),
}

/// When it is a Service's turn: those who have had an address longest, then those who name an
/// address, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) age: u64,
    pub(super) takes_any: bool,
    pub(super) name: ObjectName,
}

/// Those who wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    turns: BTreeMap<Place, BTreeSet<Turn>>,
    places: BTreeMap<ObjectName, (Turn, Vec<Place>)>,
}

impl Waiting {
    /// The Service whose turn is `turn` waits at `places`, and no longer where it waited before.
    pub(super) fn insert(&mut self, turn: Turn, places: Vec<Place>) {
        self.remove(&turn.name);
        for place in &places {
            self.turns.entry(place.clone()).or_default().insert(turn.clone());
        }
        self.places.insert(turn.name.clone(), (turn, places));
    }

    /// `name` waits no longer.
    pub(super) fn remove(&mut self, name: &ObjectName) {
        let Some((turn, places)) = self.places.remove(name) else {
            return;
        };
        for place in &places {
            if let Some(turns) = self.turns.get_mut(place) {
                turns.remove(&turn);
                if turns.is_empty() {
                    self.turns.remove(place);
                }
            }
        }
    }

    /// All who wait at `place`, in their turn.
    pub(super) fn at(&self, place: &Place) -> impl Iterator<Item = &Turn> {
        self.turns.get(place).into_iter().flatten()
    }

    /// Who is next at `place` after `turn`.
    pub(super) fn next(&self, place: &Place, after: Option<&Turn>) -> Option<&Turn> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.turns.get(place)?.range((from, Bound::Unbounded)).next()
    }
}
