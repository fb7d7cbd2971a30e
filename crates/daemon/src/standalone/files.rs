//! Files as the source of a node: from changed files to announcements, with addresses assigned here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{self, Duration};

use fairway_allocator::{Allocator, Memory};
use fairway_ground::{Abstention, Instant, Prefix};
use fairway_model::{Changes, ClusterIndex, DeliveryUpdate, Node, ObjectName, Peer};
use fairway_node::drain::Moment;
use fairway_node::withdrawing::Withdrawing;
use fairway_plan::{self as plan, Local, NodePlanner, PlanChanges, PlanOptions};
use fairway_resources::{BackendKind, Catalog};
use fairway_seam::{Announcements, Backend, Leave};
use tokio::sync::{mpsc, watch};
use tracing::{error, info, warn};

use super::health::{Checks, Ended};
use crate::admin::ReloadOrder;
use crate::host::{self, Assigner, GatewayWatch, Published, saver, state_file};
use crate::metrics::ClientCounters;
use crate::node::{Announcing, Owners, Source};
use crate::options::HostOptions;
use crate::proxy::Assigned;
use crate::service::Reading;
use crate::source::{FileBatch, FileSource};

/// How long the start waits for the first health checks.
const CHECKS_LIMIT: Duration = Duration::from_secs(10);

/// What arrives.
pub(super) enum Event {
    /// Files have changed.
    Changed(FileBatch),
    /// The withdrawals that released addresses wait for are written to all neighbours.
    Withdrawn,
    /// A health check has ended.
    Checked(Ended),
    /// The default gateways may have changed.
    GatewaysChanged,
}

/// See the module.
pub(super) struct Files {
    source: FileSource,
    changes: mpsc::Receiver<FileBatch>,
    backend: Arc<dyn Backend>,
    catalog: Catalog,
    index: Arc<ClusterIndex>,
    assigner: Assigner,
    withdrawing: Withdrawing,
    planner: NodePlanner,
    /// This node as a Node object describes it, else `assumed_node`.
    node: Node,
    assumed_node: Node,
    paths: Vec<String>,
    /// Some paths have not been readable since the start: there may be more objects.
    awaits_sources: bool,
    /// This machine has not joined the members, since the first health checks have not ended.
    joins_later: bool,
    /// More may be announced soon, since files or the first health checks are missing.
    awaits_checks: bool,
    /// They are not waited for longer than that.
    checks_until: Option<Instant>,
    /// What the backend was told of both.
    told_awaits: Option<bool>,
    checks: Checks,
    gateways: GatewayWatch,
    /// What this machine has found out about itself.
    local: Local,
    counters: Arc<ClientCounters>,
    /// The service proxy of the same Services, if there is one.
    proxy: Option<watch::Sender<Option<Assigned>>>,
}

impl Files {
    /// Continues from the state directory; starts empty if that cannot be read.
    pub(super) fn new(
        options: &HostOptions,
        config: &[PathBuf],
        catalog: Catalog,
        (source, changes): (FileSource, mpsc::Receiver<FileBatch>),
        backend: Arc<dyn Backend>,
        counters: Arc<ClientCounters>,
        proxy: Option<watch::Sender<Option<Assigned>>>,
    ) -> Self {
        let assumed_node = Node::assumed(&options.node, host::addresses());
        Self {
            source,
            changes,
            backend,
            catalog,
            index: Arc::default(),
            assigner: Assigner::new(restored_allocator(
                &options.state_dir,
                options.load_balancer_class.clone(),
            )),
            withdrawing: Withdrawing::default(),
            planner: NodePlanner::new(
                assumed_node.clone(),
                PlanOptions {
                    attribute_defaults: options.attribute_defaults,
                    ..PlanOptions::default()
                },
            ),
            node: assumed_node.clone(),
            assumed_node,
            paths: config.iter().map(|path| path.display().to_string()).collect(),
            awaits_sources: true,
            joins_later: true,
            awaits_checks: true,
            checks_until: None,
            told_awaits: None,
            checks: Checks::new(),
            gateways: GatewayWatch::default(),
            local: Local::default(),
            counters,
            proxy,
        }
    }

    /// Applies changed files.
    fn files_changed(&mut self, now: Moment, batch: &FileBatch, node: &mut Announcing) {
        for change in &batch.changes {
            change.apply_to(&mut self.catalog);
        }
        // The first batch is complete: restored objects are needed only for files in it.
        self.catalog.forget_unread();
        let resolution = self.catalog.resolve_changes();
        // Drop the shared copy, so that changing the index does not clone it.
        node.forget_published();
        let changes = Arc::make_mut(&mut self.index).follow(resolution.objects);
        self.follow_checks(&changes);
        if self.local.gateways.is_none() && self.index.peers.values().any(Peer::is_default_gateway)
        {
            self.follow_gateways();
        }
        let described = self.index.nodes.get(&self.assumed_node.name);
        self.node = described.unwrap_or(&self.assumed_node).clone();
        self.planner.set_node(self.node.clone());
        node.follow_mark(now, self.node.drain);
        let awaited = self.awaits_sources;
        self.awaits_sources &= self.paths.iter().any(|path| self.catalog.is_unreadable(path));
        if self.checks_until.is_none() || awaited != self.awaits_sources {
            self.checks_until = Some(now.monotonic + CHECKS_LIMIT);
        }
        self.look_at_checks(now);
        self.decide(now, &changes, Some(batch.at), node);
        self.counters.updated(batch.changes.len());
        node.judge(now, resolution.findings, resolution.stale);
        self.counters.loaded();
    }

    /// Checks the Services that have a health check, before they are planned again.
    fn follow_checks(&mut self, changes: &Changes) {
        let is_checked = |name: &ObjectName| {
            let service = self.index.services.get(name);
            service.is_some_and(|it| it.health_check.is_some()) || self.checks.has(name)
        };
        if !changes.services.iter().any(is_checked) {
            return;
        }
        let services = self.index.services.values();
        let wanted = services.filter_map(|it| Some((it.name.clone(), it.health_check.clone()?)));
        let planned = &self.planner.plan().services;
        if self.checks.follow(wanted.collect(), |name| planned.contains_key(name)) {
            self.follow_health();
        }
    }

    fn follow_gateways(&mut self) {
        self.local.gateways = Some(self.gateways.read());
        self.planner.set_local(self.local.clone());
    }

    fn follow_health(&mut self) {
        self.local.failing = self.checks.health().failing();
        self.local.pending = self.checks.health().pending();
        self.planner.set_local(self.local.clone());
    }

    /// Whether the start still waits for the first health checks: a router that keeps routes over a restart must not
    /// take one away before, nor another member leave an address to this one. A check that hangs is not waited for.
    fn look_at_checks(&mut self, now: Moment) {
        // Before the first files there is nothing to wait for, and nothing is known.
        let Some(until) = self.checks_until else { return };
        let is_over = until <= now.monotonic;
        if is_over && (self.joins_later || self.awaits_checks) && !self.local.pending.is_empty() {
            warn!(
                "the first health checks have not ended in time: their Services are not announced"
            );
            self.checks.stop_waiting();
            self.follow_health();
        }
        let is_known = self.local.pending.is_empty();
        self.joins_later &= !is_known;
        self.awaits_checks &= !is_known || self.awaits_sources;
    }

    /// A health check has ended, and perhaps others with it.
    fn checked(&mut self, now: Moment, ended: Ended, node: &mut Announcing) {
        let mut is_other = self.checks.handle(ended);
        while let Some(ended) = self.checks.try_ended() {
            is_other |= self.checks.handle(ended);
        }
        if is_other {
            self.follow_health();
            self.look_at_checks(now);
            self.decide(now, &Changes::default(), None, node);
            node.want_save();
        }
    }

    /// Updates the assignments and the announcements. The backend gets them if routes changed, or if they
    /// are complete now; the first ones always, since they may be empty.
    fn decide(
        &mut self,
        now: Moment,
        changes: &Changes,
        changed_at: Option<time::Instant>,
        node: &mut Announcing,
    ) {
        let other = self.assigner.converge(now.monotonic, &self.index, changes);
        let (outcomes, changes) = (self.assigner.outcomes(), PlanChanges::of(changes, other));
        let update = self.planner.update(&self.index, outcomes, &changes);
        let is_complete_now = self.told_awaits != Some(self.awaits());
        if !node.has_announced() || is_complete_now || update.is_for_routers() {
            self.told_awaits = Some(self.awaits());
            // First the wire, then the log: routes do not wait for a line of text.
            let change_age = changed_at.map(|at| at.elapsed());
            node.announce(self.announcements(), change_age);
        }
        if update.layer2 {
            node.answer_for(&self.planner.plan().layer2);
        }
        node.check_others(self.planner.plan());
        node.log_update(&update, self.planner.plan());
        let services = self.index.services.keys().filter(|_| changes.all);
        // Without a change of theirs a health check or a member has changed them.
        let changed = changes.services.iter().chain(services).chain(update.services.keys());
        node.note(now, changed, outcomes, self.planner.plan());
        self.withdrawing.handed(node.generation(), self.assigner.last_release());
        self.tell_proxy();
        // A crash must not lose this, so it does not wait for the rest of the state.
        node.saver().save_memory(self.assigner.memory_change());
    }

    /// The service proxy serves what is assigned here.
    fn tell_proxy(&self) {
        let Some(proxy) = &self.proxy else { return };
        let outcomes = self.assigner.outcomes().iter();
        let assigned: BTreeMap<_, _> = outcomes
            .filter(|(_, it)| !it.addresses.is_empty())
            .map(|(name, it)| (name.clone(), it.addresses.clone()))
            .collect();
        proxy.send_if_modified(|told| {
            let is_other = told.as_deref() != Some(&assigned);
            if is_other {
                *told = Some(Arc::new(assigned));
            }
            is_other
        });
    }

    fn announcements(&self) -> Announcements {
        self.planner.plan().announcements(self.awaits())
    }

    /// Whether more may be announced soon.
    fn awaits(&self) -> bool {
        self.awaits_sources || self.awaits_checks
    }
}

impl Source for Files {
    type Event = Event;

    async fn event(&mut self) -> Option<Event> {
        let awaited = self.withdrawing.awaited();
        tokio::select! {
            batch = self.changes.recv() => {
                if batch.is_none() {
                    error!("the file watcher ended");
                }
                batch.map(Event::Changed)
            }
            () = withdrawn(&*self.backend, awaited) => Some(Event::Withdrawn),
            ended = self.checks.ended() => Some(Event::Checked(ended)),
            () = self.gateways.changed() => Some(Event::GatewaysChanged),
        }
    }

    fn handle(&mut self, now: Moment, event: Event, node: &mut Announcing) -> Reading {
        match event {
            Event::Checked(ended) => {
                self.checked(now, ended, node);
                Reading::AsBefore
            }
            Event::GatewaysChanged => {
                self.follow_gateways();
                self.decide(now, &Changes::default(), None, node);
                Reading::AsBefore
            }
            Event::Changed(batch) => {
                node.want_save();
                self.files_changed(now, &batch, node);
                // The first batch is complete; an empty one means that all files have been read again.
                if batch.changes.is_empty() { Reading::Again } else { Reading::Complete }
            }
            Event::Withdrawn => {
                node.want_save();
                // Other Services may get these addresses.
                let released = self.withdrawing.reached();
                if released.is_some_and(|released| self.assigner.withdrawn(released)) {
                    self.decide(now, &Changes::default(), None, node);
                }
                Reading::AsBefore
            }
        }
    }

    fn act(&mut self, _: Moment, _: &mut Announcing) {}

    fn follow_interfaces(&mut self, now: Moment, names: &BTreeSet<String>, node: &mut Announcing) {
        self.local.interfaces = Some(names.clone());
        self.planner.set_local(self.local.clone());
        if node.has_announced() {
            self.decide(now, &Changes::default(), None, node);
        }
    }

    fn follow_pod_blocks(
        &mut self,
        now: Moment,
        blocks: &BTreeMap<Prefix, String>,
        node: &mut Announcing,
    ) {
        self.local.pod_blocks.clone_from(blocks);
        self.planner.set_local(self.local.clone());
        if node.has_announced() {
            self.decide(now, &Changes::default(), None, node);
        }
    }

    fn follow_deliveries(&mut self, now: Moment, update: DeliveryUpdate, node: &mut Announcing) {
        let services = self.planner.follow_data_path(update);
        if node.has_announced() {
            self.decide(now, &Changes { services, ..Changes::default() }, None, node);
        }
    }

    fn abstentions(&self) -> &BTreeSet<Abstention> {
        self.planner.abstentions()
    }

    fn follow_members(&mut self, now: Moment, owners: &Owners, node: &mut Announcing) {
        self.planner.set_members(Some(owners));
        // Before the files were read there is nothing to decide.
        if node.has_announced() {
            self.decide(now, &Changes::default(), None, node);
        }
    }

    fn has_plan(&self, node: &Announcing) -> bool {
        node.has_announced() && !self.joins_later
    }

    fn member_addresses(&self) -> Option<&BTreeSet<IpAddr>> {
        None
    }

    fn next_deadline(&self, _: Instant) -> Option<Instant> {
        let checks_until = self.checks_until.filter(|_| !self.local.pending.is_empty());
        let checks_until = checks_until.filter(|_| self.joins_later || self.awaits_checks);
        [self.assigner.next_deadline(), checks_until].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Moment, node: &mut Announcing) {
        let before = (self.joins_later, self.awaits_checks);
        self.look_at_checks(now);
        let has_waited = before != (self.joins_later, self.awaits_checks);
        if has_waited
            || self.assigner.next_deadline().is_some_and(|deadline| deadline <= now.monotonic)
        {
            self.decide(now, &Changes::default(), None, node);
        }
    }

    fn reread(&mut self) -> bool {
        info!("reading all files again");
        self.source.reread();
        true
    }

    fn reload(&mut self, order: ReloadOrder) -> Result<String, String> {
        if !order.accepts_empty {
            self.reread();
            return Ok("reading all files again".to_owned());
        }
        info!("reading all files again; folders without files are taken for empty");
        self.source.accept_empty();
        Ok("reading all files again; folders without files are taken for empty".to_owned())
    }

    fn describe(&self, node: &Announcing) -> Published {
        Published {
            node: self.node.clone(),
            router_id: plan::router_id(&self.node),
            index: Arc::clone(&self.index),
            outcomes: self.assigner.outcomes().clone(),
            plan: self.planner.plan().clone(),
            history: Arc::clone(node.history()),
            findings: node.findings().to_vec(),
            stale: node.stale().to_vec(),
            sources: self.paths.clone(),
            outage: None,
            layer2: node.layer2(),
            members: node.members(),
            health: self.checks.health().verdicts(),
            is_reading: self.source.is_at_work(),
            drain: node.drain_status(),
        }
    }

    fn save(&self, node: &Announcing) {
        node.saver().save_resources(self.catalog.last_good());
    }

    async fn how_to_leave(&self) -> Leave {
        Leave::ForRestart
    }
}

/// Waits until everything that is gone in `generation` is withdrawn; forever if there is no generation.
/// Cancel-safe.
async fn withdrawn(backend: &dyn Backend, generation: Option<u64>) {
    match generation {
        Some(generation) => backend.withdrawn(generation).await,
        None => std::future::pending().await,
    }
}

fn restored_allocator(directory: &Path, load_balancer_class: Option<String>) -> Allocator {
    let memory = state_file::load(directory).unwrap_or_else(|error| {
        error!("{error}; assigning addresses from scratch");
        Memory::default()
    });
    Allocator::restore(load_balancer_class, memory)
}

pub(super) fn restored_catalog(directory: &Path, backend: BackendKind) -> Catalog {
    let mut catalog = Catalog::for_backend(backend);
    if let Err(error) = saver::restore(directory, &mut catalog) {
        error!("{error}; last good versions of faulty objects are not known");
    }
    catalog
}
