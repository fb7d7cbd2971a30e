//! Which Service has which address.
//!
//! A function of the facts and of earlier assignments: no clock, no randomness, no I/O.
//! Knows no node and no router. The controller calls [`Allocator::converge`] after every change
//! and keeps its [`Memory`] on disk; the plan reads the [`Outcomes`].
//!
//! A call makes the fewest possible changes. First, all valid assignments are kept, so a healthy
//! Service never moves because of another; then Services without addresses restore those in their
//! status, or those that they released recently; only then are new addresses assigned, first to
//! Services that had one before. Among the others, those that request an address come before those
//! that take any (otherwise the order of names could make a request fail), and then by name. So the
//! same files give the same addresses on every host.
//!
//! A released address cools down (`released`): no other Service gets it before its withdrawal has
//! been sent to all neighbours ([`Allocator::withdrawn`]), and for a minute it is the last choice.
//!
//! A call looks at the Services that changed and at those that can use what these release
//! (`waiting`); at all of them only when pools changed. With `n` addresses in use, one allocation costs
//! O(log n) for each range that is tried (see `occupancy`), whatever the size of the pool.

mod choice;
mod converge;
mod holding;
mod memory;
mod occupancy;
mod pool_use;
mod pools;
mod prospects;
mod reason;
mod released;
mod request;
mod runs;
mod sharing;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use converge::Stirred;
use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, ObjectName};
use occupancy::Occupancy;
use pools::PoolIndex;
use released::{Home, Released};
use sharing::Claim;
use waiting::Waiting;

pub use memory::{Memory, MemoryChange, MemoryCopy};
pub use pool_use::PoolUse;
pub use pools::PoolLookup;
pub use reason::Reason;
pub use released::ReleaseMark;
pub use sharing::SharingConflict;

/// The addresses of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The pool they come from. With one family from each of two pools: both names, in the order of the
    /// addresses, separated by a comma. Empty while it is unknown, for lack of pools.
    pub pool: String,
    /// One address for each family at most, in the order of the status.
    pub addresses: Vec<IpAddr>,
}

/// The outcome for one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its addresses, in the order of the status; empty while it waits for some.
    pub addresses: Vec<IpAddr>,
    /// Where they come from, as in [`Assignment::pool`]; `None` without addresses or pools.
    pub pool: Option<String>,
    /// What is missing; `None` for a Service that got what it requested. [`Reason::NoPools`] and
    /// [`Reason::PoolUnknown`] beside addresses mean: keep them, but do not announce them.
    pub reason: Option<Reason>,
}

impl Outcome {
    /// Whether it waits for an address.
    pub fn is_pending(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether its addresses stay because it is unknown what it may have.
    pub fn is_unchecked(&self) -> bool {
        matches!(self.reason, Some(Reason::NoPools | Reason::PoolUnknown { .. }))
    }
}

/// The outcome for every Service of our class, in name order.
pub type Outcomes = BTreeMap<ObjectName, Outcome>;

/// The result of an allocator without memory for these facts.
pub fn from_scratch(index: &ClusterIndex, load_balancer_class: Option<&str>) -> Outcomes {
    let mut allocator = Allocator::new(load_balancer_class.map(str::to_owned));
    allocator.converge(Instant::ZERO, index, &Changes::default());
    allocator.outcomes
}

/// What one Service holds.
#[derive(Debug, Clone)]
struct Held {
    assignment: Assignment,
    /// Increases with every Service that gets its first address: the smaller, the older.
    age: u64,
    /// Its claim in the occupancy index. `None` while it has not been checked against any pool.
    claim: Option<Arc<Claim>>,
}

/// Owns all assignments and decides about new ones.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    load_balancer_class: Option<String>,
    outcomes: Outcomes,
    given_up: BTreeMap<ObjectName, Reason>,
    held: BTreeMap<ObjectName, Held>,
    next_age: u64,
    is_holding_back: bool,
    /// Services with another assignment than [`Self::memory_change`] reported last.
    unreported: BTreeSet<ObjectName>,
    /// It has not made a decision since it was restored.
    is_restored: bool,
    occupancy: Occupancy,
    released: Released,
    waiting: Waiting,
    /// What changed since the waiting Services were last evaluated.
    stirred: Stirred,
    /// Derived from the pools of the last call; `None` before the first one.
    pools: Option<Arc<PoolIndex>>,
}

impl Allocator {
    /// An allocator without memory, for Services of one class (`None`: those without a class).
    pub fn new(load_balancer_class: Option<String>) -> Self {
        Self { load_balancer_class, ..Self::default() }
    }

    /// The allocator that continues from `memory`, which was kept before the restart.
    /// Nothing is in effect until `converge` has checked it. The cool-down of released addresses
    /// restarts: after a restart it is unknown which withdrawals neighbours have received.
    pub fn restore(load_balancer_class: Option<String>, memory: Memory) -> Self {
        let mut allocator = Self { is_restored: true, ..Self::new(load_balancer_class) };
        for (name, assignment) in memory.assignments {
            let held = Held { assignment, age: allocator.take_age(), claim: None };
            allocator.unreported.insert(name.clone());
            allocator.held.insert(name, held);
        }
        let assigned = allocator.held.values().flat_map(|held| &held.assignment.addresses);
        let assigned: BTreeSet<IpAddr> = assigned.copied().collect();
        for (address, former) in memory.released {
            let is_unused = !assigned.contains(&address);
            allocator.released.add(Instant::ZERO, address, &former, is_unused, None);
        }
        allocator
    }

    /// All that must survive a restart, as [`Self::memory_change`] reports it.
    #[cfg(test)]
    fn memory(&self) -> Memory {
        let mut all = self.clone();
        all.unreported = self.held.keys().cloned().collect();
        let mut memory = MemoryCopy::default();
        memory.apply(all.memory_change());
        memory.apply(MemoryChange { released: Some(self.releases()), ..MemoryChange::default() });
        memory.memory()
    }

    /// What has changed since the last call of what must survive a restart. The first call after
    /// [`Self::restore`] reports all of it.
    pub fn memory_change(&mut self) -> MemoryChange {
        // What was never checked against a pool is kept in the status alone.
        let kept = |name: &ObjectName| {
            let held = self.held.get(name).filter(|held| !held.assignment.pool.is_empty())?;
            Some((held.age, held.assignment.clone()))
        };
        let unreported = std::mem::take(&mut self.unreported).into_iter();
        let assignments = unreported.map(|name| {
            let now = kept(&name);
            (name, now)
        });
        let assignments = assignments.collect();
        let released = self.released.take_is_other().then(|| self.releases());
        MemoryChange { assignments, released }
    }

    /// Nobody will ask what has changed so far: for a caller that keeps the assignments elsewhere. Without this the names
    /// of all Services that ever changed add up.
    pub fn forget_memory_change(&mut self) {
        self.unreported.clear();
    }

    fn releases(&self) -> Vec<(IpAddr, ObjectName)> {
        self.released.iter().map(|(address, former)| (address, former.clone())).collect()
    }

    /// The outcome for every Service of our class.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// The Services from which the last `converge` took an address that the pools no longer allow, or
    /// that another Service has, and the reason. Their outcome has their new addresses.
    pub fn given_up(&self) -> &BTreeMap<ObjectName, Reason> {
        &self.given_up
    }

    /// When `converge` is due without a change: a cool-down ends then.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.released.next_deadline()
    }

    /// Everything that has been released so far: pass it to [`Self::withdrawn`] once all neighbours
    /// have received the routes that follow from the present outcomes.
    pub fn last_release(&self) -> ReleaseMark {
        self.released.last()
    }

    /// Released addresses that no other Service may have until their withdrawal has been reported,
    /// with their last holder and the time since when they are unused. Oldest first.
    pub fn not_withdrawn(&self) -> impl Iterator<Item = (IpAddr, &ObjectName, Instant)> {
        self.released.not_withdrawn()
    }

    /// Another allocator decided until now, and took `address` from `former`: as if released here.
    pub fn note_released(&mut self, now: Instant, address: IpAddr, former: &ObjectName) {
        if !self.occupancy.is_used(address) {
            self.released.add(now, address, former, true, None);
            // It is blocked once the next call has looked at all pools.
            self.pools = None;
        }
    }

    /// Whether new addresses are assigned (the default). If not, existing addresses are kept, and those
    /// in a status are restored: a controller that has just taken over may not know yet what was
    /// released recently.
    pub fn set_giving(&mut self, is_giving: bool) {
        if self.is_holding_back == is_giving {
            self.is_holding_back = !is_giving;
            self.pools = None;
        }
    }

    /// The withdrawals of everything released until `up_to` were sent to all neighbours, so other
    /// Services may have it. The next `converge`, with or without changes, assigns it to waiting
    /// Services; returns whether there is something to assign.
    pub fn withdrawn(&mut self, up_to: ReleaseMark) -> bool {
        let told = self.released.withdrawn(up_to);
        self.stir_told(told)
    }

    /// As [`Self::withdrawn`], of one address, for callers that track each.
    pub fn address_withdrawn(&mut self, address: IpAddr) -> bool {
        let told = self.released.address_withdrawn(address);
        self.stir_told(told)
    }

    fn stir_told(&mut self, told: impl IntoIterator<Item = (IpAddr, Option<Home>)>) -> bool {
        let mut is_any = false;
        for (address, home) in told {
            is_any = true;
            self.stirred.addresses.insert(address);
            if let Some(home) = home {
                self.stirred.fresh.entry(home).or_default().insert(address);
            }
        }
        is_any
    }

    fn addresses_of(&self, name: &ObjectName) -> &[IpAddr] {
        self.held.get(name).map_or(&[], |held| &held.assignment.addresses)
    }

    fn take_age(&mut self) -> u64 {
        let age = self.next_age;
        self.next_age = self.next_age.saturating_add(1);
        age
    }
}

/// The scope of a call of [`Allocator::converge`].
#[derive(Debug)]
enum Scope {
    /// Every Service.
    All,
    /// These, and those that can use what they release.
    Only(BTreeSet<ObjectName>),
}
