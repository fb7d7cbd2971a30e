//! Who holds which address: taking, giving back, and who may want what is given back.
//!
//! Another part of [`Allocator`], with no opinion about who should; `converge` calls it.

use std::net::IpAddr;
use std::sync::Arc;

use fairway_model::{ObjectName, Service};

use super::converge::Pass;
use super::sharing::Claim;
use super::{Allocator, Assignment, Held};

impl Allocator {
    /// Gives exactly `addresses` to `service`, and takes back what it had besides.
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

    /// Gives `addresses` to `service`, which has left the occupancy index; none ends its
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
        self.is_remembered &= is_same;
        self.held.insert(name.clone(), Held { assignment, age, claim: Some(claim) });
    }

    /// `name`, which has left the occupancy index, holds nothing.
    pub(super) fn end_assignment(&mut self, name: &ObjectName) {
        self.is_remembered &= self.held.remove(name).is_none();
    }

    /// Takes a Service out of the occupancy index; answers with the addresses it has.
    pub(super) fn vacate(&mut self, name: &ObjectName) -> Vec<IpAddr> {
        let Some(held) = self.held.get_mut(name) else {
            return Vec::new();
        };
        let addresses = held.assignment.addresses.clone();
        // Without a claim it never got into the index, and an address of it there is another's.
        if let Some(claim) = held.claim.take() {
            for address in addresses.iter().copied() {
                self.occupancy.vacate(address, name);
                self.stir(address, &claim);
            }
        }
        addresses
    }

    /// `name` has given `addresses` back, and has left the occupancy index.
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

    /// `address` is like all others again.
    pub(super) fn end_cool_down(&mut self, address: IpAddr, pass: &Pass<'_>) {
        if !self.occupancy.is_used(address) && !pass.pools.keeps_back(address) {
            self.occupancy.unblock(address);
        }
    }

    /// `address` has other users, or they make other claims.
    pub(super) fn stir(&mut self, address: IpAddr, claim: &Claim) {
        self.stirred.addresses.insert(address);
        self.stirred.sharing_keys.extend(claim.sharing_key().map(str::to_owned));
    }
}
