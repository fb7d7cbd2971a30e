//! Which lines does FRR lack, and what follows from lines that were sent before?
//!
//! The comparison of the target with what the daemons show. Part of [`Application`], which decides when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::memory::Learnt;
use super::site::Obstacles;
use super::{Application, Orders, recording};
use crate::configuration::{Configuration, Statement};
use crate::daemon::{Daemon, Takes};
use crate::difference::{Batch, MANY_LINES, Ours, Place, Sides, Step, difference, is_of_route_map};

impl Application {
    /// The configuration that FRR should have, given what it rejected.
    pub(super) fn target(&self) -> Vec<&Statement> {
        if self.other_owner.is_some() {
            return Vec::new();
        }
        let wanted = self.wanted.as_ref().map(|it| it.configuration.statements.as_slice());
        let good = self.good.as_ref().unwrap_or(&self.first);
        let shown = self.known.iter().flat_map(|it| it.daemons.values());
        self.refusals.target(wanted.unwrap_or_default(), good, shown)
    }

    /// The lines that FRR lacks, as far as its configuration is known.
    pub(super) fn orders(&mut self) -> Option<Orders> {
        let (wanted, known) = (self.wanted.as_ref()?, self.known.as_ref()?);
        if self.other_owner.is_some() {
            return Some(Orders::default());
        }
        let is_partial = wanted.is_partial;
        let mut shared_routers = BTreeSet::new();
        let mut target = self.target();
        let mut obstacles = Obstacles::default();
        if let Some(bgpd) = known.daemons.get(&Daemon::Bgpd) {
            let told = self.told(Daemon::Bgpd);
            let ours = Ours::find(bgpd, &target, &self.mark, &told);
            obstacles = Obstacles::find(bgpd, &target, &ours);
            let routers = bgpd.statements.iter().filter(|it| it.context.is_empty());
            let made = routers.filter(|it| ours.made(&it.line) && !ours.has(it));
            shared_routers = made.map(|it| it.line.clone()).collect();
            target.retain(|it| !obstacles.concern(it));
        }
        let may_take = |daemon: Daemon, it: &Statement| {
            self.memory.get(&daemon).is_some_and(|memory| memory.may_take(daemon, it))
        };
        let claimed = self.claimed(Daemon::Bgpd);
        let facts = recording::Facts {
            running: &known.daemons,
            target: &target,
            mark: &self.mark,
            is_partial,
            claimed: &claimed,
            shared_routers: &shared_routers,
        };
        let plan = self.recording.plan(&facts, may_take);
        let mut batches: Vec<(Daemon, Batch)> = Vec::new();
        if plan.to_write.is_empty() {
            for (daemon, running) in &known.daemons {
                let Some(memory) = self.memory.get(daemon) else { continue };
                let of_ours = match daemon {
                    Daemon::Bgpd => plan.record.as_slice(),
                    Daemon::Mgmtd => plan.again.as_slice(),
                    _ => &[],
                };
                let here = target
                    .iter()
                    .copied()
                    .filter(|it| may_take(*daemon, it) && plan.may_be_sent(*daemon, it));
                let told = self.told(*daemon);
                let mut batch = difference(&Sides {
                    running,
                    wanted: &here.chain(of_ours).collect::<Vec<_>>(),
                    mark: &self.mark,
                    told: &told,
                    replaced: &self.recording.replaced(*daemon),
                    hidden: &memory.hidden,
                    keep_all_but: is_partial.then_some(&memory.told),
                });
                batch.removals.splice(0..0, plan.undo_unseen(*daemon));
                batches.push((*daemon, batch));
            }
        } else {
            let batch = Batch { additions: plan.to_write.clone(), ..Batch::default() };
            batches.push((Daemon::Bgpd, batch));
        }
        let are_many = are_many(&target, &known.daemons);
        self.recording.begin(plan);
        self.obstacles = obstacles;
        for (daemon, batch) in &mut batches {
            self.memory.entry(*daemon).or_default().sort_out(batch);
        }
        batches.retain(|(_, batch)| !batch.is_empty());
        let is_attempt = self.memory.values().any(|it| it.tries_again && !it.stubborn.is_empty());
        Some(Orders { batches, is_repair: self.is_settled && !is_attempt, are_many })
    }

    /// The lines of ours in a daemon that do not carry the mark.
    fn told(&self, daemon: Daemon) -> BTreeSet<Place> {
        let mut told = self.recording.places(daemon);
        told.extend(self.claimed(daemon));
        told
    }

    /// Draws conclusions from lines that were sent before and are due again. Returns whether there were any.
    pub(super) fn learn(&mut self, orders: &Orders) -> bool {
        let Some(known) = &self.known else { return false };
        let mut learnt = false;
        let mut refused: Vec<(Option<Daemon>, Step, String)> = Vec::new();
        for (daemon, batch) in &orders.batches {
            let Some(running) = known.daemons.get(daemon) else { continue };
            let memory = self.memory.entry(*daemon).or_default();
            let made: Vec<&Step> =
                batch.additions.iter().filter(|it| it.makes_something()).collect();
            learnt |= memory.forget_what_is_in(&made);
            let is_in_new =
                |step: &Step| made.iter().any(|it| it.is_around(&step.context, &step.line));
            let steps = batch.additions.iter().chain(&batch.removals);
            for step in steps.filter(|it| !is_in_new(it)) {
                match memory.learn(*daemon, step, running) {
                    Learnt::Nothing => continue,
                    Learnt::Accepted => {}
                    Learnt::Refused(words) => refused.push((Some(*daemon), step.clone(), words)),
                }
                learnt = true;
            }
        }
        refused.extend(self.known_by_nobody());
        learnt |= !refused.is_empty();
        for (daemon, step, words) in refused {
            self.refuse(daemon, &step, words);
        }
        learnt
    }

    /// Lines that at least one daemon must know, but none does that runs.
    fn known_by_nobody(&self) -> Vec<(Option<Daemon>, Step, String)> {
        if !self.awaited().is_empty() {
            return Vec::new();
        }
        let steps =
            self.unknown_everywhere().map(|(it, words)| (None, Step::add(it), words.clone()));
        steps.collect()
    }

    /// Daemons that answered before and do not now, and may know a line that all others do not.
    pub(super) fn awaited(&self) -> Vec<(Daemon, &String)> {
        let away = self.known.iter().flat_map(|it| &it.away);
        let away = away.filter(|(daemon, _)| self.memory.contains_key(daemon));
        let away: Vec<_> = away.map(|(daemon, why)| (*daemon, why)).collect();
        if away.is_empty() || self.unknown_everywhere().next().is_none() {
            return Vec::new();
        }
        away
    }

    /// Lines that no daemon takes that runs, with the reply of the last one.
    fn unknown_everywhere(&self) -> impl Iterator<Item = (&Statement, &String)> {
        let is_any = self.memory.values().any(|it| !it.knows_all());
        let target = if is_any { self.target() } else { Vec::new() };
        let may_be_for_any = target.into_iter().filter(|it| Daemon::Bgpd.takes(it) == Takes::May);
        may_be_for_any.filter_map(|it| {
            let daemons = self.known.iter().flat_map(|it| it.daemons.keys());
            let words = |daemon| self.memory.get(daemon)?.words_about(it);
            let all: Option<Vec<&String>> = daemons.map(words).collect();
            Some((it, all?.pop()?))
        })
    }
}

/// Whether bgpd lacks many lines of route maps.
fn are_many(target: &[&Statement], running: &BTreeMap<Daemon, Configuration>) -> bool {
    let shown = running.get(&Daemon::Bgpd).into_iter().flat_map(|it| &it.statements);
    let shown: BTreeSet<(&[Arc<str>], &str)> = shown.map(|it| (&*it.context, &*it.line)).collect();
    let is_missing = |it: &&&Statement| {
        is_of_route_map(&it.context, &it.line) && !shown.contains(&(&*it.context, &*it.line))
    };
    target.iter().filter(is_missing).nth(MANY_LINES.saturating_sub(1)).is_some()
}
