//! When is FRR configured, and what happens if it rejects a line, hangs or restarts?
//!
//! A state machine on virtual time: it returns the next action and receives the outcome. The latest wanted
//! configuration wins; what is in force is read back, never assumed. A resource with a line that FRR rejects
//! keeps its last good configuration and is not retried until it changes or FRR restarts; everything else is
//! applied. Knows no socket. Driven by `io::backend`.

mod faults;
mod left;
mod legacy;
mod load;
mod memory;
mod ordering;
mod recording;
mod refusals;
mod settling;
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::configuration::{Configuration, Statement};
use crate::daemon::{Daemon, Takes};
use crate::difference::{Batch, Place, Purpose, Step, is_router};
use crate::owner::Owner;
use crate::record::Record;
use crate::render::{Site, needs_nht};
use faults::unreachable;
use load::Load;
use memory::Memory;
use recording::Recording;
use refusals::Refusals;
use site::{Disturbance, Obstacles, Vacancy};

/// Shortest and longest wait between a failure and the next attempt: FRR restarts within a second, and
/// checking whether it is up is cheap.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// See [`BACKOFF_MIN`].
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Interval at which the running configuration is checked for manual changes without a hint that there are
/// any.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum interval between two hints that are followed.
const HINT_INTERVAL: Duration = Duration::from_millis(500);

/// Time since a fixed starting point.
pub type Now = Duration;

/// The wanted state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Incremented with every change.
    pub generation: u64,
    /// The configuration.
    pub configuration: Configuration,
    /// The configuration may be incomplete: nothing is removed yet.
    pub is_partial: bool,
    /// What a Fairway from before names had an owner would have configured, where FRR has such names.
    pub legacy: Configuration,
}

/// The next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read the running configuration of every daemon: [`Application::read`].
    Read,
    /// Send these lines: [`Application::said`].
    Say(Orders),
    /// End the configuration that bgpd takes for unfinished: [`Application::ended_load`].
    EndLoad,
    /// Do nothing before this time, unless something happens.
    Wait(Now),
}

/// The lines to send to each daemon: all additions in this order, then all removals in reverse order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Orders {
    /// The batches; none is empty.
    pub batches: Vec<(Daemon, Batch)>,
    /// Nothing new is wanted: FRR lost configuration, or an operator changed it by hand.
    pub is_repair: bool,
    /// These, or those that follow, have many lines of route maps.
    pub are_many: bool,
}

/// The running configuration of every daemon.
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// Daemons that answered.
    pub daemons: BTreeMap<Daemon, Configuration>,
    /// Why the others did not answer.
    pub away: BTreeMap<Daemon, String>,
    /// How long ago bgpd started, if that is known.
    pub bgpd_age: Option<Duration>,
    /// bgpd is in a configuration of somebody else that has not ended.
    pub is_loading: bool,
}

/// The outcome of one batch, as far as it was sent.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Lines that were accepted, in order.
    pub taken: Vec<(Daemon, Step)>,
    /// Optional lines that a daemon does not know, with its reply.
    pub unknown: Vec<(Daemon, Step, String)>,
    /// Lines that were accepted with a warning: they may or may not be in effect.
    pub remarks: Vec<(Daemon, Step, String)>,
    /// The operator's own lines that were rejected: the others were sent all the same.
    pub rejected: Vec<(Daemon, Step, String)>,
    /// Daemons that another client has locked, with their replies: they were sent nothing more.
    pub locked: BTreeMap<Daemon, String>,
    /// Why the batch was aborted, if it was.
    pub broken: Option<Broken>,
}

impl Said {
    /// Whether every daemon accepted every line without a warning.
    fn is_all(&self) -> bool {
        self.broken.is_none()
            && self.unknown.is_empty()
            && self.remarks.is_empty()
            && self.rejected.is_empty()
            && self.locked.is_empty()
    }
}

/// Why a batch was aborted.
#[derive(Debug, Clone)]
pub enum Broken {
    /// FRR rejected a line, with its reply.
    Refused(Daemon, Step, String),
    /// A daemon disconnected, or hangs.
    Lost(Daemon, String),
}

/// The state machine.
#[derive(Debug)]
pub struct Application {
    min_interval: Duration,
    owner: Owner,
    mark: String,
    /// Where the neighbours of the default VRF are; unknown before bgpd has answered.
    site: Option<Site>,
    /// The Fairway that this FRR belongs to, if it is another one.
    other_owner: Option<Owner>,
    /// FRR may load its own configuration until then.
    loading_until: Now,
    /// bgpd has restarted since the last read.
    is_new_bgpd: bool,
    vacancy: Vacancy,
    /// All of this owner is removed, beside others as well.
    forgets: bool,
    load: Option<Load>,
    recording: Recording,
    obstacles: Obstacles,
    wanted: Option<Wanted>,
    /// The last configuration in force, including the good version of what was rejected then.
    good: Option<Vec<Statement>>,
    /// FRR's configuration at the first read.
    first: Vec<Statement>,
    known: Option<Running>,
    memory: BTreeMap<Daemon, Memory>,
    refusals: Refusals,
    /// No line is sent before this time.
    say_at: Now,
    /// Time of the next read.
    read_at: Now,
    read_last: Now,
    failures: u32,
    /// Daemons that another client has locked, with their replies, and since how many attempts any is.
    locked: (BTreeMap<Daemon, String>, u32),
    /// The configuration in force is the wanted one, except for what was rejected.
    is_settled: bool,
    in_force: Option<u64>,
    withdrawn: Option<u64>,
    /// Why no neighbor is configured, as of the last time that nothing was left to send, or that bgpd was away.
    unready: Option<String>,
}

impl Application {
    /// Applications are at least `min_interval` apart.
    pub fn new(owner: Owner, min_interval: Duration) -> Self {
        Self {
            min_interval,
            owner,
            mark: owner.mark(),
            site: None,
            other_owner: None,
            loading_until: Now::ZERO,
            is_new_bgpd: false,
            vacancy: Vacancy::default(),
            forgets: false,
            load: None,
            recording: Recording::default(),
            obstacles: Obstacles::default(),
            wanted: None,
            good: None,
            first: Vec::new(),
            known: None,
            memory: BTreeMap::new(),
            refusals: Refusals::default(),
            say_at: Now::ZERO,
            read_at: Now::ZERO,
            read_last: Now::ZERO,
            failures: 0,
            locked: (BTreeMap::new(), 0),
            is_settled: false,
            in_force: None,
            withdrawn: None,
            unready: Some("FRR has not been configured yet".to_owned()),
        }
    }

    /// Everything of this owner is removed, beside other owners as well.
    pub fn forget(&mut self) {
        self.forgets = true;
        self.want(Wanted { generation: 1, ..Wanted::default() });
    }

    /// All lines that FRR lacks, as if what is recorded before them were there.
    pub fn preview(&mut self) -> Orders {
        self.recording.preview();
        self.orders().unwrap_or_default()
    }

    /// Replaces the wanted configuration.
    pub fn want(&mut self, wanted: Wanted) {
        self.refusals.forget_what_changed(&wanted.configuration.statements);
        self.is_settled = false;
        self.wanted = Some(wanted);
        self.choose_site();
    }

    /// Whether FRR has names as they were before they had an owner.
    pub fn has_legacy(&self) -> bool {
        self.known.iter().flat_map(|it| it.daemons.values()).any(legacy::is_in)
    }

    /// Objects of others whose names look like those of such a version: they stay.
    pub fn names_of_others(&self) -> BTreeSet<String> {
        let daemons = self.known.iter().flat_map(|it| &it.daemons);
        daemons.flat_map(|(daemon, it)| legacy::others(it, &self.legacy(*daemon))).collect()
    }

    /// The lines of a daemon that such a version of ours configured.
    fn legacy(&self, daemon: Daemon) -> BTreeSet<Place> {
        let running = self.known.as_ref().and_then(|it| it.daemons.get(&daemon));
        let both = running.zip(self.wanted.as_ref());
        let both = both.filter(|(_, wanted)| !wanted.legacy.statements.is_empty());
        both.map(|(running, wanted)| legacy::lines(daemon, running, &wanted.legacy))
            .unwrap_or_default()
    }

    /// Lines of a daemon that are ours although the record does not say so.
    fn claimed(&self, daemon: Daemon) -> BTreeSet<Place> {
        let mut claimed = self.legacy(daemon);
        let running = self.known.as_ref().and_then(|it| it.daemons.get(&daemon));
        if let Some((running, memory)) = running.zip(self.memory.get(&daemon)) {
            // A router that somebody removed by hand is there again, and empty, once a line of ours was sent to it.
            let has_lines: BTreeSet<&Arc<str>> =
                running.statements.iter().filter_map(|it| it.context.first()).collect();
            let routers = memory.told.iter().filter(|(context, _)| context.is_empty());
            let empty = routers.filter(|(_, it)| is_router(it) && !has_lines.contains(it));
            claimed.extend(empty.cloned());
        }
        claimed
    }

    fn choose_site(&mut self) {
        let bgpd = self.known.as_ref().and_then(|it| it.daemons.get(&Daemon::Bgpd));
        let Some(bgpd) = bgpd else { return };
        let claimed = self.claimed(Daemon::Bgpd);
        let made = |router: &str| {
            self.recording.has_made(router) || claimed.contains(&([].into(), router.into()))
        };
        let site = site::choose(bgpd, made);
        if self.site.replace(site).is_some_and(|before| before != site) {
            // What was good in the other instance is good in this one.
            self.good.iter_mut().flatten().for_each(|it| site::moved(it, site));
        }
    }

    /// A daemon or the connection to it restarted: what it accepted before may be lost, and what it rejected
    /// before it may accept now.
    pub fn connected(&mut self, daemon: Daemon) {
        self.refusals.forget_daemon(daemon);
        if daemon == Daemon::Bgpd {
            self.is_new_bgpd = true;
            self.recording.forget_refusals();
        }
        self.memory.entry(daemon).or_default().begin_anew();
    }

    /// A daemon disconnected while no command was pending.
    pub fn lost(&mut self, now: Now) {
        self.known = None;
        self.is_settled = false;
        self.back_off(now);
    }

    /// The configuration seems to have been changed by hand.
    pub fn hint(&mut self, now: Now) {
        if self.known.is_some() {
            self.read_at = self.read_at.min(now.max(self.read_last.saturating_add(HINT_INTERVAL)));
        }
    }

    /// Where the neighbours of the default VRF are to be: the wanted configuration must fit. Unknown before bgpd has
    /// answered.
    pub fn site(&self) -> Option<Site> {
        self.site
    }

    /// Whether FRR has to be told to reach neighbours by a default route. It does so unasked since 9.1, but not with
    /// the defaults of data centers.
    ///
    /// Unknown while the running configuration is.
    pub fn needs_nht(&self, version: Option<(u8, u8)>) -> Option<bool> {
        let zebra = self.known.as_ref()?.daemons.get(&Daemon::Zebra)?;
        let mut lines = zebra.statements.iter().map(|it| &*it.line);
        let is_datacenter = lines.any(|it| it == "frr defaults datacenter");
        Some(version.is_some_and(|it| needs_nht(it) || is_datacenter))
    }

    /// The generation that is completely in force, with nothing else of ours.
    pub fn in_force(&self) -> Option<u64> {
        self.in_force
    }

    /// The generation beyond which no route is announced, even if other parts of it were rejected.
    pub fn withdrawn(&self) -> Option<u64> {
        self.withdrawn
    }

    /// The next action. Idempotent.
    pub fn next(&mut self, now: Now) -> Next {
        if self.wanted.is_none() {
            return Next::Wait(Now::MAX);
        }
        if now >= self.read_at {
            return Next::Read;
        }
        if self.wanted.as_ref().is_some_and(|it| it.is_partial) && self.has_legacy() {
            // What is not known yet cannot be recognised as ours.
            return Next::Wait(self.read_at);
        }
        if self.has_cut_load(now) {
            return Next::EndLoad;
        }
        if now < self.loading_until {
            return Next::Wait(self.loading_until.min(self.read_at));
        }
        let orders = loop {
            let Some(orders) = self.orders() else { return Next::Wait(self.read_at) };
            // A line that was sent repeatedly and is not shown is shown in another form.
            if !self.learn(&orders) {
                break orders;
            }
        };
        if orders.batches.is_empty() {
            self.settle();
            return Next::Wait(self.read_at);
        }
        if now < self.say_at {
            return Next::Wait(self.say_at.min(self.read_at));
        }
        Next::Say(orders)
    }

    /// Takes the result of [`Next::Read`].
    pub fn read(&mut self, now: Now, running: Running) {
        if self.good.is_none() && self.first.is_empty() {
            let all = running.daemons.values().flat_map(|it| it.statements.iter().cloned());
            self.first = all.collect();
        }
        if let Some(bgpd) = running.daemons.get(&Daemon::Bgpd) {
            let is_new_bgpd = std::mem::take(&mut self.is_new_bgpd);
            let record = Record::read(bgpd, &self.mark);
            self.recording.read(now, record, is_new_bgpd, &running);
            let other_owner = site::other_owner(bgpd, self.owner);
            self.other_owner = other_owner.filter(|_| !self.forgets);
            if is_new_bgpd {
                self.vacancy.reconnected(running.bgpd_age);
            }
            let shown = self.known.as_ref().and_then(|it| it.daemons.get(&Daemon::Bgpd));
            let disturbance = Disturbance::between(shown, bgpd, self.site, running.is_loading);
            // Read again after the wait: there may be a router of somebody else then.
            let wait = self.vacancy.wait(now, bgpd, running.bgpd_age, disturbance);
            if !wait.is_zero() {
                self.loading_until = self.loading_until.max(now.saturating_add(wait));
            }
        }
        let is_due = now >= self.read_last.saturating_add(LOOK_INTERVAL);
        for (daemon, configuration) in &running.daemons {
            let tries_again = is_due && *daemon == Daemon::Mgmtd;
            self.memory.entry(*daemon).or_default().compare(configuration, tries_again);
        }
        let look_at = self.read_load(now, &running);
        if let Some(why) = running.away.get(&Daemon::Bgpd) {
            self.unready = Some(unreachable(Daemon::Bgpd, why));
        }
        let is_missed = running.away.keys().any(|it| self.needs(*it));
        self.known = Some(running);
        self.choose_site();
        self.read_last = now;
        if is_missed {
            self.is_settled = false;
            self.back_off(now);
        } else {
            self.failures = 0;
            self.read_at = now.saturating_add(LOOK_INTERVAL);
            self.read_at = self.read_at.min(look_at.unwrap_or(Now::MAX));
            let late = self.known.as_ref().and_then(|it| self.recording.waits_for_zebra(it));
            self.read_at = self.read_at.min(late.unwrap_or(Now::MAX));
            if now < self.loading_until {
                self.read_at = self.read_at.min(self.loading_until);
            }
        }
    }

    /// Takes the result of [`Next::Say`].
    pub fn said(&mut self, now: Now, said: Said) {
        self.say_at = now.saturating_add(self.min_interval);
        if self.recording.is_writing() {
            self.say_at = now;
        }
        if said.is_all() && !self.recording.is_writing() {
            // What follows may be rejected before this configuration is read back.
            self.good = Some(self.target().into_iter().cloned().collect());
        }
        self.known = None;
        self.read_at = now;
        self.recording.said(now, &said);
        self.load_grew(&said.taken);
        let mut lost = if said.locked.is_empty() { 0 } else { self.locked.1.saturating_add(1) };
        self.locked = (said.locked, lost);
        for (daemon, step) in said.taken {
            if step.makes_something() {
                self.refusals.forget_what_is_in(&step);
            }
            lost = lost.max(self.memory.entry(daemon).or_default().took(daemon, step));
        }
        for (daemon, step, words) in said.unknown {
            self.memory.entry(daemon).or_default().does_not_know(step, words);
        }
        for (daemon, step, words) in said.remarks {
            self.memory.entry(daemon).or_default().remarked(step, words);
        }
        let mut rejected = said.rejected;
        match said.broken {
            Some(Broken::Refused(daemon, step, words)) => rejected.push((daemon, step, words)),
            Some(Broken::Lost(..)) => self.back_off(now),
            None => {}
        }
        // What is in the way, a commit of another client or its lock, is given time.
        if let Some(more) = lost.checked_sub(1) {
            self.say_at = self.say_at.max(now.saturating_add(backoff(more)));
        }
        for (daemon, step, words) in rejected {
            // What was removed before the rejected line does not stay removed any longer than needed.
            self.say_at = now;
            let is_last = self.memory.entry(daemon).or_default().tried(daemon, &step);
            // A single rejection may be due to a concurrent manual change.
            if is_last && !self.recording.is_writing() {
                self.refuse(Some(daemon), &step, words);
            }
        }
    }

    fn back_off(&mut self, now: Now) {
        self.read_at = now.saturating_add(backoff(self.failures));
        self.failures = self.failures.saturating_add(1);
    }

    fn refuse(&mut self, daemon: Option<Daemon>, step: &Step, words: String) {
        if let Some(daemon) = daemon.filter(|_| step.purpose == Purpose::Remove) {
            self.memory.entry(daemon).or_default().stubborn.insert(step.place());
            return;
        }
        let wanted = self.wanted.iter().flat_map(|it| &it.configuration.statements);
        let good = self.good.iter().flatten().chain(&self.first);
        let is_new = !good.into_iter().any(|it| it.origin.is_some() && it.origin == step.origin);
        self.refusals.add(daemon, step, words, is_new, wanted);
    }

    /// Whether any statement is for this daemon and for no other.
    fn needs(&self, daemon: Daemon) -> bool {
        let statements = self.wanted.iter().flat_map(|it| &it.configuration.statements);
        daemon == Daemon::Bgpd || statements.into_iter().any(|it| daemon.takes(it) == Takes::Must)
    }
}

/// The wait after this many failures and one more.
fn backoff(failures: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1 << failures.min(10)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
