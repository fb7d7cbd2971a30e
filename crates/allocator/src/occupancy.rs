//! Which addresses are in use, by which Services, and which is the lowest available one.
//!
//! Knows no request of a Service, and of a pool only its parameters: what to avoid, and which range
//! to search. Called by `choice` to search and by the allocator to assign and release.
//!
//! Everything that is not available for any reason (in use, cooling down, reserved) is in one set of
//! runs, so the lowest available address is the one after the run that covers the start of the range:
//! O(log n), however large the range, and however fragmented. Addresses that end in .0 and .255,
//! where they are avoided, follow a pattern instead of being in the set; they join a run as soon as
//! the address beside them is in one. So a search skips at most two of them and two runs, even where
//! every /24 is full.
//!
//! A Service with a sharing key also looks at the addresses below the lowest free one that others with
//! its key and its backend use. Adjacent ones that have one of its ports are a run, too, so many
//! Services with one key and one port, each on an address of its own, cost no more than one: only the
//! number of skipped runs grows, O(ports · log n) for each.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairway_model::{AddressRange, ObjectName, ServicePort};

use super::pools::{self, PoolLookup};
use super::runs::{self, AddressRuns};
use super::sharing::{Claim, SharingConflict};

/// The users of addresses. Exactly the addresses that are held have users.
#[derive(Debug, Clone, Default)]
pub(super) struct Occupancy {
    users: BTreeMap<IpAddr, Vec<User>>,
    /// Which Service has a port of an address that can be shared.
    by_port: BTreeMap<(IpAddr, ServicePort), ObjectName>,
    /// Which addresses a Service could share, by what all users of an address have in common.
    shared: BTreeMap<Group, Shared>,
    /// What is not free.
    blocked: AddressRuns,
}

/// A sharing key and a backend.
type Group = (String, String);

/// The addresses of one group.
#[derive(Debug, Clone, Default)]
struct Shared {
    addresses: BTreeSet<IpAddr>,
    /// Those on which a port is taken.
    taken: BTreeMap<ServicePort, AddressRuns>,
}

#[derive(Debug, Clone)]
struct User {
    name: ObjectName,
    claim: Arc<Claim>,
}

impl Occupancy {
    /// Notes that `name` uses `address`. The caller has checked that there is no conflict.
    pub(super) fn occupy(&mut self, address: IpAddr, name: &ObjectName, claim: &Arc<Claim>) {
        let users = self.users.entry(address).or_default();
        let user = User { name: name.clone(), claim: Arc::clone(claim) };
        match users.binary_search_by(|user| user.name.cmp(name)) {
            Ok(_) => return,
            Err(position) => users.insert(position, user),
        }
        if let Some(group) = claim.group() {
            let shared = self.shared.entry(group).or_default();
            shared.addresses.insert(address);
            for port in claim.ports() {
                shared.taken.entry(port.clone()).or_default().insert(address, address);
                self.by_port.insert((address, port.clone()), name.clone());
            }
        }
    }

    /// Notes that `name` no longer uses `address`. It stays blocked.
    pub(super) fn vacate(&mut self, address: IpAddr, name: &ObjectName) {
        let Some(users) = self.users.get_mut(&address) else {
            return;
        };
        let Ok(position) = users.binary_search_by(|user| user.name.cmp(name)) else {
            return;
        };
        let claim = users.remove(position).claim;
        let is_last = users.is_empty();
        if is_last {
            self.users.remove(&address);
        }
        let Some(group) = claim.group() else {
            return;
        };
        let Some(shared) = self.shared.get_mut(&group) else {
            return;
        };
        for port in claim.ports() {
            self.by_port.remove(&(address, port.clone()));
            if let Some(taken) = shared.taken.get_mut(port) {
                taken.remove(address);
                if taken.is_empty() {
                    shared.taken.remove(port);
                }
            }
        }
        // The remaining users are of the same group; otherwise they could not have shared.
        if is_last {
            shared.addresses.remove(&address);
            if shared.addresses.is_empty() {
                self.shared.remove(&group);
            }
        }
    }

    /// Whether `address` has a user.
    pub(super) fn is_used(&self, address: IpAddr) -> bool {
        self.users.contains_key(&address)
    }

    /// Every address that is in use.
    pub(super) fn used(&self) -> impl Iterator<Item = IpAddr> {
        self.users.keys().copied()
    }

    /// The addresses from `first` to `last` are not free, and with them the adjacent ones that their
    /// pool avoids.
    pub(super) fn block(&mut self, first: IpAddr, last: IpAddr, pools: &PoolLookup<'_>) {
        let avoided = |address: &IpAddr, of: IpAddr| pools.avoids_in_range_of(*address, of);
        let next = |from: fn(IpAddr) -> Option<IpAddr>, edge: IpAddr| {
            let one = from(edge).filter(|it| avoided(it, edge))?;
            Some(from(one).filter(|it| avoided(it, edge)).unwrap_or(one))
        };
        let first = next(runs::before, first).unwrap_or(first);
        let last = next(runs::after, last).unwrap_or(last);
        self.blocked.insert(first, last);
    }

    /// `address` is free.
    pub(super) fn unblock(&mut self, address: IpAddr) {
        self.blocked.remove(address);
    }

    /// Nothing is blocked.
    pub(super) fn unblock_all(&mut self) {
        self.blocked = AddressRuns::default();
    }

    /// Which Service keeps `name` from using `address`, and why; `None` if none does.
    pub(super) fn conflict(
        &self,
        address: IpAddr,
        name: &ObjectName,
        claim: &Claim,
    ) -> Option<(ObjectName, SharingConflict)> {
        // All users of an address have the same key and backend, so one represents all: the first in
        // name order, so that the text is stable.
        let other = self.users.get(&address)?.iter().find(|user| user.name != *name)?;
        let conflict = |why| Some((other.name.clone(), why));
        if !claim.has_key_of(&other.claim) {
            return conflict(SharingConflict::Key);
        }
        for port in claim.ports() {
            let user = self.by_port.get(&(address, port.clone()));
            if let Some(user) = user.filter(|user| *user != name) {
                let ServicePort { protocol, port } = port.clone();
                return Some((user.clone(), SharingConflict::Port { protocol, port }));
            }
        }
        if claim.has_backend_of(&other.claim) { None } else { conflict(SharingConflict::Backend) }
    }

    /// The lowest address of `range` for a Service that uses none of it: a free one, or a lower one to
    /// share.
    pub(super) fn lowest(
        &self,
        range: AddressRange,
        avoids_buggy: bool,
        pools: &PoolLookup<'_>,
        claim: &Claim,
    ) -> Option<IpAddr> {
        let free = self.lowest_free(range, avoids_buggy);
        let below = |address: &IpAddr| free.is_none_or(|free| *address < free);
        self.lowest_shared(range, pools, claim).filter(below).or(free)
    }

    /// The lowest address of `range` that a Service with this claim may share.
    fn lowest_shared(
        &self,
        range: AddressRange,
        pools: &PoolLookup<'_>,
        claim: &Claim,
    ) -> Option<IpAddr> {
        let shared = self.shared.get(&claim.group()?)?;
        let taken: Vec<_> =
            claim.ports().iter().filter_map(|port| shared.taken.get(port)).collect();
        let mut from = range.first();
        while from <= range.last() {
            let address = *shared.addresses.range(from..=range.last()).next()?;
            from = match taken.iter().filter_map(|it| it.end(address)).max() {
                Some(end) => runs::after(end)?,
                None if pools.keeps_back(address) => runs::after(address)?,
                None => return Some(address),
            };
        }
        None
    }

    fn lowest_free(&self, range: AddressRange, avoids_buggy: bool) -> Option<IpAddr> {
        let mut candidate = range.first();
        while candidate <= range.last() {
            candidate = match self.blocked.end(candidate) {
                Some(end) => runs::after(end)?,
                None if avoids_buggy && pools::is_buggy(candidate) => runs::after(candidate)?,
                None => return Some(candidate),
            };
        }
        None
    }
}
