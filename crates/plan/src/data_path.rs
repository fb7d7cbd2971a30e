//! What the service proxy of this machine says that it delivers, and what is not announced from here meanwhile.
//!
//! Facts only; handed to the planner by the daemon, where a proxy is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_model::{Deliveries, Delivery, ObjectName};

use super::reason::Obstacle;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataPath {
    deliveries: Deliveries,
    /// Services with addresses that are not delivered, and why.
    obstructed: BTreeMap<ObjectName, BTreeMap<IpAddr, String>>,
}

impl DataPath {
    /// All that is said now. Returns the Services of which something else is said.
    pub(super) fn replace(&mut self, mut deliveries: Deliveries) -> BTreeSet<ObjectName> {
        for address in self.deliveries.keys() {
            deliveries.entry(*address).or_default();
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
                if let Delivery::Obstructed(why) = delivery {
                    let of_service = self.obstructed.entry(service.clone()).or_default();
                    of_service.insert(address, why.clone());
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

    /// What it says of an address of a Service; nothing before the kernel has it.
    pub fn delivery(&self, service: &ObjectName, address: IpAddr) -> Option<&Delivery> {
        self.deliveries.get(&address)?.get(service)
    }

    /// Why an address of a Service is not announced from here.
    pub(super) fn obstacle(&self, service: &ObjectName, address: IpAddr) -> Option<Obstacle> {
        match self.delivery(service, address) {
            Some(Delivery::Delivered) => None,
            Some(Delivery::Obstructed(why)) => Some(Obstacle::NotDelivered(why.clone())),
            None => Some(Obstacle::NotDeliveredYet),
        }
    }

    /// Each Service with the addresses that are not delivered, and why.
    pub(super) fn obstructed(&self) -> &BTreeMap<ObjectName, BTreeMap<IpAddr, String>> {
        &self.obstructed
    }
}
