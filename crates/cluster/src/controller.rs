//! The controller in a cluster: assigns addresses to Services, and writes their status.
//!
//! Returns the requests to the API server, and the writes of Service status. Announces nothing. Any number of
//! controllers may run; the one that holds the Lease writes. Pure: time and replies come in, actions go out.
//!
//! The status of the Services is the memory, and one line in the Lease (`recorded`). The controller that
//! acquires the Lease lists everything again (so that the last writes of the previous leader are included),
//! adopts every address in a status, and only then assigns missing ones. It withholds those that the line
//! names and no status has: a router may still send their traffic to the Services that had them.

mod events;
mod lack;
mod own_state;
mod pool_statuses;
mod recorded;
mod service_status;
mod tenure;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use events::Events;
use fairway_allocator::Outcomes;
use fairway_ground::Instant;
use fairway_model::{ClusterIndex, Kind, ObjectName};
use fairway_resources::{BackendKind, Finding};
use lack::Lack;
use own_state::OwnState;
use pool_statuses::PoolStatuses;
use recorded::Recorded;
use serde_json::Value;
use service_status::{Said, Wish, is_to_be_served, was_ours};
use tenure::Tenure;

use super::admission::{Beside, Judged, judge};
use super::belief::{Belief, Held};
use super::claims::{Claims, status_addresses};
use super::configuration_state::fault_summary;
use super::foresight::{DisruptionLimit, Foresight};
use super::lease::{Lease, LeaseChange, LeaseReply, LeaseRequest, WRITE_TIMEOUT};
use super::references::{FORESIGHT_KINDS, REFERENCE_KINDS, References};
use super::reflector::{Delta, Reply, Request, name_of, version_of};
use super::write::{EventRecord, ObjectWrite, OwnPod, WriteHow, WrittenKind};
use super::writes::{Permission, WRITES_MAX, WriteReply, Writes};

pub use lack::ADDRESS_CONDITION;
pub use service_status::POOL_ANNOTATION;

/// The kinds that a controller decides by.
pub const CONTROLLER_KINDS: [Kind; 7] = [
    Kind::IpAddressPool,
    // For the rules between these and the pools.
    Kind::BgpAdvertisement,
    Kind::Layer2Advertisement,
    Kind::Community,
    Kind::Node,
    Kind::Service,
    Kind::Namespace,
];
/// An address is assigned to another Service once no status has claimed it for this long: speakers receive
/// the change within a second, and within this time after a broken watch. (`Ours:` until speakers report.)
pub const WITHDRAWAL_BOUND: Duration = Duration::from_secs(10);

/// The identity and the settings of this controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Identifies this run of this process.
    pub identity: String,
    /// What the identities of earlier runs begin with that have ended for certain: those in the same Pod.
    pub predecessors: Option<String>,
    /// The loadBalancerClass of the Services to serve; those without a class when `None`.
    pub load_balancer_class: Option<String>,
    /// The namespace of the pools and of its ConfigurationState.
    pub namespace: String,
    /// The Pod it runs in, if known: its ConfigurationState is deleted with the Pod.
    pub pod: Option<OwnPod>,
    /// It answers AdmissionReviews, and reads what only they need.
    pub answers_reviews: bool,
    /// How much a write may disrupt that it answers for; any amount when `None`.
    pub disruption_limit: Option<DisruptionLimit>,
    /// The Unix time at [`Instant::ZERO`], for the times in statuses.
    pub epoch_seconds: u64,
    /// How long objects of a kind stay that the API server lacks all at once.
    pub empty_list_hold: Duration,
    /// For the jitter of pauses.
    pub seed: u64,
}

/// An action for the edge.
#[derive(Debug, Clone, PartialEq)]
pub enum ControllerAction {
    /// Send a request about a kind, in place of the earlier one.
    Ask(Kind, Request),
    /// Read or write the Lease.
    Lease(LeaseRequest),
    /// Write an object.
    Write(ObjectWrite),
    /// Post an Event.
    Event(EventRecord),
}

/// A controller.
#[derive(Debug, Clone)]
pub struct ControllerCore {
    settings: ControllerSettings,
    belief: Belief,
    references: Option<References>,
    foresight: Option<Foresight>,
    lease: Lease,
    claims: Claims,
    /// Since when every release has been observed.
    watches_since: Option<Instant>,
    /// The Lease is new, so no earlier leader can have released anything.
    is_first: bool,
    /// The addresses that the Lease names.
    recorded: Recorded,
    /// Services that get an address as soon as the Lease names it.
    unrecorded: BTreeSet<ObjectName>,
    tenure: Option<Tenure>,
    /// Services to check now, and those to check later.
    dirty: BTreeSet<ObjectName>,
    postponed: BTreeSet<(Instant, ObjectName)>,
    /// Services that wait for an address which another Service still claims without a right to it.
    blocked: BTreeSet<ObjectName>,
    writes: Writes,
    events: Events,
    pool_statuses: PoolStatuses,
    own_state: OwnState,
}

impl ControllerCore {
    /// A controller that has just started.
    pub fn new(settings: ControllerSettings) -> Self {
        let limit = settings.disruption_limit.clone().filter(|_| settings.answers_reviews);
        let kinds: &[Kind] = if limit.is_some() { &FORESIGHT_KINDS } else { &REFERENCE_KINDS };
        let class = settings.load_balancer_class.clone();
        Self {
            belief: Belief::new(
                &CONTROLLER_KINDS,
                BackendKind::Native,
                settings.empty_list_hold,
                settings.seed,
            ),
            references: settings.answers_reviews.then(|| References::new(kinds, settings.seed)),
            foresight: limit.map(|limit| Foresight::new(limit, class)),
            lease: Lease::new(
                settings.identity.clone(),
                settings.predecessors.clone(),
                settings.seed,
            ),
            claims: Claims::default(),
            watches_since: None,
            is_first: false,
            recorded: Recorded::default(),
            unrecorded: BTreeSet::new(),
            tenure: None,
            dirty: BTreeSet::new(),
            postponed: BTreeSet::new(),
            blocked: BTreeSet::new(),
            writes: Writes::new(WRITES_MAX),
            events: Events::default(),
            pool_statuses: PoolStatuses::default(),
            own_state: OwnState::new(settings.namespace.clone(), settings.pod.clone()),
            settings,
        }
    }

    /// Handles an answer about a kind.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) {
        if !CONTROLLER_KINDS.contains(&kind) {
            let deltas = self.references.as_mut().map(|it| it.handle(now, kind, reply));
            if let Some(foresight) = &mut self.foresight {
                foresight.follow(kind, &deltas.unwrap_or_default());
            }
            return;
        }
        let (changes, deltas) = self.belief.handle(now, kind, reply);
        if let Some(foresight) = &mut self.foresight {
            foresight.follow(kind, &deltas);
        }
        match kind {
            Kind::Service => deltas.iter().for_each(|delta| self.note(now, delta)),
            Kind::IpAddressPool => self.note_pools(now, &deltas),
            _ => {}
        }
        if kind != Kind::Service && !deltas.is_empty() && self.tenure.is_some() {
            let (summary, since) = (self.summary(), self.epoch_seconds(now));
            self.own_state.set(now, summary, since);
        }
        if self.watches_since.is_none() && self.belief.is_synced() {
            self.watches_since = Some(now);
        }
        if let Some(tenure) = &mut self.tenure
            && !changes.is_empty()
        {
            let touched = tenure.converge(now, self.belief.index(), &changes);
            self.look_at(now, touched);
        }
    }

    /// Handles an answer about the Lease.
    pub fn handle_lease(&mut self, now: Instant, reply: LeaseReply) {
        match reply {
            LeaseReply::Is(_) => self.recorded.written(),
            LeaseReply::Missing | LeaseReply::Conflict | LeaseReply::Failed => {
                self.recorded.in_doubt();
            }
        }
        self.dirty.append(&mut self.unrecorded);
        match self.lease.handle(now, reply) {
            LeaseChange::Won { is_first } => {
                self.is_first = is_first;
                self.recorded = Recorded::begin(self.lease.addresses());
                self.tenure = None;
                self.belief.relist();
            }
            LeaseChange::None if self.lease.leads_until(now).is_none() => self.tenure = None,
            LeaseChange::None => {}
        }
    }

    /// Handles the result of a write.
    pub fn handle_write(
        &mut self,
        now: Instant,
        kind: WrittenKind,
        name: &ObjectName,
        reply: WriteReply,
    ) {
        match kind {
            WrittenKind::Service => {
                self.writes.end(now, name, reply);
                match reply {
                    WriteReply::Done => self.written(name),
                    WriteReply::Conflict | WriteReply::Missing => self.events.forget(name),
                    WriteReply::Failed => {} // It may have been written: the watch shows that.
                }
                self.look_at_one(name.clone());
            }
            WrittenKind::IpAddressPool => self.pool_statuses.end(now, name, reply),
            WrittenKind::ConfigurationState => self.own_state.end(now, reply),
            // Other components write these.
            WrittenKind::ServiceBgpStatus
            | WrittenKind::ServiceL2Status
            | WrittenKind::BgpSessionState => {}
        }
    }

    /// The next action; `None` until an event arrives or [`Self::next_deadline`] has passed.
    pub fn poll_action(&mut self, now: Instant) -> Option<ControllerAction> {
        if self.lease.expire(now) {
            self.tenure = None;
        }
        if let Some(request) = self.next_lease_request(now) {
            return Some(ControllerAction::Lease(request));
        }
        if let Some((kind, request)) = self.belief.next_request(now) {
            return Some(ControllerAction::Ask(kind, request));
        }
        if let Some((kind, request)) = self.references.as_mut().and_then(|it| it.next_request(now))
        {
            return Some(ControllerAction::Ask(kind, request));
        }
        self.begin_tenure(now);
        self.note_withdrawn(now);
        if let Some(event) = self.events.next() {
            return Some(ControllerAction::Event(event));
        }
        if let Some(write) = self.next_write(now) {
            return Some(ControllerAction::Write(write));
        }
        // A status may wait for the Lease to name its address.
        self.next_lease_request(now).map(ControllerAction::Lease)
    }

    /// When the next action is due without an event.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let postponed = self.postponed.first().map(|(at, _)| *at);
        let decides = match &self.tenure {
            Some(tenure) => {
                let writes = [self.pool_statuses.next_deadline(), self.own_state.next_deadline()];
                writes.into_iter().chain([postponed, tenure.next_deadline()]).flatten().min()
            }
            None => self.begins_at(now),
        };
        let references = self.references.as_ref().and_then(References::next_deadline);
        let all = [self.lease.next_deadline(), self.belief.next_deadline(), references, decides];
        all.into_iter().flatten().min()
    }

    /// The last action before the process ends: releases the Lease, so that another controller need not wait.
    pub fn leave(&mut self, now: Instant) -> Option<ControllerAction> {
        let addresses = self.addresses_to_record(now);
        self.tenure = None;
        self.lease.release(now, addresses).map(ControllerAction::Lease)
    }

    fn next_lease_request(&mut self, now: Instant) -> Option<LeaseRequest> {
        let Self { lease, recorded, tenure, claims, .. } = self;
        let kept = lease.addresses().map(str::to_owned);
        lease.next_request(now, || match tenure {
            Some(tenure) => recorded.send(tenure.addresses(now, claims)),
            // What an earlier leader left, until this one has read it.
            None => kept,
        })
    }

    /// The line for the Lease at the end.
    fn addresses_to_record(&mut self, now: Instant) -> Option<String> {
        match &self.tenure {
            Some(tenure) => self.recorded.send(tenure.addresses(now, &self.claims)),
            None => self.lease.addresses().map(str::to_owned),
        }
    }

    /// Whether it leads and decides.
    pub fn is_leading(&self) -> bool {
        self.tenure.is_some()
    }

    /// Whether an answer of the API server is not trusted yet.
    pub fn is_in_doubt(&self) -> bool {
        self.belief.is_in_doubt()
    }

    /// The kinds whose objects stay although the API server has none.
    pub fn held(&self) -> Vec<Held> {
        self.belief.held()
    }

    /// Whether every kind was listed since the start.
    pub fn is_synced(&self) -> bool {
        self.belief.is_synced()
    }

    /// The answer to an AdmissionReview, whether it leads or not.
    pub fn judge(&mut self, review: &Value) -> Judged {
        let in_force = self.belief.complete();
        let is_known =
            in_force.is_some() && self.references.as_ref().is_some_and(References::is_synced);
        let beside = Beside {
            in_force,
            references: self.references.as_ref(),
            foresight: self.foresight.as_mut().filter(|_| is_known),
        };
        judge(beside, review, &self.settings.namespace)
    }

    /// Faults and warnings of the objects.
    pub fn findings(&self) -> Vec<Finding> {
        self.belief.findings()
    }

    /// The index of the objects in force.
    pub fn index(&self) -> &ClusterIndex {
        self.belief.index()
    }

    /// The outcome of each Service; `None` while another controller leads.
    pub fn outcomes(&self) -> Option<&Outcomes> {
        self.tenure.as_ref().map(Tenure::outcomes)
    }

    fn note(&mut self, now: Instant, delta: &Delta) {
        match delta {
            Delta::Applied(service) => {
                let service = service.value();
                let name = name_of(&service);
                let dropped = self.claims.set(now, &name, status_addresses(&service));
                self.look_at_one(name);
                self.check_later(now, dropped);
            }
            Delta::Deleted(name) => {
                let dropped = self.claims.set(now, name, BTreeSet::new());
                self.writes.forget(name);
                self.events.deleted(name);
                self.check_later(now, dropped);
            }
        }
    }

    /// The pools changed, or their statuses.
    fn note_pools(&mut self, now: Instant, deltas: &[Delta]) {
        for delta in deltas {
            if let Delta::Deleted(name) = delta {
                self.pool_statuses.forget(name);
            }
        }
        if !deltas.is_empty() {
            self.pool_statuses.stir(now);
        }
    }

    /// One Service less claims each of these addresses.
    fn check_later(&mut self, now: Instant, dropped: Vec<IpAddr>) {
        if dropped.is_empty() {
            return;
        }
        self.dirty.append(&mut self.blocked);
        if let Some(tenure) = &mut self.tenure {
            tenure.check_later(now, dropped);
        }
    }

    /// The Service changed. A new leader checks all of them anyway.
    fn look_at_one(&mut self, name: ObjectName) {
        if self.tenure.is_some() {
            self.dirty.insert(name);
        }
    }

    /// The outcome of these Services changed.
    fn look_at(&mut self, now: Instant, touched: BTreeSet<ObjectName>) {
        if !touched.is_empty() {
            self.pool_statuses.stir(now);
            self.dirty.extend(touched);
            self.dirty.append(&mut self.blocked);
        }
    }

    /// When a leader may decide. `None` while that is unknown.
    fn begins_at(&self, now: Instant) -> Option<Instant> {
        self.lease.leads_until(now)?;
        if !self.belief.is_synced() {
            return None;
        }
        let has_no_past = self.is_first && self.claims.is_empty();
        let is_known = has_no_past || self.recorded.stored().is_some();
        let since = self.watches_since?;
        Some(if is_known { since } else { since + WITHDRAWAL_BOUND })
    }

    fn begin_tenure(&mut self, now: Instant) {
        if self.tenure.is_some() || self.begins_at(now).is_none_or(|at| now < at) {
            return;
        }
        let class = self.settings.load_balancer_class.clone();
        let left = self.recorded.stored();
        self.tenure = Some(Tenure::begin(now, class, &self.claims, left, self.belief.index()));
        self.events.begin_tenure();
        self.pool_statuses.stir(now);
        self.own_state.begin_tenure(now, self.summary(), self.epoch_seconds(now));
        self.dirty.extend(self.belief.names(Kind::Service).cloned());
    }

    /// Addresses that must have been withdrawn from every router by now.
    fn note_withdrawn(&mut self, now: Instant) {
        let Some(tenure) = &mut self.tenure else { return };
        let touched = tenure.note_withdrawn(now, &self.claims, self.belief.index());
        self.look_at(now, touched);
    }

    /// The faults of the objects that it decides by.
    fn summary(&self) -> String {
        fault_summary(&self.belief.findings())
    }

    fn epoch_seconds(&self, now: Instant) -> u64 {
        self.settings.epoch_seconds.saturating_add(now.since(Instant::ZERO).as_secs())
    }

    fn next_write(&mut self, now: Instant) -> Option<ObjectWrite> {
        self.lease.leads_until(now)?;
        let outcomes = self.tenure.as_ref()?.outcomes();
        if let Some(write) = self.pool_statuses.next_write(now, &self.belief, outcomes) {
            return Some(write);
        }
        self.own_state.next_write(now).or_else(|| self.next_service_write(now))
    }

    fn next_service_write(&mut self, now: Instant) -> Option<ObjectWrite> {
        while let Some((at, name)) = self.postponed.first().cloned() {
            if at > now {
                break;
            }
            self.postponed.pop_first();
            self.dirty.insert(name);
        }
        while !self.writes.are_enough()
            && let Some(name) = self.dirty.pop_first()
        {
            let Some(seen) = self.belief.last_seen(Kind::Service, &name) else { continue };
            let Some(wish) = self.wanted(&name, &seen) else {
                self.events.forget(&name);
                continue;
            };
            let is_recorded = |it: &IpAddr| self.recorded.names(*it);
            if !wish.addresses.iter().all(is_recorded) {
                self.unrecorded.insert(name);
                self.lease.hurry(now);
                continue;
            }
            let Some(patch) = wish.patch(&seen, self.epoch_seconds(now)) else {
                if self.events.is_so(&name, &wish) {
                    self.written(&name);
                }
                continue;
            };
            let version = version_of(&seen).unwrap_or_default();
            match self.writes.may_write(now, &name, version) {
                Permission::Now => {
                    self.writes.begin(now, &name, version);
                    let given_up = self.tenure.as_ref().and_then(|it| it.given_up(&name));
                    self.events.wait(&name, &seen, wish, given_up);
                    let (kind, how) = (WrittenKind::Service, WriteHow::MergeStatus(patch));
                    return Some(ObjectWrite { kind, name, how, not_after: now + WRITE_TIMEOUT });
                }
                Permission::At(at) => {
                    self.postponed.insert((at, name));
                }
                // Its next version, and the answer to a write, mark it dirty.
                Permission::Later => {}
            }
        }
        None
    }

    /// The Service has the desired status.
    fn written(&mut self, name: &ObjectName) {
        self.events.written(name);
        if let Some(tenure) = &mut self.tenure {
            tenure.forget_why(name);
        }
    }

    /// The desired status of the Service; `None` if it is undecided.
    fn wanted(&mut self, name: &ObjectName, seen: &Value) -> Option<Wish> {
        let tenure = self.tenure.as_ref()?;
        let class = self.settings.load_balancer_class.as_deref();
        let as_seen = Wish::as_seen(seen);
        if !self.belief.is_in_force(Kind::Service, name) && is_to_be_served(seen, class) {
            // A faulty Service keeps what it has.
            let faults = self.belief.faults_of_service(name);
            let lack = Lack::of_broken(name, faults, !as_seen.addresses.is_empty()).into();
            return Some(Wish { lack, ..as_seen });
        }
        let Some(outcome) = tenure.outcomes().get(name) else {
            return was_ours(seen).then(Wish::default);
        };
        self.events.warn_of_old_names(name, seen);
        let lack: Said = outcome.reason.as_ref().and_then(|it| Lack::of(name, it)).into();
        if outcome.is_unchecked() {
            // The loss of a pool is far more often an accident than intended.
            let is_pending = as_seen.addresses.is_empty();
            return Some(if is_pending { Wish { lack, ..as_seen } } else { as_seen });
        }
        let is_free = |it: &IpAddr| {
            as_seen.addresses.contains(it) || tenure.is_free_for(name, *it, &self.claims)
        };
        let addresses: Vec<IpAddr> = outcome.addresses.iter().copied().filter(is_free).collect();
        let pool = outcome.pool.clone().filter(|_| !addresses.is_empty());
        if addresses.len() < outcome.addresses.len() {
            self.blocked.insert(name.clone());
            // It lacks only an address that another Service is about to release.
            return Some(Wish { addresses, pool, ..as_seen });
        }
        Some(Wish { addresses, pool, lack })
    }
}
