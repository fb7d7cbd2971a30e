//! What the service proxy of this machine says that it delivers, and what is not announced from here meanwhile.
//!
//! Facts only; handed to the planner by the daemon, where a proxy is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_model::{Deliveries, Delivery, ObjectName};

use super::reason::Obstacle;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DataPath {
    deliveries: Deliveries,
    /// Services with addresses that are obstructed.
    obstructed: BTreeMap<ObjectName, BTreeSet<IpAddr>>,
    has_answered: bool,
    is_silent: bool,
}

impl DataPath {
    /// All that is said now. Returns the Services of which something else is said.
    pub(super) fn replace(&mut self, mut deliveries: Deliveries) -> BTreeSet<ObjectName> {
        for address in self.deliveries.keys() {
            deliveries.entry(*address).or_default();
        }
        self.follow(deliveries)
    }

    /// This is delivered, whatever else was said. Returns the Services of which something else is said.
    pub(super) fn extend(&mut self, mut deliveries: Deliveries) -> BTreeSet<ObjectName> {
        for (address, services) in &mut deliveries {
            for (service, before) in self.deliveries.get(address).into_iter().flatten() {
                services.entry(service.clone()).or_insert_with(|| before.clone());
            }
        }
        self.follow(deliveries)
    }

    /// What is said of these addresses now. Returns the Services of which something else is said.
    pub(super) fn follow(&mut self, deliveries: Deliveries) -> BTreeSet<ObjectName> {
        let mut changed = BTreeSet::new();
        for (address, now) in deliveries {
            let before = self.deliveries.remove(&address).unwrap_or_default();
            let services = before.keys().chain(now.keys());
            let differs = |it: &&ObjectName| before.get(*it) != now.get(*it);
            changed.extend(services.filter(differs).cloned());
            for service in before.keys() {
                self.forget(service, address);
            }
            for (service, delivery) in &now {
                if matches!(delivery, Delivery::Obstructed(_)) {
                    self.obstructed.entry(service.clone()).or_default().insert(address);
                }
            }
            if !now.is_empty() {
                self.deliveries.insert(address, now);
            }
        }
        changed
    }

    fn forget(&mut self, service: &ObjectName, address: IpAddr) {
        if let Some(of_service) = self.obstructed.get_mut(service) {
            of_service.remove(&address);
            if of_service.is_empty() {
                self.obstructed.remove(service);
            }
        }
    }

    /// It has answered. Returns whether that is new.
    pub(super) fn answered(&mut self) -> bool {
        let is_new = !self.has_answered || self.is_silent;
        (self.has_answered, self.is_silent) = (true, false);
        is_new
    }

    /// It does not answer. Returns whether that is new.
    pub(super) fn fell_silent(&mut self) -> bool {
        !std::mem::replace(&mut self.is_silent, true)
    }

    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// What it says of an address of a Service; nothing before the kernel has it.
    fn delivery(&self, service: &ObjectName, address: IpAddr) -> Option<&Delivery> {
        self.deliveries.get(&address)?.get(service)
    }

    /// Why an address of a Service is not announced from here.
    pub(super) fn obstacle(&self, service: &ObjectName, address: IpAddr) -> Option<Obstacle> {
        match self.delivery(service, address) {
            Some(Delivery::Delivered) => None,
            Some(Delivery::NoEndpoint(why) | Delivery::Obstructed(why)) => {
                Some(Obstacle::NotDelivered(why.clone()))
            }
            None => Some(Obstacle::NotDeliveredYet),
        }
    }

    /// Why this machine does not answer for an address of a Service on layer 2. One machine answers for all Services
    /// with the address, so one that works is enough; that there is no endpoint, others see themselves; and a Service
    /// that is on its way into the kernel is on its way on all machines.
    pub(super) fn layer2_obstacle(
        &self,
        service: &ObjectName,
        address: IpAddr,
    ) -> Option<Obstacle> {
        let of_address = self.deliveries.get(&address);
        let mut all = of_address.into_iter().flat_map(BTreeMap::values);
        if all.any(|it| *it == Delivery::Delivered) {
            return None;
        }
        match of_address.and_then(|it| it.get(service)) {
            Some(Delivery::Delivered | Delivery::NoEndpoint(_)) => None,
            Some(Delivery::Obstructed(why)) => Some(Obstacle::NotDelivered(why.clone())),
            None => (!self.has_answered || self.is_silent).then_some(Obstacle::NotDeliveredYet),
        }
    }

    /// Services with addresses that are obstructed.
    pub(super) fn obstructed(&self) -> impl Iterator<Item = &ObjectName> {
        self.obstructed.keys()
    }
}
