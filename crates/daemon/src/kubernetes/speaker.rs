//! `fairway speaker`: a cluster as the source of a node, and the reports about it.
//!
//! Joins the core, which decides what to announce, with the connection to the API server. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{
    CONTROLLER_KINDS, OwnPod, ReportsSettings, SPEAKER_KINDS, SpeakerAction, SpeakerCore,
    SpeakerSettings, Trim, Updates,
};
use fairway_ground::{Abstention, Instant, Prefix, printable};
use fairway_layer2::Edge;
use fairway_model::{DeliveryUpdate, Kind, Node};
use fairway_node::drain::Moment;
use fairway_plan::{self as plan, NodePlan};
use fairway_resources::StaleObject;
use fairway_seam::{Backend, Leave};
use fairway_show::Outage;
use tokio::sync::mpsc;
use tokio::time;
use tracing::{error, info};

use super::addressing;
use super::api::{Api, ConnectError, ConnectionOptions};
use super::holds::Holds;
use super::leaving::how_to_leave;
use super::metrics_access::ReviewedAccess;
use super::reading::{News, Reading, Selection};
use super::reporting::{Listed, Reporting, ReportingInbox, Seen};
use super::secrets::{SecretAnswer, Secrets};
use super::writing::Written;
use crate::admin::ReloadOrder;
use crate::build_info;
use crate::host::{self, Clock, GatewayWatch, Published, saver};
use crate::ipam::{AnnouncedBlocks, IpamError, IpamOptions};
use crate::metrics::SecureOptions;
use crate::node::{self, Announcing, Claimed, NodeError, Owners, Source};
use crate::node_api::NodeApiOptions;
use crate::options::{HostOptions, Unsaid};
use crate::service;
use crate::tls::CertificateError;

/// Of the reason that `explain` has in its first line: a proxy in place of the API server may answer with a page.
const PROBLEM_CHARACTERS_MAX: usize = 200;

/// Only these Services can have an address, and only one ConfigMap has lines for FRR.
const SELECTORS: [(Kind, &str); 2] =
    [(Kind::Service, "spec.type=LoadBalancer"), (Kind::ConfigMap, "metadata.name=bgpextras")];
/// Answers that are handed in before the core runs: a burst of changes is one plan.
const NEWS_AT_ONCE: usize = 256;

/// The options of `fairway speaker`.
#[derive(Debug, Clone)]
pub struct SpeakerOptions {
    /// The options of every daemon on a node.
    pub host: HostOptions,
    /// How to reach the API server.
    pub connection: ConnectionOptions,
    /// Announce also from nodes that are excluded from load balancers.
    pub ignore_exclude_label: bool,
    /// How long objects of a kind stay that the API server lacks all at once.
    pub empty_list_hold: Duration,
    /// Where metrics are served with TLS.
    pub secure_metrics: SecureOptions,
    /// Where controllers are answered.
    pub node_api: NodeApiOptions,
    /// The pod of this process, if known.
    pub pod: Option<OwnPod>,
    /// The DaemonSet of this pod, if known.
    pub daemon_set: Option<String>,
    /// Of the addresses of Pods, if they are to be given here.
    pub ipam: Option<IpamOptions>,
}

/// Why a speaker cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum SpeakerError {
    /// No API server was found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The sockets, the state directory, the backend.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The certificate for metrics.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The addresses of Pods.
    #[error(transparent)]
    Ipam(#[from] IpamError),
}

fn log_start(options: &HostOptions, api: &Api) {
    info!(
        node = options.node,
        server = api.server,
        namespace = api.namespace,
        version = build_info::RELEASE,
        commit = build_info::commit(),
        socket = %options.socket.display(),
        "fairway speaker is running"
    );
}

/// Runs until a signal ends it.
pub async fn run(options: SpeakerOptions) -> Result<(), SpeakerError> {
    let claimed = Claimed::new(&options.host)?;
    let api = Api::connect(&options.connection).await?;
    let access = Arc::new(ReviewedAccess::new(api.clone()));
    let secured = options.secure_metrics.clone().secured(access)?;
    let (announced, pod_addresses) =
        options.ipam.as_ref().map(|it| AnnouncedBlocks::start(&it.state_dir)).unzip();
    let kind = node::Kind {
        unsaid: Unsaid::ListenWhenNeeded,
        secured,
        counters: Arc::clone(&api.counters),
        assigns_addresses: false,
        node_api: Some(options.node_api.clone()),
        pod_addresses,
    };
    let start = |_: &mut _, backend: &Arc<_>, clock| {
        log_start(&options.host, &api);
        Cluster::new(&options, &api, backend, clock)
    };
    let addressing = async {
        if let Some(ipam) = options.ipam.clone()
            && let Some(announced) = announced
            && let Err(error) = addressing::run(ipam, api.clone(), announced).await
        {
            return error;
        }
        std::future::pending().await
    };
    tokio::select! {
        ended = node::run(&options.host, claimed, kind, start) => Ok(ended?),
        error = addressing => Err(error.into()),
    }
}

/// What arrives.
enum Event {
    News(News),
    Secret(SecretAnswer),
    /// The backend's state has this number now.
    Changed(u64),
    /// Interfaces or addresses of layer 2 have changed, for the time of this number.
    Layer2Changed(u64),
    /// The default gateways may have changed.
    GatewaysChanged,
    /// It is time to read the sessions.
    LookDue,
    Looked(Option<Box<Seen>>),
    Listed(Listed),
    Written(Written),
}

/// The cluster as this node knows it.
struct Cluster {
    clock: Clock,
    core: SpeakerCore,
    reading: Reading,
    news: mpsc::Receiver<News>,
    secrets: Secrets,
    secret_answers: mpsc::Receiver<SecretAnswer>,
    reporting: Reporting,
    reports: ReportingInbox,
    backend: Arc<dyn Backend>,
    /// The number of the backend's state that was looked at.
    seen: u64,
    /// There was a plan the last time, which layer 2 follows.
    had_plan: bool,
    /// The first address of each other node.
    member_addresses: BTreeSet<IpAddr>,
    gateways: GatewayWatch,
    layer2: Option<Arc<Edge>>,
    /// Likewise of layer 2.
    layer2_seen: u64,
    assumed_node: Node,
    sources: Vec<String>,
    /// When the oldest change arrived that is not handled yet.
    heard_at: Option<time::Instant>,
    api: Api,
    daemon_set: Option<String>,
    holds: Holds,
    /// What the API server has not answered, and since when.
    outage: Option<(Instant, Outage)>,
}

impl Cluster {
    /// Continues from the snapshot of the previous run; starts empty if that cannot be read.
    fn new(options: &SpeakerOptions, api: &Api, backend: &Arc<dyn Backend>, clock: Clock) -> Self {
        let settings = SpeakerSettings {
            node: options.host.node.clone(),
            load_balancer_class: options.host.load_balancer_class.clone(),
            ignore_exclude_label: options.ignore_exclude_label,
            attribute_defaults: options.host.attribute_defaults,
            backend: options.host.backend.kind(),
            empty_list_hold: options.empty_list_hold,
            seed: host::seed(),
        };
        let reports = ReportsSettings {
            node: options.host.node.clone(),
            namespace: api.namespace.clone(),
            pod: options.pod.clone(),
            seed: host::seed(),
        };
        let snapshot = saver::restore_snapshot(&options.host.state_dir).unwrap_or_else(|error| {
            error!("{error}; nothing is announced until the API server answers");
            None
        });
        if let Some(snapshot) = &snapshot {
            let objects = snapshot.objects.len();
            info!(objects, "resuming from the objects saved before the restart");
        }
        let (reporting, inbox) = Reporting::new(api, reports, Arc::clone(backend));
        let selections = SELECTORS.map(|(kind, it)| (kind, Selection::of_fields(it)));
        let (reading, news) = Reading::new(api.clone(), selections, Trim::ROUTING);
        let (secrets, secret_answers) = Secrets::new(api.clone());
        Self {
            clock,
            core: SpeakerCore::new(settings, snapshot),
            reading,
            news,
            secrets,
            secret_answers,
            reporting,
            reports: inbox,
            backend: Arc::clone(backend),
            seen: 0,
            had_plan: false,
            member_addresses: BTreeSet::new(),
            gateways: GatewayWatch::default(),
            layer2: None,
            layer2_seen: 0,
            assumed_node: Node::assumed(&options.host.node, host::addresses()),
            sources: vec![format!("{} (namespace {})", api.server, api.namespace)],
            heard_at: None,
            api: api.clone(),
            daemon_set: options.daemon_set.clone(),
            holds: Holds::default(),
            outage: None,
        }
    }

    fn hear_all(&mut self, first: News) {
        self.hear(first);
        for _ in 1..NEWS_AT_ONCE {
            let Ok(next) = self.news.try_recv() else { break };
            self.hear(next);
        }
    }

    fn hear(&mut self, news: News) {
        let at = news.at;
        if let Some((kind, reply)) = self.reading.accept(news) {
            self.heard_at = self.heard_at.or(Some(at));
            let now = self.clock.now().monotonic;
            self.core.handle(now, kind, reply);
        }
    }

    fn hear_secret(&mut self, now: Moment, answer: SecretAnswer) {
        let (name, reply) = self.secrets.accept(answer);
        self.core.handle_secret(now.monotonic, &name, &reply);
    }

    /// Notes what the API server has not answered, and since when.
    fn note_outage(&mut self, now: Moment, node: &mut Announcing) {
        let outage = self.core.outage().map(|it| (it.since, self.described(&it.kinds)));
        let noted = self.outage.as_ref().map(|(since, it)| (*since, it.what.as_str()));
        if outage.as_ref().map(|(since, what)| (*since, what.as_str())) == noted {
            return;
        }
        self.outage = outage.map(|(since, what)| {
            let lasting = now.monotonic.since(since).as_secs();
            (since, Outage { what, since_epoch_seconds: now.epoch_seconds.saturating_sub(lasting) })
        });
        node.forget_published();
    }

    fn described(&self, kinds: &[Kind]) -> String {
        let problem = kinds.iter().chain(&SPEAKER_KINDS).find_map(|it| self.reading.problem(*it));
        let problem: Option<String> =
            problem.map(|it| it.chars().take(PROBLEM_CHARACTERS_MAX).collect());
        let problem = problem.map(|it| format!(" ({})", printable(&it))).unwrap_or_default();
        let kinds: Vec<_> = kinds.iter().map(ToString::to_string).collect();
        let about = match kinds.is_empty() {
            true => String::new(),
            false => format!(" about {}", kinds.join(", ")),
        };
        format!("the API server has not answered{about}{problem}")
    }

    /// Logs what changed since the last time, and follows the drain mark of the node.
    fn follow(&mut self, now: Moment, node: &mut Announcing) {
        // If the Node is unknown, its mark is unknown as well.
        if let Some(described) = self.core.index().nodes.get(&self.assumed_node.name) {
            node.follow_mark(now, described.drain);
        }
        let Updates { facts, plan: plans } = self.core.take_updates();
        if facts.kinds.contains(&Kind::Node) {
            let nodes = self.core.index().nodes.values();
            let others = nodes.filter(|it| it.name != self.assumed_node.name);
            self.member_addresses = others.filter_map(|it| it.addresses.first().copied()).collect();
        }
        let findings = self.core.findings();
        if facts.is_empty() && plans.is_empty() && findings == node.findings() {
            return;
        }
        let stale = self.core.stale().iter().cloned().map(StaleObject::without_place).collect();
        node.judge(now, findings, stale);
        let nothing = NodePlan::default();
        let plan = self.core.plan().unwrap_or(&nothing);
        // A node without an object gets no traffic.
        let has_plan = self.core.plan().is_some();
        if plans.iter().any(|it| it.layer2) || self.had_plan != has_plan {
            self.had_plan = has_plan;
            node.answer_for(&plan.layer2);
            self.layer2 = node.layer2();
        }
        node.check_others(plan);
        for update in &plans {
            node.log_update(update, plan);
        }
        node.note(now, facts.services.iter(), self.core.outcomes(), plan);
        self.reporting.want_look();
    }
}

/// Waits for a change of what is answered; forever where nothing ever was. Cancel-safe.
async fn layer2_changed(edge: Option<&Edge>, seen: u64) -> u64 {
    match edge {
        Some(edge) => edge.changed(seen).await,
        None => std::future::pending().await,
    }
}

impl Source for Cluster {
    type Event = Event;

    async fn event(&mut self) -> Option<Event> {
        tokio::select! {
            Some(first) = self.news.recv() => Some(Event::News(first)),
            Some(answer) = self.secret_answers.recv() => Some(Event::Secret(answer)),
            number = self.backend.changed(self.seen) => Some(Event::Changed(number)),
            number = layer2_changed(self.layer2.as_deref(), self.layer2_seen) => {
                Some(Event::Layer2Changed(number))
            }
            () = self.gateways.changed() => Some(Event::GatewaysChanged),
            () = self.reporting.look_due() => Some(Event::LookDue),
            Some(seen) = self.reports.views.recv() => Some(Event::Looked(seen)),
            Some(listed) = self.reports.lists.recv() => Some(Event::Listed(listed)),
            Some(answer) = self.reports.written.recv() => Some(Event::Written(answer)),
        }
    }

    fn handle(&mut self, now: Moment, event: Event, node: &mut Announcing) -> service::Reading {
        match event {
            Event::News(first) => self.hear_all(first),
            Event::Secret(answer) => self.hear_secret(now, answer),
            Event::Changed(number) => {
                self.seen = number;
                self.reporting.want_look();
            }
            Event::Layer2Changed(number) => {
                self.layer2_seen = number;
                self.reporting.want_look();
            }
            Event::GatewaysChanged => self.core.set_gateways(self.gateways.read()),
            Event::LookDue => self.reporting.look(node.layer2()),
            Event::Looked(seen) => {
                let (findings, drain) = (node.findings(), node.drain_status());
                self.reporting.looked(now, seen, &self.core, findings, drain);
            }
            Event::Listed((kind, reply)) => self.reporting.listed(now.monotonic, kind, reply),
            Event::Written(answer) => self.reporting.answered(now.monotonic, &answer),
        }
        if self.core.is_synced() { service::Reading::Complete } else { service::Reading::AsBefore }
    }

    /// Carries out the core's pending actions.
    fn act(&mut self, now: Moment, node: &mut Announcing) {
        while let Some(action) = self.core.poll_action(self.clock.now().monotonic) {
            match action {
                SpeakerAction::Announce(announcements) => {
                    node.announce(announcements, self.heard_at.map(|at| at.elapsed()));
                    node.want_save();
                }
                SpeakerAction::Persist => node.want_save(),
                SpeakerAction::Ask(kind, request) => self.reading.ask(kind, request),
                SpeakerAction::GetSecret(name) => self.secrets.get(name),
                SpeakerAction::FollowGateways => self.core.set_gateways(self.gateways.read()),
            }
        }
        self.heard_at = None;
        self.follow(now, node);
        self.note_outage(now, node);
        self.reporting.act(now);
        if self.core.is_synced() {
            self.reading.counters().loaded();
        }
        self.reading.counters().list_held(self.core.is_in_doubt());
        // The controller posts those of the kinds that it reads: one Event, and not one of each node.
        let is_own = |kind: Kind| !CONTROLLER_KINDS.contains(&kind);
        for record in self.holds.look(now.monotonic, &self.core.held(), is_own) {
            self.reporting.post(record, now.epoch_seconds);
        }
    }

    fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let all = [self.core.next_deadline(), self.reporting.next_deadline(now)];
        all.into_iter().flatten().min()
    }

    fn tick(&mut self, _: Moment, _: &mut Announcing) {
        // The core acts before the loop waits again.
    }

    fn reread(&mut self) -> bool {
        info!("SIGHUP has no effect: resources come from the API server");
        false
    }

    fn reload(&mut self, _: ReloadOrder) -> Result<String, String> {
        Err("there is nothing to read again: resources come from the API server".to_owned())
    }

    fn describe(&self, node: &Announcing) -> Published {
        let index = self.core.index_shared();
        let own = index.nodes.get(&self.assumed_node.name).unwrap_or(&self.assumed_node).clone();
        Published {
            router_id: plan::router_id(&own),
            node: own,
            index,
            outcomes: self.core.outcomes().clone(),
            plan: self.core.plan().cloned().unwrap_or_default(),
            history: Arc::clone(node.history()),
            findings: node.findings().to_vec(),
            stale: node.stale().to_vec(),
            sources: self.sources.clone(),
            outage: self.outage.as_ref().map(|(_, it)| it.clone()),
            layer2: node.layer2(),
            members: node.members(),
            // Readiness probes say it.
            health: BTreeMap::new(),
            is_reading: true,
            drain: node.drain_status(),
        }
    }

    fn save(&self, node: &Announcing) {
        // An incomplete list holds less than the snapshot of the previous run.
        if self.core.is_synced() {
            node.saver().save_snapshot(self.core.snapshot());
        }
    }

    fn follow_members(&mut self, _: Moment, owners: &Owners, _: &mut Announcing) {
        // What that leads to is planned before the loop waits.
        self.core.set_members(Some(owners));
    }

    fn follow_interfaces(&mut self, _: Moment, names: &BTreeSet<String>, _: &mut Announcing) {
        self.core.set_interfaces(names);
    }

    fn follow_pod_blocks(
        &mut self,
        _: Moment,
        blocks: &BTreeMap<Prefix, String>,
        _: &mut Announcing,
    ) {
        self.core.set_pod_blocks(blocks);
    }

    fn follow_deliveries(&mut self, _: Moment, update: DeliveryUpdate, _: &mut Announcing) {
        self.core.follow_deliveries(update);
    }

    fn abstentions(&self) -> &BTreeSet<Abstention> {
        self.core.abstentions()
    }

    fn has_plan(&self, _: &Announcing) -> bool {
        self.core.has_whole_plan()
    }

    fn member_addresses(&self) -> Option<&BTreeSet<IpAddr>> {
        Some(&self.member_addresses)
    }

    /// Asks the API server whether the node or the DaemonSet is being deleted.
    async fn how_to_leave(&self) -> Leave {
        how_to_leave(&self.api, &self.assumed_node.name, self.daemon_set.as_deref()).await
    }
}
