//! From the kernel as it is to what is wanted: which operations, in which order.
//!
//! Asks for one batch after the other, each of one phase, and takes the results in; what failed is tried again, later
//! and later, and keeps nothing else from being done. What is in the kernel and not ours is never touched: ours is what
//! the record says, and, where the record was lost, what has an address of our interface. Pure: the edge carries the
//! operations out, reads the kernel and the clock, and keeps the record as a file.

mod draining;
mod failures;
mod kernel;
mod needs;
mod operation;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use fairway_ground::{Instant, Prefix};
use fairway_model::TransportProtocol;

use draining::Draining;
pub use draining::Place as RealServerPlace;
use failures::Failures;
pub use kernel::{Kernel, KernelServer, Recorded, ServerSettings};
use operation::Phase;
pub use operation::{Operation, Outcome};

use crate::planner::{Touched, all_of};
use crate::wanted::{Hairpin, RealServer, VirtualAddress, Wanted};

/// The most operations of a batch: a larger transaction of the packet filter holds up the packets of the node. So
/// few in tests that a virtual address may need more than one batch of a phase.
const BATCH_MAX: usize = if cfg!(test) { 3 } else { 4_096 };

/// What an operator may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcilerOptions {
    /// How long connections to an endpoint that has left may go on.
    pub drain_limit: Duration,
    /// Virtual servers in these networks are never removed.
    pub excluded: Vec<Prefix>,
}

impl Default for ReconcilerOptions {
    fn default() -> Self {
        Self { drain_limit: Duration::from_secs(15 * 60), excluded: Vec::new() }
    }
}

/// The machine.
#[derive(Debug, Clone, Default)]
pub struct Reconciler {
    options: ReconcilerOptions,
    kernel: Kernel,
    /// Virtual servers that are ours.
    record: BTreeMap<VirtualAddress, Recorded>,
    /// There was none.
    has_lost_record: bool,
    /// Those that are ours, which the record does not say yet.
    unconfirmed: BTreeSet<VirtualAddress>,
    /// Those of which it is unknown what the record says, since writing it failed.
    unsure: BTreeSet<VirtualAddress>,
    /// Virtual servers at wanted addresses that somebody else made.
    foreign: BTreeSet<VirtualAddress>,
    draining: Draining,
    /// Real servers that are gone, whose flows are not.
    flows: BTreeSet<RealServerPlace>,
    /// What may differ from what is wanted.
    dirty: Dirty,
    /// Virtual servers to read again before anything is done to them.
    doubted: BTreeSet<VirtualAddress>,
    failed: Failures<VirtualAddress>,
    failed_addresses: Failures<IpAddr>,
    failed_hairpins: Failures<Hairpin>,
    /// The kernel has been read.
    has_seen: bool,
    /// All that is wanted is known, so what is not may go.
    is_complete: bool,
    in_flight: Vec<Operation>,
    /// Nothing is needed of what comes before it, once the operations in flight are done.
    progress: Progress,
}

/// How far a pass over what is dirty has come: a cold start has many batches of one phase, and none of them looks again
/// for what the ones before it have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Progress {
    phase: Phase,
    /// In the phase, virtual addresses before this one need nothing.
    virtual_address: Option<VirtualAddress>,
}

#[derive(Debug, Clone, Default)]
struct Dirty {
    virtual_addresses: BTreeSet<VirtualAddress>,
    addresses: BTreeSet<IpAddr>,
    hairpins: BTreeSet<Hairpin>,
}

impl Reconciler {
    /// With the record of earlier runs; `None` if there is none.
    pub fn new(
        options: ReconcilerOptions,
        record: Option<BTreeMap<VirtualAddress, Recorded>>,
    ) -> Self {
        let has_lost_record = record.is_none();
        Self { options, record: record.unwrap_or_default(), has_lost_record, ..Self::default() }
    }

    /// Virtual servers in these networks are never removed from now on.
    pub fn exclude(&mut self, networks: Vec<Prefix>) {
        self.options.excluded = networks;
    }

    /// The kernel as it is believed to be.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Whether the kernel has been read: before, nothing is done, and nothing is known to be wrong.
    pub fn has_seen(&self) -> bool {
        self.has_seen
    }

    /// Wanted virtual servers that somebody else has.
    pub fn foreign(&self) -> &BTreeSet<VirtualAddress> {
        &self.foreign
    }

    /// Real servers whose connections are to be counted.
    pub fn draining(&self) -> impl Iterator<Item = RealServerPlace> {
        self.draining.places()
    }

    /// What could not be done, and why.
    pub fn faults(&self) -> impl Iterator<Item = (String, &str)> {
        let servers = self.failed.messages().map(|(at, message)| (at.to_string(), message));
        let addresses =
            self.failed_addresses.messages().map(|(at, message)| (at.to_string(), message));
        let hairpins = self.failed_hairpins.messages();
        let hairpins = hairpins.map(|(it, message)| (it.real_server.to_string(), message));
        servers.chain(addresses).chain(hairpins)
    }

    /// Why a virtual server is not as wanted.
    pub fn fault_of(&self, at: VirtualAddress) -> Option<&str> {
        self.failed.message(&at)
    }

    /// Why an address is not on the node, or still is.
    pub fn fault_of_address(&self, address: IpAddr) -> Option<&str> {
        self.failed_addresses.message(&address)
    }

    /// All that is wanted is known now: what is not wanted may be removed from here on.
    pub fn complete(&mut self, wanted: &Wanted) {
        if !self.is_complete {
            self.is_complete = true;
            self.doubt_all(wanted);
        }
    }

    /// This has changed of what is wanted.
    pub fn touch(&mut self, touched: &Touched) {
        self.progress = Progress::default();
        let Touched { virtual_addresses, bound_addresses, hairpins, .. } = touched;
        self.dirty.virtual_addresses.extend(virtual_addresses);
        self.dirty.addresses.extend(bound_addresses);
        self.dirty.hairpins.extend(hairpins);
        // Somebody wants it differently: worth a try at once.
        for at in virtual_addresses {
            self.failed.clear(at);
        }
    }

    /// The kernel as it was read. Not while operations are on their way.
    pub fn observe(&mut self, kernel: Kernel, wanted: &Wanted) {
        self.kernel = kernel;
        self.has_seen = true;
        if std::mem::take(&mut self.has_lost_record) {
            let Kernel { servers, bound_addresses, .. } = &self.kernel;
            let ours = servers.keys().filter(|it| bound_addresses.contains(&it.address));
            self.unconfirmed = ours.copied().collect();
        }
        self.doubted.clear();
        let recorded: Vec<_> = self.record.keys().copied().collect();
        for at in recorded {
            match self.kernel.servers.contains_key(&at) {
                true => self.judge(at),
                false => self.is_gone(at),
            }
        }
        let servers = &self.kernel.servers;
        self.foreign.retain(|at| servers.contains_key(at));
        self.end_drains();
        self.doubt_all(wanted);
    }

    /// Another proxy has ended: what it left at these addresses, and at wanted addresses that are the node's own, is ours
    /// from now on, with the connections that it has.
    pub fn adopt(&mut self, theirs: &BTreeSet<IpAddr>, wanted: &Wanted) {
        for at in self.kernel.servers.keys() {
            let is_node_port = wanted.entries.get(at).is_some_and(|it| !it.is_bound);
            if (theirs.contains(&at.address) || is_node_port) && !self.record.contains_key(at) {
                self.unconfirmed.insert(*at);
                self.foreign.remove(at);
            }
        }
        self.end_drains();
        self.doubt_all(wanted);
    }

    /// These have no connection any more.
    pub fn observe_idle(&mut self, places: impl IntoIterator<Item = RealServerPlace>) {
        for place in places {
            self.draining.is_idle(place);
            self.dirty.virtual_addresses.insert(place.0);
        }
    }

    fn doubt_all(&mut self, wanted: &Wanted) {
        self.progress = Progress::default();
        let Dirty { virtual_addresses, addresses, hairpins } = &mut self.dirty;
        virtual_addresses.extend(wanted.entries.keys());
        virtual_addresses.extend(self.record.keys());
        virtual_addresses.extend(&self.unsure);
        virtual_addresses.extend(self.flows.iter().map(|(at, _)| at));
        virtual_addresses.extend(self.kernel.servers.keys());
        virtual_addresses.extend(self.kernel.rules.keys());
        addresses.extend(&wanted.bound_addresses);
        addresses.extend(&self.kernel.bound_addresses);
        hairpins.extend(&wanted.hairpins);
        hairpins.extend(&self.kernel.hairpins);
    }

    /// When something is to be done without a change.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let retries = [
            self.failed.next_deadline(now),
            self.failed_addresses.next_deadline(now),
            self.failed_hairpins.next_deadline(now),
        ];
        let drained = self.draining.next_deadline(self.options.drain_limit, now);
        retries.into_iter().chain([drained]).flatten().min()
    }

    /// What to do next, all of it independent of each other; nothing while earlier operations are on their way, before
    /// the kernel was read, or if all is as wanted. Each batch is answered by [`Self::finish`].
    pub fn next_batch(&mut self, wanted: &Wanted, now: Instant) -> &[Operation] {
        if !self.in_flight.is_empty() || !self.has_seen {
            return &[];
        }
        self.dirty.virtual_addresses.extend(self.failed.due(now));
        self.dirty.addresses.extend(self.failed_addresses.due(now));
        self.dirty.hairpins.extend(self.failed_hairpins.due(now));
        let expired = self.draining.expired(self.options.drain_limit, now);
        self.dirty.virtual_addresses.extend(expired.map(|(at, _)| at));
        let progress = if self.has_failed() { Progress::default() } else { self.progress };
        if progress == Progress::default() {
            // An address may wait for the rules of its ports.
            let Dirty { virtual_addresses, addresses, .. } = &mut self.dirty;
            addresses.extend(virtual_addresses.iter().map(|it| it.address));
            self.recognize_foreign(wanted);
        }
        for phase in Phase::ALL.into_iter().filter(|it| *it >= progress.phase) {
            let from = progress.virtual_address.filter(|_| phase == progress.phase);
            let (operations, last) = self.needs(phase, from, wanted, now);
            if !operations.is_empty() {
                let next = phase.first_after();
                // The last one may need more than the batch has room for.
                let virtual_address = last.filter(|_| next == phase);
                self.progress = Progress { phase: next, virtual_address };
                self.in_flight = operations;
                return &self.in_flight;
            }
        }
        self.progress = Progress::default();
        // What failed is tried when its time has come.
        for at in std::mem::take(&mut self.dirty).virtual_addresses {
            if !self.failed.is_waiting(&at, now) {
                self.failed.clear(&at);
            }
        }
        &[]
    }

    fn has_failed(&self) -> bool {
        !(self.failed.is_empty()
            && self.failed_addresses.is_empty()
            && self.failed_hairpins.is_empty())
    }

    /// Of servers that were there before we wanted any.
    fn recognize_foreign(&mut self, wanted: &Wanted) {
        for at in &self.dirty.virtual_addresses {
            let is_there = self.kernel.servers.contains_key(at);
            if is_there && !self.is_ours(*at) && wanted.entries.contains_key(at) {
                self.foreign.insert(*at);
            } else if !is_there && !self.doubted.contains(at) {
                self.foreign.remove(at);
            }
        }
    }

    fn is_ours(&self, at: VirtualAddress) -> bool {
        let is_said = self.record.contains_key(&at) || self.unconfirmed.contains(&at);
        is_said && !self.foreign.contains(&at)
    }

    /// A server of ours is not there any more: one that comes is not ours, even while the record cannot be written.
    fn is_gone(&mut self, at: VirtualAddress) {
        if let Some(recorded) = self.record.get_mut(&at).filter(|it| **it == Recorded::Made) {
            *recorded = Recorded::Intended(ServerSettings::default());
            self.unsure.insert(at);
        }
        self.unconfirmed.remove(&at);
    }

    /// Decides whose a server is that we were about to make.
    fn judge(&mut self, at: VirtualAddress) {
        let (Some(Recorded::Intended(settings)), Some(server)) =
            (self.record.get(&at), self.kernel.servers.get(&at))
        else {
            return;
        };
        if server.settings == Some(*settings) && server.real_servers.is_empty() {
            self.unconfirmed.insert(at);
        } else if !self.unconfirmed.contains(&at) {
            self.foreign.insert(at);
        }
    }

    /// What became of the batch, in its order.
    pub fn finish(&mut self, outcomes: Vec<Outcome>, wanted: &Wanted, now: Instant) {
        let operations = std::mem::take(&mut self.in_flight);
        let are_done = outcomes.iter().all(|it| *it == Outcome::Done);
        if !are_done || outcomes.len() != operations.len() {
            self.progress = Progress::default();
        }
        let unknown = || Outcome::Failed("no answer".to_owned());
        let outcomes = outcomes.into_iter().chain(std::iter::repeat_with(unknown));
        for (operation, outcome) in operations.into_iter().zip(outcomes) {
            self.finish_one(operation, outcome, wanted, now);
        }
    }

    fn finish_one(
        &mut self,
        operation: Operation,
        outcome: Outcome,
        wanted: &Wanted,
        now: Instant,
    ) {
        match (operation, outcome) {
            (Operation::Look(at), Outcome::Found(server)) => {
                self.doubted.remove(&at);
                self.found(at, server);
            }
            // Nobody but somebody else can have made it: whether our own attempts succeeded is looked up.
            (Operation::AddServer(at, _), Outcome::Exists) => {
                self.foreign.insert(at);
                self.doubted.insert(at);
            }
            (Operation::RemoveRealServer(at, real), Outcome::Missing) => {
                self.doubted.insert(at);
                self.done(Operation::RemoveRealServer(at, real), wanted, now);
            }
            (Operation::SetServer(at, _) | Operation::SetWeight(at, ..), Outcome::Missing)
            | (Operation::AddRealServer(at, _), Outcome::Exists | Outcome::Missing) => {
                self.doubted.insert(at);
            }
            (operation, Outcome::Done)
            | (operation @ Operation::Bind(_), Outcome::Exists)
            | (operation @ (Operation::Unbind(_) | Operation::RemoveServer(_)), Outcome::Missing) => {
                self.done(operation, wanted, now)
            }
            (operation, Outcome::Failed(message)) => self.failed(&operation, &message, now),
            (operation, other) => self.failed(&operation, &format!("{other:?}"), now),
        }
    }

    fn failed(&mut self, operation: &Operation, message: &str, now: Instant) {
        let message = format!("{operation}: {message}");
        match (operation, operation.virtual_address()) {
            (_, Some(at)) => {
                self.failed.add(at, message, now);
                if let Operation::RemoveRealServer(at, real) = operation {
                    self.has_left(*at, *real);
                }
                // Whether it was done is unknown.
                if matches!(operation, Operation::Record(..) | Operation::Forget(_)) {
                    self.unsure.insert(at);
                } else {
                    self.doubted.insert(at);
                }
            }
            (Operation::Bind(address) | Operation::Unbind(address), _) => {
                self.failed_addresses.add(*address, message, now);
            }
            (Operation::AddHairpin(it) | Operation::RemoveHairpin(it), _) => {
                self.failed_hairpins.add(*it, message, now);
            }
            _ => {}
        }
    }

    fn found(&mut self, at: VirtualAddress, server: Option<KernelServer>) {
        match server {
            Some(server) => {
                self.kernel.servers.insert(at, server);
                self.judge(at);
            }
            None => {
                self.kernel.servers.remove(&at);
                self.foreign.remove(&at);
                self.is_gone(at);
            }
        }
        self.end_drains();
    }

    /// Forgets real servers that are not leaving any more, or not ours.
    fn end_drains(&mut self) {
        let is_leaving = |(at, real): &RealServerPlace| {
            let server = self.kernel.servers.get(at).filter(|_| self.is_ours(*at));
            server.is_some_and(|it| it.real_servers.get(real) == Some(&0))
        };
        let gone: Vec<_> = self.draining.places().filter(|it| !is_leaving(it)).collect();
        for place in gone {
            self.draining.end(place);
        }
    }

    fn done(&mut self, operation: Operation, wanted: &Wanted, now: Instant) {
        match operation {
            Operation::Look(_) => {}
            Operation::Record(at, recorded) => {
                self.record.insert(at, recorded);
                self.unsure.remove(&at);
                if recorded == Recorded::Made {
                    self.unconfirmed.remove(&at);
                }
            }
            Operation::Forget(at) => {
                self.record.remove(&at);
                self.unsure.remove(&at);
                self.unconfirmed.remove(&at);
            }
            Operation::SetRule(at, rule) => {
                self.kernel.rules.insert(at, rule);
            }
            Operation::RemoveRule(at) => {
                self.kernel.rules.remove(&at);
            }
            Operation::AddHairpin(it) => {
                self.kernel.hairpins.insert(it);
                self.failed_hairpins.clear(&it);
            }
            Operation::RemoveHairpin(it) => {
                self.kernel.hairpins.remove(&it);
                self.failed_hairpins.clear(&it);
            }
            Operation::EndFlows(at, real) => {
                self.flows.remove(&(at, real));
            }
            Operation::Bind(address) => {
                self.kernel.bound_addresses.insert(address);
                self.failed_addresses.clear(&address);
            }
            Operation::Unbind(address) => {
                self.kernel.bound_addresses.remove(&address);
                self.failed_addresses.clear(&address);
                // Servers behind it waited for that.
                let behind = self.kernel.servers.range(all_of(address)).map(|(at, _)| *at);
                self.dirty.virtual_addresses.extend(behind);
            }
            Operation::AddServer(..)
            | Operation::SetServer(..)
            | Operation::RemoveServer(_)
            | Operation::AddRealServer(..)
            | Operation::SetWeight(..)
            | Operation::RemoveRealServer(..) => self.done_to_server(operation, wanted, now),
        }
    }

    fn done_to_server(&mut self, operation: Operation, wanted: &Wanted, now: Instant) {
        let servers = &mut self.kernel.servers;
        match operation {
            Operation::AddServer(at, settings) => {
                let real_servers = BTreeMap::new();
                servers.insert(at, KernelServer { settings: Some(settings), real_servers });
                if self.record.get(&at) != Some(&Recorded::Made) {
                    self.unconfirmed.insert(at);
                }
            }
            Operation::SetServer(at, settings) => {
                servers.entry(at).or_default().settings = Some(settings);
            }
            Operation::RemoveServer(at) => {
                servers.remove(&at);
                self.draining.end_server(at);
                self.is_gone(at);
            }
            Operation::AddRealServer(at, real) => {
                servers.entry(at).or_default().real_servers.insert(real, 1);
                self.flows.remove(&(at, real));
                self.take(at, real.address, wanted);
            }
            Operation::SetWeight(at, real, weight) => {
                servers.entry(at).or_default().real_servers.insert(real, weight);
                if weight == 0 {
                    let service = wanted.entries.get(&at).map(|it| it.service.clone());
                    self.draining.begin((at, real), service, now);
                } else {
                    self.draining.end((at, real));
                    self.take(at, real.address, wanted);
                }
            }
            Operation::RemoveRealServer(at, real) => {
                if let Some(server) = servers.get_mut(&at) {
                    server.real_servers.remove(&real);
                }
                self.draining.end((at, real));
                self.has_left(at, real);
            }
            _ => {}
        }
    }

    fn has_left(&mut self, at: VirtualAddress, real: RealServer) {
        if at.protocol != TransportProtocol::Tcp {
            self.flows.insert((at, real));
        }
    }

    /// A Pod with this address takes connections of the Service at `at` now.
    fn take(&mut self, at: VirtualAddress, address: IpAddr, wanted: &Wanted) {
        let Some(entry) = wanted.entries.get(&at) else { return };
        for (over, _) in self.draining.is_taken(address, &entry.service) {
            self.dirty.virtual_addresses.insert(over);
        }
    }
}
