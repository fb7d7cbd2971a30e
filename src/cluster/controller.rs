//! The controller in a cluster: who has which address, and what to write of it.
//!
//! Answers what to ask the API server, and which Service status to write. Announces nothing. Any
//! number of controllers may run; the one that holds the Lease writes. Pure: time and replies come
//! in, actions go out.
//!
//! The status of the Services is the only memory. Whoever wins the Lease lists everything anew
//! (what the leader before it wrote last must not be missing), adopts every address that a status
//! names, and only then gives what is missing. It does neither before it can know which addresses
//! were released a moment ago: a router may still send traffic for those to whoever had them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_sessions::time::Instant;
use serde_json::{Value, json};

use crate::allocator::{Allocator, Outcomes, Reason};
use crate::model::{Changes, ClusterIndex, Kind, ObjectName};

use super::belief::Belief;
use super::claims::{Claims, status_addresses};
use super::lease::{Lease, LeaseChange, LeaseReply, LeaseRequest, WRITE_TIMEOUT};
use super::reflector::{Delta, Reply, Request, name_of, version_of};
use super::writes::{Permission, WriteReply, Writes};

/// Everything a controller decides by.
pub const CONTROLLER_KINDS: [Kind; 3] = [Kind::IpAddressPool, Kind::Service, Kind::Namespace];
/// The pool that an address is from, as MetalLB writes it.
pub const POOL_ANNOTATION: &str = "metallb.io/ip-allocated-from-pool";
/// An address is given to another Service when no status has named it for so long: speakers hear of
/// it within a second, and within this after a watch that broke. (`Ours:` until speakers report.)
pub const WITHDRAWAL_BOUND: Duration = Duration::from_secs(10);

/// Who this controller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Names this run of this process and no other.
    pub identity: String,
    /// Services of which class it serves; those without a class when `None`.
    pub load_balancer_class: Option<String>,
    /// For the jitter of pauses.
    pub seed: u64,
}

/// What the controller wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum ControllerAction {
    /// Ask the API server. It takes the place of what was asked about this kind before.
    Ask(Kind, Request),
    /// Read or write the Lease.
    Lease(LeaseRequest),
    /// Write the status of a Service.
    Write(ServiceWrite),
}

/// An update of a Service's status.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceWrite {
    /// The Service.
    pub name: ObjectName,
    /// All of it, with the resourceVersion that was read: whoever wrote since wins.
    pub object: Arc<Value>,
    /// The request is given up then, and must not leave later than that either.
    pub not_after: Instant,
}

/// A leader that knows enough to decide.
#[derive(Debug, Clone)]
struct Tenure {
    allocator: Allocator,
    /// What the allocator has given, as it was after the last change.
    given: BTreeMap<ObjectName, Vec<IpAddr>>,
    /// Addresses that somebody had and may still name or use, and when they were let go.
    let_go: BTreeMap<IpAddr, Instant>,
    /// When to look at which of them.
    checks: BTreeSet<(Instant, IpAddr)>,
}

/// A controller.
#[derive(Debug, Clone)]
pub struct ControllerCore {
    settings: ControllerSettings,
    belief: Belief,
    lease: Lease,
    claims: Claims,
    /// Since when every release was seen.
    watches_since: Option<Instant>,
    /// The Lease is new, so nobody was there to release anything.
    is_first: bool,
    tenure: Option<Tenure>,
    /// Services to be looked at, and those for which it is too early.
    dirty: BTreeSet<ObjectName>,
    postponed: BTreeSet<(Instant, ObjectName)>,
    /// Services whose address another still names, who may not have it any more.
    blocked: BTreeSet<ObjectName>,
    writes: Writes,
}

impl ControllerCore {
    /// A controller that has just started.
    pub fn new(settings: ControllerSettings) -> Self {
        Self {
            belief: Belief::new(&CONTROLLER_KINDS, settings.seed),
            lease: Lease::new(settings.identity.clone(), settings.seed),
            claims: Claims::default(),
            watches_since: None,
            is_first: false,
            tenure: None,
            dirty: BTreeSet::new(),
            postponed: BTreeSet::new(),
            blocked: BTreeSet::new(),
            writes: Writes::default(),
            settings,
        }
    }

    /// What the API server said about a kind.
    pub fn handle(&mut self, now: Instant, kind: Kind, reply: Reply) {
        let (changes, deltas) = self.belief.handle(now, kind, reply);
        if kind == Kind::Service {
            deltas.iter().for_each(|delta| self.note(now, delta));
        }
        if self.watches_since.is_none() && self.belief.is_synced() {
            self.watches_since = Some(now);
        }
        if let Some(tenure) = &mut self.tenure
            && !changes.is_empty()
        {
            let touched = tenure.converge(now, self.belief.index(), &changes);
            self.dirty.extend(touched);
            self.dirty.append(&mut self.blocked);
        }
    }

    /// What was said about the Lease.
    pub fn handle_lease(&mut self, now: Instant, reply: LeaseReply) {
        match self.lease.handle(now, reply) {
            LeaseChange::Won { is_first } => {
                self.is_first = is_first;
                self.tenure = None;
                self.belief.relist();
            }
            LeaseChange::None if self.lease.leads_until(now).is_none() => self.tenure = None,
            LeaseChange::None => {}
        }
    }

    /// What became of a write.
    pub fn handle_write(&mut self, now: Instant, name: &ObjectName, reply: WriteReply) {
        self.writes.end(now, name, reply);
        self.dirty.insert(name.clone());
    }

    /// What to do next; `None` until something happens or [`Self::next_deadline`] has come.
    pub fn poll_action(&mut self, now: Instant) -> Option<ControllerAction> {
        if self.lease.expire(now) {
            self.tenure = None;
        }
        if let Some(request) = self.lease.next_request(now) {
            return Some(ControllerAction::Lease(request));
        }
        if let Some((kind, request)) = self.belief.next_request(now) {
            return Some(ControllerAction::Ask(kind, request));
        }
        self.begin_tenure(now);
        self.note_withdrawn(now);
        self.next_write(now).map(ControllerAction::Write)
    }

    /// When something happens by itself.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let postponed = self.postponed.first().map(|(at, _)| *at);
        let decides = match &self.tenure {
            Some(tenure) => {
                let check = tenure.checks.first().map(|(at, _)| *at);
                check.into_iter().chain(tenure.allocator.next_deadline()).min()
            }
            None => self.begins_at(now),
        };
        let all = [self.lease.next_deadline(), self.belief.next_deadline()];
        all.into_iter().chain([postponed, decides]).flatten().min()
    }

    /// To be done before the process ends: another controller need not wait then.
    pub fn leave(&mut self, now: Instant) -> Option<ControllerAction> {
        self.tenure = None;
        self.lease.release(now).map(ControllerAction::Lease)
    }

    /// Whether it decides.
    pub fn is_leading(&self) -> bool {
        self.tenure.is_some()
    }

    /// Whether the API server says something that is not believed yet.
    pub fn is_in_doubt(&self) -> bool {
        self.belief.is_in_doubt()
    }

    /// The facts in force.
    pub fn index(&self) -> &ClusterIndex {
        self.belief.index()
    }

    /// What became of each Service; `None` while another leads.
    pub fn outcomes(&self) -> Option<&Outcomes> {
        self.tenure.as_ref().map(|tenure| tenure.allocator.outcomes())
    }

    fn note(&mut self, now: Instant, delta: &Delta) {
        match delta {
            Delta::Applied(service) => {
                let name = name_of(service);
                let dropped = self.claims.set(now, &name, status_addresses(service));
                self.dirty.insert(name);
                self.check_later(now, dropped);
            }
            Delta::Deleted(name) => {
                let dropped = self.claims.set(now, name, BTreeSet::new());
                self.writes.forget(name);
                self.check_later(now, dropped);
            }
        }
    }

    /// These addresses are named by one Service less.
    fn check_later(&mut self, now: Instant, dropped: Vec<IpAddr>) {
        self.dirty.append(&mut self.blocked);
        if let Some(tenure) = &mut self.tenure {
            tenure.checks.extend(dropped.into_iter().map(|it| (now + WITHDRAWAL_BOUND, it)));
        }
    }

    /// When a leader may decide. `None` while it cannot be told.
    fn begins_at(&self, now: Instant) -> Option<Instant> {
        self.lease.leads_until(now)?;
        if !self.belief.is_synced() {
            return None;
        }
        let has_no_past = self.is_first && self.claims.is_empty();
        let since = self.watches_since?;
        Some(if has_no_past { since } else { since + WITHDRAWAL_BOUND })
    }

    fn begin_tenure(&mut self, now: Instant) {
        if self.tenure.is_some() || self.begins_at(now).is_none_or(|at| now < at) {
            return;
        }
        let index = self.belief.index();
        let mut allocator = Allocator::new(self.settings.load_balancer_class.clone());
        allocator.set_giving(false);
        let mut let_go = BTreeMap::new();
        for (address, it) in self.claims.all_released() {
            allocator.note_released(now, address, &it.former);
            let_go.insert(address, it.at);
        }
        allocator.converge(now, index, &Changes::default());
        // What a status names and nobody has taken up is nobody's to give: they may not keep it,
        // cannot be read or are not ours, and routers hear of it until no status names it.
        let held: BTreeSet<IpAddr> =
            allocator.outcomes().values().flat_map(|it| it.addresses.iter().copied()).collect();
        for (address, users) in self.claims.named().filter(|(it, _)| !held.contains(it)) {
            users.iter().for_each(|user| allocator.note_released(now, address, user));
            let_go.insert(address, now);
        }
        allocator.set_giving(true);
        let checks =
            let_go.iter().map(|(address, at)| (*at + WITHDRAWAL_BOUND, *address)).collect();
        let mut tenure = Tenure { allocator, given: BTreeMap::new(), let_go, checks };
        tenure.converge(now, index, &Changes::default());
        tenure.remember_all();
        self.tenure = Some(tenure);
        self.dirty.extend(self.belief.seen(Kind::Service).map(|(name, _)| name.clone()));
    }

    /// From when on an address that was let go is free for everybody; `None` while a status of
    /// somebody who should not have it names it.
    fn withdrawn_at(&self, address: IpAddr) -> Option<Instant> {
        let tenure = self.tenure.as_ref()?;
        if !self.claims.users(address).all(|user| tenure.holds(user, address)) {
            return None;
        }
        let named_until = self.claims.released(address).map(|it| it.at);
        let at = tenure.let_go.get(&address).copied().max(named_until)?;
        Some(at + WITHDRAWAL_BOUND)
    }

    /// Addresses whose withdrawal must have reached every router by now.
    fn note_withdrawn(&mut self, now: Instant) {
        let mut is_due = false;
        while let Some((at, address)) = self.due_check(now) {
            match self.withdrawn_at(address) {
                Some(due) if due > at => {
                    let Some(tenure) = &mut self.tenure else { return };
                    tenure.checks.insert((due, address));
                }
                Some(_) => {
                    let Some(tenure) = &mut self.tenure else { return };
                    tenure.let_go.remove(&address);
                    tenure.allocator.address_withdrawn(address);
                    is_due = true;
                }
                // Whoever names it will be seen to do so no more.
                None => {}
            }
        }
        let Some(tenure) = &mut self.tenure else { return };
        if is_due || tenure.allocator.next_deadline().is_some_and(|at| at <= now) {
            let touched = tenure.converge(now, self.belief.index(), &Changes::default());
            self.dirty.extend(touched);
        }
    }

    fn due_check(&mut self, now: Instant) -> Option<(Instant, IpAddr)> {
        let checks = &mut self.tenure.as_mut()?.checks;
        checks.first().filter(|(at, _)| *at <= now)?;
        checks.pop_first()
    }

    fn next_write(&mut self, now: Instant) -> Option<ServiceWrite> {
        self.lease.leads_until(now)?;
        self.tenure.as_ref()?;
        while let Some((at, name)) = self.postponed.first().cloned() {
            if at > now {
                break;
            }
            self.postponed.pop_first();
            self.dirty.insert(name);
        }
        let mut later = BTreeSet::new();
        let mut write = None;
        while !self.writes.are_enough()
            && let Some(name) = self.dirty.pop_first()
        {
            let Some(object) = self.wanted(&name) else { continue };
            let version = version_of(&object).unwrap_or_default();
            match self.writes.may_write(now, &name, version) {
                Permission::Now => {
                    self.writes.begin(now, &name, version);
                    let not_after = now + WRITE_TIMEOUT;
                    write = Some(ServiceWrite { name, object: Arc::new(object), not_after });
                    break;
                }
                Permission::At(at) => {
                    self.postponed.insert((at, name));
                }
                Permission::Later => {
                    later.insert(name);
                }
            }
        }
        self.dirty.extend(later);
        write
    }

    /// The Service as it should be; `None` where that is how it is, or where nothing can be said.
    fn wanted(&mut self, name: &ObjectName) -> Option<Value> {
        let tenure = self.tenure.as_ref()?;
        let seen = self.belief.last_seen(Kind::Service, name)?;
        let is_in_force = self.belief.is_in_force(Kind::Service, name, seen);
        let (mut addresses, mut pool) = match tenure.allocator.outcomes().get(name) {
            Some(outcome) if outcome.reason == Some(Reason::NoPools) || !is_in_force => {
                return None;
            }
            Some(outcome) => (outcome.addresses.clone(), outcome.pool.clone()),
            None if was_ours(seen) => (Vec::new(), None),
            None => return None,
        };
        let names = status_addresses(seen);
        let count = addresses.len();
        addresses.retain(|it| names.contains(it) || self.is_free_for(name, *it));
        if addresses.len() < count {
            self.blocked.insert(name.clone());
        }
        pool = pool.filter(|_| !addresses.is_empty());
        let is_there = names == addresses.iter().copied().collect();
        if is_there && annotation(seen) == pool.as_deref() {
            return None;
        }
        written(seen, &addresses, pool)
    }

    /// Whether everybody whose status names `address` may have it. The allocator may share it with
    /// another as soon as one of its users may not have it any more; that has to be written first.
    fn is_free_for(&self, name: &ObjectName, address: IpAddr) -> bool {
        let mut others = self.claims.users(address).filter(|user| *user != name);
        others.all(|user| self.tenure.as_ref().is_some_and(|it| it.holds(user, address)))
    }
}

/// The Service with these addresses in its status.
fn written(seen: &Value, addresses: &[IpAddr], pool: Option<String>) -> Option<Value> {
    let mut wanted = seen.clone();
    let ingress: Vec<Value> = addresses.iter().map(|it| json!({ "ip": it })).collect();
    let fields = wanted.as_object_mut()?;
    let status = fields.entry("status").or_insert_with(|| json!({}));
    let ingress = if ingress.is_empty() { json!({}) } else { json!({ "ingress": ingress }) };
    status.as_object_mut()?.insert("loadBalancer".to_owned(), ingress);
    let metadata = fields.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    match pool {
        Some(pool) => annotations.as_object_mut()?.insert(POOL_ANNOTATION.into(), pool.into()),
        None => annotations.as_object_mut()?.remove(POOL_ANNOTATION),
    };
    Some(wanted)
}

impl Tenure {
    /// Everything that was given, before anybody asks what changed.
    fn remember_all(&mut self) {
        let outcomes = self.allocator.outcomes().iter().filter(|(_, it)| !it.is_pending());
        self.given = outcomes.map(|(name, it)| (name.clone(), it.addresses.clone())).collect();
    }

    /// Whether the allocator lets `name` have `address`.
    fn holds(&self, name: &ObjectName, address: IpAddr) -> bool {
        let outcome = self.allocator.outcomes().get(name);
        outcome.is_some_and(|it| it.addresses.contains(&address))
    }

    /// Lets the allocator follow, and notes which addresses it took from whom.
    fn converge(
        &mut self,
        now: Instant,
        index: &ClusterIndex,
        changes: &Changes,
    ) -> BTreeSet<ObjectName> {
        let touched = self.allocator.converge(now, index, changes);
        for name in &touched {
            let outcome = self.allocator.outcomes().get(name);
            let addresses = outcome.map(|it| it.addresses.clone()).unwrap_or_default();
            for address in self.given.remove(name).unwrap_or_default() {
                if !addresses.contains(&address) {
                    self.let_go.insert(address, now);
                    self.checks.insert((now + WITHDRAWAL_BOUND, address));
                }
            }
            if !addresses.is_empty() {
                self.given.insert(name.clone(), addresses);
            }
        }
        touched
    }
}

fn annotation(service: &Value) -> Option<&str> {
    service.get("metadata")?.get("annotations")?.get(POOL_ANNOTATION)?.as_str()
}

/// It had an address from us and is of another type now.
fn was_ours(service: &Value) -> bool {
    let kind = service.get("spec").and_then(|spec| spec.get("type")?.as_str());
    kind != Some("LoadBalancer") && annotation(service).is_some()
}
