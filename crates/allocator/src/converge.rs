//! One call of [`Allocator::converge`]: keep valid assignments, restore former ones, assign the rest.
//!
//! Full and partial passes share the code: a full pass begins with all Services in the queue, a
//! partial one with those that changed; both continue with the Services that waited for what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, FamilyPolicy, Kind, ObjectName, Service};

use super::pools::PoolLookup;
use super::released::Home;
use super::request;
use super::sharing::Claim;
use super::waiting::{Place, Turn};
use super::{Allocator, Assignment, Held, Outcome, Reason, Scope};

/// Changes that may let waiting Services continue.
#[derive(Debug, Clone, Default)]
pub(super) struct Stirred {
    /// Addresses with changed users.
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Sharing keys of which the addresses changed.
    pub(super) sharing_keys: BTreeSet<String>,
    /// Addresses that pools can assign again.
    pub(super) fresh: BTreeMap<Home, BTreeSet<IpAddr>>,
}

/// The state of one call.
pub(super) struct Pass<'a> {
    pub(super) now: Instant,
    facts: &'a ClusterIndex,
    pub(super) pools: PoolLookup<'a>,
    /// The ages of the assignments that lost an address in this call.
    ages: BTreeMap<ObjectName, u64>,
    /// Every Service with a possibly changed outcome, and what it lacks.
    reasons: BTreeMap<ObjectName, Option<Reason>>,
    /// Addresses that until now were known from a status only.
    unchecked: BTreeMap<ObjectName, Vec<IpAddr>>,
}

impl Pass<'_> {
    /// The reason, if it is unknown whether a Service may have these addresses.
    fn unknown(&self, addresses: &[IpAddr]) -> Option<Reason> {
        let address = *addresses.iter().find(|it| self.pools.may_be_unknown(**it))?;
        let pools = self.facts.unknown_pools.iter().map(|it| it.name.clone()).collect();
        // Without any pool, that is the reason to report.
        (!self.facts.pools.is_empty()).then_some(Reason::PoolUnknown { address, pools })
    }
}

impl Allocator {
    /// [`Self::converge`], and then all that follows once every neighbour has received the withdrawals: the final state,
    /// for a forecast. The time is 0.
    pub fn settle(&mut self, index: &ClusterIndex, changes: &Changes) {
        let mut other = self.converge(Instant::ZERO, index, changes);
        // Each round has fewer addresses to release.
        while !other.is_empty() && self.withdrawn(self.last_release()) {
            other = self.converge(Instant::ZERO, index, &Changes::default());
        }
    }

    /// Assigns addresses to every LoadBalancer Service of our class, as far as `index` allows, and
    /// revokes those that a Service may not keep. The class is ours when both are absent or both are equal.
    /// `changes` is what changed in `index` since the last call; the first call looks at everything.
    /// `now` never goes back. Returns the Services with a changed outcome.
    pub fn converge(
        &mut self,
        now: Instant,
        index: &ClusterIndex,
        changes: &Changes,
    ) -> BTreeSet<ObjectName> {
        self.given_up.clear();
        let known = self.pools.clone();
        let is_other = |kind| changes.kinds.contains(&kind);
        let (pools, scope) = match known {
            Some(known) if !is_other(Kind::IpAddressPool) => {
                let by_label = is_other(Kind::Namespace) && known.selects_namespaces();
                let changed = || Scope::Only(changes.services.clone());
                let scope = if by_label { Scope::All } else { changed() };
                (PoolLookup::again(index, &known), scope)
            }
            _ => (PoolLookup::new(index), Scope::All),
        };
        let mut pass = Pass {
            now,
            facts: index,
            pools,
            ages: BTreeMap::new(),
            reasons: BTreeMap::new(),
            unchecked: BTreeMap::new(),
        };
        if std::mem::take(&mut self.is_restored) {
            self.released.begin_at(now);
        }
        for address in self.released.expire(now) {
            // Waiting Services could have had it before: this changes only the order of choice.
            self.end_cool_down(address, &pass);
        }
        if self.pools.as_ref().is_none_or(|known| !Arc::ptr_eq(known, pass.pools.index())) {
            self.pools_changed(&pass);
        }
        let names = self.release_the_gone(scope, &mut pass);
        if index.pools.is_empty() {
            self.hold_on(&names, &mut pass);
            self.give_back_unchecked(&mut pass);
        } else {
            self.keep_what_holds(&names, &mut pass);
            let mut queue = self.turns(&names, &pass);
            queue.extend(self.stirred_turns());
            self.take_up(&queue, &mut pass);
            self.give_back_unchecked(&mut pass);
            self.give_out(queue, &mut pass);
        }
        self.conclude(pass)
    }

    fn is_ours(&self, service: &Service) -> bool {
        service.load_balancer_class == self.load_balancer_class
    }

    /// The set of blocked addresses changed, and all Services are evaluated again anyway.
    fn pools_changed(&mut self, pass: &Pass<'_>) {
        let pools = &pass.pools;
        self.pools = Some(Arc::clone(pools.index()));
        self.waiting = Default::default();
        self.stirred = Stirred::default();
        self.released.rehome(|address| pools.home_of(address));
        self.occupancy.unblock_all();
        for (first, last) in pools.reserved() {
            self.occupancy.block(first, last, pools);
        }
        let taken: Vec<_> = self.occupancy.used().chain(self.released.cooling()).collect();
        for address in taken {
            self.occupancy.block(address, address, pools);
        }
    }

    /// Releases the addresses of those of `scope` that are gone, or not of our class any more.
    /// Returns the others.
    fn release_the_gone(&mut self, scope: Scope, pass: &mut Pass<'_>) -> Vec<ObjectName> {
        let names = match scope {
            Scope::Only(names) => names,
            Scope::All => {
                let known = self.held.keys().chain(self.outcomes.keys());
                known.chain(pass.facts.services.keys()).cloned().collect()
            }
        };
        let (present, gone): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| {
            pass.facts.services.get(name).is_some_and(|service| self.is_ours(service))
        });
        for name in gone {
            self.waiting.remove(&name);
            self.forget_unchecked(&name, pass);
            let had = self.vacate(&name);
            self.end_assignment(&name);
            self.give_back(&name, &had, pass);
            pass.reasons.insert(name, None);
        }
        present
    }

    /// Losing every pool is usually an accident, so assignments stay; and Services with addresses in
    /// their status keep them, unchecked, until there are pools.
    fn hold_on(&mut self, names: &[ObjectName], pass: &mut Pass<'_>) {
        for name in names {
            let Some(service) = pass.facts.services.get(name) else {
                continue;
            };
            self.forget_unchecked(name, pass);
            if !self.held.contains_key(name) {
                let addresses = request::one_of_each_family(service, &service.status_addresses);
                if !addresses.is_empty() {
                    let assignment = Assignment { pool: String::new(), addresses };
                    let age = self.take_age();
                    self.held.insert(name.clone(), Held { assignment, age, claim: None });
                }
            }
            pass.reasons.insert(name.clone(), Some(Reason::NoPools));
        }
    }

    /// Addresses known from a status only, without a pool to check them, are not an assignment.
    fn forget_unchecked(&mut self, name: &ObjectName, pass: &mut Pass<'_>) {
        let is_unchecked = |held: &Held| held.assignment.pool.is_empty() && held.claim.is_none();
        if self.held.get(name).is_some_and(is_unchecked)
            && let Some(held) = self.held.remove(name)
        {
            pass.unchecked.insert(name.clone(), held.assignment.addresses);
        }
    }

    /// It was announced all the same, so a Service that could not restore it releases it like any other.
    fn give_back_unchecked(&mut self, pass: &mut Pass<'_>) {
        for (name, mut lost) in std::mem::take(&mut pass.unchecked) {
            lost.retain(|address| !self.addresses_of(&name).contains(address));
            self.give_back(&name, &lost, pass);
        }
    }

    /// Checks the assignments of `names`. Those of unchanged Services and addresses keep
    /// their place in the occupancy index; the rest leave it and return in order of age, if they are
    /// still valid. So the Service that changed gives way, not the one that the change affects.
    fn keep_what_holds(&mut self, names: &[ObjectName], pass: &mut Pass<'_>) {
        let mut moved: Vec<(u64, &Service, Vec<IpAddr>)> = Vec::new();
        for name in names {
            let Some(service) = pass.facts.services.get(name) else {
                continue;
            };
            pass.reasons.insert(name.clone(), None);
            self.waiting.remove(name);
            self.forget_unchecked(name, pass);
            let Some(held) = self.held.get_mut(name) else {
                continue;
            };
            let addresses = &held.assignment.addresses;
            let kept = request::still_valid(service, addresses, &pass.pools);
            let is_same = held.claim.as_ref().is_some_and(|claim| claim.is_of(service));
            if is_same && kept == *addresses {
                let pool = pass.pools.names(addresses);
                if pool != held.assignment.pool {
                    self.unreported.insert(name.clone());
                    held.assignment.pool = pool;
                }
            } else {
                moved.push((held.age, service, kept));
            }
        }
        moved.sort_by_key(|(age, ..)| *age);
        let had: Vec<_> = moved.iter().map(|(_, service, _)| self.vacate(&service.name)).collect();
        for (age, service, kept) in &mut moved {
            let name = &service.name;
            let claim = Arc::new(Claim::of(service));
            kept.retain(|address| match self.occupancy.conflict(*address, name, &claim) {
                None => true,
                Some((user, conflict)) => {
                    let why = Reason::in_use(*address, name, user, conflict);
                    self.given_up.insert(name.clone(), why);
                    false
                }
            });
            self.hold(service, kept.clone(), claim, pass);
            pass.ages.insert(name.clone(), *age);
        }
        for ((_, service, kept), had) in moved.iter().zip(had) {
            let lost: Vec<_> = had.into_iter().filter(|address| !kept.contains(address)).collect();
            for address in &lost {
                let with_kept: Vec<_> = kept.iter().copied().chain([*address]).collect();
                let why = request::allowed(service, *address, &pass.pools)
                    .and_then(|()| request::together(service, &with_kept, &pass.pools));
                if let Err(why) = why {
                    self.given_up.insert(service.name.clone(), why);
                }
            }
            self.give_back(&service.name, &lost, pass);
        }
    }

    /// Services that lack addresses restore those in their status and those that they released
    /// recently: in name order, and before anything is assigned. A Service that needs both families
    /// does not restore one, which it would have to release and let cool down again.
    fn take_up(&mut self, queue: &BTreeSet<Turn>, pass: &mut Pass<'_>) {
        let names: BTreeSet<&ObjectName> = queue.iter().map(|turn| &turn.name).collect();
        for name in names {
            let Some(service) = pass.facts.services.get(name) else {
                continue;
            };
            let claim = Arc::new(Claim::of(service));
            let settled = self.settled(service, &claim, pass);
            let needs_both = matches!(service.families, FamilyPolicy::RequireDual(_));
            if !needs_both || request::is_satisfied(service, &settled) {
                self.set(service, settled, claim, pass);
            }
        }
    }

    /// Completes incomplete assignments, until no waiting Service can make progress.
    fn give_out(&mut self, queue: BTreeSet<Turn>, pass: &mut Pass<'_>) {
        let mut next_round = queue;
        while !next_round.is_empty() || !self.stirred.fresh.is_empty() {
            let mut round = std::mem::take(&mut next_round);
            let mut last: Option<Turn> = None;
            loop {
                for turn in self.stirred_turns() {
                    let is_past = last.as_ref().is_some_and(|last| turn <= *last);
                    if is_past {
                        next_round.insert(turn)
                    } else {
                        round.insert(turn)
                    };
                }
                let Some(turn) = self.next_turn(&round, last.as_ref()) else {
                    break;
                };
                round.remove(&turn);
                self.try_to_satisfy(&turn.name, pass);
                last = Some(turn);
            }
            // Every Service has been asked whether it can use them.
            self.stirred.fresh.clear();
        }
    }

    /// The Service after `last`: of the queue, or of those that wait for addresses of a pool.
    fn next_turn(&self, queue: &BTreeSet<Turn>, last: Option<&Turn>) -> Option<Turn> {
        let pools = self.stirred.fresh.keys().map(|(pool, family)| {
            let place = Place::Pool(pool.clone(), *family);
            self.waiting.next(&place, last).cloned()
        });
        pools.chain([queue.first().cloned()]).flatten().min()
    }

    /// Services that wait for an address, or for one with a sharing key, of which the users changed.
    fn stirred_turns(&mut self) -> Vec<Turn> {
        let addresses = std::mem::take(&mut self.stirred.addresses).into_iter().map(Place::Address);
        let keys = std::mem::take(&mut self.stirred.sharing_keys).into_iter();
        let places = addresses.chain(keys.map(Place::SharingKey));
        places.flat_map(|place| self.waiting.at(&place).cloned().collect::<Vec<_>>()).collect()
    }

    /// The turns of those of `names` that do not have all they want.
    fn turns(&self, names: &[ObjectName], pass: &Pass<'_>) -> BTreeSet<Turn> {
        let services = names.iter().filter_map(|name| pass.facts.services.get(name));
        let lacking = services
            .filter(|service| !request::is_satisfied(service, self.addresses_of(&service.name)));
        lacking.map(|service| self.turn(service, pass.ages.get(&service.name).copied())).collect()
    }

    fn turn(&self, service: &Service, had_age: Option<u64>) -> Turn {
        let age = self.held.get(&service.name).map(|held| held.age).or(had_age);
        Turn {
            age: age.unwrap_or(u64::MAX),
            takes_any: service.requested_addresses.is_empty(),
            name: service.name.clone(),
        }
    }

    fn try_to_satisfy(&mut self, name: &ObjectName, pass: &mut Pass<'_>) {
        let Some(service) = pass.facts.services.get(name) else {
            return;
        };
        if self.is_holding_back {
            let is_satisfied = request::is_satisfied(service, self.addresses_of(name));
            pass.reasons.insert(name.clone(), (!is_satisfied).then_some(Reason::NotYet));
            return;
        }
        let claim = Arc::new(Claim::of(service));
        let kept = self.settled(service, &claim, pass);
        let made = self.choice(service, &claim, pass).make(&kept);
        let (addresses, reason) = match made {
            Ok(found) => (found.addresses, found.reason),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        self.set(service, addresses, Arc::clone(&claim), pass);
        if request::is_satisfied(service, self.addresses_of(name)) {
            self.waiting.remove(name);
        } else {
            let places = self.places(service, &claim, &kept, pass);
            self.waiting.insert(self.turn(service, None), places);
        }
        pass.reasons.insert(name.clone(), reason);
    }

    /// Records the outcome of all Services concerned, and returns those for which it changed.
    fn conclude(&mut self, mut pass: Pass<'_>) -> BTreeSet<ObjectName> {
        let mut others = BTreeSet::new();
        for (name, reason) in std::mem::take(&mut pass.reasons) {
            let service = pass.facts.services.get(&name).filter(|service| self.is_ours(service));
            let Some(service) = service else {
                if self.outcomes.remove(&name).is_some() {
                    others.insert(name);
                }
                continue;
            };
            let outcome = match self.held.get(&service.name).map(|held| held.assignment.clone()) {
                Some(Assignment { pool, addresses }) => {
                    let pool = Some(pool).filter(|pool| !pool.is_empty());
                    let reason = pass.unknown(&addresses).or(reason);
                    Outcome { addresses, pool, reason }
                }
                None => Outcome { addresses: Vec::new(), pool: None, reason },
            };
            if self.outcomes.get(&name) != Some(&outcome) {
                self.outcomes.insert(name.clone(), outcome);
                others.insert(name);
            }
        }
        others
    }
}
