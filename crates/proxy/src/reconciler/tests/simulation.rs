//! Reconcilers on a kernel that fails, forgets, and has other users; by seed.
//!
//! What must hold at each operation: nothing of others is touched, no connection goes to a Pod that is not wanted, no
//! address is on the node before its filter stands, no real server goes while its connections may go on. And in the
//! end: all failures heal, and a restart changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use fairway_ground::Rng;
use fairway_model::{Delivery, IpvsScheduler, ObjectName};

use super::super::*;
use crate::delivered::Delivered;
use crate::wanted::{Entry, FilterRule, Masquerade, NoEndpoints, RealServer, VirtualServer};

const LIMIT: Duration = Duration::from_secs(900);
/// As seeds are few in the tests that everybody runs; `FAIRWAY_SEEDS` has more.
const SEEDS: u64 = 400;

struct Simulation {
    dice: Rng,
    seed: u64,
    now: Instant,
    truth: Kernel,
    /// Virtual servers of others, as they must stay.
    foreign: BTreeMap<VirtualAddress, KernelServer>,
    disk: Option<BTreeMap<VirtualAddress, Recorded>>,
    connections: BTreeSet<RealServerPlace>,
    /// When real servers got their last new connection, and whose they were.
    lowered_at: BTreeMap<RealServerPlace, (Instant, Option<ObjectName>)>,
    wanted: Wanted,
    reconciler: Reconciler,
    delivered: Delivered,
    fails: bool,
    /// All that is wanted is known.
    is_complete: bool,
    /// What connection tracking knows of real servers that are gone.
    stale_flows: BTreeSet<RealServerPlace>,
    /// Real servers that were given to another Service while they were leaving.
    taken: BTreeSet<RealServerPlace>,
    log: Vec<String>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            dice: Rng::seeded(seed),
            seed,
            now: Instant::from_micros(1_000_000),
            truth: Kernel::default(),
            foreign: BTreeMap::new(),
            disk: Some(BTreeMap::new()),
            connections: BTreeSet::new(),
            lowered_at: BTreeMap::new(),
            wanted: Wanted::default(),
            reconciler: Reconciler::default(),
            delivered: Delivered::default(),
            fails: false,
            is_complete: false,
            stale_flows: BTreeSet::new(),
            taken: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.dice.next_u64() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn octet(&mut self, end: u64) -> u8 {
        u8::try_from(self.below(end)).unwrap()
    }

    #[track_caller]
    fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        assert!(holds, "seed {}: {}\n{}", self.seed, what(), self.log.join("\n"));
    }

    fn place(&mut self) -> VirtualAddress {
        let protocols = [TransportProtocol::Tcp, TransportProtocol::Udp];
        // The last one is the node's own: it is never bound.
        let last = self.octet(4);
        VirtualAddress {
            address: IpAddr::V4(Ipv4Addr::new(198, 18, 0, last)),
            port: 80 + u16::from(self.octet(2)),
            protocol: protocols[usize::from(self.octet(2))],
        }
    }

    fn settings(&mut self) -> ServerSettings {
        let schedulers = [IpvsScheduler::RoundRobin, IpvsScheduler::MaglevHash];
        ServerSettings {
            scheduler: schedulers[usize::from(self.octet(2))],
            persistence: self.one_in(2).then(|| Duration::from_secs(7)),
        }
    }

    fn real(&mut self) -> RealServer {
        RealServer { address: IpAddr::V4(Ipv4Addr::new(10, 1, 0, self.octet(5))), port: 8080 }
    }

    fn entry(&mut self, at: VirtualAddress) -> Entry {
        let reals: BTreeSet<RealServer> = (0..self.below(4)).map(|_| self.real()).collect();
        let ServerSettings { scheduler, persistence } = self.settings();
        Entry {
            service: ObjectName::new("default", format!("s{}", self.below(3))),
            server: VirtualServer {
                scheduler,
                persistence,
                real_servers: reals.iter().copied().collect(),
            },
            rule: FilterRule {
                allowed_sources: None,
                allows_node: false,
                no_endpoints: reals.is_empty().then_some(NoEndpoints::Reject),
                serves_pods: false,
                masquerade: if self.one_in(2) { Masquerade::Always } else { Masquerade::Never },
            },
            is_bound: at.address != IpAddr::V4(Ipv4Addr::new(198, 18, 0, 3)),
            is_of_balancer: true,
        }
    }

    /// Somebody edits Services.
    fn edit(&mut self) {
        let mut touched = Touched::default();
        for _ in 0..=self.below(2) {
            let at = self.place();
            let entry = (!self.one_in(3)).then(|| self.entry(at));
            self.log
                .push(format!("edit {at}: {:?}", entry.as_ref().map(|it| &it.server.real_servers)));
            match entry {
                Some(entry) => self.wanted.entries.insert(at, entry),
                None => self.wanted.entries.remove(&at),
            };
            touched.virtual_addresses.insert(at);
        }
        let real_server = self.real();
        let hairpin = Hairpin { real_server, protocol: TransportProtocol::Tcp };
        if !self.wanted.hairpins.remove(&hairpin) {
            self.wanted.hairpins.insert(hairpin);
        }
        touched.hairpins.insert(hairpin);
        let entries = self.wanted.entries.iter();
        let bound = entries.filter(|(_, it)| it.is_bound).map(|(at, _)| at.address).collect();
        let before = std::mem::replace(&mut self.wanted.bound_addresses, bound);
        touched.bound_addresses =
            before.symmetric_difference(&self.wanted.bound_addresses).copied().collect();
        self.reconciler.touch(&touched);
        self.delivered.touch(&touched);
    }

    /// Somebody else makes or removes a virtual server of theirs.
    fn meddle(&mut self) {
        let at = self.place();
        let is_ours = self.disk.as_ref().is_none_or(|it| it.contains_key(&at));
        if self.foreign.contains_key(&at) && self.one_in(2) {
            self.log.push(format!("{at} of others goes"));
            self.foreign.remove(&at);
            self.truth.servers.remove(&at);
        } else if !self.truth.servers.contains_key(&at) && !is_ours {
            let settings = Some(self.settings());
            let server =
                KernelServer { settings, real_servers: BTreeMap::from([(self.real(), 1)]) };
            self.log.push(format!("{at} of others comes"));
            self.foreign.insert(at, server.clone());
            self.truth.servers.insert(at, server);
        }
    }

    /// The kernel loses what somebody flushes.
    fn lose(&mut self) {
        let what = self.below(3);
        self.log.push(format!("flush {what}"));
        match what {
            0 => {
                self.truth.servers.clear();
                self.foreign.clear();
                self.lowered_at.clear();
            }
            1 => {
                self.truth.rules.clear();
                self.truth.hairpins.clear();
            }
            _ => self.truth.bound_addresses.clear(),
        }
    }

    fn restart(&mut self) {
        self.log.push("restart".to_owned());
        let options = ReconcilerOptions { drain_limit: LIMIT, excluded: Vec::new() };
        self.reconciler = Reconciler::new(options, self.disk.clone());
        self.delivered = Delivered::default();
        self.delivered.doubt_all(&self.wanted);
        self.is_complete = false;
        // The next start looks through all flows.
        self.stale_flows.clear();
        // Whose a leaving Pod was is not on disk.
        self.lowered_at.values_mut().for_each(|(_, service)| *service = None);
    }

    fn audit(&mut self) {
        self.reconciler.observe(self.truth.clone(), &self.wanted);
        self.delivered.doubt_all(&self.wanted);
    }

    fn complete(&mut self) {
        self.is_complete = true;
        self.reconciler.complete(&self.wanted);
    }

    /// One batch; whether there was any.
    fn batch(&mut self) -> bool {
        let operations = self.reconciler.next_batch(&self.wanted, self.now).to_vec();
        if operations.is_empty() {
            self.judge();
            return false;
        }
        let mut outcomes = Vec::new();
        for operation in &operations {
            let outcome = self.perform(operation);
            self.log.push(format!("{operation}: {outcome:?}"));
            outcomes.push(outcome);
        }
        self.reconciler.finish(outcomes, &self.wanted, self.now);
        self.delivered.tried(&operations);
        true
    }

    /// What changed costs no look at the rest, and is all that changed.
    fn judge(&mut self) {
        self.delivered.judge_by(&self.wanted, &self.reconciler, |_| Vec::new());
        let mut whole = Delivered::default();
        whole.doubt_all(&self.wanted);
        whole.judge_by(&self.wanted, &self.reconciler, |_| Vec::new());
        let (kept, whole) = (self.delivered.deliveries(), whole.deliveries());
        self.check(kept == whole, || format!("it says {kept:?}, and from scratch {whole:?}"));
        for (address, services) in kept {
            let delivered = services.iter().filter(|(_, it)| **it == Delivery::Delivered);
            for (service, _) in delivered {
                let mut entries = self.wanted.entries.iter();
                let servers = &self.reconciler.kernel().servers;
                let works = entries.any(|(at, entry)| {
                    let reals = servers.get(at).map(|it| &it.real_servers);
                    at.address == *address
                        && entry.service == *service
                        && reals.is_some_and(|it| it.values().any(|weight| *weight > 0))
                });
                self.check(works, || format!("{service} is not delivered at {address}"));
            }
        }
    }

    fn perform(&mut self, operation: &Operation) -> Outcome {
        self.check_allowed(operation);
        if self.fails && self.one_in(12) {
            // Of some it is not known whether they were done. (A server that may or may not have been made is the one case
            // that looks like somebody else's.)
            if self.one_in(2) {
                self.apply(operation);
                if let Operation::SetWeight(at, real, 0) = operation
                    && let Some((_, service)) = self.lowered_at.get_mut(&(*at, *real))
                {
                    *service = None;
                }
            }
            return Outcome::Failed("the kernel is out of memory".to_owned());
        }
        self.apply(operation)
    }

    fn apply(&mut self, operation: &Operation) -> Outcome {
        let Kernel { servers, bound_addresses, rules, hairpins } = &mut self.truth;
        let is_new = |it: bool| if it { Outcome::Done } else { Outcome::Exists };
        let was_there = |it: bool| if it { Outcome::Done } else { Outcome::Missing };
        match operation.clone() {
            Operation::Look(at) => return Outcome::Found(servers.get(&at).cloned()),
            Operation::Record(at, recorded) => {
                self.disk.get_or_insert_default().insert(at, recorded);
            }
            Operation::Forget(at) => {
                self.disk.get_or_insert_default().remove(&at);
            }
            Operation::SetRule(at, rule) => {
                rules.insert(at, rule);
            }
            Operation::RemoveRule(at) => {
                rules.remove(&at);
            }
            Operation::AddHairpin(it) => {
                hairpins.insert(it);
            }
            Operation::RemoveHairpin(it) => {
                hairpins.remove(&it);
            }
            Operation::AddServer(at, settings) => {
                if servers.contains_key(&at) {
                    return Outcome::Exists;
                }
                servers.insert(at, KernelServer { settings: Some(settings), ..Default::default() });
            }
            Operation::SetServer(at, settings) => {
                let Some(server) = servers.get_mut(&at) else { return Outcome::Missing };
                server.settings = Some(settings);
            }
            Operation::RemoveServer(at) => return was_there(servers.remove(&at).is_some()),
            Operation::Bind(address) => return is_new(bound_addresses.insert(address)),
            Operation::Unbind(address) => return was_there(bound_addresses.remove(&address)),
            real => return self.apply_to_real_server(real),
        }
        Outcome::Done
    }

    fn apply_to_real_server(&mut self, operation: Operation) -> Outcome {
        let servers = &mut self.truth.servers;
        match operation {
            Operation::AddRealServer(at, real) => {
                let Some(server) = servers.get_mut(&at) else { return Outcome::Missing };
                if server.real_servers.contains_key(&real) {
                    return Outcome::Exists;
                }
                server.real_servers.insert(real, 1);
                self.connections.insert((at, real));
                self.stale_flows.remove(&(at, real));
                self.note_taken(at, real);
            }
            Operation::SetWeight(at, real, weight) => {
                let server = servers.get_mut(&at);
                let Some(it) = server.and_then(|it| it.real_servers.get_mut(&real)) else {
                    return Outcome::Missing;
                };
                *it = weight;
                if weight == 0 {
                    let service = self.wanted.entries.get(&at).map(|it| it.service.clone());
                    self.lowered_at.insert((at, real), (self.now, service));
                } else {
                    self.note_taken(at, real);
                }
            }
            Operation::RemoveRealServer(at, real) => {
                let server = servers.get_mut(&at);
                self.lowered_at.remove(&(at, real));
                if at.protocol == TransportProtocol::Udp {
                    self.stale_flows.insert((at, real));
                }
                let is_there = server.is_some_and(|it| it.real_servers.remove(&real).is_some());
                return if is_there { Outcome::Done } else { Outcome::Missing };
            }
            Operation::EndFlows(at, real) => {
                self.stale_flows.remove(&(at, real));
            }
            other => panic!("{other}"),
        }
        Outcome::Done
    }

    fn note_taken(&mut self, at: VirtualAddress, real: RealServer) {
        let service = self.wanted.entries.get(&at).map(|it| it.service.clone());
        for (place, (_, other)) in &self.lowered_at {
            if place.1.address == real.address
                && place.0 != at
                && (other.is_none() || *other != service)
            {
                self.taken.insert(*place);
            }
        }
    }

    /// It touches nothing of others, and takes nothing away too soon.
    fn check_time_and_owner(&self, operation: &Operation) {
        let reads = matches!(
            operation,
            Operation::Look(_)
                | Operation::Record(..)
                | Operation::Forget(_)
                | Operation::EndFlows(..)
                | Operation::SetRule(..)
                | Operation::RemoveRule(_)
                | Operation::AddServer(..)
        );
        if let Some(at) = operation.virtual_address().filter(|_| !reads) {
            self.check(!self.foreign.contains_key(&at), || {
                format!("{operation}: it is somebody else's")
            });
            let is_recorded = self.disk.as_ref().is_some_and(|it| it.contains_key(&at));
            self.check(is_recorded, || format!("{operation}: it is not recorded"));
        }
        let takes_away = matches!(
            operation,
            Operation::RemoveRule(_)
                | Operation::RemoveServer(_)
                | Operation::SetWeight(_, _, 0)
                | Operation::RemoveRealServer(..)
                | Operation::Unbind(_)
        );
        let is_of_others =
            operation.virtual_address().is_some_and(|at| self.reconciler.foreign().contains(&at));
        self.check(!takes_away || self.is_complete || is_of_others, || {
            format!("{operation}: not all is known that is wanted")
        });
    }

    fn check_allowed(&self, operation: &Operation) {
        self.check_time_and_owner(operation);
        self.check_real_server(operation);
        let entry = operation.virtual_address().and_then(|at| self.wanted.entries.get(&at));
        match operation {
            Operation::AddServer(at, _) => {
                let is_recorded = self.disk.as_ref().is_some_and(|it| it.contains_key(at));
                self.check(is_recorded, || format!("{operation}: it is not recorded"));
                self.check(entry.is_some(), || format!("{operation}: nobody wants it"));
            }
            Operation::RemoveServer(at) => {
                self.check(entry.is_none(), || format!("{operation}: it is wanted"));
                let is_open = self.truth.bound_addresses.contains(&at.address)
                    && !self.wanted.bound_addresses.contains(&at.address);
                // An address whose removal failed may be gone or not.
                let is_believed = self.reconciler.kernel().bound_addresses.contains(&at.address);
                self.check(!(is_open && is_believed), || {
                    format!("{operation}: its address is there")
                });
            }
            Operation::RemoveRule(at) => {
                let is_recorded = self.disk.as_ref().is_some_and(|it| it.contains_key(at));
                let has_server = is_recorded && self.reconciler.kernel().servers.contains_key(at);
                let is_foreign =
                    self.foreign.contains_key(at) || self.reconciler.foreign().contains(at);
                self.check(!has_server || is_foreign, || {
                    format!("{operation}: its server is there")
                });
            }
            Operation::Bind(address) => {
                self.check(self.wanted.bound_addresses.contains(address), || {
                    format!("{operation}: unwanted")
                });
                for at in self.wanted.entries.keys().filter(|it| it.address == *address) {
                    let kernel = self.reconciler.kernel();
                    let stands =
                        kernel.rules.contains_key(at) || self.reconciler.foreign().contains(at);
                    self.check(stands, || format!("{operation}: no rule of {at}"));
                }
            }
            Operation::Unbind(address) => {
                self.check(!self.wanted.bound_addresses.contains(address), || {
                    format!("{operation}: wanted")
                });
            }
            _ => {}
        }
    }

    fn check_real_server(&self, operation: &Operation) {
        let entry = operation.virtual_address().and_then(|at| self.wanted.entries.get(&at));
        let is_wanted =
            |real: &RealServer| entry.is_some_and(|it| it.server.real_servers.contains(real));
        match operation {
            Operation::AddRealServer(_, real) | Operation::SetWeight(_, real, 1) => {
                self.check(is_wanted(real), || format!("{operation}: it is not wanted"));
            }
            Operation::SetWeight(_, real, _) => {
                self.check(!is_wanted(real), || format!("{operation}: it is wanted"));
                let is_tcp = operation
                    .virtual_address()
                    .is_none_or(|at| at.protocol == TransportProtocol::Tcp);
                self.check(is_tcp, || format!("{operation}: its packets vanish"));
            }
            Operation::RemoveRealServer(at, real) => {
                self.check(!is_wanted(real), || format!("{operation}: it is wanted"));
                let place = (*at, *real);
                let lowered = self.lowered_at.get(&place);
                let is_over = lowered.is_some_and(|(it, _)| *it + LIMIT <= self.now)
                    || lowered.is_none()
                    || !self.connections.contains(&place)
                    || self.taken.contains(&place);
                let is_tcp = at.protocol == TransportProtocol::Tcp;
                self.check(!is_tcp || is_over, || format!("{operation}: its connections go on"));
                let weight = self.truth.servers.get(at).and_then(|it| it.real_servers.get(real));
                self.check(!is_tcp || weight.is_none_or(|it| *it == 0), || {
                    format!("{operation}: it gets new connections")
                });
            }
            _ => {}
        }
    }

    fn step(&mut self) {
        match self.below(20) {
            0..6 => self.edit(),
            6..8 => self.meddle(),
            8 => self.lose(),
            9 => self.restart(),
            10 => self.audit(),
            11 => self.complete(),
            12 => {
                let idle = |dice: &mut Rng| dice.next_u64().is_multiple_of(2);
                let places: Vec<_> = self.reconciler.draining().collect();
                let idle: Vec<_> = places.into_iter().filter(|_| idle(&mut self.dice)).collect();
                for place in &idle {
                    self.connections.remove(place);
                }
                self.reconciler.observe_idle(idle);
            }
            13..15 => {
                let seconds = [1, 5, 40, 400][usize::from(self.octet(4))];
                self.now = self.now + Duration::from_secs(seconds);
                self.log.push(format!("{seconds} s pass"));
            }
            _ => {
                for _ in 0..=self.below(6) {
                    if !self.batch() {
                        break;
                    }
                }
            }
        }
    }

    /// Until nothing is to be done, whatever time that takes.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.batch() {
                continue;
            }
            match self.reconciler.next_deadline(self.now) {
                Some(deadline) => {
                    self.check(deadline > self.now, || "a deadline in the past".to_owned());
                    self.now = deadline;
                }
                None => return,
            }
        }
        let draining: Vec<_> = self.reconciler.draining().collect();
        self.check(false, || format!("it never comes to rest: {draining:?}"));
    }

    fn check_settled(&self) {
        let is_ours = |at: &VirtualAddress| !self.foreign.contains_key(at);
        for (at, server) in &self.foreign {
            self.check(self.truth.servers.get(at) == Some(server), || format!("{at} of others"));
        }
        let entries = || self.wanted.entries.iter().filter(|(at, _)| is_ours(at));
        let expected: BTreeMap<VirtualAddress, KernelServer> = entries()
            .map(|(at, entry)| {
                let reals = entry.server.real_servers.iter().map(|it| (*it, 1));
                let settings = Some(entry.server.settings());
                (*at, KernelServer { settings, real_servers: reals.collect() })
            })
            .collect();
        let has: BTreeMap<_, _> = self
            .truth
            .servers
            .iter()
            .filter(|(at, _)| is_ours(at))
            .map(|(at, it)| (*at, it.clone()))
            .collect();
        self.check(has == expected, || format!("expected {expected:#?}\nthe kernel has {has:#?}"));
        let rules: BTreeMap<_, _> = entries().map(|(at, it)| (*at, it.rule.clone())).collect();
        self.check(self.truth.rules == rules, || format!("rules: {:?}", self.truth.rules));
        self.check(self.truth.hairpins == self.wanted.hairpins, || "hairpins".to_owned());
        let record: BTreeMap<_, _> = entries().map(|(at, _)| (*at, Recorded::Made)).collect();
        self.check(self.disk.as_ref() == Some(&record), || format!("record {:?}", self.disk));
        self.check(self.stale_flows.is_empty(), || format!("flows {:?}", self.stale_flows));
        let mut bound = self.wanted.bound_addresses.iter();
        let has_ours = |address: &IpAddr| entries().any(|(at, _)| at.address == *address);
        let lacks = bound.find(|it| has_ours(it) && !self.truth.bound_addresses.contains(it));
        self.check(lacks.is_none(), || format!("{lacks:?} is not bound"));
        let mut there = self.truth.bound_addresses.iter();
        let extra = there.find(|it| !self.wanted.bound_addresses.contains(it));
        self.check(extra.is_none(), || format!("{extra:?} is bound"));
        let served = entries().filter(|(_, it)| it.rule.no_endpoints.is_none());
        for (at, entry) in served {
            let said = self.delivered.deliveries().get(&at.address);
            let said = said.and_then(|it| it.get(&entry.service));
            self.check(said == Some(&Delivery::Delivered), || format!("{at}: {said:?}"));
        }
    }
}

/// Seeds that once found a mistake which few others find.
const FOUND: [u64; 1] = [70_099];

fn seeds() -> impl Iterator<Item = u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let (range, found) = match number("FAIRWAY_SEED") {
        Some(first) => (first..first + number("FAIRWAY_SEEDS").unwrap_or(1), &[][..]),
        None => (0..number("FAIRWAY_SEEDS").unwrap_or(SEEDS), &FOUND[..]),
    };
    range.chain(found.iter().copied())
}

#[test]
fn whatever_fails_heals_and_touches_nothing_of_others() {
    for seed in seeds() {
        let mut simulation = Simulation::new(seed);
        simulation.restart();
        simulation.fails = true;
        for _ in 0..120 {
            simulation.step();
        }
        simulation.fails = false;
        // All operations of a batch are answered before anything is read.
        simulation.audit();
        simulation.complete();
        simulation.settle();
        simulation.check_settled();
        simulation.restart();
        simulation.audit();
        simulation.complete();
        let operations =
            simulation.reconciler.next_batch(&simulation.wanted, simulation.now).to_vec();
        simulation.check(operations.is_empty(), || format!("a restart changes {operations:?}"));
    }
}
