//! `fairway speaker`: the loop between a speaker's core, the API server and the routers.
//!
//! Woken by answers, by time, by readers and by signals; acts at once. The wire comes first, then the disk,
//! then status and Events. Decides nothing.

use std::sync::Arc;

use fairway_cluster::{OwnPod, ReportsSettings, SpeakerAction, SpeakerCore, SpeakerSettings};
use fairway_ground::Instant;
use fairway_model::Kind;
use fairway_seam::{Backend, BgpView, EarlierRun, Leave};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time;
use tracing::info;

use super::announcing::Announcing;
use super::api::{Api, ConnectError, ConnectionOptions};
use super::leaving::how_to_leave;
use super::reading::{News, Reading};
use super::reporting::{Reporting, ReportingInbox};
use super::secrets::{SecretAnswer, Secrets};
use crate::admin::{self, Observer};
use crate::build_info;
use crate::host::{self, Clock, Enquirer, LockError, Published, Saving};
use crate::metrics::{NodeMetrics, Server};
use crate::options::{HostOptions, Unsaid};

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
    /// The pod of this process, if known.
    pub pod: Option<OwnPod>,
    /// The DaemonSet of this pod, if known.
    pub daemon_set: Option<String>,
}

/// Why a speaker cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum SpeakerError {
    /// No API server was found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The admin socket, or one of FRR's.
    #[error(transparent)]
    Admin(#[from] admin::SocketError),
    /// The state directory.
    #[error(transparent)]
    State(#[from] LockError),
    /// The backend is gone because of an internal error: the kubelet should restart the daemon.
    #[error("the BGP backend ended unexpectedly")]
    Backend,
    /// Signals.
    #[error("cannot handle signals")]
    Signals(#[from] std::io::Error),
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
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let host = &options.host;
    // First, so that a second daemon ends before it takes a port or touches a file.
    let (socket, _socket_file) = admin::listen(&host.socket, host.socket_mode)?;
    let vty = host.vty_sockets()?;
    let _lock = host::saver::lock(&host.state_dir)?;
    host::raise_descriptor_limit();
    let api = Api::connect(&options.connection).await?;
    let earlier = host::earlier_run(&host.state_dir);
    let backend = host.start_backend(Unsaid::ListenWhenNeeded, earlier.clone());
    let clock = Clock::start();
    let (enquirer, mut enquiries) = Enquirer::new();
    let measured = NodeMetrics::new(enquirer.clone(), Arc::clone(&backend));
    // Held to the end, as are FRR's sockets: dropping it closes the port.
    let _metrics = Server::start(host.metrics_listen, Arc::clone(&api.counters), measured);
    let observer = Observer::new(enquirer, Arc::clone(&backend));
    let _vty = vty.map(|sockets| sockets.serve(&observer));
    let (give_orders, mut orders) = mpsc::channel(admin::ORDERS_MAX);
    let admin = tokio::spawn(admin::serve(socket, observer, give_orders));
    log_start(host, &api);
    let (mut speaker, mut inbox) = Speaker::new(&options, &api, &backend, clock, earlier);
    let mut seen = 0;
    loop {
        speaker.act();
        // Cancel-safe: messages are received whole or not at all.
        tokio::select! {
            Some(first) = inbox.news.recv() => speaker.hear_all(first, &mut inbox.news),
            Some(answer) = inbox.secrets.recv() => speaker.hear_secret(answer),
            number = backend.changed(seen) => {
                seen = number;
                speaker.reporting.want_look();
            }
            () = speaker.reporting.look_due() => speaker.reporting.look(),
            Some(view) = inbox.reporting.views.recv() => speaker.looked(view),
            Some((kind, reply)) = inbox.reporting.lists.recv() => {
                speaker.reporting.listed(clock.now().monotonic, kind, reply);
            }
            Some(answer) = inbox.reporting.written.recv() => {
                speaker.reporting.answered(clock.now().monotonic, &answer);
            }
            // The reader may have disconnected.
            Some(question) = enquiries.recv() => drop(question.send(speaker.published())),
            Some(order) = orders.recv() => {
                let step = speaker.announcing.obey(clock.now(), order.what);
                // An order that a crash would undo is not complete: the answer waits for the disk, the loop
                // does not.
                let is_kept = speaker.announcing.keeps_order();
                tokio::spawn(async move { order.done(step, is_kept.await) });
            }
            () = clock.wait_until(speaker.next_deadline()) => speaker.announcing.tick(clock.now()),
            () = speaker.saving.due() => speaker.save(),
            () = backend.stopped() => return Err(SpeakerError::Backend),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    drop(enquiries);
    admin.abort();
    let leave = speaker.how_to_leave(&api, &options).await;
    speaker.save();
    backend.shutdown(leave).await;
    speaker.announcing.finish().await;
    Ok(())
}

/// What arrives for a speaker.
struct Inbox {
    news: mpsc::Receiver<News>,
    secrets: mpsc::Receiver<SecretAnswer>,
    reporting: ReportingInbox,
}

/// The state of the loop.
struct Speaker {
    clock: Clock,
    core: SpeakerCore,
    reading: Reading,
    secrets: Secrets,
    announcing: Announcing,
    reporting: Reporting,
    saving: Saving,
    sources: Vec<String>,
    /// When the oldest change arrived that is not handled yet.
    heard_at: Option<time::Instant>,
}

impl Speaker {
    fn new(
        options: &SpeakerOptions,
        api: &Api,
        backend: &Arc<dyn Backend>,
        clock: Clock,
        earlier: Option<EarlierRun>,
    ) -> (Self, Inbox) {
        let settings = SpeakerSettings {
            node: options.host.node.clone(),
            load_balancer_class: options.host.load_balancer_class.clone(),
            ignore_exclude_label: options.ignore_exclude_label,
            backend: options.host.backend.kind(),
            seed: host::seed(),
        };
        let now = clock.now();
        let reports = ReportsSettings {
            node: options.host.node.clone(),
            namespace: api.namespace.clone(),
            pod: options.pod.clone(),
            seed: host::seed(),
        };
        let (reporting, reporting_inbox) = Reporting::new(api, reports, Arc::clone(backend));
        let (backend, counters) = (Arc::clone(backend), Arc::clone(&api.counters));
        let mut announcing = Announcing::new(&options.host, backend, earlier, counters, now);
        let core = SpeakerCore::new(settings, announcing.take_snapshot());
        let (reading, news) = Reading::new(api.clone(), SELECTORS);
        let (secrets, answers) = Secrets::new(api.clone());
        let sources = vec![format!("{} (namespace {})", api.server, api.namespace)];
        let saving = Saving::default();
        let speaker = Self {
            clock,
            core,
            reading,
            secrets,
            announcing,
            reporting,
            saving,
            sources,
            heard_at: None,
        };
        (speaker, Inbox { news, secrets: answers, reporting: reporting_inbox })
    }

    /// Carries out the core's pending actions.
    fn act(&mut self) {
        while let Some(action) = self.core.poll_action(self.clock.now().monotonic) {
            match action {
                SpeakerAction::Announce(announced) => {
                    self.announcing.announce(announced, self.heard_at);
                    self.saving.wanted();
                }
                SpeakerAction::Persist => self.saving.wanted(),
                SpeakerAction::Ask(kind, request) => self.reading.ask(kind, request),
                SpeakerAction::GetSecret(name) => self.secrets.get(name),
            }
        }
        self.heard_at = None;
        let now = self.clock.now();
        if self.announcing.follow(now, &mut self.core) {
            self.reporting.want_look();
        }
        self.reporting.act(now);
        if self.core.is_synced() {
            self.reading.counters().loaded();
        }
    }

    fn hear_all(&mut self, first: News, more: &mut mpsc::Receiver<News>) {
        self.hear(first);
        for _ in 1..NEWS_AT_ONCE {
            let Ok(next) = more.try_recv() else { break };
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

    fn hear_secret(&mut self, answer: SecretAnswer) {
        let (name, reply) = self.secrets.accept(answer);
        let now = self.clock.now().monotonic;
        self.core.handle_secret(now, &name, &reply);
    }

    fn looked(&mut self, view: Option<BgpView>) {
        let now = self.clock.now();
        let (findings, drain) = (self.announcing.findings(), self.announcing.drain_status());
        self.reporting.looked(now, view, &self.core, findings, drain);
    }

    fn published(&mut self) -> Arc<Published> {
        self.announcing.published(&self.core, &self.sources)
    }

    fn next_deadline(&self) -> Option<Instant> {
        let reporting = self.reporting.next_deadline(self.clock.now().monotonic);
        let all = [self.core.next_deadline(), self.announcing.next_deadline(), reporting];
        all.into_iter().flatten().min()
    }

    fn save(&mut self) {
        self.announcing.save(&self.core);
        self.saving.done();
    }

    async fn how_to_leave(&self, api: &Api, options: &SpeakerOptions) -> Leave {
        match self.announcing.how_to_leave() {
            Leave::ForGood => Leave::ForGood,
            Leave::ForRestart => {
                how_to_leave(api, &options.host.node, options.daemon_set.as_deref()).await
            }
        }
    }
}
