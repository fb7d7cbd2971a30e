//! `fairway controller`: the loop between a controller's core and the API server.
//!
//! Owns the core and its pending requests. Woken by answers, by time and by signals; acts at once. Decides
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use fairway_allocator::PoolUse;
use fairway_cluster::{
    ControllerAction, ControllerCore, ControllerSettings, LeaseRequest, OwnPod, Trim,
};
use fairway_ground::Instant;
use fairway_resources::Finding;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use super::addressing::Collecting;
use super::aggregation::{self, AggregationOptions};
use super::api::{Api, ConnectError, ConnectionOptions};
use super::event::{EventSource, Events};
use super::holds::Holds;
use super::lease::{LeaseAnswer, LeaseEdge};
use super::metrics_access::ReviewedAccess;
use super::reading::{News, Reading};
use super::webhook::{Webhook, WebhookOptions};
use super::writing::{Writing, Written};
use crate::build_info;
use crate::host::{self, Clock};
use crate::http_server::HttpListen;
use crate::metrics::{ControllerFacts, ControllerMetrics, SecureOptions, Server};
use crate::tls::CertificateError;

/// The field manager in `managedFields`, and the source of Events.
const NAME: &str = "fairway-controller";
/// Answers that are handed in before the core runs: a list of a thousand Services is one step, and a renewal
/// of the Lease does not wait for it.
const NEWS_AT_ONCE: usize = 256;

/// The options of `fairway controller`.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// How to reach the API server.
    pub connection: ConnectionOptions,
    /// The loadBalancerClass of the Services to serve; `None`: those without one.
    pub load_balancer_class: Option<String>,
    /// How long objects of a kind stay that the API server lacks all at once.
    pub empty_list_hold: Duration,
    /// The pod of this process, if known.
    pub pod: Option<OwnPod>,
    /// Where metrics are served.
    pub metrics_listen: HttpListen,
    /// Where they are served with TLS.
    pub secure_metrics: SecureOptions,
    /// The webhook.
    pub webhook: WebhookOptions,
    /// The node API.
    pub node_api: AggregationOptions,
    /// For how long an address of a Pod has to be without it before it is taken back; `None`: none is.
    pub ipam_grace: Option<Duration>,
}

/// Why a daemon in the cluster cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No API server was found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Signals.
    #[error("cannot handle signals")]
    Signals(#[from] std::io::Error),
    /// The certificate for metrics.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// The state of the loop.
struct Controller {
    clock: Clock,
    core: ControllerCore,
    reading: Reading,
    writing: Writing,
    lease: LeaseEdge,
    lease_tell: mpsc::Sender<LeaseAnswer>,
    events: Events,
    holds: Holds,
    /// Whether it leads, for what only the leader keeps.
    leads: watch::Sender<bool>,
    /// The findings at the last query.
    findings: Vec<Finding>,
}

/// Runs until a signal ends it.
pub async fn run(options: ControllerOptions) -> Result<(), StartError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    host::outlive_signals()?;
    let api = Api::connect(&options.connection).await?;
    let clock = Clock::start();
    let settings = settings(&options, api.namespace.clone(), clock.now().epoch_seconds);
    let identity = settings.identity.clone();
    info!(
        server = api.server,
        namespace = api.namespace,
        identity,
        version = build_info::RELEASE,
        commit = build_info::commit(),
        "fairway controller is running"
    );
    let (measured, mut questions) = ControllerMetrics::new();
    let (leads, is_leading) = watch::channel(false);
    let source = EventSource { component: NAME, instance: identity };
    let collecting = Collecting::new(&api, &source, &is_leading, options.ipam_grace);
    let measured = measured.with_pod_pools(collecting.map(Collecting::start));
    // Held to the end: dropping it closes the port.
    let access = Arc::new(ReviewedAccess::new(api.clone()));
    let secured = options.secure_metrics.secured(access)?;
    let counters = Arc::clone(&api.counters);
    let _metrics = Server::start(options.metrics_listen, secured, counters, measured);
    let (reading, mut news) = Reading::new(api.clone(), [], Trim::ROUTING);
    let (writing, mut written) = Writing::new(api.clone(), NAME);
    let (lease_tell, mut lease_answers) = mpsc::channel(1);
    // Held to the end: dropping one closes its port.
    let _node_api = aggregation::start(&api, &options.node_api, &is_leading);
    let (_webhook, mut reviews) = Webhook::start(api.clone(), &options.webhook, is_leading);
    let mut controller = Controller {
        clock,
        core: ControllerCore::new(settings),
        reading,
        writing,
        lease: LeaseEdge::new(api.clone()),
        lease_tell,
        events: Events::start(api, source),
        holds: Holds::default(),
        leads,
        findings: Vec::new(),
    };
    loop {
        controller.act();
        let deadline = controller.core.next_deadline(controller.now());
        // Cancel-safe: messages are received whole or not at all.
        tokio::select! {
            Some(first) = news.recv() => {
                controller.hear(first);
                for _ in 1..NEWS_AT_ONCE {
                    let Ok(next) = news.try_recv() else { break };
                    controller.hear(next);
                }
            }
            Some(answer) = written.recv() => controller.answered(&answer),
            Some(answer) = lease_answers.recv() => {
                let (now, reply) = (controller.now(), controller.lease.accept(answer));
                controller.core.handle_lease(now, reply);
            }
            Some(question) = questions.recv() => question.answer(controller.facts()),
            Some(review) = reviews.recv() => review.answer(|it| controller.core.judge(it)),
            () = clock.wait_until(deadline) => {}
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    info!("leaving");
    controller.leave().await;
    Ok(())
}

fn settings(
    options: &ControllerOptions,
    namespace: String,
    epoch_seconds: u64,
) -> ControllerSettings {
    let predecessors = options.pod.as_ref().map(|pod| format!("{}_{}_", pod.name, pod.uid));
    ControllerSettings {
        identity: identity(predecessors.clone()),
        predecessors,
        load_balancer_class: options.load_balancer_class.clone(),
        namespace,
        pod: options.pod.clone(),
        empty_list_hold: options.empty_list_hold,
        answers_reviews: options.webhook.listen != HttpListen::Nowhere,
        disruption_limit: options.webhook.disruption_limit.clone(),
        epoch_seconds,
        seed: host::seed(),
    }
}

/// Identifies this run of this process, after its Pod or its host: a restarted process is another candidate.
fn identity(pod: Option<String>) -> String {
    let name = || format!("{}_", host::host_name().unwrap_or_default());
    format!("{}{:016x}", pod.unwrap_or_else(name), host::seed())
}

impl Controller {
    fn now(&self) -> Instant {
        self.clock.now().monotonic
    }

    /// Carries out the core's pending actions.
    fn act(&mut self) {
        while let Some(action) = self.core.poll_action(self.now()) {
            match action {
                ControllerAction::Ask(kind, request) => self.reading.ask(kind, request),
                ControllerAction::Lease(request) => self.ask_lease(request),
                ControllerAction::Write(write) => {
                    let limit = write.not_after.since(self.now());
                    self.writing.write(write, limit);
                }
                ControllerAction::Event(record) => {
                    self.events.post(record, self.clock.now().epoch_seconds);
                }
            }
        }
        if self.core.is_synced() {
            self.reading.counters().loaded();
        }
        self.reading.counters().list_held(self.core.is_in_doubt());
        let is_leading = self.core.is_leading();
        let now = self.clock.now();
        for record in self.holds.look(now.monotonic, &self.core.held(), |_| is_leading) {
            self.events.post(record, now.epoch_seconds);
        }
        let was_leading = self.leads.send_replace(is_leading);
        if is_leading != was_leading {
            match is_leading {
                true => info!("this controller is the leader now and assigns addresses"),
                false => {
                    warn!("this controller is no longer the leader and does not assign addresses")
                }
            }
        }
    }

    /// The values of the metrics.
    fn facts(&mut self) -> ControllerFacts {
        let findings = self.core.findings();
        self.reading.counters().judged(&self.findings, &findings);
        self.findings = findings;
        let Some(outcomes) = self.core.outcomes() else { return ControllerFacts::default() };
        ControllerFacts {
            leads: true,
            services: outcomes.len(),
            pending: outcomes.values().filter(|it| it.is_pending()).count(),
            pools: PoolUse::of_all(self.core.index(), outcomes),
        }
    }

    fn ask_lease(&mut self, request: LeaseRequest) {
        let question = self.lease.ask(request, self.clock.now().epoch_seconds);
        let tell = self.lease_tell.clone();
        tokio::spawn(async move {
            let _ = tell.send(question.await).await;
        });
    }

    fn hear(&mut self, news: News) {
        if let Some((kind, reply)) = self.reading.accept(news) {
            let now = self.now();
            self.core.handle(now, kind, reply);
        }
    }

    fn answered(&mut self, written: &Written) {
        self.writing.note(written);
        let now = self.now();
        self.core.handle_write(now, written.kind, &written.name, written.reply);
    }

    /// Releases the Lease for another controller, and finishes the writes in progress.
    async fn leave(mut self) {
        self.writing.finish().await;
        let now = self.clock.now();
        if let Some(ControllerAction::Lease(request)) = self.core.leave(now.monotonic) {
            self.lease.ask(request, now.epoch_seconds).await;
        }
    }
}
