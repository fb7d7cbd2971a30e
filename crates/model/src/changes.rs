//! What changed in the index, so that a small change costs little.

use std::collections::BTreeSet;

use super::{Kind, ObjectKey, ObjectName};

/// Which facts changed. Decisions about one Service depend on that Service, on its endpoints,
/// and on objects of all other kinds; a change of one of the latter affects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The kinds, other than Service and EndpointSlice, of which an object changed.
    pub kinds: BTreeSet<Kind>,
    /// Services that were added, changed or deleted.
    pub services: BTreeSet<ObjectName>,
    /// Services with changed endpoints; the Service itself need not exist.
    pub endpoints: BTreeSet<ObjectName>,
}

impl Changes {
    /// One object that is not an EndpointSlice changed.
    pub(super) fn of(key: ObjectKey) -> Self {
        let mut changes = Self::default();
        if key.kind == Kind::Service {
            changes.services.insert(key.name);
        } else {
            changes.kinds.insert(key.kind);
        }
        changes
    }

    /// Nothing changed.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.services.is_empty() && self.endpoints.is_empty()
    }

    /// Both this and `later`.
    pub fn absorb(&mut self, later: Self) {
        self.kinds.extend(later.kinds);
        self.services.extend(later.services);
        self.endpoints.extend(later.endpoints);
    }
}
