//! The objects of the service proxy, from the API server.
//!
//! Joins the core, which knows what is in force, with the connection and the disk. Decides nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairway_cluster::{ProxyAction, ProxyCore, ProxySettings, Trim};
use fairway_ground::printable;
use fairway_model::{Kind, ObjectChange};
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use super::api::{Api, ConnectError, ConnectionOptions};
use super::reading::{News, Reading, Selection};
use crate::host::{self, Clock, Saver, Saving, saver};
use crate::metrics::ClientCounters;

/// Answers that are handed in before anything follows from them: a burst of changes is one plan.
const NEWS_AT_ONCE: usize = 256;
/// Services and slices that this proxy is to handle: no other proxy is named, and there is an address.
const SERVED: &str = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name";

/// Which cluster, and whose part of it.
#[derive(Debug, Clone)]
pub(crate) struct ProxiedOptions {
    /// How to reach the API server.
    pub(crate) connection: ConnectionOptions,
    /// The node.
    pub(crate) node: String,
    /// How long objects of a kind stay that the API server lacks all at once.
    pub(crate) empty_list_hold: Duration,
    /// Where the last known state is kept for the next start.
    pub(crate) state_dir: PathBuf,
}

/// See the module.
pub(crate) struct Proxied {
    clock: Clock,
    core: ProxyCore,
    reading: Reading,
    news: mpsc::Receiver<News>,
    saver: Saver,
    saving: Saving,
    /// Faults and holds that were reported.
    reported: BTreeSet<String>,
}

impl Proxied {
    /// Continues from the state of the previous run; starts empty if that cannot be read.
    pub(crate) async fn start(options: ProxiedOptions) -> Result<Self, ConnectError> {
        let ProxiedOptions { connection, node, empty_list_hold, state_dir } = options;
        let api = Api::connect(&connection).await?;
        let snapshot = saver::restore_snapshot(&state_dir).unwrap_or_else(|error| {
            error!("{error}; Services are known once the API server answers");
            None
        });
        if let Some(snapshot) = &snapshot {
            let objects = snapshot.objects.len();
            info!(objects, "resuming from the objects saved before the restart");
        }
        info!(server = api.server, node, "reading Services from the API server");
        let labels = || Selection { fields: None, labels: Some(SERVED.to_owned()) };
        let own_node = Selection::of_fields(&format!("metadata.name={node}"));
        let selections =
            [(Kind::Service, labels()), (Kind::EndpointSlice, labels()), (Kind::Node, own_node)];
        let (reading, news) = Reading::new(api, selections, Trim::PROXY);
        let settings = ProxySettings { empty_list_hold, seed: host::seed() };
        let mut proxied = Self {
            clock: Clock::start(),
            core: ProxyCore::new(settings, snapshot),
            reading,
            news,
            saver: Saver::start(state_dir),
            saving: Saving::default(),
            reported: BTreeSet::new(),
        };
        proxied.act();
        Ok(proxied)
    }

    /// Waits until something has changed, or something is due. Cancel-safe.
    pub(crate) async fn step(&mut self) {
        let due = self.clock.wait_until(self.core.next_deadline());
        tokio::select! {
            Some(first) = self.news.recv() => self.hear_all(first),
            () = due => {}
            () = self.saving.due() => self.save(),
        }
        self.act();
    }

    /// The objects that came into force or went since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<ObjectChange> {
        self.core.take_changes()
    }

    /// Whether all objects have been read since the start.
    pub(crate) fn is_complete(&self) -> bool {
        self.core.is_complete()
    }

    /// The counters of requests and answers.
    pub(crate) fn counters(&self) -> &Arc<ClientCounters> {
        self.reading.counters()
    }

    /// Waits until the last known state is on disk.
    pub(crate) async fn finish(mut self) {
        self.save();
        self.saver.finish().await;
    }

    fn hear_all(&mut self, first: News) {
        self.hear(first);
        for _ in 1..NEWS_AT_ONCE {
            let Ok(next) = self.news.try_recv() else { break };
            self.hear(next);
        }
    }

    fn hear(&mut self, news: News) {
        if let Some((kind, reply)) = self.reading.accept(news) {
            self.core.handle(self.clock.now().monotonic, kind, reply);
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.core.poll_action(self.clock.now().monotonic) {
            match action {
                ProxyAction::Ask(kind, request) => self.reading.ask(kind, request),
                ProxyAction::Persist => self.saving.wanted(),
            }
        }
        if self.core.is_complete() {
            self.counters().loaded();
        }
        self.counters().list_held(!self.core.held().is_empty());
        self.report();
    }

    /// Says each fault, and that objects stay, once for as long as it lasts.
    fn report(&mut self) {
        let faults = self
            .core
            .faults()
            .map(|it| format!("{it}; the version before it, if there was one, stays in force"));
        let held = self.core.held().into_iter().map(|it| {
            format!(
                "the API server has no {} any more; those that were known stay for now",
                it.kind
            )
        });
        let now: BTreeSet<String> = faults.chain(held).collect();
        for text in now.difference(&self.reported) {
            warn!("{}", printable(text));
        }
        self.reported = now;
    }

    fn save(&mut self) {
        // An incomplete list holds less than the snapshot of the previous run.
        if self.core.is_complete() {
            self.saver.save_snapshot(self.core.snapshot());
        }
        self.saving.done();
    }
}
