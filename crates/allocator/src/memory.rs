//! What of the assignments must survive a restart, and what of that has changed.
//!
//! With many Services this is long, and a change concerns few of them: so the allocator reports changes, and the
//! task that writes to disk keeps a copy. Knows no file and no decision.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_model::ObjectName;

use super::Assignment;

/// What must survive a restart: plain values, for the caller to store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// The assignments, oldest first.
    pub assignments: Vec<(ObjectName, Assignment)>,
    /// Recently released addresses and the Services that had them, oldest first.
    pub released: Vec<(IpAddr, ObjectName)>,
}

/// An assignment and its age: the smaller, the older.
pub(super) type Aged = (u64, Assignment);

/// What has changed of a [`Memory`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryChange {
    /// The assignments that are other ones now; `None` for those that ended.
    pub(super) assignments: BTreeMap<ObjectName, Option<Aged>>,
    /// The released addresses from now on; `None` if they are as before.
    pub(super) released: Option<Vec<(IpAddr, ObjectName)>>,
}

impl MemoryChange {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.released.is_none()
    }

    /// `later` happened after this.
    pub fn absorb(&mut self, later: Self) {
        self.assignments.extend(later.assignments);
        self.released = later.released.or(self.released.take());
    }
}

/// A [`Memory`] that follows the changes of the allocator's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryCopy {
    assignments: BTreeMap<ObjectName, Aged>,
    released: Vec<(IpAddr, ObjectName)>,
}

impl MemoryCopy {
    /// Follows a change.
    pub fn apply(&mut self, change: MemoryChange) {
        for (name, now) in change.assignments {
            match now {
                Some(now) => self.assignments.insert(name, now),
                None => self.assignments.remove(&name),
            };
        }
        self.released = change.released.unwrap_or_else(|| std::mem::take(&mut self.released));
    }

    /// All of it.
    pub fn memory(&self) -> Memory {
        let mut assignments: Vec<_> = self.assignments.iter().collect();
        assignments.sort_by_key(|(_, (age, _))| *age);
        let assignments = assignments.into_iter().map(|(name, (_, it))| (name.clone(), it.clone()));
        Memory { assignments: assignments.collect(), released: self.released.clone() }
    }
}
