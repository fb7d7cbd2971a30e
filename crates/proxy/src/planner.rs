//! All Services together: what the node shall have, kept up to date.
//!
//! A change of one Service or of its endpoints costs what this Service has, whatever else there is. Of several Services
//! with the same virtual address, the one with the better claim has it, else the first by name; the others wait.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairway_model::{
    Kind, Object, ObjectChange, ObjectName, ProxiedService, ProxiedSlice, ProxyConfiguration,
    TransportProtocol,
};

use crate::part::{Claim, Part, Surroundings};
use crate::place::Place;
use crate::wanted::{Hairpin, NoEndpoints, VirtualAddress, Wanted};

/// What changed of what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    /// Virtual addresses that came, changed or went.
    pub virtual_addresses: BTreeSet<VirtualAddress>,
    /// Addresses that the node has to have, or no longer.
    pub bound_addresses: BTreeSet<IpAddr>,
    /// Pods of this node that came or went.
    pub hairpins: BTreeSet<Hairpin>,
    /// Health checks that came, changed or went, by their ports.
    pub health_checks: BTreeSet<u16>,
    /// Addresses of which the claims of Services have changed, be they in vain.
    pub claimed_addresses: BTreeSet<IpAddr>,
}

/// A Service that does not have one of its virtual addresses, since another one has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub virtual_address: VirtualAddress,
    /// Who has it.
    pub holder: ObjectName,
    /// Who waits for it.
    pub waiting: ObjectName,
}

/// What Services gave up or claim, before it is decided who has it.
#[derive(Default)]
struct Claimed {
    virtual_addresses: BTreeSet<VirtualAddress>,
    hairpins: BTreeSet<Hairpin>,
    health_checks: BTreeSet<u16>,
}

/// The facts, and what follows from them for one node.
#[derive(Debug, Clone, Default)]
pub struct Planner {
    place: Place,
    configuration: ProxyConfiguration,
    services: BTreeMap<ObjectName, ProxiedService>,
    slices: BTreeMap<ObjectName, ProxiedSlice>,
    slices_by_service: BTreeMap<ObjectName, BTreeSet<ObjectName>>,
    parts: BTreeMap<ObjectName, Part>,
    /// Who wants each virtual address; the first has it.
    claims: BTreeMap<VirtualAddress, BTreeSet<(Claim, ObjectName)>>,
    health_claims: BTreeMap<u16, BTreeSet<ObjectName>>,
    /// How many Services have each Pod of this node.
    hairpin_counts: BTreeMap<Hairpin, usize>,
    wanted: Wanted,
}

impl Planner {
    /// Without any Service.
    pub fn new(place: Place) -> Self {
        Self { place, ..Self::default() }
    }

    /// What the node shall have.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The options.
    pub fn configuration(&self) -> &ProxyConfiguration {
        &self.configuration
    }

    /// The node.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The node is elsewhere, or has other addresses.
    pub fn move_to(&mut self, place: Place) -> Touched {
        if self.place == place {
            return Touched::default();
        }
        self.place = place;
        self.replan()
    }

    /// Takes changed objects in. A Node is for the caller, who knows which is this one.
    pub fn follow(&mut self, changes: impl IntoIterator<Item = ObjectChange>) -> Touched {
        let mut dirty = BTreeSet::new();
        let configuration = self.configuration.clone();
        for (key, object) in changes {
            match object.as_deref() {
                Some(Object::ProxiedService(it)) => {
                    self.services.insert(key.name.clone(), (**it).clone());
                    dirty.insert(key.name.clone());
                }
                Some(Object::ProxiedSlice(it)) => {
                    dirty.extend(self.forget_slice(&key.name));
                    let slices = self.slices_by_service.entry(it.service.clone()).or_default();
                    slices.insert(it.name.clone());
                    dirty.insert(it.service.clone());
                    self.slices.insert(it.name.clone(), it.clone());
                }
                Some(Object::ProxyConfiguration(it)) => self.configuration = (**it).clone(),
                Some(_) => {}
                None => match key.kind {
                    Kind::Service => {
                        self.services.remove(&key.name);
                        dirty.insert(key.name.clone());
                    }
                    Kind::EndpointSlice => dirty.extend(self.forget_slice(&key.name)),
                    Kind::ConfigMap => self.configuration = Default::default(),
                    _ => {}
                },
            }
        }
        if self.configuration != configuration {
            return self.replan();
        }
        self.plan_all(&dirty)
    }

    /// The Services that do without one of their virtual addresses.
    pub fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        self.claims.iter().flat_map(|(virtual_address, claims)| {
            let holder = claims.first().map(|(_, name)| name);
            let waiting = claims.iter().skip(1).map(|(_, name)| name);
            waiting.filter_map(move |waiting| {
                let (holder, waiting) = (holder?.clone(), waiting.clone());
                Some(Conflict { virtual_address: *virtual_address, holder, waiting })
            })
        })
    }

    /// The Services of load balancers that do without one of their virtual addresses with this address.
    pub fn conflicts_at(&self, address: IpAddr) -> impl Iterator<Item = Conflict> {
        self.claims.range(all_of(address)).flat_map(|(virtual_address, claims)| {
            let holder = claims.first().map(|(_, name)| name);
            let waiting = claims.iter().skip(1).filter(|(claim, _)| *claim == Claim::Balancer);
            waiting.filter_map(move |(_, waiting)| {
                let (holder, waiting) = (holder?.clone(), waiting.clone());
                Some(Conflict { virtual_address: *virtual_address, holder, waiting })
            })
        })
    }

    /// How many Services drop new connections since their policy is Local and no endpoint of this node is usable: by their
    /// internal policy, and by their external one.
    pub fn without_local_endpoints(&self) -> (usize, usize) {
        let drops = |part: &Part, of_cluster: bool| {
            part.entries.values().any(|(claim, entry)| {
                (*claim == Claim::Cluster) == of_cluster
                    && entry.rule.no_endpoints == Some(NoEndpoints::Drop)
            })
        };
        let count = |of_cluster| self.parts.values().filter(|it| drops(it, of_cluster)).count();
        (count(true), count(false))
    }

    /// The Service that the slice belonged to.
    fn forget_slice(&mut self, name: &ObjectName) -> Option<ObjectName> {
        let slice = self.slices.remove(name)?;
        let slices = self.slices_by_service.get_mut(&slice.service)?;
        slices.remove(name);
        if slices.is_empty() {
            self.slices_by_service.remove(&slice.service);
        }
        Some(slice.service)
    }

    /// Everything, since what all of it depends on has changed.
    fn replan(&mut self) -> Touched {
        let names = self.services.keys().chain(self.parts.keys());
        let services: BTreeSet<ObjectName> = names.cloned().collect();
        self.plan_all(&services)
    }

    /// Plans these Services, and then decides about all that they gave up or claim.
    fn plan_all(&mut self, services: &BTreeSet<ObjectName>) -> Touched {
        let mut claimed = Claimed::default();
        for service in services {
            self.plan(service, &mut claimed);
        }
        let mut touched = Touched::default();
        for at in claimed.virtual_addresses {
            touched.claimed_addresses.insert(at.address);
            self.settle(at, &mut touched);
        }
        for hairpin in claimed.hairpins {
            let wanted = &mut self.wanted.hairpins;
            let has_changed = match self.hairpin_counts.contains_key(&hairpin) {
                true => wanted.insert(hairpin),
                false => wanted.remove(&hairpin),
            };
            if has_changed {
                touched.hairpins.insert(hairpin);
            }
        }
        for port in claimed.health_checks {
            self.settle_health_check(port, &mut touched);
        }
        touched
    }

    fn plan(&mut self, service: &ObjectName, claimed: &mut Claimed) {
        let part = self.services.get(service).map(|it| {
            let surroundings = Surroundings {
                service: it,
                place: &self.place,
                configuration: &self.configuration,
            };
            let names = self.slices_by_service.get(service).into_iter().flatten();
            Part::of(surroundings, names.filter_map(|name| self.slices.get(name)))
        });
        let part = part.unwrap_or_default();
        let before = self.parts.remove(service).unwrap_or_default();
        if part == before {
            self.keep(service, part);
            return;
        }
        let gone = before.entries.iter().filter(|(at, it)| part.entries.get(at) != Some(*it));
        for (at, (claim, _)) in gone {
            claimed.virtual_addresses.insert(*at);
            if let Some(claims) = self.claims.get_mut(at) {
                claims.remove(&(*claim, service.clone()));
                if claims.is_empty() {
                    self.claims.remove(at);
                }
            }
        }
        let new = part.entries.iter().filter(|(at, it)| before.entries.get(at) != Some(*it));
        for (at, (claim, _)) in new {
            self.claims.entry(*at).or_default().insert((*claim, service.clone()));
            claimed.virtual_addresses.insert(*at);
        }
        self.count_hairpins(&before, &part, claimed);
        let ports = [&before, &part].into_iter().filter_map(|it| it.health_check);
        claimed.health_checks.extend(ports.map(|(port, _)| port));
        self.claim_health_checks(service, &before, &part);
        self.keep(service, part);
    }

    fn keep(&mut self, service: &ObjectName, part: Part) {
        if part != Part::default() {
            self.parts.insert(service.clone(), part);
        }
    }

    fn count_hairpins(&mut self, before: &Part, part: &Part, claimed: &mut Claimed) {
        for hairpin in part.hairpins.difference(&before.hairpins) {
            let count = self.hairpin_counts.entry(*hairpin).or_default();
            *count = count.saturating_add(1);
            claimed.hairpins.insert(*hairpin);
        }
        for hairpin in before.hairpins.difference(&part.hairpins) {
            let count = self.hairpin_counts.entry(*hairpin).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.hairpin_counts.remove(hairpin);
            }
            claimed.hairpins.insert(*hairpin);
        }
    }

    fn claim_health_checks(&mut self, service: &ObjectName, before: &Part, part: &Part) {
        if let Some((port, _)) = before.health_check {
            let claims = self.health_claims.entry(port).or_default();
            claims.remove(service);
            if claims.is_empty() {
                self.health_claims.remove(&port);
            }
        }
        if let Some((port, _)) = part.health_check {
            self.health_claims.entry(port).or_default().insert(service.clone());
        }
    }

    /// Decides who has a virtual address, and whether the node has to have the address.
    fn settle(&mut self, at: VirtualAddress, touched: &mut Touched) {
        let holder = self.claims.get(&at).and_then(BTreeSet::first).map(|(_, name)| name);
        let entry = holder.and_then(|name| self.parts.get(name)?.entries.get(&at));
        let before = match entry {
            Some((_, entry)) if self.wanted.entries.get(&at) == Some(entry) => return,
            Some((_, entry)) => self.wanted.entries.insert(at, entry.clone()),
            None => self.wanted.entries.remove(&at),
        };
        if before.is_none() && entry.is_none() {
            return;
        }
        touched.virtual_addresses.insert(at);
        let whole = all_of(at.address);
        let is_bound = self.wanted.entries.range(whole).any(|(_, entry)| entry.is_bound);
        let has_changed = if is_bound {
            self.wanted.bound_addresses.insert(at.address)
        } else {
            self.wanted.bound_addresses.remove(&at.address)
        };
        // What one port gives up and the next one takes does not change.
        if has_changed && !touched.bound_addresses.remove(&at.address) {
            touched.bound_addresses.insert(at.address);
        }
    }

    fn settle_health_check(&mut self, port: u16, touched: &mut Touched) {
        let holder = self.health_claims.get(&port).and_then(BTreeSet::first);
        let check = holder.and_then(|name| {
            let (_, count) = self.parts.get(name)?.health_check?;
            Some((name.clone(), count))
        });
        let checks = &mut self.wanted.health_checks;
        if checks.get(&port) == check.as_ref() {
            return;
        }
        touched.health_checks.insert(port);
        match check {
            Some(check) => checks.insert(port, check),
            None => checks.remove(&port),
        };
    }
}

/// Every virtual address with this address.
pub(crate) fn all_of(address: IpAddr) -> std::ops::RangeInclusive<VirtualAddress> {
    let at = |port, protocol| VirtualAddress { address, port, protocol };
    at(0, TransportProtocol::Sctp)..=at(u16::MAX, TransportProtocol::Udp)
}
