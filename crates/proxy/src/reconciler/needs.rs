//! Which operations of one phase are needed now.
//!
//! Compares what is wanted with the kernel as it is believed to be, for what may differ. Decides no order: phases are
//! asked for one after the other, and the next one only when this one needs nothing more.

use std::ops::Bound;

use fairway_ground::Instant;
use fairway_model::TransportProtocol;

use super::operation::{Operation, Phase};
use super::{BATCH_MAX, Reconciler, Recorded};
use crate::wanted::{VirtualAddress, Wanted};

impl Reconciler {
    /// The operations, for virtual addresses from `from` on, and the last virtual address that was looked at.
    pub(super) fn needs(
        &mut self,
        phase: Phase,
        from: Option<VirtualAddress>,
        wanted: &Wanted,
        now: Instant,
    ) -> (Vec<Operation>, Option<VirtualAddress>) {
        let mut operations = Vec::new();
        let mut last = None;
        match phase {
            _ if !self.may_need(phase) => {}
            Phase::Bind => self.needs_addresses(true, wanted, now, &mut operations),
            Phase::Unbind => self.needs_addresses(false, wanted, now, &mut operations),
            _ => {
                if phase == Phase::Drain {
                    self.adopt_leaving(wanted, now);
                }
                let first = from.map_or(Bound::Unbounded, Bound::Included);
                for at in self.dirty.virtual_addresses.range((first, Bound::Unbounded)) {
                    if operations.len() >= BATCH_MAX {
                        break;
                    }
                    last = Some(*at);
                    if self.may(phase, *at, now) {
                        self.needs_of(phase, *at, wanted, now, &mut operations);
                    }
                }
                if matches!(phase, Phase::Filter | Phase::RemoveRules) {
                    self.needs_hairpins(phase, wanted, now, &mut operations);
                }
            }
        }
        operations.truncate(BATCH_MAX);
        (operations, last)
    }

    /// Whether an operation of the phase may be needed at all, without a look at what is dirty.
    fn may_need(&self, phase: Phase) -> bool {
        match phase {
            Phase::Look => !self.doubted.is_empty(),
            Phase::Confirm => !self.unconfirmed.is_empty(),
            Phase::Unbind | Phase::Drain | Phase::RemoveServers => self.is_complete,
            Phase::Flows => !self.flows.is_empty(),
            Phase::Forget => !(self.record.is_empty() && self.unsure.is_empty()),
            _ => true,
        }
    }

    /// Whether a virtual address that failed takes part in a phase. `Ours:` a first failure stops before anything is
    /// removed; a later one does not keep Pods that are gone in service.
    fn may(&self, phase: Phase, at: VirtualAddress, now: Instant) -> bool {
        let is_waiting = self.failed.is_waiting(&at, now);
        !is_waiting
            || (phase >= Phase::Drain
                && self.failed.is_persistent(&at)
                && !self.doubted.contains(&at))
    }

    fn needs_of(
        &self,
        phase: Phase,
        at: VirtualAddress,
        wanted: &Wanted,
        now: Instant,
        operations: &mut Vec<Operation>,
    ) {
        let is_foreign = self.foreign.contains(&at);
        match phase {
            Phase::Look => {
                if self.doubted.contains(&at) {
                    operations.push(Operation::Look(at));
                }
            }
            Phase::Forget => {
                let is_wanted = wanted.entries.contains_key(&at);
                let is_over = self.is_complete && !is_wanted && !self.has_server(at);
                let is_recorded = self.record.contains_key(&at) || self.unsure.contains(&at);
                if is_recorded && (is_foreign || is_over) {
                    operations.push(Operation::Forget(at));
                }
            }
            Phase::Flows => {
                let first =
                    crate::RealServer { address: std::net::Ipv4Addr::UNSPECIFIED.into(), port: 0 };
                let of_it = self.flows.range((at, first)..).take_while(|(it, _)| *it == at);
                operations.extend(of_it.map(|(at, real)| Operation::EndFlows(*at, *real)));
            }
            Phase::RemoveRules => {
                let is_there = self.kernel.rules.contains_key(&at);
                let is_wanted = wanted.entries.contains_key(&at);
                let is_over = self.is_complete && !is_wanted && !self.has_server(at);
                if is_there && (is_foreign || is_over) {
                    operations.push(Operation::RemoveRule(at));
                }
            }
            _ if is_foreign => {}
            Phase::Record => {
                let is_sure = !self.unsure.contains(&at);
                let is_made = is_sure && self.record.get(&at) == Some(&Recorded::Made);
                if let Some(entry) = wanted.entries.get(&at).filter(|_| !is_made)
                    && !self.kernel.servers.contains_key(&at)
                {
                    let intended = Recorded::Intended(entry.server.settings());
                    if self.record.get(&at) != Some(&intended) || !is_sure {
                        operations.push(Operation::Record(at, intended));
                    }
                }
            }
            Phase::Confirm => {
                if self.unconfirmed.contains(&at) {
                    operations.push(Operation::Record(at, Recorded::Made));
                }
            }
            Phase::Filter => {
                if let Some(entry) = wanted.entries.get(&at)
                    && self.kernel.rules.get(&at) != Some(&entry.rule)
                {
                    operations.push(Operation::SetRule(at, entry.rule.clone()));
                }
            }
            Phase::Servers => self.needs_server(at, wanted, operations),
            Phase::RealServers => self.needs_real_servers(at, wanted, operations),
            Phase::Drain => self.needs_drain(at, wanted, now, operations),
            Phase::RemoveServers => {
                if self.is_leaving(at, wanted) && !self.is_reachable(at, wanted) {
                    operations.push(Operation::RemoveServer(at));
                }
            }
            Phase::Bind | Phase::Unbind => {}
        }
    }

    fn has_server(&self, at: VirtualAddress) -> bool {
        self.is_ours(at) && self.kernel.servers.contains_key(&at)
    }

    /// Whether a virtual server of ours shall go.
    fn is_leaving(&self, at: VirtualAddress, wanted: &Wanted) -> bool {
        self.is_complete
            && self.has_server(at)
            && !wanted.entries.contains_key(&at)
            && !self.options.excluded.iter().any(|it| it.contains(at.address))
    }

    /// Whether packets still arrive for an address that is to be removed.
    fn is_reachable(&self, at: VirtualAddress, wanted: &Wanted) -> bool {
        self.kernel.bound_addresses.contains(&at.address)
            && !wanted.bound_addresses.contains(&at.address)
    }

    fn needs_server(&self, at: VirtualAddress, wanted: &Wanted, operations: &mut Vec<Operation>) {
        let Some(entry) = wanted.entries.get(&at) else { return };
        let settings = entry.server.settings();
        match self.kernel.servers.get(&at) {
            None => operations.push(Operation::AddServer(at, settings)),
            Some(server) if server.settings != Some(settings) => {
                operations.push(Operation::SetServer(at, settings));
            }
            Some(_) => {}
        }
    }

    fn needs_real_servers(
        &self,
        at: VirtualAddress,
        wanted: &Wanted,
        operations: &mut Vec<Operation>,
    ) {
        let (Some(entry), Some(server)) = (wanted.entries.get(&at), self.kernel.servers.get(&at))
        else {
            return;
        };
        for real in &entry.server.real_servers {
            match server.real_servers.get(real) {
                None => operations.push(Operation::AddRealServer(at, *real)),
                Some(1) => {}
                Some(_) => operations.push(Operation::SetWeight(at, *real, 1)),
            }
        }
    }

    /// Real servers that get no new connections, or go.
    fn needs_drain(
        &self,
        at: VirtualAddress,
        wanted: &Wanted,
        now: Instant,
        operations: &mut Vec<Operation>,
    ) {
        let (Some(entry), Some(server)) = (wanted.entries.get(&at), self.kernel.servers.get(&at))
        else {
            return;
        };
        if !self.is_complete || !self.is_ours(at) {
            return;
        }
        let leaves =
            |real: &crate::RealServer| entry.server.real_servers.binary_search(real).is_err();
        for (real, weight) in server.real_servers.iter().filter(|(real, _)| leaves(real)) {
            let place = (at, *real);
            // Without connections there is nothing to wait for.
            let goes_at_once = at.protocol != TransportProtocol::Tcp;
            if goes_at_once || self.draining.is_over(place, self.options.drain_limit, now) {
                operations.push(Operation::RemoveRealServer(at, *real));
            } else if *weight != 0 {
                operations.push(Operation::SetWeight(at, *real, 0));
            }
        }
    }

    /// Real servers of weight 0 that an earlier run left: their time begins now.
    fn adopt_leaving(&mut self, wanted: &Wanted, now: Instant) {
        if !self.is_complete {
            return;
        }
        for at in &self.dirty.virtual_addresses {
            let (Some(entry), Some(server)) = (wanted.entries.get(at), self.kernel.servers.get(at))
            else {
                continue;
            };
            if at.protocol != TransportProtocol::Tcp || !self.is_ours(*at) {
                continue;
            }
            for (real, weight) in &server.real_servers {
                if *weight == 0 && entry.server.real_servers.binary_search(real).is_err() {
                    // Whose it was is unknown.
                    self.draining.begin((*at, *real), None, now);
                }
            }
        }
    }

    fn needs_addresses(
        &self,
        binds: bool,
        wanted: &Wanted,
        now: Instant,
        operations: &mut Vec<Operation>,
    ) {
        for address in &self.dirty.addresses {
            if operations.len() >= BATCH_MAX {
                break;
            }
            if self.failed_addresses.is_waiting(address, now) {
                continue;
            }
            let is_wanted = wanted.bound_addresses.contains(address);
            let is_there = self.kernel.bound_addresses.contains(address);
            // Packets arrive once the node has the address: the filter rules of all its ports come first.
            let behind = wanted.entries.range(crate::planner::all_of(*address)).map(|(at, _)| at);
            if binds && is_wanted && !is_there {
                let mut ours = behind.filter(|at| !self.foreign.contains(at)).peekable();
                if ours.peek().is_some() && ours.all(|at| self.kernel.rules.contains_key(at)) {
                    operations.push(Operation::Bind(*address));
                }
            } else if !binds && self.is_complete && is_there && !is_wanted {
                operations.push(Operation::Unbind(*address));
            }
        }
    }

    fn needs_hairpins(
        &self,
        phase: Phase,
        wanted: &Wanted,
        now: Instant,
        operations: &mut Vec<Operation>,
    ) {
        for hairpin in &self.dirty.hairpins {
            if operations.len() >= BATCH_MAX {
                break;
            }
            if self.failed_hairpins.is_waiting(hairpin, now) {
                continue;
            }
            let is_wanted = wanted.hairpins.contains(hairpin);
            let is_there = self.kernel.hairpins.contains(hairpin);
            if phase == Phase::Filter && is_wanted && !is_there {
                operations.push(Operation::AddHairpin(*hairpin));
            } else if phase == Phase::RemoveRules && self.is_complete && is_there && !is_wanted {
                operations.push(Operation::RemoveHairpin(*hairpin));
            }
        }
    }
}
