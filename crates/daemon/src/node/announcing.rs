//! What a daemon announces from its node, what it keeps on disk for its next start, and what it shows.
//!
//! A [`super::Source`] decides what to announce; this module hands it to the backend together with the drain
//! state, logs it, and saves it in the state directory. Knows no file of resources and no API server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fairway_allocator::Outcomes;
use fairway_bgp::session;
use fairway_ground::Instant;
use fairway_layer2::{Edge, Standby};
use fairway_model::ObjectName;
use fairway_node::drain::{Drain, DrainOrder, DrainStatus, DrainStep, Moment};
use fairway_node::history::History;
use fairway_plan::{Announcement, Layer2Announcement, NodePlan, PlanUpdate};
use fairway_resources::{Finding, StaleObject};
use fairway_seam::{Announcements, Backend, Desired, DesiredRoute, DrainState, EarlierRun, Leave};
use tracing::{debug, error, info, warn};

use super::answering::Answering;
use crate::host::{
    Draining, FindingLog, Published, Saver, Saving, announced, epoch_milliseconds, seed,
};
use crate::members::{KeyFileError, MemberOptions, Members};
use crate::metrics::ClientCounters;
use crate::options::HostOptions;

/// What the backend was given.
struct Handed {
    backend: Arc<dyn Backend>,
    generation: u64,
    /// The latest announcements; `None` before the first ones.
    last: Option<Announcements>,
}

impl Handed {
    /// Hands the latest announcements to the backend, from a node in this drain state.
    fn apply(&mut self, drain: DrainState, change_age: Option<Duration>) {
        // Before the first plan nothing is announced.
        let Some(announced) = self.last.clone() else { return };
        let Announcements {
            peers,
            routes,
            extras,
            rpki_servers,
            bmp_stations,
            always_compare_med,
            blackholes,
            awaits_sources,
        } = announced;
        self.generation = self.generation.saturating_add(1);
        self.backend.apply(Desired {
            generation: self.generation,
            peers,
            routes,
            drain,
            awaits_sources,
            change_age,
            extras,
            rpki_servers,
            bmp_stations,
            always_compare_med,
            blackholes,
        });
    }
}

/// See the module.
pub(crate) struct Announcing {
    handed: Handed,
    answering: Answering,
    members: Option<Arc<Members>>,
    draining: Draining,
    /// What an earlier run announced, while that may still be in force.
    earlier: Vec<DesiredRoute>,
    /// Shared, since readers must not hold up the loop.
    history: Arc<History>,
    findings: FindingLog,
    stale: Vec<StaleObject>,
    saver: Saver,
    pub(super) saving: Saving,
    counters: Arc<ClientCounters>,
    /// The last published state, until it changes.
    published: Option<Arc<Published>>,
}

impl Announcing {
    /// Continues from the state directory; starts empty if that cannot be read.
    pub(crate) fn new(
        options: &HostOptions,
        backend: Arc<dyn Backend>,
        earlier: Option<EarlierRun>,
        counters: Arc<ClientCounters>,
        now: Moment,
    ) -> Self {
        let saver = Saver::start(options.state_dir.clone());
        let draining = Draining::resume(&options.state_dir, &saver, now);
        if earlier.is_none() {
            // A crash right after the first route was announced counts as a restart as well.
            saver.save_announced(announced(Vec::new()));
        }
        let mut answering = Answering::new(options.layer2_excluded.clone(), options.layer2_refresh);
        answering.follow_drain(draining.state());
        Self {
            handed: Handed { backend, generation: 0, last: None },
            answering,
            members: None,
            draining,
            earlier: earlier.unwrap_or_default().routes,
            history: Arc::default(),
            findings: FindingLog::new(),
            stale: Vec::new(),
            saver,
            saving: Saving::default(),
            counters,
            published: None,
        }
    }

    /// Hands these announcements to the backend. `change_age`: the time since the change of an object that
    /// caused them, if one did.
    pub(crate) fn announce(&mut self, announcements: Announcements, change_age: Option<Duration>) {
        if !announcements.awaits_sources {
            self.earlier = Vec::new();
        }
        self.handed.last = Some(announcements);
        self.handed.apply(self.draining.state(), change_age);
    }

    /// The addresses that this node answers for on the local segment from now on.
    pub(crate) fn answer_for(&mut self, planned: &[Layer2Announcement]) {
        self.answering.follow_plan(planned);
        self.published = None;
    }

    /// The plan has changed: the addresses that this node would answer for next are asked for now and then. Without
    /// members nothing is known of the owners.
    pub(crate) fn check_others(&self, plan: &NodePlan) {
        let Some(edge) = self.layer2().filter(|_| self.members.is_some()) else { return };
        let standby = plan.next_to_answer().map(|(address, owner, next)| {
            let interfaces = next.interfaces.clone();
            (address, Standby { owner: owner.clone(), interfaces })
        });
        edge.check(standby.collect());
    }

    /// Joins the machines that share layer 2 addresses with this one.
    pub(super) fn join(
        &mut self,
        node: &str,
        options: MemberOptions,
    ) -> Result<Arc<Members>, KeyFileError> {
        let (incarnation, fence) = (epoch_milliseconds(), self.answering.fence());
        let members = Arc::new(Members::start(node, options, incarnation, seed(), fence)?);
        // The others are told its hardware addresses before it owns anything.
        self.answering.start();
        self.members = Some(Arc::clone(&members));
        // From now on the members say when another one owns what is this node's: until then it answers.
        self.answering.follow_drain(DrainState::InService);
        Ok(members)
    }

    /// The machines that share layer 2 addresses with this one, if there are any.
    pub(crate) fn members(&self) -> Option<Arc<Members>> {
        self.members.clone()
    }

    /// Answers for addresses, once there was one.
    pub(crate) fn layer2(&self) -> Option<Arc<Edge>> {
        self.answering.edge()
    }

    /// Whether the backend has got announcements.
    pub(crate) fn has_announced(&self) -> bool {
        self.handed.last.is_some()
    }

    /// The generation of the last announcements that the backend got.
    pub(crate) fn generation(&self) -> u64 {
        self.handed.generation
    }

    /// Logs what an update of the plan changed.
    pub(crate) fn log_update(&self, update: &PlanUpdate, plan: &NodePlan) {
        log_update(update, plan, self.draining.state());
    }

    /// Notes the latest changes of these Services.
    pub(crate) fn note<'a>(
        &mut self,
        now: Moment,
        services: impl Iterator<Item = &'a ObjectName>,
        outcomes: &Outcomes,
        plan: &NodePlan,
    ) {
        self.published = None;
        Arc::make_mut(&mut self.history).note(now.epoch_seconds, services, outcomes, plan);
    }

    /// The faults and warnings of the resources, and the objects with their last good version in force.
    pub(crate) fn judge(&mut self, now: Moment, findings: Vec<Finding>, stale: Vec<StaleObject>) {
        self.published = None;
        self.counters.judged(self.findings.findings(), &findings);
        self.findings.follow(now.monotonic, findings);
        self.stale = stale;
    }

    /// Faults and warnings of the objects.
    pub(crate) fn findings(&self) -> &[Finding] {
        self.findings.findings()
    }

    /// Objects with their last good version in force.
    pub(crate) fn stale(&self) -> &[StaleObject] {
        &self.stale
    }

    /// The last change of each Service.
    pub(crate) fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// The state that readers got before is out of date, and nothing else shares it.
    pub(crate) fn forget_published(&mut self) {
        self.published = None;
    }

    /// The state for `show`: what `describe` says, once for each change.
    pub(super) fn published(
        &mut self,
        describe: impl FnOnce(&Self) -> Published,
    ) -> Arc<Published> {
        if let Some(published) = &self.published {
            return Arc::clone(published);
        }
        let published = Arc::new(describe(self));
        Arc::clone(self.published.insert(published))
    }

    /// Follows the drain mark of the node.
    pub(crate) fn follow_mark(&mut self, now: Moment, mark: Option<Duration>) {
        self.change_drain(|drain| drain.follow_mark(now, mark));
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
            self.handed.apply(state, None);
            if self.members.is_none() {
                self.answering.follow_drain(state);
            }
        })
    }

    /// When [`Self::tick`] is due.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.draining.next_deadline()
    }

    /// Whether the node is in service.
    pub(crate) fn drain_status(&self) -> DrainStatus {
        self.draining.status()
    }

    /// Leaves for good once the node is out of service.
    pub(super) fn how_to_leave(&self) -> Leave {
        self.draining.how_to_leave()
    }

    /// Writes the state directory.
    pub(crate) fn saver(&self) -> &Saver {
        &self.saver
    }

    /// Something that [`super::Source::save`] keeps has changed.
    pub(crate) fn want_save(&mut self) {
        self.saving.wanted();
    }

    /// Saves the announced routes. Returns at once.
    pub(super) fn save(&self) {
        if let Some(last) = &self.handed.last {
            let routes = session::beside(&last.routes, &self.earlier);
            self.saver.save_announced(announced(routes));
        }
    }

    /// Waits until everything is on disk.
    pub(super) async fn finish(self) {
        self.saver.finish().await;
    }
}

/// One line for each Service that is announced or withdrawn, and for each fault.
fn log_update(update: &PlanUpdate, plan: &NodePlan, drain: DrainState) {
    for (service, before) in &update.services {
        let now = plan.services.get(service);
        let was_announced = before.as_ref().is_some_and(|it| it.is_announced());
        match (was_announced, now.is_some_and(|it| it.is_announced())) {
            (false, true) => match drain {
                DrainState::InService | DrainState::Draining => {
                    info!(%service, "service announced")
                }
                DrainState::Drained => {
                    info!(%service, "service not announced: the node is drained")
                }
            },
            (true, false) => {
                let reason = now.map_or_else(|| "the Service is gone".to_owned(), |it| reasons(it));
                warn!(%service, reason, "service withdrawn");
            }
            _ => {}
        }
    }
    for fault in &update.faults {
        error!(%fault, "left out on this node");
    }
    for route in &update.routes.announced {
        debug!(prefix = %route.prefix, peer = %route.peer, "route to announce");
    }
    for route in &update.routes.withdrawn {
        debug!(prefix = %route.prefix, peer = %route.peer, "route to withdraw");
    }
}

/// Why a Service is not announced; each reason once, since both families often fail for the same.
fn reasons(announcement: &Announcement) -> String {
    let reasons: BTreeSet<String> = announcement.reasons().map(ToString::to_string).collect();
    reasons.into_iter().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fairway_sessions::{BfdOptions, Listen, NativeBackend};

    use super::*;
    use crate::host::earlier_run;
    use crate::http_server::HttpListen;
    use crate::options::BackendOptions;

    fn options(state_dir: &Path) -> HostOptions {
        HostOptions {
            node: "node-a".to_owned(),
            backend: BackendOptions::Native {
                bgp_listen: Vec::new(),
                bfd_realtime: false,
                memory_limit_bytes: None,
            },
            attribute_defaults: Default::default(),
            layer2_excluded: fairway_layer2::Excluded::nothing(),
            layer2_refresh: None,
            members: None,
            socket: state_dir.join("fairway.sock"),
            socket_mode: crate::admin::SocketMode::default(),
            metrics_listen: HttpListen::Nowhere,
            ui_listen: HttpListen::Nowhere,
            peer_label: Default::default(),
            proxy_socket: None,
            vty_dir: None,
            state_dir: state_dir.to_owned(),
            load_balancer_class: None,
        }
    }

    /// A daemon that starts this many seconds after the first one.
    fn daemon(state_dir: &Path, seconds: u64) -> (Announcing, Moment) {
        let now = Moment { epoch_seconds: 1_795_192_683 + seconds, monotonic: Instant::ZERO };
        let backend =
            Arc::new(NativeBackend::start(Listen::nowhere(), BfdOptions::default(), 7, None));
        (Announcing::new(&options(state_dir), backend, None, Arc::default(), now), now)
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
        let begun = first.drain_status();
        first.finish().await;

        let (mut second, now) = daemon(root.path(), 20);
        assert_eq!(second.drain_status(), begun, "since and until are the same");
        assert_eq!(second.next_deadline(), Some(Instant::ZERO + Duration::from_secs(40)));
        assert_eq!(second.how_to_leave(), Leave::ForGood);
        second.tick(Moment { monotonic: Instant::ZERO + Duration::from_secs(40), ..now });
        assert_eq!(second.drain_status().state(), DrainState::Drained);
        second.finish().await;

        let (mut third, now) = daemon(root.path(), 500);
        assert_eq!(third.drain_status().state(), DrainState::Drained);
        assert_eq!(third.obey(now, DrainOrder::Undo), DrainStep::Undone);
        third.finish().await;
        let (fourth, _) = daemon(root.path(), 501);
        assert_eq!(fourth.drain_status(), DrainStatus::InService);
        fourth.finish().await;
    }

    #[tokio::test]
    async fn a_wait_that_ended_while_nothing_ran_is_over() {
        let root = tempfile::tempdir().unwrap();
        let (mut first, now) = daemon(root.path(), 0);
        first.obey(now, drain(60));
        first.finish().await;
        let (second, _) = daemon(root.path(), 3_600);
        assert_eq!(second.drain_status().state(), DrainState::Drained);
        second.finish().await;
    }

    #[tokio::test]
    async fn a_file_that_makes_no_sense_is_set_aside_and_the_node_serves() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("drain.json"), r#"{"version": 9}"#).unwrap();
        let (daemon, _) = daemon(root.path(), 0);
        assert_eq!(daemon.drain_status(), DrainStatus::InService);
        assert!(root.path().join("drain.json.unreadable-1").exists());
        daemon.finish().await;
    }
}
