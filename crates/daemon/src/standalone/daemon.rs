//! The state of `fairway run`'s loop, from changed files to changed routes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time;

use fairway_allocator::{Allocator, Memory};
use fairway_ground::Instant;
use fairway_model::{Changes, ClusterIndex, Node, Object};
use fairway_node::drain::{Drain, DrainOrder, DrainStep, Moment};
use fairway_node::history::History;
use fairway_node::withdrawing::Withdrawing;
use fairway_plan::{self as plan, PlanChanges};
use fairway_resources::{BackendKind, Catalog, Finding, StaleObject};
use fairway_seam::{Backend, DesiredRoute, EarlierRun, Leave};
use fairway_sessions::bgp;
use tracing::error;

use crate::host::Announcer;
use crate::host::{self, Draining, Enquirer, Published, Saver, announced, log_findings, saver};
use crate::host::{Assigner, state_file};
use crate::metrics::{ClientCounters, HttpListen, NodeMetrics, Server};
use crate::options::HostOptions;
use crate::source::FileBatch;

/// The state of the daemon.
pub(super) struct Daemon {
    catalog: Catalog,
    /// The objects of the index, as the catalog returned them.
    objects: Vec<Arc<Object>>,
    index: Arc<ClusterIndex>,
    assigner: Assigner,
    withdrawing: Withdrawing,
    announcer: Announcer,
    /// This node as a Node object describes it, else `assumed_node`.
    node: Node,
    assumed_node: Node,
    /// Shared, since readers must not hold up the loop.
    history: Arc<History>,
    findings: Vec<Finding>,
    stale: Vec<StaleObject>,
    sources: Vec<String>,
    draining: Draining,
    /// Some sources could not be read since the start: there may be more objects than are known.
    awaits_sources: bool,
    /// What an earlier run announced, while that may still be in force.
    earlier: Vec<DesiredRoute>,
    saver: Saver,
    counters: Arc<ClientCounters>,
    /// The last published state, until it changes.
    published: Option<Arc<Published>>,
}

impl Daemon {
    /// Continues from the state directory; starts empty if that cannot be read.
    pub(super) fn new(
        options: &HostOptions,
        config: &[PathBuf],
        backend: Arc<dyn Backend>,
        earlier: Option<EarlierRun>,
        now: Moment,
    ) -> Self {
        let assumed_node = Node::assumed(&options.node, host::addresses());
        let saver = Saver::start(options.state_dir.clone());
        let draining = Draining::resume(&options.state_dir, &saver, now);
        if earlier.is_none() {
            // A crash right after the first route was announced counts as a restart as well.
            saver.save_announced(announced(Vec::new()));
        }
        Self {
            catalog: restored_catalog(&options.state_dir, options.backend.kind()),
            objects: Vec::new(),
            index: Arc::default(),
            assigner: Assigner::new(restored_allocator(
                &options.state_dir,
                options.load_balancer_class.clone(),
            )),
            withdrawing: Withdrawing::default(),
            announcer: Announcer::new(backend, assumed_node.clone(), draining.state()),
            node: assumed_node.clone(),
            assumed_node,
            history: Arc::default(),
            findings: Vec::new(),
            stale: Vec::new(),
            sources: config.iter().map(|path| path.display().to_string()).collect(),
            awaits_sources: true,
            earlier: earlier.unwrap_or_default().routes,
            draining,
            saver,
            counters: Arc::default(),
            published: None,
        }
    }

    /// Applies changed files.
    pub(super) fn files_changed(&mut self, now: Moment, batch: &FileBatch) {
        for change in &batch.changes {
            change.apply_to(&mut self.catalog);
        }
        // The first batch is complete: restored objects are needed only for files in it.
        self.catalog.forget_unread();
        let resolution = self.catalog.resolve_shared();
        // Drop the shared copy, so that changing the index does not clone it.
        self.published = None;
        let changes = Arc::make_mut(&mut self.index).follow(&self.objects, &resolution.objects);
        self.objects = resolution.objects;
        let described = self.index.nodes.get(&self.assumed_node.name);
        self.node = described.unwrap_or(&self.assumed_node).clone();
        self.announcer.set_node(self.node.clone());
        let mark = self.node.drain;
        self.change_drain(|drain| drain.follow_mark(now, mark));
        self.awaits_sources &= self.sources.iter().any(|path| self.catalog.is_unreadable(path));
        if !self.awaits_sources {
            self.earlier = Vec::new();
        }
        self.decide(now, &changes, Some(batch.at));
        self.counters.updated(batch.changes.len());
        self.counters.judged(&self.findings, &resolution.findings);
        self.counters.loaded();
        log_findings(&self.findings, &resolution.findings);
        self.findings = resolution.findings;
        self.stale = resolution.stale;
    }

    /// Serves the metrics of all roles until the return value is dropped.
    pub(super) fn serve_metrics(&self, listen: HttpListen, enquirer: Enquirer) -> Server {
        let backend = Arc::clone(self.announcer.backend());
        let measured = NodeMetrics::new(enquirer, backend).with_pools();
        Server::start(listen, Arc::clone(&self.counters), measured)
    }

    /// Updates the assignments and the announcements.
    fn decide(&mut self, now: Moment, changes: &Changes, changed_at: Option<time::Instant>) {
        self.published = None;
        let other = self.assigner.converge(now.monotonic, &self.index, changes);
        let (outcomes, changes) = (self.assigner.outcomes(), PlanChanges::of(changes, other));
        let awaits_sources = self.awaits_sources;
        self.announcer.update(&self.index, outcomes, &changes, awaits_sources, changed_at);
        let services = self.index.services.keys().filter(|_| changes.all);
        Arc::make_mut(&mut self.history).note(
            now.epoch_seconds,
            changes.services.iter().chain(services),
            outcomes,
            self.announcer.plan(),
        );
        self.withdrawing.handed(self.announcer.generation(), self.assigner.last_release());
        // A crash must not lose this, so it does not wait for the rest of the state.
        if let Some(memory) = self.assigner.changed_memory() {
            self.saver.save_memory(memory);
        }
    }

    /// The generation of the awaited withdrawals ([`Backend::withdrawn`]).
    pub(super) fn awaits_withdrawals(&self) -> Option<u64> {
        self.withdrawing.awaited()
    }

    /// The withdrawals are written to all neighbours: other Services may get these addresses.
    pub(super) fn withdrawn(&mut self, now: Moment) {
        let released = self.withdrawing.reached();
        if released.is_some_and(|released| self.assigner.withdrawn(released)) {
            self.decide(now, &Changes::default(), None);
        }
    }

    /// The state for `show`.
    pub(super) fn published(&mut self) -> Arc<Published> {
        if let Some(published) = &self.published {
            return Arc::clone(published);
        }
        let published = Arc::new(Published {
            node: self.node.clone(),
            router_id: plan::router_id(&self.node),
            index: Arc::clone(&self.index),
            outcomes: self.assigner.outcomes().clone(),
            plan: self.announcer.plan().clone(),
            history: Arc::clone(&self.history),
            findings: self.findings.clone(),
            stale: self.stale.clone(),
            sources: self.sources.clone(),
            drain: self.draining.status(),
        });
        Arc::clone(self.published.insert(published))
    }

    /// Applies a drain order.
    pub(super) fn obey(&mut self, now: Moment, order: DrainOrder) -> DrainStep {
        self.change_drain(|drain| drain.obey(now, order))
    }

    /// Whether the last order is on disk, once that has been tried.
    pub(super) fn keeps_order(&self) -> impl Future<Output = bool> + use<> {
        self.saver.keeps_drain()
    }

    /// Withdraws everything, or frees released addresses, when that is due.
    pub(super) fn tick(&mut self, now: Moment) {
        if self.assigner.next_deadline().is_some_and(|deadline| deadline <= now.monotonic) {
            self.decide(now, &Changes::default(), None);
        }
        self.change_drain(|drain| drain.tick(now));
    }

    fn change_drain(&mut self, act: impl FnOnce(&mut Drain) -> DrainStep) -> DrainStep {
        self.draining.change(&self.saver, act, |state| {
            self.published = None;
            self.announcer.set_drain(state);
        })
    }

    /// When [`Daemon::tick`] is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.draining.next_deadline().into_iter().chain(self.assigner.next_deadline()).min()
    }

    /// Whether to leave for a restart or for good.
    pub(super) fn how_to_leave(&self) -> Leave {
        self.draining.how_to_leave()
    }

    /// Saves the files' objects and the announced routes. Returns at once.
    pub(super) fn save(&self) {
        self.saver.save_resources(self.catalog.last_good());
        if self.announcer.has_spoken() {
            let routes = bgp::beside(&self.announcer.plan().routes, &self.earlier);
            self.saver.save_announced(announced(routes));
        }
    }

    /// Waits until everything is on disk.
    pub(super) async fn finish(self) {
        self.saver.finish().await;
    }
}

fn restored_allocator(directory: &Path, load_balancer_class: Option<String>) -> Allocator {
    let memory = state_file::load(directory).unwrap_or_else(|error| {
        error!("{error}; assigning addresses from scratch");
        Memory::default()
    });
    Allocator::restore(load_balancer_class, memory)
}

fn restored_catalog(directory: &Path, backend: BackendKind) -> Catalog {
    let mut catalog = Catalog::for_backend(backend);
    if let Err(error) = saver::restore(directory, &mut catalog) {
        error!("{error}; last good versions of faulty objects are not known");
    }
    catalog
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairway_node::drain::DrainStatus;
    use fairway_seam::DrainState;
    use fairway_sessions::io::{BfdOptions, Listen, NativeBackend};

    use super::*;
    use crate::host::earlier_run;
    use crate::options::BackendOptions;

    fn options(state_dir: &Path) -> HostOptions {
        HostOptions {
            node: "node-a".to_owned(),
            backend: BackendOptions::Native { bgp_listen: Vec::new(), bfd_realtime: false },
            socket: state_dir.join("fairway.sock"),
            socket_mode: crate::admin::SocketMode::default(),
            metrics_listen: HttpListen::Nowhere,
            vty_dir: None,
            state_dir: state_dir.to_owned(),
            load_balancer_class: None,
        }
    }

    /// A daemon that starts this many seconds after the first one.
    fn daemon(state_dir: &Path, seconds: u64) -> (Daemon, Moment) {
        let now = Moment { epoch_seconds: 1_795_192_683 + seconds, monotonic: Instant::ZERO };
        let backend =
            Arc::new(NativeBackend::start(Listen::nowhere(), BfdOptions::default(), 7, None));
        (Daemon::new(&options(state_dir), &[], backend, None, now), now)
    }

    fn drain(seconds: u64) -> DrainOrder {
        DrainOrder::Begin { wait: Duration::from_secs(seconds) }
    }

    #[tokio::test]
    async fn a_run_is_known_to_the_next_one_before_it_announces_anything() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(earlier_run(root.path()), None);
        let (daemon, _) = daemon(root.path(), 0);
        daemon.finish().await;
        let earlier = EarlierRun { routes: Vec::new(), forwarding: true };
        assert_eq!(earlier_run(root.path()), Some(earlier));
    }

    #[tokio::test]
    async fn a_drain_goes_on_over_restarts_until_it_is_undone() {
        let root = tempfile::tempdir().unwrap();
        let (mut first, now) = daemon(root.path(), 0);
        assert_eq!(first.how_to_leave(), Leave::ForRestart);
        assert_eq!(first.obey(now, drain(60)), DrainStep::Began);
        let begun = first.published().drain;
        first.finish().await;

        let (mut second, now) = daemon(root.path(), 20);
        assert_eq!(second.published().drain, begun, "since and until are the same");
        assert_eq!(second.next_deadline(), Some(Instant::ZERO + Duration::from_secs(40)));
        assert_eq!(second.how_to_leave(), Leave::ForGood);
        second.tick(Moment { monotonic: Instant::ZERO + Duration::from_secs(40), ..now });
        assert_eq!(second.published().drain.state(), DrainState::Drained);
        second.finish().await;

        let (mut third, now) = daemon(root.path(), 500);
        assert_eq!(third.published().drain.state(), DrainState::Drained);
        assert_eq!(third.obey(now, DrainOrder::Undo), DrainStep::Undone);
        third.finish().await;
        let (mut fourth, _) = daemon(root.path(), 501);
        assert_eq!(fourth.published().drain, DrainStatus::InService);
        fourth.finish().await;
    }

    #[tokio::test]
    async fn a_wait_that_ended_while_nothing_ran_is_over() {
        let root = tempfile::tempdir().unwrap();
        let (mut first, now) = daemon(root.path(), 0);
        first.obey(now, drain(60));
        first.finish().await;
        let (mut second, _) = daemon(root.path(), 3_600);
        assert_eq!(second.published().drain.state(), DrainState::Drained);
        second.finish().await;
    }

    #[tokio::test]
    async fn a_file_that_makes_no_sense_is_set_aside_and_the_node_serves() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("drain.json"), r#"{"version": 9}"#).unwrap();
        let (mut daemon, _) = daemon(root.path(), 0);
        assert_eq!(daemon.published().drain, DrainStatus::InService);
        assert!(root.path().join("drain.json.unreadable-1").exists());
        daemon.finish().await;
    }
}
