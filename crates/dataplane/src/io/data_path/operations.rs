//! Carries out operations of the service proxy on the kernel: all of one kind in as few calls as it takes.
//!
//! Knows no reason for an operation, and no order: those of a batch are independent of each other. `perform` is for the
//! reconciler's caller.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use fairway_proxy::{FilterRule, Operation, Outcome, RealServerPlace, VirtualAddress};
use nix::errno::Errno;

use super::{DataPath, FOR_EVER};
use crate::ipvs::Change;
use crate::nftables::elements::{Element, change, of_rule};

impl DataPath {
    /// Carries operations out, which are independent of each other, and returns what became of each.
    pub fn perform(&mut self, operations: &[Operation]) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; operations.len()];
        self.change_filter(operations, &mut outcomes);
        self.change_servers(operations, &mut outcomes);
        self.end_flows(operations, &mut outcomes);
        self.write_record(operations, &mut outcomes);
        self.bind(operations, &mut outcomes);
        self.unbind(operations, &mut outcomes);
        let rest = operations.iter().zip(&mut outcomes).filter(|(_, outcome)| outcome.is_none());
        for (operation, outcome) in rest {
            *outcome = Some(match operation {
                Operation::Look(at) => match self.ipvs.server(*at) {
                    Ok(server) => Outcome::Found(server),
                    Err(error) => Outcome::Failed(error.to_string()),
                },
                other => Outcome::Failed(format!("{other} is in no batch")),
            });
        }
        outcomes.into_iter().flatten().collect()
    }

    fn write_record(&mut self, operations: &[Operation], outcomes: &mut [Option<Outcome>]) {
        let line = |operation: &Operation| match operation {
            Operation::Record(at, recorded) => Some((*at, Some(*recorded))),
            Operation::Forget(at) => Some((*at, None)),
            _ => None,
        };
        let (lines, places): (Vec<_>, Vec<_>) = matching(operations, outcomes, line).unzip();
        if lines.is_empty() {
            return;
        }
        let outcome = done(self.record.write(&lines));
        places.into_iter().for_each(|place| *place = Some(outcome.clone()));
    }

    /// The filter knows virtual addresses before the node has them.
    fn bind(&mut self, operations: &[Operation], outcomes: &mut [Option<Outcome>]) {
        let address = |operation: &Operation| match operation {
            Operation::Bind(address) => Some(*address),
            _ => None,
        };
        let all: Vec<_> = matching(operations, outcomes, address).collect();
        let vips: Vec<Element> = all.iter().map(|(address, _)| Element::Vip(*address)).collect();
        let are_known = vips.len() > 1 && self.filter.commit(change([], &vips)).is_ok();
        let mut known = Vec::new();
        for ((address, place), vip) in all.into_iter().zip(&vips) {
            let committed = if are_known { Ok(()) } else { self.filter.commit(change([], [vip])) };
            match committed {
                Ok(()) => known.push((address, place)),
                Err(error) => *place = Some(Outcome::Failed(error.to_string())),
            }
        }
        let addresses: Vec<IpAddr> = known.iter().map(|(address, _)| *address).collect();
        match self.links.add_addresses(self.interface, &addresses, FOR_EVER) {
            Ok(results) => {
                let both = known.into_iter().zip(results);
                both.for_each(|((_, place), result)| *place = Some(done(result)));
            }
            Err(error) => {
                let outcome = Outcome::Failed(error.to_string());
                known.into_iter().for_each(|(_, place)| *place = Some(outcome.clone()));
            }
        }
    }

    /// In the reverse order.
    fn unbind(&mut self, operations: &[Operation], outcomes: &mut [Option<Outcome>]) {
        let address = |operation: &Operation| match operation {
            Operation::Unbind(address) => Some(*address),
            _ => None,
        };
        let (mut vips, mut places) = (Vec::new(), Vec::new());
        for (address, place) in matching(operations, outcomes, address) {
            let removed = done(self.links.remove_address(self.interface, address));
            let is_removed = !matches!(removed, Outcome::Failed(_));
            let place = place.insert(removed);
            if is_removed {
                vips.push(Element::Vip(address));
                places.push(place);
            }
        }
        if vips.len() > 1 && self.filter.commit(change(&vips, [])).is_ok() {
            return;
        }
        for (vip, place) in vips.iter().zip(places) {
            match self.filter.commit(change([vip], [])) {
                Err(error) if error.raw_os_error() != Some(Errno::ENOENT as i32) => {
                    *place = Outcome::Failed(error.to_string());
                }
                _ => {}
            }
        }
    }

    /// All rules of a batch are one transaction. If the kernel refuses it, each is one of its own: what is wrong with one
    /// keeps no other from being set.
    fn change_filter(&mut self, operations: &[Operation], outcomes: &mut [Option<Outcome>]) {
        let of_filter: Vec<usize> = operations
            .iter()
            .enumerate()
            .filter(|(_, it)| is_of_filter(it))
            .map(|(position, _)| position)
            .collect();
        let mut set = |all: &[usize], outcome: &Outcome| {
            for position in all {
                if let Some(it) = outcomes.get_mut(*position) {
                    *it = Some(outcome.clone());
                }
            }
        };
        let chosen = |all: &[usize]| -> Vec<Operation> {
            all.iter().filter_map(|it| operations.get(*it)).cloned().collect()
        };
        match self.change_filter_at_once(&chosen(&of_filter)) {
            Ok(()) => set(&of_filter, &Outcome::Done),
            Err(_) if of_filter.len() > 1 => {
                for position in of_filter {
                    let outcome = done(self.change_filter_at_once(&chosen(&[position])));
                    set(&[position], &outcome);
                }
            }
            Err(error) => set(&of_filter, &Outcome::Failed(error.to_string())),
        }
    }

    fn change_filter_at_once(&mut self, operations: &[Operation]) -> io::Result<()> {
        let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
        let mut rules: BTreeMap<VirtualAddress, Option<FilterRule>> = BTreeMap::new();
        for operation in operations {
            match operation {
                Operation::SetRule(at, rule) => {
                    if let Some(old) = self.rules.get(at) {
                        before.extend(of_rule(*at, old));
                    }
                    after.extend(of_rule(*at, rule));
                    rules.insert(*at, Some(rule.clone()));
                }
                Operation::RemoveRule(at) => {
                    if let Some(old) = self.rules.get(at) {
                        before.extend(of_rule(*at, old));
                    }
                    rules.insert(*at, None);
                }
                Operation::AddHairpin(it) => {
                    after.insert(Element::Hairpin(*it));
                }
                Operation::RemoveHairpin(it) => {
                    before.insert(Element::Hairpin(*it));
                }
                _ => {}
            }
        }
        let transaction = change(before.difference(&after), after.difference(&before));
        let result = self.filter.commit(transaction);
        match &result {
            Ok(()) => {
                for (at, rule) in rules {
                    match rule {
                        Some(rule) => self.rules.insert(at, rule),
                        None => self.rules.remove(&at),
                    };
                }
            }
            Err(_) => self.filter_failures = self.filter_failures.saturating_add(1),
        }
        result
    }

    fn change_servers(&mut self, operations: &[Operation], outcomes: &mut [Option<Outcome>]) {
        let of_server = |operation: &Operation| match operation {
            Operation::AddServer(at, settings) => Some(Change::Add(*at, *settings)),
            Operation::SetServer(at, settings) => Some(Change::Set(*at, *settings)),
            Operation::RemoveServer(at) => Some(Change::Remove(*at)),
            Operation::AddRealServer(at, real) => Some(Change::AddReal(*at, *real, 1)),
            Operation::SetWeight(at, real, weight) => Some(Change::SetReal(*at, *real, *weight)),
            Operation::RemoveRealServer(at, real) => Some(Change::RemoveReal(*at, *real)),
            _ => None,
        };
        let (changes, places): (Vec<_>, Vec<_>) = matching(operations, outcomes, of_server).unzip();
        match self.ipvs.change(&changes) {
            Ok(results) => {
                for ((result, change), place) in results.into_iter().zip(&changes).zip(places) {
                    *place = Some(done_to_server(result, change));
                }
            }
            Err(error) => {
                let outcome = Outcome::Failed(error.to_string());
                places.into_iter().for_each(|place| *place = Some(outcome.clone()));
            }
        }
    }

    fn end_flows(&mut self, operations: &[Operation], outcomes: &mut [Option<Outcome>]) {
        let place = |operation: &Operation| match operation {
            Operation::EndFlows(at, real) => Some((*at, *real)),
            _ => None,
        };
        let places: BTreeSet<RealServerPlace> = operations.iter().filter_map(place).collect();
        if places.is_empty() {
            return;
        }
        let outcome = done(self.conntrack.end(&places));
        let both = operations.iter().zip(outcomes);
        for (_, it) in both.filter(|(operation, _)| place(operation).is_some()) {
            *it = Some(outcome.clone());
        }
    }
}

/// The operations of one kind, with the places of their outcomes.
fn matching<'a, T>(
    operations: &'a [Operation],
    outcomes: &'a mut [Option<Outcome>],
    of_kind: impl Fn(&Operation) -> Option<T> + 'a,
) -> impl Iterator<Item = (T, &'a mut Option<Outcome>)> {
    operations.iter().zip(outcomes).filter_map(move |(it, outcome)| Some((of_kind(it)?, outcome)))
}

fn is_of_filter(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::SetRule(..)
            | Operation::RemoveRule(_)
            | Operation::AddHairpin(_)
            | Operation::RemoveHairpin(_)
    )
}

/// The kernel has one error for a real server and for a scheduler that is not there.
fn done_to_server(result: io::Result<()>, change: &Change) -> Outcome {
    let is_missing = |error: &io::Error| error.raw_os_error() == Some(Errno::ENOENT as i32);
    match (change, result) {
        (Change::Add(_, settings) | Change::Set(_, settings), Err(error)) if is_missing(&error) => {
            let scheduler = settings.scheduler.name();
            Outcome::Failed(format!(
                "this kernel has no scheduler {scheduler}; load its module: modprobe ip_vs_{scheduler}"
            ))
        }
        (_, result) => done(result),
    }
}

/// What a result means to the one who asked.
fn done(result: io::Result<()>) -> Outcome {
    let Err(error) = result else { return Outcome::Done };
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EEXIST) => Outcome::Exists,
        Some(Errno::ESRCH | Errno::ENOENT | Errno::EADDRNOTAVAIL) => Outcome::Missing,
        _ => Outcome::Failed(error.to_string()),
    }
}
