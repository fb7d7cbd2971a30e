//! Which Service holds which address: assigning, releasing, and which Services may want what is released.
//!
//! Another part of [`Allocator`], without policy; `converge` calls it.

use std::net::IpAddr;
use std::sync::Arc;

use fairway_model::{ObjectName, Service};

use super::converge::Pass;
use super::sharing::Claim;
use super::{Allocator, Assignment, Held};

impl Allocator {
    /// Assigns exactly `addresses` to `service`, and releases its other ones.
    pub(super) fn set(
        &mut self,
        service: &Service,
        addresses: Vec<IpAddr>,
        claim: Arc<Claim>,
        pass: &Pass<'_>,
    ) {
        let name = &service.name;
        if addresses == self.addresses_of(name) {
            return;
        }
        let had = self.vacate(name);
        let lost: Vec<_> = had.into_iter().filter(|address| !addresses.contains(address)).collect();
        self.hold(service, addresses, claim, pass);
        self.give_back(name, &lost, pass);
    }

    /// Assigns `addresses` to `service`, which has left the occupancy index; none ends its
    /// assignment.
    pub(super) fn hold(
        &mut self,
        service: &Service,
        addresses: Vec<IpAddr>,
        claim: Arc<Claim>,
        pass: &Pass<'_>,
    ) {
        let name = &service.name;
        if addresses.is_empty() {
            self.end_assignment(name);
            return;
        }
        for address in addresses.iter().copied() {
            self.occupancy.occupy(address, name, &claim);
            self.occupancy.block(address, address, &pass.pools);
            self.released.taken(address, name);
            self.stir(address, &claim);
            if let Some(home) = pass.pools.home_of(address)
                && let Some(fresh) = self.stirred.fresh.get_mut(&home)
            {
                fresh.remove(&address);
                if fresh.is_empty() {
                    self.stirred.fresh.remove(&home);
                }
            }
        }
        let age = match self.held.get(name) {
            Some(held) => held.age,
            None => self.take_age(),
        };
        let assignment = Assignment { pool: pass.pools.names(&addresses), addresses };
        let is_same = self.held.get(name).is_some_and(|held| held.assignment == assignment);
        if !is_same {
            self.unreported.insert(name.clone());
        }
        self.held.insert(name.clone(), Held { assignment, age, claim: Some(claim) });
    }

    /// `name`, which has left the occupancy index, holds nothing.
    pub(super) fn end_assignment(&mut self, name: &ObjectName) {
        if self.held.remove(name).is_some() {
            self.unreported.insert(name.clone());
        }
    }

    /// Removes a Service from the occupancy index; returns its addresses.
    pub(super) fn vacate(&mut self, name: &ObjectName) -> Vec<IpAddr> {
        let Some(held) = self.held.get_mut(name) else {
            return Vec::new();
        };
        let addresses = held.assignment.addresses.clone();
        // Without a claim it was never in the index, and an address of it there is of another Service.
        if let Some(claim) = held.claim.take() {
            for address in addresses.iter().copied() {
                self.occupancy.vacate(address, name);
                self.stir(address, &claim);
            }
        }
        addresses
    }

    /// `name` has released `addresses`, and has left the occupancy index.
    pub(super) fn give_back(&mut self, name: &ObjectName, addresses: &[IpAddr], pass: &Pass<'_>) {
        for address in addresses.iter().copied() {
            let is_unused = !self.occupancy.is_used(address);
            if is_unused {
                self.occupancy.block(address, address, &pass.pools);
            }
            let home = pass.pools.home_of(address);
            for freed in self.released.add(pass.now, address, name, is_unused, home) {
                self.end_cool_down(freed, pass);
                self.stirred.addresses.insert(freed);
                if let Some(home) = pass.pools.home_of(freed) {
                    self.stirred.fresh.entry(home).or_default().insert(freed);
                }
            }
        }
    }

    /// The cool-down of `address` is over.
    pub(super) fn end_cool_down(&mut self, address: IpAddr, pass: &Pass<'_>) {
        if !self.occupancy.is_used(address) && !pass.pools.keeps_back(address) {
            self.occupancy.unblock(address);
        }
    }

    /// The users of `address` changed, or their claims.
    pub(super) fn stir(&mut self, address: IpAddr, claim: &Claim) {
        self.stirred.addresses.insert(address);
        self.stirred.sharing_keys.extend(claim.sharing_key().map(str::to_owned));
    }
}
