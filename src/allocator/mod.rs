//! Which Service has which address.
//!
//! A function of the facts and of what was assigned before: no clock, no randomness, no I/O.
//! Knows no node and no router. The controller calls [`Allocator::converge`] after every change
//! and keeps [`Allocator::assignments`] on disk; the plan reads the [`Outcomes`].
//!
//! One call of `converge` looks at every Service once and changes only what has to change. First
//! everything that is assigned and still holds is kept, so a healthy Service never moves because
//! of another; only then are addresses given out, to those who had one before those who had none.
//! Among the latter, those who name an address come before those who take any (or a wish could
//! fail by an accident of names), and otherwise the name decides. So the same files give the same
//! addresses on every host.
//!
//! With `n` addresses in use a single allocation costs O(log n) for each range that is tried (see
//! `occupancy`), whatever the size of the pool; a call without changes costs O(services · log n).

mod choice;
mod occupancy;
mod pools;
mod reason;
mod request;
mod sharing;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_sessions::time::Instant;

use crate::model::{Changes, ClusterIndex, ObjectName, Service};

use choice::Choice;
use occupancy::Occupancy;
use sharing::Claim;

pub use pools::PoolLookup;
pub use reason::Reason;
pub use sharing::SharingConflict;

/// The addresses of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The pool they come from. With one family from each of two pools: both names, the preferred
    /// family's first, with a comma between.
    pub pool: String,
    /// One address for each family at most, the preferred family first.
    pub addresses: Vec<IpAddr>,
}

/// What became of one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its addresses, the preferred family first; empty while it waits for some.
    pub addresses: Vec<IpAddr>,
    /// Where they come from, as in [`Assignment::pool`]; `None` without addresses.
    pub pool: Option<String>,
    /// What is missing; `None` for a Service that got what it asked for. [`Reason::NoPools`]
    /// beside addresses means: keep them, but do not announce them.
    pub reason: Option<Reason>,
}

impl Outcome {
    /// Whether it waits for an address.
    pub fn is_pending(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether its addresses may be announced: there are some, and pools to hold them.
    pub fn may_be_announced(&self) -> bool {
        !self.is_pending() && self.reason != Some(Reason::NoPools)
    }
}

/// What became of every Service of our class, in name order.
pub type Outcomes = BTreeMap<ObjectName, Outcome>;

/// What must survive a restart: plain values, for whoever keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// Who has what, oldest first.
    pub assignments: Vec<(ObjectName, Assignment)>,
    /// Addresses that were given back not long ago and who had them, oldest first.
    pub released: Vec<(IpAddr, ObjectName)>,
}

/// What an allocator without memory makes of these facts.
pub fn from_scratch(index: &ClusterIndex, load_balancer_class: Option<&str>) -> Outcomes {
    let mut allocator = Allocator::new(load_balancer_class.map(str::to_owned));
    allocator.converge(Instant::ZERO, index, &Changes::default());
    allocator.outcomes
}

/// What one Service holds.
#[derive(Debug, Clone)]
struct Held {
    assignment: Assignment,
    /// Counts up with every Service that gets its first address: the smaller, the older.
    age: u64,
    /// What the occupancy index knows of it. `None` after a restart, until the first `converge`.
    claim: Option<Arc<Claim>>,
}

/// Owns all assignments and decides about new ones.
#[derive(Debug, Clone, Default)]
pub struct Allocator {
    load_balancer_class: Option<String>,
    outcomes: Outcomes,
    held: BTreeMap<ObjectName, Held>,
    occupancy: Occupancy,
    next_age: u64,
}

impl Allocator {
    /// An allocator without memory, for Services of one class (`None`: those without a class).
    pub fn new(load_balancer_class: Option<String>) -> Self {
        Self { load_balancer_class, ..Self::default() }
    }

    /// The allocator that goes on from `memory`: what [`Self::memory`] gave before the restart.
    /// Nothing is believed until `converge` has checked it.
    pub fn restore(load_balancer_class: Option<String>, memory: Memory) -> Self {
        let mut allocator = Self::new(load_balancer_class);
        for (name, assignment) in memory.assignments {
            let held = Held { assignment, age: allocator.take_age(), claim: None };
            allocator.held.insert(name, held);
        }
        allocator
    }

    /// What must survive a restart.
    pub fn memory(&self) -> Memory {
        let mut held: Vec<_> = self.held.iter().collect();
        held.sort_by_key(|(_, held)| held.age);
        let assignments =
            held.into_iter().map(|(name, held)| (name.clone(), held.assignment.clone()));
        Memory { assignments: assignments.collect(), released: Vec::new() }
    }

    /// What became of every Service of our class.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// When `converge` is due though nothing changed: a cool-down ends then.
    pub fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// Gives every LoadBalancer Service of our class its addresses, as far as `index` allows, and
    /// takes back what nobody may keep. The class is ours when both are absent or both are equal.
    /// `changes` is what is other in `index` since the last call. Answers with the Services whose
    /// outcome is other.
    pub fn converge(
        &mut self,
        _now: Instant,
        index: &ClusterIndex,
        _changes: &Changes,
    ) -> BTreeSet<ObjectName> {
        let before = std::mem::take(&mut self.outcomes);
        self.outcomes = self.decide(index);
        let gone = before.keys().filter(|name| !self.outcomes.contains_key(*name));
        let other = self.outcomes.iter().filter(|(name, now)| before.get(*name) != Some(*now));
        gone.chain(other.map(|(name, _)| name)).cloned().collect()
    }

    fn decide(&mut self, index: &ClusterIndex) -> Outcomes {
        let class = self.load_balancer_class.clone();
        let ours = |service: &&Service| service.load_balancer_class == class;
        let services: BTreeMap<&ObjectName, &Service> =
            index.services.values().filter(ours).map(|service| (&service.name, service)).collect();
        let gone: Vec<_> =
            self.held.keys().filter(|name| !services.contains_key(name)).cloned().collect();
        for name in gone {
            self.release(&name);
        }
        let reasons = if index.pools.is_empty() {
            // Losing every pool is far more often an accident than a wish, so nothing moves.
            services.keys().map(|name| ((*name).clone(), Reason::NoPools)).collect()
        } else {
            let pools = PoolLookup::new(index);
            let had_some = self.keep_what_holds(&services, &pools);
            self.give_out(&services, &pools, &had_some)
        };
        services.keys().map(|name| ((*name).clone(), self.outcome(name, &reasons))).collect()
    }

    fn outcome(&self, name: &ObjectName, reasons: &BTreeMap<ObjectName, Reason>) -> Outcome {
        let reason = reasons.get(name).cloned();
        match self.held.get(name).map(|held| held.assignment.clone()) {
            Some(Assignment { pool, addresses }) => Outcome { addresses, pool: Some(pool), reason },
            None => Outcome { addresses: Vec::new(), pool: None, reason },
        }
    }

    /// Checks every assignment. Those whose Service and addresses are as they were keep their
    /// place in the occupancy index; the rest leave it and come back in order of age, as far as
    /// they still hold. So whoever changed makes way, not whom the change would hit. Answers with
    /// the ages of the latter.
    fn keep_what_holds(
        &mut self,
        services: &BTreeMap<&ObjectName, &Service>,
        pools: &PoolLookup<'_>,
    ) -> BTreeMap<ObjectName, u64> {
        let mut moved: Vec<(u64, &Service, Vec<IpAddr>)> = Vec::new();
        for (name, held) in &mut self.held {
            let Some(service) = services.get(name) else {
                continue;
            };
            let addresses = &held.assignment.addresses;
            let kept = request::still_valid(service, addresses, pools);
            let unchanged = held.claim.as_ref().is_some_and(|claim| claim.is_of(service));
            if unchanged && kept == *addresses {
                held.assignment.pool = pools.names(addresses);
            } else {
                moved.push((held.age, service, kept));
            }
        }
        moved.sort_by_key(|(age, ..)| *age);
        for (_, service, _) in &moved {
            self.vacate(&service.name);
        }
        let ages = moved.iter().map(|(age, service, _)| (service.name.clone(), *age)).collect();
        for (_, service, mut kept) in moved {
            let claim = Arc::new(Claim::of(service));
            kept.retain(|address| {
                self.occupancy.conflict(*address, &service.name, &claim).is_none()
            });
            self.hold(service, kept, claim, pools);
        }
        ages
    }

    /// Completes what is incomplete, until nothing more can be done. More than one round is
    /// needed only when a Service that must have both families has to give one back.
    fn give_out(
        &mut self,
        services: &BTreeMap<&ObjectName, &Service>,
        pools: &PoolLookup<'_>,
        had_some: &BTreeMap<ObjectName, u64>,
    ) -> BTreeMap<ObjectName, Reason> {
        let mut waiting: Vec<&Service> = services
            .values()
            .copied()
            .filter(|service| !request::is_satisfied(service, self.addresses_of(&service.name)))
            .collect();
        waiting.sort_by_key(|service| {
            let held = self.held.get(&service.name).map(|held| held.age);
            let age = held.or_else(|| had_some.get(&service.name).copied()).unwrap_or(u64::MAX);
            (age, service.requested_addresses.is_empty(), &service.name)
        });
        loop {
            let mut reasons = BTreeMap::new();
            let mut progress = false;
            for service in &waiting {
                let kept = self.addresses_of(&service.name).to_vec();
                if request::is_satisfied(service, &kept) {
                    continue;
                }
                let claim = Arc::new(Claim::of(service));
                let occupancy = &self.occupancy;
                let choice = Choice { pools, occupancy, service, claim: &claim };
                let (addresses, reason) = match choice.make(&kept) {
                    Ok(found) => (found.addresses, found.reason),
                    Err(reason) => (Vec::new(), Some(reason)),
                };
                reasons.extend(reason.map(|reason| (service.name.clone(), reason)));
                if addresses != kept {
                    progress = true;
                    self.vacate(&service.name);
                    self.hold(service, addresses, claim, pools);
                }
            }
            if !progress {
                return reasons;
            }
        }
    }

    fn addresses_of(&self, name: &ObjectName) -> &[IpAddr] {
        self.held.get(name).map_or(&[], |held| &held.assignment.addresses)
    }

    /// Gives `addresses` to `service`, which has left the occupancy index; none ends its
    /// assignment.
    fn hold(
        &mut self,
        service: &Service,
        addresses: Vec<IpAddr>,
        claim: Arc<Claim>,
        pools: &PoolLookup<'_>,
    ) {
        let name = &service.name;
        if addresses.is_empty() {
            self.held.remove(name);
            return;
        }
        for address in &addresses {
            self.occupancy.occupy(*address, name, &claim);
        }
        let age = match self.held.get(name) {
            Some(held) => held.age,
            None => self.take_age(),
        };
        let assignment = Assignment { pool: pools.names(&addresses), addresses };
        self.held.insert(name.clone(), Held { assignment, age, claim: Some(claim) });
    }

    /// Takes a Service out of the occupancy index.
    fn vacate(&mut self, name: &ObjectName) {
        let Some(held) = self.held.get_mut(name) else {
            return;
        };
        // Without a claim it never got into the index, and an address of it there is another's.
        if held.claim.take().is_some() {
            let addresses: BTreeSet<_> = held.assignment.addresses.iter().copied().collect();
            for address in addresses {
                self.occupancy.vacate(address, name);
            }
        }
    }

    fn release(&mut self, name: &ObjectName) {
        self.vacate(name);
        self.held.remove(name);
    }

    fn take_age(&mut self) -> u64 {
        let age = self.next_age;
        self.next_age = self.next_age.saturating_add(1);
        age
    }
}
