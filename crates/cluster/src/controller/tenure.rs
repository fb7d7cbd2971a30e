//! A leader that knows enough to decide: the allocator, and what it let go.
//!
//! Answers who may have which address, and from when on what was let go is free for everybody.
//! Writes nothing and knows no Lease. The controller makes one each time it begins to lead.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_allocator::{Allocator, Outcomes, Reason};
use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, ObjectName};

use super::WITHDRAWAL_BOUND;
use crate::claims::Claims;

/// The decisions of a leader.
#[derive(Debug, Clone)]
pub(super) struct Tenure {
    allocator: Allocator,
    /// What the allocator has given, as it was after the last change.
    given: BTreeMap<ObjectName, Vec<IpAddr>>,
    /// Addresses that somebody had and may still name or use, and when they were let go.
    let_go: BTreeMap<IpAddr, Instant>,
    /// When to look at which of them.
    checks: BTreeSet<(Instant, IpAddr)>,
    /// Why Services could not keep an address, until that is written.
    given_up: BTreeMap<ObjectName, Reason>,
}

impl Tenure {
    /// Adopts what the statuses name, and only then gives what is missing.
    pub(super) fn begin(
        now: Instant,
        load_balancer_class: Option<String>,
        claims: &Claims,
        index: &ClusterIndex,
    ) -> Self {
        let mut allocator = Allocator::new(load_balancer_class);
        allocator.set_giving(false);
        let mut let_go = BTreeMap::new();
        for (address, it) in claims.all_released() {
            allocator.note_released(now, address, &it.former);
            let_go.insert(address, it.at);
        }
        allocator.converge(now, index, &Changes::default());
        // What a status names and nobody has taken up is nobody's to give: they may not keep it,
        // cannot be read or are not ours, and routers hear of it until no status names it.
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

    /// What became of each Service.
    pub(super) fn outcomes(&self) -> &Outcomes {
        self.allocator.outcomes()
    }

    /// Why an address of `name` was taken, until that is written.
    pub(super) fn given_up(&self, name: &ObjectName) -> Option<&Reason> {
        self.given_up.get(name)
    }

    /// It is written.
    pub(super) fn forget_why(&mut self, name: &ObjectName) {
        self.given_up.remove(name);
    }

    /// Whether the allocator lets `name` have `address`.
    pub(super) fn holds(&self, name: &ObjectName, address: IpAddr) -> bool {
        let outcome = self.allocator.outcomes().get(name);
        outcome.is_some_and(|it| it.addresses.contains(&address))
    }

    /// Whether everybody but `name` whose status names `address` may have it. The allocator may
    /// share it with another as soon as one of its users may not have it any more; that has to be
    /// written first.
    pub(super) fn is_free_for(&self, name: &ObjectName, address: IpAddr, claims: &Claims) -> bool {
        claims.users(address).all(|user| user == name || self.holds(user, address))
    }

    /// When something happens by itself.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let check = self.checks.first().map(|(at, _)| *at);
        check.into_iter().chain(self.allocator.next_deadline()).min()
    }

    /// These addresses are named by one Service less.
    pub(super) fn check_later(&mut self, now: Instant, dropped: Vec<IpAddr>) {
        self.checks.extend(dropped.into_iter().map(|it| (now + WITHDRAWAL_BOUND, it)));
    }

    /// Lets the allocator follow, and notes which addresses it took from whom. Answers whose
    /// outcome is other.
    pub(super) fn converge(
        &mut self,
        now: Instant,
        index: &ClusterIndex,
        changes: &Changes,
    ) -> BTreeSet<ObjectName> {
        let touched = self.allocator.converge(now, index, changes);
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

    /// Lets others have what must have been withdrawn from every router by now. Answers whose
    /// outcome is other.
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
                // Whoever names it will be seen to do so no more.
                None => {}
            }
        }
        if is_due { self.converge(now, index, &Changes::default()) } else { BTreeSet::new() }
    }

    fn due_check(&mut self, now: Instant) -> Option<(Instant, IpAddr)> {
        self.checks.first().filter(|(at, _)| *at <= now)?;
        self.checks.pop_first()
    }

    /// From when on an address that was let go is free for everybody; `None` while a status of
    /// somebody who should not have it names it.
    fn withdrawn_at(&self, address: IpAddr, claims: &Claims) -> Option<Instant> {
        if !claims.users(address).all(|user| self.holds(user, address)) {
            return None;
        }
        let named_until = claims.released(address).map(|it| it.at);
        let at = self.let_go.get(&address).copied().max(named_until)?;
        Some(at + WITHDRAWAL_BOUND)
    }

    /// Everything that was given, before anybody asks what changed.
    fn remember_all(&mut self) {
        let outcomes = self.allocator.outcomes().iter().filter(|(_, it)| !it.is_pending());
        self.given = outcomes.map(|(name, it)| (name.clone(), it.addresses.clone())).collect();
    }
}
