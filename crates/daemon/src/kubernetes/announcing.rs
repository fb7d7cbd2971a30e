//! What a speaker announces to its routers, what it keeps on disk for its next start, and what it shows.
//!
//! The core decides what to announce; this module hands it to the backend together with the drain state, logs
//! it, and saves it in the state directory. Knows no API server.

use std::sync::Arc;

use fairway_cluster::{Announced, Snapshot, SpeakerCore, Updates};
use fairway_ground::Instant;
use fairway_model::Node;
use fairway_node::drain::{Drain, DrainOrder, DrainStatus, DrainStep, Moment};
use fairway_node::history::History;
use fairway_plan::{self as plan, NodePlan};
use fairway_resources::{Finding, StaleObject};
use fairway_seam::{Backend, Desired, DesiredRoute, DrainState, EarlierRun, Leave};
use fairway_sessions::bgp;
use tokio::time;
use tracing::{error, info};

use crate::host::log_update;
use crate::host::{self, Draining, Published, Saver, announced, log_findings, saver};
use crate::metrics::ClientCounters;
use crate::options::HostOptions;

/// What the backend was given.
struct Told {
    backend: Arc<dyn Backend>,
    generation: u64,
    /// The latest announcements; `None` before the first ones.
    last: Option<Announced>,
}

impl Told {
    /// Hands the latest announcements to the backend, from a node in this drain state.
    fn say(&mut self, drain: DrainState, changed_at: Option<time::Instant>) {
        // Before the first plan nothing is announced.
        let Some(Announced { peers, routes, extras, awaits_sources }) = self.last.clone() else {
            return;
        };
        self.generation = self.generation.saturating_add(1);
        self.backend.apply(Desired {
            generation: self.generation,
            peers,
            routes,
            awaits_sources,
            drain,
            change_age: changed_at.map(|at| at.elapsed()),
            extras,
        });
    }
}

/// See the module.
pub(super) struct Announcing {
    told: Told,
    draining: Draining,
    /// What an earlier run announced, while that may still be in force.
    earlier: Vec<DesiredRoute>,
    /// Shared, since readers must not hold up the loop.
    history: Arc<History>,
    findings: Vec<Finding>,
    stale: Vec<StaleObject>,
    saver: Saver,
    snapshot: Option<Snapshot>,
    assumed_node: Node,
    counters: Arc<ClientCounters>,
    /// The last published state, until it changes.
    published: Option<Arc<Published>>,
}

impl Announcing {
    /// Continues from the state directory; starts empty if that cannot be read.
    pub(super) fn new(
        options: &HostOptions,
        backend: Arc<dyn Backend>,
        earlier: Option<EarlierRun>,
        counters: Arc<ClientCounters>,
        now: Moment,
    ) -> Self {
        let snapshot = saver::restore_snapshot(&options.state_dir).unwrap_or_else(|error| {
            error!("{error}; nothing is announced until the API server answers");
            None
        });
        let saver = Saver::start(options.state_dir.clone());
        let draining = Draining::resume(&options.state_dir, &saver, now);
        if earlier.is_none() {
            // A crash right after the first route was announced counts as a restart as well.
            saver.save_announced(announced(Vec::new()));
        }
        if let Some(snapshot) = &snapshot {
            let objects = snapshot.objects.len();
            info!(objects, "resuming from the objects saved before the restart");
        }
        Self {
            told: Told { backend, generation: 0, last: None },
            draining,
            earlier: earlier.unwrap_or_default().routes,
            history: Arc::default(),
            findings: Vec::new(),
            stale: Vec::new(),
            saver,
            snapshot,
            assumed_node: Node::assumed(&options.node, host::addresses()),
            counters,
            published: None,
        }
    }

    /// The snapshot of the previous run; only once.
    pub(super) fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }

    /// Hands these announcements to the backend. `changed_at`: when the object arrived that caused them, if
    /// one did.
    pub(super) fn announce(&mut self, announced: Announced, changed_at: Option<time::Instant>) {
        if !announced.awaits_sources {
            self.earlier = Vec::new();
        }
        self.told.last = Some(announced);
        self.told.say(self.draining.state(), changed_at);
    }

    /// Logs what changed since the last time, and follows the drain mark of the node. Returns whether
    /// anything changed.
    pub(super) fn follow(&mut self, now: Moment, core: &mut SpeakerCore) -> bool {
        // If the Node is unknown, its mark is unknown as well.
        if let Some(node) = core.index().nodes.get(&self.assumed_node.name) {
            let mark = node.drain;
            self.change_drain(|drain| drain.follow_mark(now, mark));
        }
        let Updates { facts, plan: plans } = core.take_updates();
        let findings = core.findings();
        if facts.is_empty() && plans.is_empty() && findings == self.findings {
            return false;
        }
        self.published = None;
        self.counters.judged(&self.findings, &findings);
        log_findings(&self.findings, &findings);
        self.findings = findings;
        self.stale = core.stale().iter().cloned().map(StaleObject::without_place).collect();
        let nothing = NodePlan::default();
        let plan = core.plan().unwrap_or(&nothing);
        for update in &plans {
            log_update(update, plan, self.draining.state());
        }
        Arc::make_mut(&mut self.history).note(
            now.epoch_seconds,
            facts.services.iter(),
            core.outcomes(),
            plan,
        );
        true
    }

    /// Applies a drain order.
    pub(super) fn obey(&mut self, now: Moment, order: DrainOrder) -> DrainStep {
        self.change_drain(|drain| drain.obey(now, order))
    }

    /// Whether the last order is on disk, once that has been tried.
    pub(super) fn keeps_order(&self) -> impl Future<Output = bool> + use<> {
        self.saver.keeps_drain()
    }

    /// Withdraws everything when that is due.
    pub(super) fn tick(&mut self, now: Moment) {
        self.change_drain(|drain| drain.tick(now));
    }

    fn change_drain(&mut self, act: impl FnOnce(&mut Drain) -> DrainStep) -> DrainStep {
        self.draining.change(&self.saver, act, |state| {
            self.published = None;
            self.told.say(state, None);
        })
    }

    /// When [`Self::tick`] is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.draining.next_deadline()
    }

    /// Whether to leave for a restart or for good, unless the node or the DaemonSet is being deleted.
    pub(super) fn how_to_leave(&self) -> Leave {
        self.draining.how_to_leave()
    }

    /// The state for `show`.
    pub(super) fn published(&mut self, core: &SpeakerCore, sources: &[String]) -> Arc<Published> {
        if let Some(published) = &self.published {
            return Arc::clone(published);
        }
        let index = core.index_shared();
        let node = index.nodes.get(&self.assumed_node.name).unwrap_or(&self.assumed_node).clone();
        let published = Arc::new(Published {
            router_id: plan::router_id(&node),
            node,
            index,
            outcomes: core.outcomes().clone(),
            plan: core.plan().cloned().unwrap_or_default(),
            history: Arc::clone(&self.history),
            findings: self.findings.clone(),
            stale: self.stale.clone(),
            sources: sources.to_vec(),
            drain: self.draining.status(),
        });
        Arc::clone(self.published.insert(published))
    }

    /// Saves the objects and the announced routes. Returns at once.
    pub(super) fn save(&self, core: &SpeakerCore) {
        // An incomplete list holds less than the snapshot of the previous run.
        if core.is_synced() {
            self.saver.save_snapshot(core.snapshot());
        }
        if let Some(last) = &self.told.last {
            let routes = bgp::beside(&last.routes, &self.earlier);
            self.saver.save_announced(announced(routes));
        }
    }

    /// Faults and warnings of the objects.
    pub(super) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether the node is in service.
    pub(super) fn drain_status(&self) -> DrainStatus {
        self.draining.status()
    }

    /// Waits until everything is on disk.
    pub(super) async fn finish(self) {
        self.saver.finish().await;
    }
}
