//! A leader that knows enough to decide: the allocator, and the released addresses.
//!
//! Decides which Service may have which address, and from when on a released address is available for others.
//! Writes nothing and knows no Lease. The controller creates one each time it starts to lead.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::{Allocator, Outcomes, Reason};
use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, ObjectName};

use super::WITHDRAWAL_BOUND;
use crate::address_record::Addresses;
use crate::claims::Claims;

/// The last holder of an address that only the record of an earlier leader names.
fn unknown_former() -> ObjectName {
    ObjectName::new("", "a Service that is gone")
}

/// The decisions of a leader.
#[derive(Debug, Clone)]
pub(super) struct Tenure {
    allocator: Allocator,
    /// The assignments after the last change.
    given: BTreeMap<ObjectName, Vec<IpAddr>>,
    /// Addresses that a Service had and may still claim or use, and when they were released.
    let_go: BTreeMap<IpAddr, Instant>,
    /// When to check which of them.
    checks: BTreeSet<(Instant, IpAddr)>,
    /// Why Services could not keep an address, until that is written.
    given_up: BTreeMap<ObjectName, Reason>,
}

impl Tenure {
    /// Adopts the addresses in the statuses, and only then assigns missing ones. `left` are the addresses that
    /// an earlier leader knew of: those that no status has any more may have been released a moment ago.
    pub(super) fn begin(
        now: Instant,
        load_balancer_class: Option<String>,
        claims: &Claims,
        left: Option<&Addresses>,
        index: &ClusterIndex,
    ) -> Self {
        let mut allocator = Allocator::new(load_balancer_class);
        allocator.set_giving(false);
        let mut let_go = BTreeMap::new();
        for (address, it) in claims.all_released() {
            allocator.note_released(now, address, &it.former);
            let_go.insert(address, it.at);
        }
        for (address, service) in left.into_iter().flatten() {
            if claims.users(*address).next().is_none() && !let_go.contains_key(address) {
                let former = service.clone().unwrap_or_else(unknown_former);
                allocator.note_released(now, *address, &former);
                let_go.insert(*address, now);
            }
        }
        allocator.converge(now, index, &Changes::default());
        // An address in a status that no Service has adopted must not be assigned: its Service may not
        // keep it, cannot be read or is not ours, and it is announced until no status has it.
        let held: BTreeSet<IpAddr> =
            allocator.outcomes().values().flat_map(|it| it.addresses.iter().copied()).collect();
        for (address, users) in claims.named().filter(|(it, _)| !held.contains(it)) {
            users.iter().for_each(|user| allocator.note_released(now, address, user));
            let_go.insert(address, now);
        }
        allocator.set_giving(true);
        let checks =
            let_go.iter().map(|(address, at)| (*at + WITHDRAWAL_BOUND, *address)).collect();
        let mut tenure =
            Self { allocator, given: BTreeMap::new(), let_go, checks, given_up: BTreeMap::new() };
        tenure.converge(now, index, &Changes::default());
        tenure.remember_all();
        tenure
    }

    /// Every address that a status may have, or that may not be withdrawn from every router yet; with the
    /// Service, if no status has it.
    pub(super) fn addresses(&self, now: Instant, claims: &Claims) -> Addresses {
        let released = claims.latest_released();
        let released = released.take_while(|(at, _)| now < *at + WITHDRAWAL_BOUND);
        let let_go = self.let_go.keys().copied().chain(released.map(|(_, address)| address));
        let former = |address| claims.released(address).map(|it| it.former.clone());
        let mut addresses: Addresses = let_go.map(|address| (address, former(address))).collect();
        for (name, given) in &self.given {
            addresses.extend(given.iter().map(|address| (*address, Some(name.clone()))));
        }
        addresses.extend(claims.named().map(|(address, _)| (address, None)));
        addresses
    }

    /// The outcome of each Service.
    pub(super) fn outcomes(&self) -> &Outcomes {
        self.allocator.outcomes()
    }

    /// Why an address of `name` was taken away, until that is written.
    pub(super) fn given_up(&self, name: &ObjectName) -> Option<&Reason> {
        self.given_up.get(name)
    }

    /// The reason is written.
    pub(super) fn forget_why(&mut self, name: &ObjectName) {
        self.given_up.remove(name);
    }

    /// Whether the allocator assigns `address` to `name`.
    pub(super) fn holds(&self, name: &ObjectName, address: IpAddr) -> bool {
        let outcome = self.allocator.outcomes().get(name);
        outcome.is_some_and(|it| it.addresses.contains(&address))
    }

    /// Whether every Service but `name` with `address` in its status may have it. The allocator may share it
    /// with another Service as soon as one of its users may not have it any more; that has to be written
    /// first.
    pub(super) fn is_free_for(&self, name: &ObjectName, address: IpAddr, claims: &Claims) -> bool {
        claims.users(address).all(|user| user == name || self.holds(user, address))
    }

    /// When the next action is due without an event.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let check = self.checks.first().map(|(at, _)| *at);
        check.into_iter().chain(self.allocator.next_deadline()).min()
    }

    /// One Service less claims each of these addresses.
    pub(super) fn check_later(&mut self, now: Instant, dropped: Vec<IpAddr>) {
        self.checks.extend(dropped.into_iter().map(|it| (now + WITHDRAWAL_BOUND, it)));
    }

    #[cfg(test)]
    pub(super) fn memory_change(&mut self) -> fairway_allocator::MemoryChange {
        self.allocator.memory_change()
    }

    /// Runs the allocator, and records which addresses it took from which Services. Returns the Services
    /// with a new outcome.
    pub(super) fn converge(
        &mut self,
        now: Instant,
        index: &ClusterIndex,
        changes: &Changes,
    ) -> BTreeSet<ObjectName> {
        let touched = self.allocator.converge(now, index, changes);
        // The API server keeps the assignments: what changed of them would add up here.
        self.allocator.forget_memory_change();
        let why = self.allocator.given_up().iter();
        self.given_up.extend(why.map(|(name, reason)| (name.clone(), reason.clone())));
        for name in &touched {
            let outcome = self.allocator.outcomes().get(name);
            let addresses = outcome.map(|it| it.addresses.clone()).unwrap_or_default();
            for address in self.given.remove(name).unwrap_or_default() {
                if !addresses.contains(&address) {
                    self.let_go.insert(address, now);
                    self.checks.insert((now + WITHDRAWAL_BOUND, address));
                }
            }
            if outcome.is_none() {
                self.given_up.remove(name);
            }
            if !addresses.is_empty() {
                self.given.insert(name.clone(), addresses);
            }
        }
        touched
    }

    /// Makes addresses available that must have been withdrawn from every router by now. Returns the Services
    /// with a new outcome.
    pub(super) fn note_withdrawn(
        &mut self,
        now: Instant,
        claims: &Claims,
        index: &ClusterIndex,
    ) -> BTreeSet<ObjectName> {
        let mut is_due = self.allocator.next_deadline().is_some_and(|at| at <= now);
        while let Some((at, address)) = self.due_check(now) {
            match self.withdrawn_at(address, claims) {
                Some(due) if due > at => {
                    self.checks.insert((due, address));
                }
                Some(_) => {
                    self.let_go.remove(&address);
                    self.allocator.address_withdrawn(address);
                    is_due = true;
                }
                // The watch will show when its Service no longer claims it.
                None => {}
            }
        }
        if is_due { self.converge(now, index, &Changes::default()) } else { BTreeSet::new() }
    }

    fn due_check(&mut self, now: Instant) -> Option<(Instant, IpAddr)> {
        self.checks.first().filter(|(at, _)| *at <= now)?;
        self.checks.pop_first()
    }

    /// From when on a released address is available for others; `None` while the status of a Service without
    /// a right to it has it.
    fn withdrawn_at(&self, address: IpAddr, claims: &Claims) -> Option<Instant> {
        if !claims.users(address).all(|user| self.holds(user, address)) {
            return None;
        }
        let named_until = claims.released(address).map(|it| it.at);
        let at = self.let_go.get(&address).copied().max(named_until)?;
        Some(at + WITHDRAWAL_BOUND)
    }

    /// Records all assignments, before changes are tracked.
    fn remember_all(&mut self) {
        let outcomes = self.allocator.outcomes().iter().filter(|(_, it)| !it.is_pending());
        self.given = outcomes.map(|(name, it)| (name.clone(), it.addresses.clone())).collect();
    }
}
