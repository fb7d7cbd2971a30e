//! Assigns addresses to Services, logs changes, and hands what must survive a restart to the state directory.
//!
//! Knows no node, no router and no session. The standalone loop calls it after every change of
//! the index.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::{Allocator, MemoryChange, Outcomes, ReleaseMark};
use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, ObjectName};
use tracing::{info, warn};

/// The allocator, and the outcomes that were logged last.
#[derive(Debug, Default)]
pub(crate) struct Assigner {
    allocator: Allocator,
    said: BTreeMap<ObjectName, Vec<IpAddr>>,
}

impl Assigner {
    /// Continues from what `allocator` remembers.
    pub(crate) fn new(allocator: Allocator) -> Self {
        Self { allocator, said: BTreeMap::new() }
    }

    /// Runs the allocator and logs the differences; returns the Services that changed.
    pub(crate) fn converge(
        &mut self,
        now: Instant,
        index: &ClusterIndex,
        changes: &Changes,
    ) -> BTreeSet<ObjectName> {
        let changed = self.allocator.converge(now, index, changes);
        for (service, why) in self.allocator.given_up() {
            warn!(%service, %why, "current IP not allowed by config, will attempt for new IP assignment");
        }
        for name in &changed {
            self.log(name);
        }
        changed
    }

    /// The latest outcomes.
    pub(crate) fn outcomes(&self) -> &Outcomes {
        self.allocator.outcomes()
    }

    /// See [`Allocator::memory_change`].
    pub(crate) fn memory_change(&mut self) -> MemoryChange {
        self.allocator.memory_change()
    }

    /// See [`Allocator::last_release`].
    pub(crate) fn last_release(&self) -> ReleaseMark {
        self.allocator.last_release()
    }

    /// See [`Allocator::withdrawn`].
    pub(crate) fn withdrawn(&mut self, up_to: ReleaseMark) -> bool {
        self.allocator.withdrawn(up_to)
    }

    /// When [`Self::converge`] is due even if nothing changes.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.allocator.next_deadline()
    }

    fn log(&mut self, service: &ObjectName) {
        let Some(now) = self.allocator.outcomes().get(service) else {
            if let Some(addresses) = self.said.remove(service) {
                info!(%service, ?addresses, "addresses released");
            }
            return;
        };
        let before = self.said.get(service).map_or(&[][..], Vec::as_slice);
        if !now.addresses.is_empty() && before != now.addresses {
            let pool = now.pool.as_deref().unwrap_or_default();
            info!(%service, addresses = ?now.addresses, pool, "addresses assigned");
        }
        if let Some(reason) = &now.reason {
            let pending = now.is_pending();
            warn!(%service, pending, %reason, "service does not have all requested addresses");
        }
        if now.is_pending() {
            self.said.remove(service);
        } else {
            self.said.insert(service.clone(), now.addresses.clone());
        }
    }
}
