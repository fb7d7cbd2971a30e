//! Which Services wait for what, so that a change reaches exactly those that can use it.
//!
//! Knows no rule. The allocator enters every Service that does not have all it wants under the
//! resources that could complete it, and looks up the waiting ones when something changed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use fairway_ground::AddressFamily;
use fairway_model::ObjectName;

/// A resource that a Service waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Another user of this address, or none.
    Address(IpAddr),
    /// A free address of this pool and family.
    Pool(ObjectName, AddressFamily),
    /// Another user of an address with this sharing key.
    SharingKey(String),
}

/// The order of Services: those with the oldest address first, then those that request an address,
/// then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) age: u64,
    pub(super) takes_any: bool,
    pub(super) name: ObjectName,
}

/// The waiting Services. Turns and places are shared: where many wait for many pools, each Service
/// and pool costs a pair of pointers.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    turns: BTreeMap<Arc<Place>, BTreeSet<Arc<Turn>>>,
    places: BTreeMap<ObjectName, (Arc<Turn>, Vec<Arc<Place>>)>,
}

impl Waiting {
    /// The Service of `turn` waits at `places`, and no longer where it waited before.
    pub(super) fn insert(&mut self, turn: Turn, places: Vec<Place>) {
        self.remove(&turn.name);
        let turn = Arc::new(turn);
        let mut shared = Vec::with_capacity(places.len());
        for place in places {
            let known = self.turns.get_key_value(&place).map(|(place, _)| Arc::clone(place));
            let place = known.unwrap_or_else(|| Arc::new(place));
            self.turns.entry(Arc::clone(&place)).or_default().insert(Arc::clone(&turn));
            shared.push(place);
        }
        self.places.insert(turn.name.clone(), (turn, shared));
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

    /// All that wait at `place`, in their order.
    pub(super) fn at(&self, place: &Place) -> impl Iterator<Item = &Turn> {
        self.turns.get(place).into_iter().flatten().map(Arc::as_ref)
    }

    /// The next one at `place` after `turn`.
    pub(super) fn next(&self, place: &Place, after: Option<&Turn>) -> Option<&Turn> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut later = self.turns.get(place)?.range::<Turn, _>((from, Bound::Unbounded));
        later.next().map(Arc::as_ref)
    }
}
