//! Which addresses are in use, by whom, and which is the lowest one that may be given.
//!
//! Knows no wish of a Service, and of a pool only what it is told: what to keep out of, and which
//! range to search. Called by `choice` to search and by the allocator to take and give back.
//!
//! Everything that may not be given out for one reason or another (in use, cooling down, reserved)
//! is in one set of runs, so the lowest address to give is the one behind the run that covers the
//! start of the range: O(log n), however large the range, and in however many pieces what is free.
//! Addresses that end in .0 and .255, where those are avoided, are a pattern and no set; they join
//! a run as soon as the address beside them is in one. So a search passes over at most two of them
//! and two runs, also where every /24 is full.
//!
//! A Service with a sharing key also looks at the addresses of that key that come before the
//! lowest free one. Each costs O(ports · log n), so only this part grows with something: with how
//! many addresses of the key are lower and have no room for the ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::model::{AddressRange, ObjectName, ServicePort};

use super::pools::{self, PoolLookup};
use super::runs::{self, AddressRuns};
use super::sharing::{Claim, SharingConflict};

/// Who uses what. Every address that is held, and no other, has users.
#[derive(Debug, Clone, Default)]
pub(super) struct Occupancy {
    users: BTreeMap<IpAddr, Vec<User>>,
    /// Who has a port of an address that can be shared.
    by_port: BTreeMap<(IpAddr, ServicePort), ObjectName>,
    by_sharing_key: BTreeMap<String, BTreeSet<IpAddr>>,
    /// What is not free.
    blocked: AddressRuns,
}

#[derive(Debug, Clone)]
struct User {
    name: ObjectName,
    claim: Arc<Claim>,
}

impl Occupancy {
    /// Notes that `name` uses `address`. The caller has made sure that nothing conflicts.
    pub(super) fn occupy(&mut self, address: IpAddr, name: &ObjectName, claim: &Arc<Claim>) {
        let users = self.users.entry(address).or_default();
        let user = User { name: name.clone(), claim: Arc::clone(claim) };
        match users.binary_search_by(|user| user.name.cmp(name)) {
            Ok(_) => return,
            Err(position) => users.insert(position, user),
        }
        if let Some(key) = claim.sharing_key() {
            self.by_sharing_key.entry(key.to_owned()).or_default().insert(address);
            for port in claim.ports() {
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
        let Some(key) = claim.sharing_key() else {
            return;
        };
        for port in claim.ports() {
            self.by_port.remove(&(address, port.clone()));
        }
        // Those who remain have the same key, or they could not have shared.
        if let Some(addresses) = self.by_sharing_key.get_mut(key).filter(|_| is_last) {
            addresses.remove(&address);
            if addresses.is_empty() {
                self.by_sharing_key.remove(key);
            }
        }
    }

    /// Whether anybody uses `address`.
    pub(super) fn is_used(&self, address: IpAddr) -> bool {
        self.users.contains_key(&address)
    }

    /// Every address that is in use.
    pub(super) fn used(&self) -> impl Iterator<Item = IpAddr> {
        self.users.keys().copied()
    }

    /// The addresses from `first` to `last` are not free, and with them those beside them that
    /// their pool avoids.
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

    /// Who keeps `name` from using `address`, and why; `None` if it may.
    pub(super) fn conflict(
        &self,
        address: IpAddr,
        name: &ObjectName,
        claim: &Claim,
    ) -> Option<(ObjectName, SharingConflict)> {
        // All users of an address agree in key and backend, so one speaks for all: the first in
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

    /// The lowest address of `range` that `name` may use: a free one, or one that it may share if
    /// that comes earlier.
    pub(super) fn lowest(
        &self,
        range: AddressRange,
        avoids_buggy: bool,
        pools: &PoolLookup<'_>,
        name: &ObjectName,
        claim: &Claim,
    ) -> Option<IpAddr> {
        let free = self.lowest_free(range, avoids_buggy);
        let shareable = claim.sharing_key().and_then(|key| self.by_sharing_key.get(key));
        let shared = shareable.and_then(|addresses| {
            addresses
                .range(range.first()..=range.last())
                .copied()
                .take_while(|address| free.is_none_or(|free| *address < free))
                .filter(|address| !pools.keeps_back(*address))
                .find(|address| self.conflict(*address, name, claim).is_none())
        });
        shared.or(free)
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
