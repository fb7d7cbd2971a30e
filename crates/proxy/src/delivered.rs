//! Which load balancer addresses this node delivers packets for: what may be announced from it.
//!
//! An address of a Service is delivered while one of its virtual servers is in the kernel and has an endpoint: what
//! cannot be changed in the kernel right now is no reason to send clients elsewhere. Kept up to date at the cost of what
//! changed. Knows nobody who announces.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_model::{Deliveries, Delivery, ObjectName};

use crate::planner::{Conflict, Planner, Touched, all_of};
use crate::reconciler::{Operation, Reconciler};
use crate::wanted::{Entry, NoEndpoints, VirtualAddress, Wanted};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Delivered {
    deliveries: Deliveries,
    /// Addresses of which something may have changed.
    dirty: BTreeSet<IpAddr>,
    /// Addresses with a Service that is obstructed: why may change without an operation, as a retry comes due.
    obstructed: BTreeSet<IpAddr>,
}

impl Delivered {
    /// Of all addresses.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// This has changed of what is wanted.
    pub fn touch(&mut self, touched: &Touched) {
        self.dirty.extend(touched.virtual_addresses.iter().map(|it| it.address));
        self.dirty.extend(&touched.bound_addresses);
        self.dirty.extend(&touched.claimed_addresses);
    }

    /// These were tried.
    pub fn tried(&mut self, operations: &[Operation]) {
        for operation in operations {
            match operation {
                Operation::Bind(address) | Operation::Unbind(address) => {
                    self.dirty.insert(*address);
                }
                other => self.dirty.extend(other.virtual_address().map(|it| it.address)),
            }
        }
    }

    /// The kernel was read.
    pub fn doubt_all(&mut self, wanted: &Wanted) {
        self.dirty.extend(wanted.entries.keys().map(|it| it.address));
        self.dirty.extend(self.deliveries.keys());
    }

    /// Judges again what may have changed. Returns what has: of an address without Services nothing is said any more.
    /// Only when nothing is left to do to the kernel right now, else what is about to be done counts as missing.
    pub fn judge(&mut self, planner: &Planner, reconciler: &Reconciler) -> Deliveries {
        self.judge_by(planner.wanted(), reconciler, |address| {
            planner.conflicts_at(address).collect()
        })
    }

    /// The same, with the Services that do without a virtual address.
    pub(crate) fn judge_by(
        &mut self,
        wanted: &Wanted,
        reconciler: &Reconciler,
        conflicts: impl Fn(IpAddr) -> Vec<Conflict>,
    ) -> Deliveries {
        let mut changed = Deliveries::new();
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.append(&mut self.obstructed);
        for address in dirty {
            let now = of_address(address, wanted, reconciler, conflicts(address));
            if now.values().any(|it| matches!(it, Delivery::Obstructed(_))) {
                self.obstructed.insert(address);
            }
            let before = self.deliveries.get(&address);
            if before.map_or(now.is_empty(), |it| *it == now) {
                continue;
            }
            match now.is_empty() {
                true => self.deliveries.remove(&address),
                false => self.deliveries.insert(address, now.clone()),
            };
            changed.insert(address, now);
        }
        changed
    }
}

/// What is said of each Service with this address.
fn of_address(
    address: IpAddr,
    wanted: &Wanted,
    reconciler: &Reconciler,
    conflicts: Vec<Conflict>,
) -> BTreeMap<ObjectName, Delivery> {
    let mut judged: BTreeMap<ObjectName, Option<Delivery>> = BTreeMap::new();
    let entries = wanted.entries.range(all_of(address));
    let entries = entries.filter(|(_, entry)| entry.is_of_balancer);
    let held =
        entries.map(|(at, entry)| (entry.service.clone(), of_server(*at, entry, reconciler)));
    let waiting = conflicts.into_iter().map(|it| {
        let why = format!("Service {} has virtual server {}", it.holder, it.virtual_address);
        (it.waiting, Some(Delivery::Obstructed(why)))
    });
    for (service, now) in held.chain(waiting) {
        judged
            .entry(service)
            .and_modify(|before| {
                // One port that works is enough, and one that will is worth waiting for.
                if rank(&now) > rank(before) {
                    before.clone_from(&now);
                }
            })
            .or_insert(now);
    }
    judged.into_iter().filter_map(|(service, it)| Some((service, it?))).collect()
}

fn rank(delivery: &Option<Delivery>) -> u8 {
    match delivery {
        Some(Delivery::Delivered) => 3,
        None => 2,
        Some(Delivery::Obstructed(_)) => 1,
        Some(Delivery::NoEndpoint(_)) => 0,
    }
}

/// `None` while it is on its way.
fn of_server(at: VirtualAddress, entry: &Entry, reconciler: &Reconciler) -> Option<Delivery> {
    let obstructed = |why: String| Some(Delivery::Obstructed(why));
    match entry.rule.no_endpoints {
        Some(NoEndpoints::Reject) => {
            let why = format!("virtual server {at} has no endpoint");
            return Some(Delivery::NoEndpoint(why));
        }
        Some(NoEndpoints::Drop) => {
            let why = format!(
                "virtual server {at} has no endpoint on this node, and the traffic policy is Local"
            );
            return Some(Delivery::NoEndpoint(why));
        }
        None => {}
    }
    if reconciler.foreign().contains(&at) {
        return obstructed(format!("another program has virtual server {at}"));
    }
    let kernel = reconciler.kernel();
    let server = kernel.servers.get(&at);
    if !server.is_some_and(|it| it.real_servers.values().any(|weight| *weight > 0)) {
        return obstructed(reconciler.fault_of(at)?.to_owned());
    }
    // The rule of a time without an endpoint.
    if kernel.rules.get(&at).is_some_and(|it| it.no_endpoints.is_some()) {
        return obstructed(reconciler.fault_of(at)?.to_owned());
    }
    if entry.is_bound && !kernel.bound_addresses.contains(&at.address) {
        let fault = reconciler.fault_of_address(at.address).or_else(|| reconciler.fault_of(at));
        return obstructed(fault?.to_owned());
    }
    Some(Delivery::Delivered)
}
