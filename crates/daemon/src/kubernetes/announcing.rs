//! What a speaker has told its routers, what it keeps on disk for its next start, and what it shows
//! to whoever asks.
//!
//! The core says what is to be announced; here it goes to the backend, with what the operator wants
//! of the node (a drain), into the log and into the state directory. Knows no API server.

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

/// What the backend was told.
struct Told {
    backend: Arc<dyn Backend>,
    generation: u64,
    /// What was announced last; `None` until something was.
    last: Option<Announced>,
}

impl Told {
    /// The same, or what there is since, from a node in this state.
    fn say(&mut self, drain: DrainState, changed_at: Option<time::Instant>) {
        // Before the first plan there is nobody to tell.
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
    /// Nobody may hold the loop up, so readers have it as it was.
    history: Arc<History>,
    findings: Vec<Finding>,
    stale: Vec<StaleObject>,
    saver: Saver,
    snapshot: Option<Snapshot>,
    assumed_node: Node,
    counters: Arc<ClientCounters>,
    /// What was last asked for, while it is true.
    published: Option<Arc<Published>>,
}

impl Announcing {
    /// Goes on from the state directory; what cannot be read there is said and done without.
    pub(super) fn new(
        options: &HostOptions,
        backend: Arc<dyn Backend>,
        earlier: Option<EarlierRun>,
        counters: Arc<ClientCounters>,
        now: Moment,
    ) -> Self {
        let snapshot = saver::restore_snapshot(&options.state_dir).unwrap_or_else(|error| {
            error!("{error}; nothing is announced before the API server has answered");
            None
        });
        let saver = Saver::start(options.state_dir.clone());
        let draining = Draining::resume(&options.state_dir, &saver, now);
        if earlier.is_none() {
            // A crash right after the first route was announced is a restart, too.
            saver.save_announced(announced(Vec::new()));
        }
        if let Some(snapshot) = &snapshot {
            let objects = snapshot.objects.len();
            info!(objects, "going on from what was known before the restart");
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

    /// What the run before this one knew; once.
    pub(super) fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }

    /// Makes this true on the wire.
    /// `changed_at`: when the object came that this follows from, if it follows from one.
    pub(super) fn announce(&mut self, announced: Announced, changed_at: Option<time::Instant>) {
        if !announced.awaits_sources {
            self.earlier = Vec::new();
        }
        self.told.last = Some(announced);
        self.told.say(self.draining.state(), changed_at);
    }

    /// Says what became other since the last time, and follows the mark of the node.
    /// Answers whether anything did.
    pub(super) fn follow(&mut self, now: Moment, core: &mut SpeakerCore) -> bool {
        // A Node that is not known is not one without a mark.
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

    /// Takes the node out of service, or back into it.
    pub(super) fn obey(&mut self, now: Moment, order: DrainOrder) -> DrainStep {
        self.change_drain(|drain| drain.obey(now, order))
    }

    /// Whether the last order is on disk, once that has been tried.
    pub(super) fn keeps_order(&self) -> impl Future<Output = bool> + use<> {
        self.saver.keeps_drain()
    }

    /// It may be time to withdraw everything.
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

    /// How to go, unless the node or the DaemonSet is going.
    pub(super) fn how_to_leave(&self) -> Leave {
        self.draining.how_to_leave()
    }

    /// What `show` may see.
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

    /// Puts on disk what is known, and what is announced. Returns at once.
    pub(super) fn save(&self, core: &SpeakerCore) {
        // Half of what the API server has is less than what the run before this one knew.
        if core.is_synced() {
            self.saver.save_snapshot(core.snapshot());
        }
        if let Some(last) = &self.told.last {
            let routes = bgp::beside(&last.routes, &self.earlier);
            self.saver.save_announced(announced(routes));
        }
    }

    /// What is wrong or odd with the objects.
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
