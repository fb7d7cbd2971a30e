//! What a speaker reports about itself in the API: the edge around [`Reports`].
//!
//! Reads the sessions when something about them changed, at most once a second, and carries lists, writes and
//! Events. Decides nothing about what is written.

use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{
    EventRecord, ListReply, PAGE_OBJECTS, ReportFacts, Reports, ReportsAction, ReportsSettings,
    SpeakerCore, WrittenKind,
};
use fairway_ground::Instant as Time;
use fairway_layer2::Edge;
use fairway_model::{Kind, ObjectName};
use fairway_node::drain::{DrainStatus, Moment};
use fairway_resources::Finding;
use fairway_seam::{AdvertisedScope, Backend, BgpView, Layer2View, ViewScope};
use kube::api::ListParams;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::api::{Api, LIST_TIMEOUT, Problem};
use super::event::{EventSource, Events};
use super::page::ManagedFields;
use super::resource::Resource;
use super::writing::{Writing, Written};

/// The field manager in `managedFields`, and the source of Events.
const NAME: &str = "fairway-speaker";
/// Reading the sessions copies their routes.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pages of a list; a node does not have more objects than that.
const PAGES_MAX: usize = 200;
/// Answers in the queue for the loop: one per kind, or one reading.
const ANSWERS_MAX: usize = 4;

/// A list of the objects that [`Reporting`] writes.
pub(super) type Listed = (WrittenKind, ListReply);

/// What arrives for [`Reporting`].
pub(super) struct ReportingInbox {
    pub(super) views: mpsc::Receiver<Option<Box<Seen>>>,
    pub(super) lists: mpsc::Receiver<Listed>,
    pub(super) written: mpsc::Receiver<Written>,
}

/// What this node does.
pub(super) struct Seen {
    bgp: BgpView,
    layer2: Option<Layer2View>,
}

/// See the module.
pub(super) struct Reporting {
    reports: Reports,
    node: String,
    api: Api,
    backend: Arc<dyn Backend>,
    writing: Writing,
    events: Events,
    tell_view: mpsc::Sender<Option<Box<Seen>>>,
    tell_list: mpsc::Sender<Listed>,
    is_look_wanted: bool,
    is_looking: bool,
    look_not_before: Instant,
}

impl Reporting {
    pub(super) fn new(
        api: &Api,
        settings: ReportsSettings,
        backend: Arc<dyn Backend>,
    ) -> (Self, ReportingInbox) {
        let (writing, written) = Writing::new(api.clone(), NAME);
        let (tell_view, views) = mpsc::channel(ANSWERS_MAX);
        let (tell_list, lists) = mpsc::channel(ANSWERS_MAX);
        let source = EventSource { component: NAME, instance: settings.node.clone() };
        let reporting = Self {
            node: settings.node.clone(),
            reports: Reports::new(settings),
            api: api.clone(),
            backend,
            writing,
            events: Events::start(api.clone(), source),
            tell_view,
            tell_list,
            is_look_wanted: false,
            is_looking: false,
            look_not_before: Instant::now(),
        };
        (reporting, ReportingInbox { views, lists, written })
    }

    /// Queues an Event.
    pub(super) fn post(&self, record: EventRecord, epoch_seconds: u64) {
        self.events.post(record, epoch_seconds);
    }

    /// Something changed since the last reading.
    pub(super) fn want_look(&mut self) {
        self.is_look_wanted = true;
    }

    /// Waits until it is time to read the sessions; forever if nothing changed. Cancel-safe.
    pub(super) async fn look_due(&self) {
        match self.is_look_wanted && !self.is_looking {
            true => sleep_until(self.look_not_before).await,
            false => std::future::pending().await,
        }
    }

    /// Reads the sessions, beside the loop.
    pub(super) fn look(&mut self, layer2: Option<Arc<Edge>>) {
        (self.is_look_wanted, self.is_looking) = (false, true);
        self.look_not_before = Instant::now() + LOOK_INTERVAL;
        let (backend, tell) = (Arc::clone(&self.backend), self.tell_view.clone());
        tokio::spawn(async move {
            let scope = ViewScope { advertised: AdvertisedScope::Own, ..ViewScope::SESSIONS };
            // Both ends may be gone when the process ends.
            let seen = match backend.view(scope).await {
                Ok(bgp) => {
                    let layer2 = match layer2 {
                        Some(edge) => Some(edge.view().await),
                        None => None,
                    };
                    Some(Seen { bgp, layer2 })
                }
                Err(_) => None,
            };
            let _ = tell.send(seen.map(Box::new)).await;
        });
    }

    /// Handles the result.
    pub(super) fn looked(
        &mut self,
        now: Moment,
        seen: Option<Box<Seen>>,
        core: &SpeakerCore,
        findings: &[Finding],
        drain: DrainStatus,
    ) {
        self.is_looking = false;
        let Some(seen) = seen else { return };
        let service_uid = |name: &ObjectName| core.uid(Kind::Service, name);
        let node = ObjectName::new("", self.node.as_str());
        self.reports.follow(
            now,
            &ReportFacts {
                is_synced: core.is_synced(),
                plan: core.plan(),
                bgp: &seen.bgp,
                layer2: seen.layer2.as_ref(),
                findings,
                drain,
                node_uid: core.uid(Kind::Node, &node).as_deref(),
                service_uid: &service_uid,
            },
        );
    }

    /// Carries out the core's pending actions.
    pub(super) fn act(&mut self, now: Moment) {
        while let Some(action) = self.reports.poll_action(now.monotonic) {
            match action {
                ReportsAction::List { kind, label_selector } => self.list(kind, label_selector),
                ReportsAction::Write(write) => {
                    let limit = write.not_after.since(now.monotonic);
                    self.writing.write(write, limit);
                }
                ReportsAction::Event(record) => self.events.post(record, now.epoch_seconds),
            }
        }
    }

    pub(super) fn next_deadline(&self, now: Time) -> Option<Time> {
        self.reports.next_deadline(now)
    }

    pub(super) fn listed(&mut self, now: Time, kind: WrittenKind, reply: ListReply) {
        self.reports.handle_list(now, kind, reply);
    }

    pub(super) fn answered(&mut self, now: Time, written: &Written) {
        self.writing.note(written);
        self.reports.handle_write(now, written.kind, &written.name, written.reply);
    }

    fn list(&self, kind: WrittenKind, label_selector: String) {
        let (api, tell) = (self.api.clone(), self.tell_list.clone());
        tokio::spawn(async move {
            let reply = match list(&api, kind, label_selector).await {
                Ok(items) => ListReply::Is(items),
                Err(problem) => {
                    debug!("cannot list {}: {problem}", Resource::written(kind).plural);
                    ListReply::Failed
                }
            };
            let _ = tell.send((kind, reply)).await;
        });
    }
}

/// All pages.
async fn list(
    api: &Api,
    kind: WrittenKind,
    label_selector: String,
) -> Result<Vec<Arc<serde_json::Value>>, Problem> {
    let resource = Resource::written(kind);
    let request = kube::core::Request::new(resource.collection(&api.namespace));
    let mut parameters = ListParams {
        label_selector: Some(label_selector),
        limit: Some(PAGE_OBJECTS),
        ..ListParams::default()
    };
    let mut items = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = request.list(&parameters).map_err(Problem::of_request)?;
        let page = api.list(page, ManagedFields::Read, LIST_TIMEOUT).await?;
        items.extend(page.items.into_iter().map(Arc::new));
        match page.continue_token {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(items),
        }
    }
    Err(Problem::no_list())
}
